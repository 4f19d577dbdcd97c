"""The servers' own counters beside a run: what the built-in engine counts is what we received."""

from __future__ import annotations

import json
import signal

import polars as pl
import pytest

KEY = "sk-hunter2-1234567"
SHORT = "--streaming --isl 32 --osl 8 --extra-inputs ignore_eos:true --random-seed 1"


@pytest.fixture(scope="module")
def run(good, simulate):
    server = simulate("--step-ms 2")
    return good(
        f"--url {server.url} {SHORT} --concurrency 4 --request-count 60 --warmup-request-count 8 --server-metrics-interval 0.1"
    )


def read(run):
    return pl.read_parquet(run.path / "server_metrics.parquet").with_columns(
        pl.col("target", "family", "type", "sample", "labels").cast(pl.String)
    )


def test_the_servers_counters_are_the_truth(run):
    [server] = run.report.server
    assert server.engine == "vllm"
    assert server.generation_tokens == 60 * 8
    assert server.prompt_tokens == run.requests["usage_prompt_tokens"].sum()
    assert (server.tokens.server, server.tokens.ours, server.tokens.uncounted) == (68 * 8, 68 * 8, 0)
    assert run.check("server_tokens").value == 0.0
    assert (server.time_to_first_token.server_count, server.time_to_first_token.ours_count) == (60, 60)
    assert server.inter_token_latency.server_count == 60 * 7
    assert server.time_to_first_token.apart_ms > 0


def test_there_is_a_read_before_every_phase_and_after_the_last(run):
    at = read(run).select("sent_ns", "at_ns").unique().sort("at_ns")
    assert at["at_ns"][0] < run.log.phases[0].start_ns
    assert at["sent_ns"][-1] > run.log.phases[-1].end_ns
    warmup, measured = run.log.phases
    assert (
        at.filter((pl.col("sent_ns") >= warmup.end_ns) & (pl.col("at_ns") <= measured.start_ns)).height >= 1
    )


def test_every_finished_request_is_counted(run):
    finished = read(run).filter(pl.col("sample") == "vllm:request_success_total")
    last = finished.filter(pl.col("at_ns") == finished["at_ns"].max())
    by_reason = {
        json.loads(labels)["finished_reason"]: value
        for labels, value in last.select("labels", "value").rows()
    }
    assert by_reason["length"] == 1 + 8 + 60  # the preflight, the warm-up, the measurement


def test_the_report_is_made_again_with_and_without_the_table(run, loadstone):
    before = (run.path / "report.json").read_bytes()
    assert loadstone("report", str(run.path)).code == run.code
    assert (run.path / "report.json").read_bytes() == before
    table = run.path / "server_metrics.parquet"
    aside = table.rename(table.with_suffix(".aside"))
    assert loadstone("report", str(run.path)).code == run.code
    [server] = json.loads((run.path / "report.json").read_text())["server"]
    assert (server["scrapes"], server["generation_tokens"]) == (run.log.scrapes[0].scrapes, None)
    assert server["reasons"]["generation_tokens"].startswith(
        "the table of the pages (server_metrics.parquet)"
    )
    aside.rename(table)


def test_an_interrupted_run_keeps_what_was_read(started, simulate, run_of, tmp_path, wait_until):
    server = simulate("--step-ms 2")
    process = started(
        f"profile --url {server.url} {SHORT} --concurrency 2 --benchmark-duration 60 --artifact-dir run"
    )
    folder = tmp_path / "run"
    wait_until(lambda: run_of(folder).recorded_bytes)
    process.send_signal(signal.SIGINT)
    process.ended()
    found = run_of(folder)
    assert found.report.run.end == "interrupted"
    assert found.report.server[0].tokens.server is not None
    assert read(found).height > 0


def test_a_run_replaces_the_pages_of_the_one_before(loadstone, simulate, tmp_path):
    server = simulate("--step-ms 2")
    words = f"profile --url {server.url} {SHORT} --request-count 3 --artifact-dir {tmp_path / 'run'}".split()
    loadstone(*words)
    assert (tmp_path / "run" / "server_metrics.parquet").exists()
    loadstone(*words, "--force", "--no-server-metrics")
    assert not (tmp_path / "run" / "server_metrics.parquet").exists()
    assert json.loads((tmp_path / "run" / "report.json").read_text())["server"] == []


def test_a_server_without_a_page_is_no_trouble(good, scripted):
    server = scripted()
    run = good(f"--url {server.url} --model m --streaming --isl 16 --request-count 3")
    [log] = run.log.scrapes
    assert (log.scrapes, log.given_up) == (0, True)
    assert not (run.path / "server_metrics.parquet").exists()
    assert run.report.server[0].scrapes == 0
    assert run.report.server[0].reasons["running_mean"] == "no page was read: HTTP 404"
    assert "metrics" not in run.out.replace("server_metrics", "")


def echo(wrong):
    """A page that says what it was sent, in a way that is no page, or in one that is."""

    def script(call, wire):
        sent = call.headers.get("authorization", "")
        page = f'up{{key="{sent}"}} 1\nvllm:generation_tokens_total 2\n'
        body = (f"\x1b[31m{sent}\n" if wrong else page).encode()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        wire.close()

    return script


@pytest.mark.parametrize("wrong", [True, False])
def test_a_page_that_repeats_the_key_is_shown_nowhere(profile, scripted, wrong):
    server = scripted(get=echo(wrong))
    run = profile(
        f"--url {server.url} --model m --streaming --isl 16 --request-count 3 --keep all --log-level debug"
        f" --server-metrics {server.url}/other",
        LOADSTONE_API_KEY=KEY,
    )
    asked = [call for call in server.calls if call.path in ("/metrics", "/other")]
    assert {call.headers["authorization"] for call in asked} == {f"Bearer {KEY}"}
    assert [log.scrapes > 0 for log in run.log.scrapes] == [not wrong] * 2
    texts = [path.read_bytes().decode("latin-1") for path in run.path.rglob("*") if path.is_file()]
    stored = [] if wrong else [str(read(run).rows())]
    for text in (*texts, *stored, run.out, run.err):
        assert "hunter2" not in text
    shown = (run.out, run.err, *((run.path / name).read_text() for name in ("loadstone.log", "run.json")))
    assert all("[31m" not in text for text in shown)
    if wrong:
        assert "was not read (--server-metrics): it is not in Prometheus's format." in " ".join(
            run.out.split()
        )
    else:
        assert '{"key":"Bearer ***"}' in set(read(run)["labels"])
