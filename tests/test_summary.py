from __future__ import annotations

import json
import math

import msgspec
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from loadstone import folder as run_folder
from loadstone.errors import Exit, LoadstoneError
from loadstone.folder import DeathLog, PhaseLog, write_run
from loadstone.metrics import names
from loadstone.read.faults import Evidence
from loadstone.read.outcome import OUTCOMES
from loadstone.read.schema import LATER
from loadstone.report import Failing, Report
from loadstone.summary import exit_code, summarise


def warmup(planned):
    """A warm-up that is over when the clock begins."""
    return PhaseLog(
        name="warmup", kind="warmup", first_row=0, planned=planned, start_ns=0, stop_ns=0, end_ns=0
    )


@pytest.fixture
def folder_of(tmp_path, frame, run_log):
    """A run folder with these rows; keywords go to `run_log`."""

    def make(*rows, **run):
        measured = sum(row["phase"] == "measured" for row in rows)
        frame(*rows).write_parquet(tmp_path / run_folder.REQUESTS, row_group_size=3)
        log = run_log(**{"planned": measured, **run})
        if "phases" not in run and measured < len(rows):
            log.phases.insert(0, warmup(planned=len(rows) - measured))
        write_run(tmp_path, log)
        return tmp_path

    return make


@pytest.fixture
def report(folder_of):
    return lambda *rows, **run: summarise(folder_of(*rows, **run))


