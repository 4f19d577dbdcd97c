"""What is asked of the servers beside the load: an empty prefix cache before it, a profiler around what is measured.

Each is a POST without a body to every server, with the key and the headers of the run. Before the first request a
refusal ends the start; later it becomes a notice, since a measurement under way is worth more than a profile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from types import TracebackType
from typing import Literal, NamedTuple
from urllib.parse import unquote

from loadstone.config import Config, EndpointConfig, ServerConfig, secrets
from loadstone.errors import TargetError
from loadstone.folder import HookLog
from loadstone.load.reach import Reached
from loadstone.patience import patience
from loadstone.plan.schedule import Phase
from loadstone.preflight import question
from loadstone.preflight.question import WORDS_CELLS
from loadstone.read.answer import Answer
from loadstone.terminal import fit

BUSY = (409, 423, 429, 503)
"""Statuses that mean: not now."""
BUSY_S = 60.0
"""So long a busy server is asked again."""
PAUSES_S = (1.0, 2.0, 4.0, 8.0)
"""Between two attempts; the last one for ever."""
START_S = 60.0
"""Limit for a profiler's start."""
STOP_S = 600.0
"""Limit for its end, before which some servers write gigabytes."""
HASTE_S = 5.0
"""So long its end is awaited when the run fails,"""
PENDING_S = 10.0
"""and so long before that the answer to a start that is under way: one that comes behind the stop would go on."""
LOOK_S = 0.1
_MEANING = {
    "reset_kv_cache": "A prefix cache may not have been empty",
    "profiler_start": "Measured without the server's profiler",
    "profiler_stop": "A server's profiler may still run",
}
"""What it means that something was not done."""


class Hook(NamedTuple):
    """One thing to ask a server for. `wish` completes "it was asked to"; `advice` is for one that does not know it."""

    name: Literal["reset_kv_cache", "profiler_start", "profiler_stop"]
    path: str
    timeout_s: float
    wish: str
    advice: str
    patient: bool = False
    """A busy server is asked again."""

    @property
    def asked(self) -> str:
        """The request, without a query, which may hold a key."""
        return f"POST {self.path.partition('?')[0]}"

    @property
    def most_s(self) -> float:
        """How long asking one server may take."""
        return self.timeout_s + (BUSY_S if self.patient else 0.0)


def reset(server: ServerConfig) -> Hook:
    """The prefix cache is to be emptied."""
    return Hook(
        "reset_kv_cache",
        server.reset_kv_cache_path,
        server.reset_kv_cache_timeout_s,
        "empty its prefix cache",
        "vLLM can only with VLLM_SERVER_DEV_MODE=1 in its environment; for SGLang give --reset-kv-cache-path /flush_cache.",
        patient=True,
    )


def profiler_start(server: ServerConfig) -> Hook:
    """The profiler is to start."""
    return Hook(
        "profiler_start",
        server.profiler_start_path,
        START_S,
        "start its profiler",
        "vLLM can only with a profiler configured (--profiler-config, or VLLM_TORCH_PROFILER_DIR before);"
        " another path is given with --server-profiler-start-path.",
    )


def profiler_stop(server: ServerConfig) -> Hook:
    """The profiler is to stop and to write what it has seen."""
    return Hook(
        "profiler_stop",
        server.profiler_stop_path,
        STOP_S,
        "stop its profiler",
        "Another path is given with --server-profiler-stop-path.",
    )


# ---- asking ----


def reset_caches(
    servers: Sequence[Reached], config: Config, run_id: str, say: Callable[[str], None]
) -> list[HookLog]:
    """Has every server empty its prefix cache, one after the other. Raises `TargetError` when one does not."""
    hook = reset(config.server)
    logs: list[HookLog] = []
    for number, reached in enumerate(servers if config.server.reset_kv_cache else ()):
        with patience(say, awaited(hook, reached)):
            logs.append(_done(ask(hook, number, reached, config.endpoint, run_id)))
    return logs


def awaited(hook: Hook, reached: Reached) -> str:
    """What is told of a server that takes its time."""
    return f"waiting up to {hook.most_s:g} s for {reached.target.url} to {hook.wish} ({hook.asked})"


