"""What servers are asked beside the load, in which order, and what comes of a refusal."""

from __future__ import annotations

import threading
import time

import pytest

from loadstone import hooks, patience
from loadstone.config import Config, EndpointConfig, LoadConfig, ServerConfig
from loadstone.errors import TargetError
from loadstone.folder import HookLog
from loadstone.hooks import Profiler, notices, reset_caches
from loadstone.load.reach import reach
from loadstone.plan import schedule
from loadstone.wire import url

pytestmark = pytest.mark.timeout(20)
RESET, START, STOP = "/reset_prefix_cache", "/start_profile", "/stop_profile"
OK = (200, {})


@pytest.fixture
def servers(playing, monkeypatch):
    """Starts servers that give these answers, as they are reached; `servers.started` are they."""
    monkeypatch.setattr(hooks, "PAUSES_S", (0.001, 0.002))
    servers_started = []

    def start(*answers, prefix="", **endpoint):
        servers_started.extend(playing(given) for given in answers)
        config = EndpointConfig(**endpoint)
        return [reach(url.parse(f"127.0.0.1:{server.port}{prefix}"), config) for server in servers_started]

    start.started = servers_started
    return start


def wanting(**server):
    return Config(server=ServerConfig(**server))


def paths(server):
    return [call.path for call in server.calls]


# ---- the prefix cache -------------------------------------------------------------------------------


def test_nothing_is_asked_unless_it_is_wanted(servers):
    assert reset_caches(servers({RESET: [OK]}), Config(), "x", print) == []
    assert servers.started[0].calls == []


def test_every_server_empties_its_cache(servers):
    logs = reset_caches(servers({RESET: [OK]}, {RESET: [OK]}), wanting(reset_kv_cache=True), "x", print)
    assert [paths(server) for server in servers.started] == [[RESET], [RESET]]
    assert [(log.name, log.target, log.path, log.http_status, log.attempts, log.fault) for log in logs] == [
        ("reset_kv_cache", 0, RESET, 200, 1, None),
        ("reset_kv_cache", 1, RESET, 200, 1, None),
    ]
    assert logs[0].start_ns < logs[0].end_ns <= logs[1].start_ns


def test_it_is_a_post_to_the_origin_with_the_key_and_the_headers(servers):
    given = {"api_key": "sk-1", "headers": ("X-Team: blue",)}
    reached = servers({RESET: [OK]}, prefix="/gateway/v1", **given)
    config = Config(endpoint=EndpointConfig(**given), server=ServerConfig(reset_kv_cache=True))
    reset_caches(reached, config, "x", print)
    (call,) = servers.started[0].calls
    assert (call.method, call.path, call.body) == ("POST", RESET, None)
    assert call.headers["Authorization"] == "Bearer sk-1"
    assert call.headers["X-Team"] == "blue"
    assert call.headers["X-Request-ID"] == "reset_kv_cache.x"


@pytest.mark.parametrize("status", [409, 423, 429, 503])
def test_a_busy_server_is_asked_again(servers, status):
    busy = (status, {"error": "busy"})
    (log,) = reset_caches(servers({RESET: [busy, busy, busy, OK]}), wanting(reset_kv_cache=True), "x", print)
    assert (log.attempts, log.http_status, log.fault) == (4, 200, None)
    assert paths(servers.started[0]) == [RESET] * 4


def test_a_server_that_stays_busy_ends_the_start(servers, monkeypatch):
    monkeypatch.setattr(hooks, "BUSY_S", 0.05)
    with pytest.raises(TargetError, match=r"failed: HTTP 503: busy\. It was asked again for 0\.05 s"):
        reset_caches(servers({RESET: [(503, {"error": "busy"})]}), wanting(reset_kv_cache=True), "x", print)
    assert len(servers.started[0].calls) > 2


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (404, "vLLM can only with VLLM_SERVER_DEV_MODE=1 in its environment; for SGLang give --reset-kv-cache-path /flush_cache."),
        (401, "Give a valid key with --api-key."),
        (500, ""),
    ],
)  # fmt: skip
def test_any_other_refusal_ends_the_start_and_says_what_to_do(servers, status, advice):
    with pytest.raises(TargetError) as refused:
        reset_caches(servers({RESET: [(status, {"error": "no"})]}), wanting(reset_kv_cache=True), "x", print)
    where = (
        f"http://127.0.0.1:{servers.started[0].port}: the request to empty its prefix cache (POST {RESET})"
    )
    assert str(refused.value) == f"{where} failed: HTTP {status}: no. {advice}".rstrip()
    assert len(servers.started[0].calls) == 1


def test_a_server_that_says_nothing_ends_the_start(servers):
    config = wanting(reset_kv_cache=True, reset_kv_cache_timeout_s=0.05)
    with pytest.raises(
        TargetError, match=rf"no answer within 0\.05 s\. It was asked to empty .* \(POST {RESET}\)"
    ):
        reset_caches(servers({RESET: [None]}), config, "x", print)