def numbers(node):
    """All numbers of a tree of JSON."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        return [number for one in node for number in numbers(one)]
    return [node] if isinstance(node, float) else []


def test_a_report_holds_every_metric_in_order(report, answer):
    found = report(answer(50, 60, 70, sent=0), answer(150, 170, sent=100))
    assert list(found.metrics) == list(names())
    ttft = found.metrics["time_to_first_token"]
    assert (ttft.unit, ttft.better, ttft.count, ttft.mean, ttft.std) == ("ms", "lower", 2, 50.0, 0.0)
    itl = found.metrics["inter_token_latency"]
    assert (itl.count, itl.min, itl.p50, itl.max) == (3, 10.0, 10.0, 20.0)
    assert found.metrics["request_count"].mean == 2.0
    assert found.run.duration_s == 0.17
    assert exit_code(found) == Exit.DONE


def test_a_run_lasts_until_a_limit_has_ended_its_last_request_and_its_rates_do_not(report, answer):
    found = report(answer(400, 500, sent=0), answer(sent=0, done=300_000, outcome="timeout-first-token"))
    assert found.run.duration_s == 300.0
    assert found.metrics["benchmark_duration"].mean == 0.5


def test_thin_percentiles_are_marked_and_still_given(report, answer):
    itl = report(answer(*range(50, 75))).metrics["inter_token_latency"]
    assert itl.p99 == 1.0
    assert "p99" in itl.thin
    assert "p50" not in itl.thin


def test_outcomes_add_up_and_list_only_what_happened(report, answer, unsent):
    rows = [
        answer(5),
        answer(5, outcome="ok"),
        answer(5, outcome="reset"),
        unsent(),
        answer(1, phase="warmup"),
    ]
    found = report(*rows).outcomes
    assert found.counts == {"ok": 1, "ok-length": 1, "reset": 1, "not-sent": 1}
    assert (found.planned, found.warmup, found.cooldown) == (4, {"ok-length": 1}, {})


def test_outcomes_of_several_phases_are_told_by_their_kind(report, answer, phase_log):
    load = {
        "phases": (
            {"name": "cold", "kind": "warmup", "request_count": 1}, {"name": "warm", "kind": "warmup", "request_count": 2},
            {"name": "low"}, {"name": "high"}, {"name": "after", "kind": "cooldown", "duration_s": 1.0},
        )
    }  # fmt: skip
    logs = [
        phase_log("cold", 0, 1, kind="warmup", planned=1), phase_log("warm", 1, 2, kind="warmup", planned=2),
        phase_log("low", 2, 3, planned=1), phase_log("high", 3, 4, planned=2), phase_log("after", 4, 5, kind="cooldown", planned=1),
    ]  # fmt: skip
    named = ["cold", "warm", "warm", "low", "high", "high", "after"]
    ends = ["ok", "ok", "reset", "ok", "ok", "empty", "cut"]
    rows = [answer(5, phase=name, outcome=end) for name, end in zip(named, ends, strict=True)]
    found = report(*rows, phases=logs, load=load)
    outcomes = found.outcomes
    assert (outcomes.planned, outcomes.counts) == (3, {"ok": 2, "empty": 1})
    assert (outcomes.warmup, outcomes.cooldown) == ({"ok": 2, "reset": 1}, {"cut": 1})
    assert [one.name for one in found.phases] == ["cold", "warm", "low", "high", "after"]
    assert (found.load.offered, found.load.sent) == (3, 3)
    with pytest.raises(
        LoadstoneError, match=r"holds 1 cooldown requests, but run\.json says that 2 were planned"
    ):
        report(*rows, phases=[*logs[:-1], replace(logs[-1], planned=2)], load=load)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(drawn=st.lists(st.sampled_from(sorted(OUTCOMES)), max_size=12))
def test_every_planned_request_has_one_outcome(drawn, report, answer):
    found = report(*(answer(5, outcome=outcome) for outcome in drawn))
    assert sum(found.outcomes.counts.values()) == found.outcomes.planned == len(drawn)


def test_a_table_that_does_not_add_up_is_refused(report, answer):
    with pytest.raises(
        LoadstoneError, match=r"holds 1 measured requests, but run\.json says that 2 were planned"
    ):
        report(answer(5), planned=2)


@pytest.mark.parametrize("planned", [0, 2])
def test_a_warmup_that_does_not_add_up_is_refused_as_well(planned, report, answer, run_log):
    phases = [warmup(planned), *run_log().phases]
    with pytest.raises(
        LoadstoneError, match=rf"holds 1 warm-up requests, but run\.json says that {planned} were planned"
    ):
        report(answer(1, phase="warmup"), answer(5), phases=phases)


@pytest.mark.parametrize("missing", [run_folder.RUN, run_folder.REQUESTS])
def test_a_folder_without_a_run_is_refused(missing, folder_of, answer):
    folder = folder_of(answer(5))
    (folder / missing).unlink()
    with pytest.raises(LoadstoneError, match=f"{missing} is missing"):
        summarise(folder)


def test_a_table_of_an_older_run_is_read_without_the_columns_that_came_later(folder_of, answer):
    folder = folder_of(answer(5, 6), answer(7, 9))
    path = folder / run_folder.REQUESTS
    pl.read_parquet(path).drop(LATER).write_parquet(path)
    metrics = summarise(folder).metrics
    assert metrics["time_to_first_token"].mean == 6.0
    assert metrics["http_req_waiting"].mean is None
    assert "version" in metrics["http_req_waiting"].reason


def test_a_table_without_a_column_that_every_run_has_is_refused(folder_of, answer):
    path = folder_of(answer(5)) / run_folder.REQUESTS
    pl.read_parquet(path).drop("sent_ns").write_parquet(path)
    with pytest.raises(LoadstoneError, match="column sent_ns is missing"):
        summarise(path.parent)


def test_faults_of_one_kind_are_counted_together(folder_of, answer):
    rows = [answer(outcome="http-error", fault=f"HTTP 429: retry in {i} s") for i in range(3)]
    folder = folder_of(*rows, answer(outcome="reset", fault="the connection was reset"), answer(5))
    (folder / run_folder.FAULTS).mkdir()
    Evidence(folder / run_folder.FAULTS).keep("http-error", "HTTP 429: retry in 7 s", "id", b"raw")
    assert summarise(folder).outcomes.faults == (
        {
            "outcome": "http-error",
            "message": "HTTP 429: retry in 0 s",
            "count": 3,
            "sample": "faults/http-error-1.http",
        },
        {"outcome": "reset", "message": "the connection was reset", "count": 1, "sample": None},
    )


def test_a_fault_of_which_nothing_could_be_kept_has_no_sample(folder_of, answer):
    folder = folder_of(answer(outcome="connect-refused", fault="nobody listens"), answer(5))
    (folder / run_folder.FAULTS).mkdir()
    Evidence(folder / run_folder.FAULTS).keep("connect-refused", "nobody listens", "id", b"")
    (fault,) = summarise(folder).outcomes.faults
    assert (fault["count"], fault["sample"]) == (1, None)


def test_when_nothing_succeeded_every_latency_is_null_with_its_reason(report, answer):
    found = report(answer(5, outcome="http-error"), answer(outcome="connect"))
    for name in ("time_to_first_token", "inter_token_latency", "request_latency", "request_throughput"):
        result = found.metrics[name]
        assert (result.count, result.mean, result.p50, result.reason) == (
            0,
            None,
            None,
            "no request succeeded.",
        )
    assert found.metrics["error_rate"].mean == 100.0
    assert found.certificate.verdict == "INVALID"
    assert exit_code(found) == Exit.FAILED


def test_an_empty_table_has_a_report(report):
    found = report()
    assert all(result.mean is None and result.reason for result in found.metrics.values())
    assert (found.run.duration_s, found.series.sent) == (None, ())
    assert exit_code(found) == Exit.FAILED


def test_a_run_that_never_came_to_its_measured_phase_has_a_report(report):
    found = report(phases=[], end="interrupted")
    assert found.outcomes.planned == 0
    assert exit_code(found) == Exit.INTERRUPTED


def test_exit_codes_by_precedence(report, answer):
    good = report(answer(5))
    broken = replace(good, certificate=replace(good.certificate, verdict="INVALID"))
    assert exit_code(broken) == Exit.INVALID
    assert exit_code(replace(broken, run=replace(good.run, end="aborted"))) == Exit.FAILED
    assert exit_code(replace(broken, run=replace(good.run, end="interrupted"))) == Exit.INTERRUPTED


def test_exit_codes_go_by_what_stopped_the_load(report, answer):
    good = report(answer(5))
    invalid = replace(good, certificate=replace(good.certificate, verdict="INVALID"))
    for by, code in (("user", Exit.INTERRUPTED), ("failures", Exit.FAILED), ("trouble", Exit.FAILED)):
        assert exit_code(replace(good, run=replace(good.run, stopped_by=by))) == code
        assert exit_code(replace(invalid, run=replace(good.run, stopped_by=by))) == code
    assert exit_code(report(answer(5, outcome="reset"))) == Exit.FAILED  # though its certificate is INVALID


def test_when_all_workers_died_the_run_did_not_fail_but_is_invalid(report, answer):
    deaths = [DeathLog(process="worker 0", fault="killed by signal 9", noticed_ns=1)]
    rows = answer(5), answer(outcome="client-fault")
    found = report(*rows, end="aborted", stopped_by="workers", stopped_why="all died", deaths=deaths)
    assert (found.run.stopped_by, exit_code(found)) == ("workers", Exit.INVALID)


@pytest.fixture
def config(run_log):
    """The config of a run that was to be given up at this share of failures."""

    def make(share):
        tree = run_log().config
        tree["load"]["failed_request_threshold"] = share
        return tree

    return make


STOPPED = {"stopped_by": "failures", "stopped_why": "60 of the last 100 requests failed", "end": "aborted"}


def ended(answer, good, *, at_ms):
    """A request that ended at a moment, well or not."""
    return answer(at_ms, sent=0, outcome="ok" if good else "reset")


def test_a_run_given_up_says_since_when_and_how_it_failed(report, answer, config):
    rows = [ended(answer, i % 10 > 0, at_ms=10 * i) for i in range(1, 50)]
    rows += [ended(answer, False, at_ms=500 + i) for i in range(30)]
    rows += [
        ended(answer, False, at_ms=2000),
        ended(answer, True, at_ms=2100),
        answer(600, outcome="cancelled"),
    ]
    rows[-10].update(outcome="timeout-idle")
    found = report(*rows, config=config(0.5), **STOPPED).run
    assert (found.stopped_by, found.stopped_why) == ("failures", STOPPED["stopped_why"])
    # what ended after the stop, at 1000 ms, is counted too: as in the outcomes
    assert found.failing == Failing(since_s=0.5, outcome="reset", of_outcome=30, failed=31, ended=32)


def test_a_success_among_failures_does_not_begin_them_anew(report, answer, config):
    good = [True] * 20 + [False, False, False, True] * 10
    rows = [ended(answer, ok, at_ms=1 + i) for i, ok in enumerate(good)]
    assert report(*rows, config=config(0.5), **STOPPED).run.failing == Failing(
        since_s=0.021, outcome="reset", of_outcome=30, failed=30, ended=40
    )


def test_what_the_client_lost_did_not_begin_the_failures(report, answer, config):
    rows = [ended(answer, True, at_ms=1 + i) for i in range(20)]
    rows += [answer(30 + i, sent=0, outcome="client-fault") for i in range(10)]
    rows += [ended(answer, False, at_ms=100 + i) for i in range(30)]
    assert report(*rows, config=config(0.5), **STOPPED).run.failing == Failing(
        since_s=0.1, outcome="reset", of_outcome=30, failed=30, ended=30
    )


def test_failures_are_held_against_the_share_that_was_allowed(report, answer, config):
    good = [True] * 50 + [False, True, True, True] * 10
    rows = [ended(answer, ok, at_ms=1 + i) for i, ok in enumerate(good)]
    found = report(*rows, config=config(0.1), **STOPPED).run
    assert (found.failing.since_s, found.limits["load.failed_request_threshold"]) == (0.051, 0.1)


def test_where_the_share_is_not_known_no_moment_is_made_up(report, answer, config):
    found = report(*(answer(5, outcome="reset") for _ in range(30)), config=config(None), **STOPPED).run
    assert (found.failing, found.limits["load.failed_request_threshold"]) == (None, None)


def test_a_run_given_up_in_its_warm_up_tells_how_it_failed(report, answer, config, phase_log, unsent):
    refused = [
        answer(10 * i, sent=0, phase="warmup", outcome="http-server-error", fault="HTTP 500: the engine died")
        for i in range(1, 31)
    ]
    late = unsent(phase="warmup")
    phases = [phase_log("warmup", -200, 400, kind="warmup", planned=31)]
    found = report(*refused, late, config=config(0.5), phases=phases, **STOPPED)
    assert found.run.failing == Failing(
        kind="warmup", since_s=0.21, outcome="http-server-error", of_outcome=30, failed=30, ended=30
    )
    assert found.certificate.headline == "nothing was measured: the load was stopped in the warm-up."
    (succeeded,) = [check for check in found.certificate.checks if check.name == "succeeded"]
    assert succeeded.advice == "See the server's log, and its words among the faults."
    assert found.run.notices[0] == (
        "30 of 31 requests of phase warmup failed: http-server-error 30; most often: HTTP 500: the engine died."
    )


def test_a_run_given_up_in_its_cooldown_is_not_judged_by_what_was_measured(report, answer, config, phase_log):
    rows = [answer(5, sent=0), *(answer(1000 + i, phase="cooldown", outcome="reset") for i in range(20))]
    logs = [
        phase_log("measured", 0, 900, planned=1), phase_log("cooldown", 950, 1100, kind="cooldown", planned=20),
    ]  # fmt: skip
    failing = report(*rows, config=config(0.5), phases=logs, **STOPPED).run.failing
    assert (failing.kind, failing.since_s, failing.failed) == ("cooldown", 0.05, 20)


def test_a_run_that_was_not_given_up_has_no_such_moment(report, answer, config):
    rows = [answer(5, outcome="reset")] * 3
    assert report(*rows, config=config(0.5)).run.failing is None
    interrupted = report(*rows, config=config(0.5), stopped_by="user", stopped_why="interrupted")
    assert interrupted.run.failing is None


def test_limits_are_told_as_they_applied(report, answer, config):
    assert report(answer(5), config=config(1.0)).run.limits == {
        "endpoint.connect_timeout_s": 10.0,
        "endpoint.first_token_timeout_s": 600.0,
        "endpoint.idle_timeout_s": 300.0,
        "endpoint.timeout_s": 1800.0,
        "endpoint.max_response_bytes": 67_108_864,
        "load.failed_request_threshold": 1.0,
        "load.grace_s": 30.0,
    }


def test_reasons_for_not_sending_are_counted_apart_from_faults(report, answer, unsent):
    rows = [unsent(fault=f"the slot of worker {i} was taken") for i in range(3)]
    found = report(
        *rows, unsent(fault="interrupted"), unsent(), answer(5, outcome="reset", fault="cut short")
    )
    assert found.outcomes.not_sent == (
        {"reason": "the slot of worker 0 was taken", "count": 3},
        {"reason": "interrupted", "count": 1},
        {"reason": "planned, but never sent", "count": 1},
    )
    assert [fault["outcome"] for fault in found.outcomes.faults] == ["reset"]


def test_all_kinds_of_faults_are_counted_and_what_was_cut_off_is_none(report, answer):
    words = [f"reason {chr(ord('g') + i)}" for i in range(20)] + ["reason zz"]
    rows = [answer(5, outcome="reset", fault=word) for word in words]
    found = report(*rows, answer(5, outcome="cut", fault="under way"), answer(5)).outcomes
    assert (len(found.faults), found.fault_kinds) == (20, 21)
    assert {fault["outcome"] for fault in found.faults} == {"reset"}


def test_the_report_is_strict_json_and_comes_back(report, answer, unsent):
    found = report(answer(50, 60), answer(), answer(0, sent=0), answer(5, outcome="reset"), unsent())
    packed = msgspec.json.encode(found)
    plain = json.loads(packed, parse_constant=pytest.fail)
    assert "p99_9" in plain["metrics"]["time_to_first_token"]
    assert all(map(math.isfinite, numbers(plain)))
    assert msgspec.json.decode(packed, type=Report) == found


def test_warmup_is_in_no_number(report, answer):
    found = report(answer(500, sent=0, phase="warmup"), answer(1050, sent=1000))
    assert found.metrics["time_to_first_token"].max == 50.0


def test_notices_say_what_the_numbers_mean(report, answer, run_log):
    log = run_log()
    found = report(
        answer(5, phase="warmup"),
        answer(5, 6, output_tokens_source="tokenizer", planned_output_tokens=2),
        answer(5, 6, planned_output_tokens=4),
        answer(5) | {"output_tokens": None, "output_tokens_source": None},
        answer(5, outcome="cut"),
        phases=[warmup(1), replace(log.phases[0], planned=4)],
        dataset=replace(log.dataset, reused=3, lengths_exact=False),
        notices=["said by the run"],
    )
    said = [
        "said by the run",
        "3 requests repeated a prompt sent before",
        "1 warm-up request left out of every number.",
        "1 request was cut off when the run ended. Plain latencies",
        "The server sent no usage that counts for 1 of 3 answers: their output tokens are counted by our tokenizer",
        "The output tokens of 1 of 3 answers are not known",
    ]
    assert len(found.run.notices) == len(said)
    for notice, start in zip(found.run.notices, said, strict=True):
        assert notice.startswith(start)


def test_a_plain_run_of_many_requests_needs_no_notice(folder_of, answer):
    folder = folder_of(*(answer(5, 6, planned_output_tokens=2) for _ in range(100)), planned=10_000)
    few = pl.read_parquet(folder / run_folder.REQUESTS)
    pl.concat([few] * 100).write_parquet(folder / run_folder.REQUESTS)
    assert summarise(folder).run.notices == ()


def test_the_environment_holds_what_the_run_knew(report, answer):
    found = report(answer(5))
    assert found.environment["host"] == "test"
    assert found.environment["dataset"]["tokenizer"] == "builtin"
    assert found.environment["preflight"] is None
    assert found.run.files == {"run": "run.json", "requests": "requests.parquet"}


def test_a_metric_reads_the_file_part_by_part(folder_of, answer, monkeypatch):
    monkeypatch.setattr("loadstone.metrics._tables._PART_TOKENS", 8)
    monkeypatch.setattr("loadstone.metrics._tables._READ_TOKENS", 20)
    largest = []
    explode = pl.Series.explode
    monkeypatch.setattr(pl.Series, "explode", lambda s, **k: largest.append(len(s)) or explode(s, **k))
    found = summarise(folder_of(*(answer(50, 60, 75, 80) for _ in range(50))))
    assert found.metrics["inter_token_latency"].count == 150
    assert max(largest) == 2