def _done(log: HookLog) -> HookLog:
    if log.fault is not None:
        raise TargetError(log.fault)
    return log


def ask(hook: Hook, number: int, reached: Reached, endpoint: EndpointConfig, run_id: str) -> HookLog:
    """Asks server `number` for it, a busy one again and again where the hook is patient."""
    begun_ns = time.monotonic_ns()
    attempts = 0
    for pause_s in chain(PAUSES_S, repeat(PAUSES_S[-1])):
        answer, fault = _post(hook, reached, endpoint, run_id)
        attempts += 1
        waited_s = (time.monotonic_ns() - begun_ns) / 1e9
        busy = hook.patient and answer is not None and answer.status in BUSY
        if not busy or waited_s + pause_s > BUSY_S:
            break
        time.sleep(pause_s)
    return HookLog(
        name=hook.name,
        target=number,
        path=hook.path.partition("?")[0],
        start_ns=begun_ns,
        end_ns=time.monotonic_ns(),
        attempts=attempts,
        http_status=answer.status if answer else None,
        fault=fault,
    )


def _post(
    hook: Hook, reached: Reached, endpoint: EndpointConfig, run_id: str
) -> tuple[Answer | None, str | None]:
    """One attempt: the answer, if there was one, and why it is none to be glad of."""
    path = reached.target._replace(prefix="").path(hook.path)
    data = question.asked(reached, endpoint, path, f"{hook.name}.{run_id}", method="POST")
    try:
        answer = question.document(question.exchange(reached, endpoint, data, hook.timeout_s), endpoint)
    except TargetError as error:
        return None, f"{error} It was asked to {hook.wish} ({hook.asked})."
    return answer, None if question.is_success(answer) else _refusal(hook, reached, endpoint, answer)


def _refusal(hook: Hook, reached: Reached, endpoint: EndpointConfig, answer: Answer) -> str:
    """What a server answered, and what to do about it."""
    hidden = [*secrets(endpoint), *_of_query(hook.path)]
    words = fit(question.said(answer, hidden), WORDS_CELLS)
    advice = {
        401: "Give a valid key with --api-key.",
        403: "Give a valid key with --api-key.",
        404: hook.advice,
        405: hook.advice,
    }.get(answer.status, "")
    if hook.patient and answer.status in BUSY:
        advice = f"It was asked again for {BUSY_S:g} s; is it under another load?"
    where = reached.target.url
    return f"{where}: the request to {hook.wish} ({hook.asked}) failed: {words}. {advice}".rstrip()


def _of_query(path: str) -> list[str]:
    """The values in the query of a path, any of which may be a key."""
    values = (pair.partition("=")[2] for pair in path.partition("?")[2].split("&"))
    return [spelt for value in values if value for spelt in {value, unquote(value)}]


# ---- the profiler ----