def test_neither_a_key_nor_a_control_character_is_passed_on(servers):
    path = f"{RESET}?key=hunter2"
    config = Config(
        endpoint=EndpointConfig(api_key="sk-secret-1"),
        server=ServerConfig(reset_kv_cache=True, reset_kv_cache_path=path),
    )
    answer = (500, {"error": "\x1b[2Jno hunter2, no sk-secret-1"})
    with pytest.raises(TargetError) as refused:
        reset_caches(servers({path: [answer]}), config, "x", print)
    told = str(refused.value)
    assert [word for word in ("hunter2", "sk-secret-1", "\x1b") if word in told] == []
    assert r"\x1b[2Jno ***, no ***" in told


# ---- the profiler -----------------------------------------------------------------------------------


@pytest.fixture
def profiled(servers):
    """A profiler of servers with these answers, for a load of these shapes; and the phases of that load."""

    said = []

    def make(*answers, wanted=True, **load):
        phases = schedule.phases(LoadConfig(request_count=1, **load))
        return Profiler(servers(*answers), wanting(profiler=wanted), "x", phases, said.append), phases

    make.said = said
    return make


WARM = {"warmup_request_count": 1, "cooldown_request_count": 1}
BOTH = {START: [OK], STOP: [OK]}


def never():
    """Nobody gives the run up."""
    return False


def test_it_runs_from_the_first_measured_phase_to_the_end_of_the_last(profiled, servers):
    profiler, (warmup, measured, cooldown) = profiled(BOTH, **WARM)
    seen = []
    with profiler:
        for phase in (warmup, measured, cooldown):
            profiler.begins(phase, never)
            seen.append(paths(servers.started[0])[:1])
            profiler.ended(phase)
        logs = profiler.close(never)
    assert seen == [[], [START], [START]]
    assert paths(servers.started[0]) == [START, STOP]
    assert [(log.name, log.http_status, log.fault) for log in logs] == [
        ("profiler_start", 200, None),
        ("profiler_stop", 200, None),
    ]


def test_it_is_left_alone_unless_it_is_wanted(profiled, servers):
    profiler, (measured,) = profiled(BOTH, wanted=False)
    with profiler:
        profiler.start()
        profiler.begins(measured, never)
        profiler.ended(measured)
        assert profiler.close(never) == []
    assert servers.started[0].calls == []


def test_before_anything_was_sent_a_refused_start_ends_it_and_what_had_begun_is_stopped(profiled, servers):
    profiler, _ = profiled(BOTH, {STOP: [OK]})
    with (
        pytest.raises(TargetError, match=r"to start its profiler \(POST /start_profile\) failed: HTTP 404"),
        profiler,
    ):
        profiler.start()
    assert [paths(server) for server in servers.started] == [[START, STOP], [START]]


def test_later_a_refused_start_is_only_told(profiled, servers):
    profiler, (_, measured) = profiled({STOP: [OK]}, warmup_request_count=1)
    with profiler:
        profiler.begins(measured, never)
        profiler.ended(measured)
        (log,) = profiler.close(never)
    assert (log.name, log.http_status) == ("profiler_start", 404)
    assert paths(servers.started[0]) == [START]
    (told,) = notices([log], 1)
    assert told.startswith("Measured without the server's profiler: http://127.0.0.1:")


def test_it_is_started_once_and_stopped_once(profiled, servers):
    profiler, (measured,) = profiled(BOTH)
    with profiler:
        profiler.start()
        profiler.begins(measured, never)
        profiler.ended(measured)
        profiler.close(never)
    assert paths(servers.started[0]) == [START, STOP]


def test_a_load_that_ends_early_stops_it_all_the_same(profiled, servers):
    profiler, _ = profiled(BOTH)
    with profiler:
        profiler.start()
        profiler.close(never)
    assert paths(servers.started[0]) == [START, STOP]


def test_a_run_that_fails_stops_it_too(profiled, servers):
    profiler, _ = profiled(BOTH)
    with pytest.raises(KeyboardInterrupt), profiler:
        profiler.start()
        raise KeyboardInterrupt
    assert paths(servers.started[0]) == [START, STOP]


def test_one_that_does_not_answer_can_be_left(profiled, servers):
    profiler, _ = profiled({START: [OK], STOP: [None]})
    with profiler:
        profiler.start()
        start, stop = profiler.close(lambda: len(servers.started[0].calls) == 2)
    assert (start.fault, stop.http_status) == (None, None)
    assert stop.fault.endswith(
        "had not answered the request to stop its profiler (POST /stop_profile) when it was left alone."
    )


def test_a_server_that_may_have_started_it_is_asked_to_stop(profiled, servers, monkeypatch):
    monkeypatch.setattr(hooks, "START_S", 0.05)
    profiler, _ = profiled({START: [None], STOP: [OK]})
    with pytest.raises(TargetError, match=r"no answer within 0\.05 s"), profiler:
        profiler.start()
    assert paths(servers.started[0]) == [START, STOP]


