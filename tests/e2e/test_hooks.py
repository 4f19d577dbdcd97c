"""What a server is asked beside the load, from the command line: to be there, to forget, to be profiled."""

from __future__ import annotations

import signal
import threading

import pytest

SHORT = "--streaming --isl 16 --osl 4 --extra-inputs ignore_eos:true --random-seed 1"
RESET, START, STOP = "/reset_prefix_cache", "/start_profile", "/stop_profile"


@pytest.fixture(scope="module")
def hooked(good, simulate):
    """A run with a warm-up that has everything asked for, and the truth of the engine, ordered by arrival."""
    server = simulate("--step-ms 1")
    run = good(
        f"--url {server.url} {SHORT} --request-count 10 --warmup-request-count 5 --reset-kv-cache --server-profiler"
    )
    rows = server.truth(run, 1 + 1 + 5 + 1 + 10 + 1).values()
    return run, sorted(rows, key=lambda row: row.received_ns)


def kinds(rows):
    """What each request was: a hook's path, the preflight, or of the load."""
    return [row.hook or ("preflight" if row.request_id.startswith("preflight-") else "load") for row in rows]


def test_the_cache_is_emptied_once_behind_the_preflight_and_before_the_warm_up(hooked):
    _, rows = hooked
    assert kinds(rows)[:3] == ["preflight", RESET, "load"]
    assert kinds(rows).count(RESET) == 1


def test_the_profiler_runs_while_the_measured_phase_does(hooked):
    run, rows = hooked
    seen = kinds(rows)
    assert seen == ["preflight", RESET, *["load"] * 5, START, *["load"] * 10, STOP]
    warmup, measured = run.log.phases
    start, stop = rows[7], rows[-1]
    assert warmup.end_ns <= start.received_ns <= measured.start_ns
    assert stop.received_ns >= measured.end_ns


def test_the_run_tells_what_was_asked_and_what_it_means(hooked):
    run, _ = hooked
    assert [(hook.name, hook.http_status, hook.fault) for hook in run.log.hooks] == [
        ("reset_kv_cache", 200, None),
        ("profiler_start", 200, None),
        ("profiler_stop", 200, None),
    ]
    told = " ".join(run.log.notices)
    assert "The server's prefix cache was emptied before the load." in told
    assert "The server's profiler ran while the load was measured" in told


def test_nothing_of_it_happens_unasked(good, scripted):
    server = scripted()
    run = good(f"--url {server.url} --model m --streaming --isl 16 --request-count 3")
    assert {call.path for call in server.posts} == {"/v1/chat/completions"}
    assert run.log.hooks == []


def hooks(**answers):
    """A script for what has no row: the preflight is answered well, a hook with the status given for it, else 200."""

    def answer(call, wire):
        if call.path == "/v1/chat/completions":
            wire.answer(call)
        elif (status := answers.get(call.path.strip("/"), "200 OK"))[:3] == "200":
            wire.respond({})
        else:
            wire.refuse(status, "no such thing")

    return answer


@pytest.mark.parametrize(
    ("flag", "refused", "advice"),
    [
        ("--reset-kv-cache", "reset_prefix_cache", "VLLM_SERVER_DEV_MODE=1"),
        ("--server-profiler", "start_profile", "--server-profiler-start-path"),
    ],
)
def test_a_refusal_before_the_load_ends_it_and_leaves_nothing(profile, scripted, flag, refused, advice):
    server = scripted(preflight=hooks(**{refused: "404 Not Found"}))
    run = profile(f"--url {server.url} --model m --streaming --isl 16 --request-count 3 {flag}")
    assert run.code == 1
    assert f"(POST /{refused}) failed: HTTP 404: no such thing" in run.err
    assert advice in run.err
    assert not run.path.exists()
    assert len(server.posts) == 2


def test_a_profiler_that_does_not_start_behind_a_warm_up_is_a_notice(good, scripted):
    server = scripted(preflight=hooks(start_profile="500 Oops"))
    run = good(
        f"--url {server.url} --model m --streaming --isl 16 --request-count 3 --warmup-request-count 2 --server-profiler"
    )
    assert run.counts == {"ok": 3}
    assert any(notice.startswith("Measured without the server's profiler: ") for notice in run.log.notices)
    assert STOP not in [call.path for call in server.posts]


def test_a_profiler_that_does_not_stop_is_a_notice(good, scripted):
    server = scripted(preflight=hooks(stop_profile="500 Oops"))
    run = good(f"--url {server.url} --model m --streaming --isl 16 --request-count 3 --server-profiler")
    assert any(notice.startswith("A server's profiler may still run: ") for notice in run.log.notices)