class Profiler:
    """The servers' profilers, on from the first measured phase to the end of the last; nothing unless it is asked for.

    Servers are asked in threads, so that main goes on looking at the load meanwhile; `say` is told whom main waits
    for. Whatever happens, a profiler that was asked to start is asked to stop.
    """

    def __init__(
        self,
        servers: Sequence[Reached],
        config: Config,
        run_id: str,
        phases: Sequence[Phase],
        say: Callable[[str], None],
    ) -> None:
        self._measured = [phase for phase in phases if phase.kind == "measured"]
        self._wanted = config.server.profiler
        self._servers = servers
        self._config = config
        self._run_id = run_id
        self._say = say
        self._done = _set()
        """All that was to be asked has been. No join of a thread: one that a signal interrupts takes it for ended."""
        self._asking = ""
        """Who is asked for what."""
        self._to_stop: list[int] = []
        """Servers whose profiler may run."""
        self._started = False
        self._over = False
        """Nobody else is asked to start it."""
        self.logs: list[HookLog] = []

    def __enter__(self) -> Profiler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            return
        self._over = True
        if not self._done.is_set():
            self._say(f"ending the run, but still {self._asking}; for {PENDING_S:g} s at most")
        if not self._done.wait(PENDING_S):
            self._done = _set()  # what does not come to an end is not waited for
        self.stop()
        self._done.wait(HASTE_S)
        for line in notices([*self._refused(), *map(self._left, tuple(self._to_stop))], len(self._servers)):
            self._say(line)

    def start(self) -> None:
        """Starts them before anything was sent. Raises `TargetError` when a server does not."""
        self._start()
        self._await(lambda: False)
        for log in self.logs:
            _done(log)

    def begins(self, phase: Phase, given_up: Callable[[], bool]) -> None:
        """A phase is about to begin, or, if it is seamless, has: the first measured one starts the profilers.

        They are waited for only while nothing is under way, and not when the run is to be `given_up`.
        """
        if phase in self._measured and not self._started:
            self._start()
            if not phase.seamless:
                self._await(given_up)

    def ended(self, phase: Phase) -> None:
        """A phase has ended: the last measured one stops the profilers."""
        if [phase] == self._measured[-1:]:
            self.stop()

    def close(self, given_up: Callable[[], bool]) -> list[HookLog]:
        """Stops them, if that has not been done, and waits until they have stopped; what was asked, in order."""
        self.stop()
        self._await(given_up, " (Ctrl-C leaves it alone)")
        self._over = True
        return [*self.logs, *map(self._left, tuple(self._to_stop))]

    def stop(self) -> None:
        """Asks every server whose profiler may run to stop it; does not wait."""
        if self._started:
            self._behind(self._ask_to_stop)

    def _start(self) -> None:
        if self._wanted:
            self._started = True
            self._behind(self._ask_to_start)

    def _ask_to_start(self) -> None:
        hook = profiler_start(self._config.server)
        for number in range(len(self._servers)):
            if self._over:
                return
            self._to_stop.append(number)
            log = self._ask(hook, number)
            if log.http_status is not None and log.fault:
                self._to_stop.remove(number)

    def _ask_to_stop(self) -> None:
        hook = profiler_stop(self._config.server)
        for number in tuple(self._to_stop):
            self._ask(hook, number)
            self._to_stop.remove(number)

    def _ask(self, hook: Hook, number: int) -> HookLog:
        self._asking = awaited(hook, self._servers[number])
        log = ask(hook, number, self._servers[number], self._config.endpoint, self._run_id)
        self.logs.append(log)
        return log

    def _refused(self) -> list[HookLog]:
        """Stops that a server has refused."""
        return [log for log in self.logs if log.name == "profiler_stop" and log.fault is not None]

    def _left(self, number: int) -> HookLog:
        """What is told of a server that was not awaited any more."""
        now = time.monotonic_ns()
        hook, where = profiler_stop(self._config.server), self._servers[number].target.url
        fault = f"{where} had not answered the request to {hook.wish} ({hook.asked}) when it was left alone."
        path = hook.path.partition("?")[0]
        return HookLog(name=hook.name, target=number, path=path, start_ns=now, end_ns=now, fault=fault)

    def _behind(self, work: Callable[[], None]) -> None:
        """Does it in a thread, once what was to be done before is done. The program does not wait for it to end."""
        before, done = self._done, threading.Event()
        self._done = done

        def in_turn() -> None:
            before.wait()
            try:
                work()
            finally:
                done.set()

        threading.Thread(target=in_turn, daemon=True).start()

    def _await(self, given_up: Callable[[], bool], escape: str = "") -> None:
        """Until all have been asked; `escape` says how not to wait for that."""
        with patience(self._say, lambda: self._asking + escape):
            while not self._done.is_set() and not given_up():
                self._done.wait(LOOK_S)


def _set() -> threading.Event:
    """An event that has happened."""
    event = threading.Event()
    event.set()
    return event


# ---- what a reader has to know ----


def notices(logs: Sequence[HookLog], servers: int) -> Iterator[str]:
    """What was asked of so many servers means for the numbers, one sentence each."""
    done = {log.name for log in logs if log.fault is None}
    whose = "The server's prefix cache was" if servers == 1 else "The servers' prefix caches were"
    if "reset_kv_cache" in done:
        yield f"{whose} emptied before the load."
    if "profiler_start" in done:
        yield (
            "The server's profiler ran while the load was measured, and slows it down: the numbers are those of a server"
            " that is profiled."
        )
    for log in logs:
        if log.fault is not None:
            yield f"{_MEANING[log.name]}: {log.fault}"