def test_nobody_waits_for_it_while_a_load_is_under_way(profiled):
    silent = {START: [None], STOP: [OK]}
    profiler, (_, measured) = profiled(silent, warmup_request_count=1, warmup_handover="seamless")
    profiler.begins(measured, lambda: pytest.fail("it was waited for"))


class Slow:
    """An answer that is given when `go` is set."""

    def __init__(self, answer=OK):
        self.asked, self.go = threading.Event(), threading.Event()
        self._answer = answer

    def __call__(self):
        self.asked.set()
        assert self.go.wait(10)
        return self._answer


def test_who_is_waited_for_is_said_with_limit_address_and_path(profiled, servers, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_S", 0.01)
    slow = Slow()
    profiler, _ = profiled({START: [slow], STOP: [OK]})
    threading.Thread(target=lambda: (wait_for(lambda: profiled.said), slow.go.set()), daemon=True).start()
    with profiler:
        profiler.start()
        profiler.close(never)
    where = f"http://127.0.0.1:{servers.started[0].port}"
    assert profiled.said == [f"waiting up to 60 s for {where} to start its profiler (POST {START})"]


def wait_for(happened):
    until = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_an_emptying_that_takes_its_time_is_said_too(servers, monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE_S", 0.01)
    slow, said = Slow(), []
    reached = servers({RESET: [slow]})
    threading.Thread(target=lambda: (wait_for(lambda: said), slow.go.set()), daemon=True).start()
    reset_caches(reached, wanting(reset_kv_cache=True, reset_kv_cache_timeout_s=9), "x", said.append)
    assert said == [
        f"waiting up to 69 s for {reached[0].target.url} to empty its prefix cache (POST {RESET})"
    ]


def interrupted(profiler, slow):
    """Has Ctrl-C come while a server is asked to start."""

    def given_up():
        if slow.asked.is_set():
            raise KeyboardInterrupt
        return False

    return profiler._measured[0], given_up


def test_an_interrupt_while_a_start_is_pending_asks_for_the_stop_once_it_has_answered(profiled, servers):
    slow = Slow()
    profiler, _ = profiled({START: [slow], STOP: [OK]})
    threading.Thread(target=lambda: (wait_for(lambda: profiled.said), slow.go.set()), daemon=True).start()
    with pytest.raises(KeyboardInterrupt), profiler:
        profiler.begins(*interrupted(profiler, slow))
    assert paths(servers.started[0]) == [START, STOP]
    (told,) = profiled.said
    assert told == (
        f"ending the run, but still waiting up to 60 s for http://127.0.0.1:{servers.started[0].port} to start its"
        f" profiler (POST {START}); for 10 s at most"
    )


def test_a_start_that_is_never_answered_is_followed_by_a_stop_all_the_same(profiled, servers, monkeypatch):
    monkeypatch.setattr(hooks, "PENDING_S", 0.05)
    slow = Slow()
    profiler, _ = profiled({START: [slow], STOP: [OK]}, BOTH)
    with pytest.raises(KeyboardInterrupt), profiler:
        profiler.begins(*interrupted(profiler, slow))
    assert [paths(server) for server in servers.started] == [[START, STOP], []]
    slow.go.set()


def test_a_server_that_is_left_with_a_profiler_that_may_run_is_named(profiled, servers, monkeypatch):
    monkeypatch.setattr(hooks, "HASTE_S", 0.05)
    profiler, _ = profiled({START: [OK], STOP: [None]})
    with pytest.raises(KeyboardInterrupt), profiler:
        profiler.start()
        raise KeyboardInterrupt
    where = f"http://127.0.0.1:{servers.started[0].port}"
    assert profiled.said == [
        f"A server's profiler may still run: {where} had not answered the request to stop its profiler"
        f" (POST {STOP}) when it was left alone."
    ]


def test_a_stop_that_is_refused_when_a_run_fails_is_told(profiled):
    profiler, _ = profiled({START: [OK], STOP: [(500, {"error": "no"})]})
    with pytest.raises(KeyboardInterrupt), profiler:
        profiler.start()
        raise KeyboardInterrupt
    (told,) = profiled.said
    assert told.startswith("A server's profiler may still run: http://127.0.0.1:")
    assert told.endswith(f"(POST {STOP}) failed: HTTP 500: no.")


# ---- what a reader has to know ----------------------------------------------------------------------


def log(name, target=0, fault=None):
    return HookLog(name=name, target=target, path="/x", start_ns=0, end_ns=1, http_status=200, fault=fault)


def test_a_run_without_hooks_has_nothing_to_tell():
    assert list(notices([], 1)) == []


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        (1, "The server's prefix cache was emptied before the load."),
        (2, "The servers' prefix caches were emptied before the load."),
    ],
)
def test_emptied_caches_are_told_once(servers, told):
    assert list(notices([log("reset_kv_cache", target) for target in range(servers)], servers)) == [told]


def test_a_profiler_slows_the_server_down_and_may_not_have_stopped():
    slow, running = notices([log("profiler_start"), log("profiler_stop", fault="http://x: no.")], 1)
    assert "slows it down" in slow
    assert running == "A server's profiler may still run: http://x: no."