def test_an_interrupt_stops_the_profiler(running, scripted):
    server = scripted(lambda call, wire: wire.answer(call, words=["word "] * 200), preflight=hooks())
    process = running(
        "--model m --streaming --isl 16 --concurrency 2 --benchmark-duration 60 --server-profiler",
        url=server.url,
    )
    process.send_signal(signal.SIGINT)
    assert process.ended().code == 130
    asked = [call.path for call in server.posts if call.row is None]
    assert asked == ["/v1/chat/completions", START, STOP]


# ---- a server that is not there yet -----------------------------------------------------------------


def wait(url, *words):
    flags = "--model m --streaming --isl 16 --request-count 3 --wait-for-model-interval 0.05"
    return " ".join([f"--url {url} {flags}", *words])


def test_a_server_that_still_loads_is_waited_for(good, scripted):
    loading = ["503 Service Unavailable"] * 2

    def answer(call, wire):
        if loading:
            wire.refuse(loading.pop(), "loading the model")
        else:
            wire.answer(call)

    server = scripted(preflight=answer)
    run = good(wait(server.url, "--wait-for-model-timeout 30"))
    assert run.counts == {"ok": 3}
    assert [call.row for call in server.posts] == [None, None, None, None, 0, 1, 2]
    assert f"waiting up to 30 s for a model at http://{server.url}; not yet: " in run.err
    assert "HTTP 503: loading the model" in run.err


def test_a_server_that_is_started_later_is_waited_for(started, scripted, wait_until, run_of, tmp_path):
    unused = scripted()
    unused.close()  # its port answers nobody, until an engine listens there
    said = tmp_path / "said"
    with said.open("w") as stderr:
        words = wait(unused.url, "--wait-for-model-timeout 60", "--artifact-dir run")
        process = started(f"profile {words}", stderr=stderr)
    wait_until(lambda: "not yet: cannot connect" in said.read_text())
    started(f"simulate --port {unused.port} --model m --step-ms 1")
    assert process.ended().code in (0, 5), said.read_text()
    assert sum(run_of(tmp_path / "run").counts.values()) == 3


def test_after_the_time_the_last_reason_is_told(profile, scripted):
    server = scripted(preflight=lambda call, wire: wire.refuse("503 No", "still loading"))
    run = profile(wait(server.url, "--wait-for-model-timeout 0.3"))
    assert run.code == 1
    assert "no model answered within 0.3 s (--wait-for-model-timeout). The last try: " in run.err
    assert "HTTP 503: still loading" in run.err
    assert not run.path.exists()


def test_a_refused_key_is_not_waited_for(profile, scripted):
    server = scripted(preflight=lambda call, wire: wire.refuse("401 No", "no key"))
    run = profile(wait(server.url, "--wait-for-model-timeout 60"))
    assert run.code == 1
    assert "HTTP 401: no key" in run.err
    assert len(server.posts) == 1


def test_an_interrupt_ends_the_wait_at_once(started, scripted, tmp_path):
    asked = threading.Event()

    def loading(call, wire):
        asked.set()
        wire.refuse("503 No", "loading")

    server = scripted(preflight=loading)
    process = started(f"profile {wait(server.url, '--wait-for-model-timeout 600', '--artifact-dir run')}")
    assert asked.wait(30)
    process.send_signal(signal.SIGINT)
    done = process.ended()
    assert done.code == 130
    assert done.err.endswith("loadstone: error: interrupted.\n")
    assert not (tmp_path / "run").exists()


# ---- fields a server does not take ------------------------------------------------------------------


def picky(call, wire):
    """Does not know ignore_eos."""
    if "ignore_eos" in call.body:
        wire.refuse("400 Bad Request", "Unknown field: ignore_eos")
    else:
        wire.answer(call)


STRICT = "--model m --streaming --isl 16 --request-count 3 --extra-inputs ignore_eos:true"


def test_a_refused_field_is_left_out_with_a_notice(good, scripted):
    server = scripted(picky, picky)
    run = good(f"--url {server.url} {STRICT}")
    assert run.counts == {"ok": 3}
    assert any(notice.startswith("The server does not take ignore_eos") for notice in run.log.notices)


def test_strictly_it_stops_the_run(profile, scripted):
    server = scripted(picky, picky)
    run = profile(f"--url {server.url} {STRICT} --strict")
    assert run.code == 1
    assert "the server does not take ignore_eos (HTTP 400: Unknown field: ignore_eos (400))" in run.err
    assert "do without --strict" in run.err
    assert len(server.posts) == 1
