"""The search in several processes, and how far it is, on stderr. Results do not depend on how many there are.

Ctrl-C ends all of them at once; when the process that started them is killed, they end as well.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Any, TextIO, TypeVar

from loadstone.errors import LoadstoneError
from loadstone.interrupt import SIGNALS, unwinding

R = TypeVar("R")
LOOK_S = 0.5
QUIET_S = 10.0
"""Where nobody watches, progress is told this often."""
ENOUGH = 4
"""With so many done one can guess how long the rest takes."""
PR_SET_PDEATHSIG = 1


class Progress:
    """One line on a terminal that is written over; elsewhere a line now and then."""

    def __init__(self, stream: TextIO, on: bool = True) -> None:
        self._stream = stream
        self._on = on
        self._over = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._began = self._told = self._stage_began = time.monotonic()
        self._stage = ""

    def tell(self, done: int, of: int, what: str) -> None:
        """So many of so many are done."""
        now = time.monotonic()
        if what != self._stage:
            self._stage, self._stage_began = what, now
        if not self._on or not (self._over or now - self._told >= QUIET_S):
            return
        self._told = now
        text = f"{done} of {of} {what} · {now - self._began:.0f} s"
        if done >= ENOUGH:
            text += f" · about {(now - self._stage_began) / done * (of - done):.0f} s left of these"
        self._write(f"\r\x1b[K{text}" if self._over else f"plan: {text}\n")

    def clear(self) -> None:
        """Nothing of it is left on a terminal."""
        if self._on and self._over:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # who reads it has gone
            self._on = False


class Here:
    """All in this process."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(
        self, function: Callable[..., R], arguments: Sequence[tuple[Any, ...]], what: str
    ) -> Iterator[R]:
        """See `answer.Apply`."""
        for number, one in enumerate(arguments):
            self._progress.tell(number, len(arguments), what)
            yield function(*one)


class Pool:
    """Several processes."""

    def __init__(self, executor: ProcessPoolExecutor, progress: Progress) -> None:
        self._executor = executor
        self._progress = progress

    def __call__(
        self, function: Callable[..., R], arguments: Sequence[tuple[Any, ...]], what: str
    ) -> list[R]:
        """See `answer.Apply`."""
        with _blocked():
            futures: list[Future[R]] = [self._executor.submit(function, *one) for one in arguments]
        left = set(futures)
        while left:
            self._progress.tell(len(futures) - len(left), len(futures), what)
            done, left = wait(left, timeout=LOOK_S)
            for one in done:
                self._result(one)  # what failed fails at once
        return [self._result(one) for one in futures]

    @staticmethod
    def _result(future: Future[R]) -> R:
        try:
            return future.result()
        except BrokenProcessPool:
            raise LoadstoneError(
                "plan: one of its processes was killed; where memory is short, try --processes 1."
            ) from None


@contextmanager
def processes(count: int, progress: Progress) -> Iterator[Here | Pool]:
    """So many processes to search in; with one, this one."""
    if count == 1:
        try:
            yield Here(progress)
        finally:
            progress.clear()
        return
    executor = ProcessPoolExecutor(count, get_context("spawn"), _begin, (os.getpid(),))
    try:
        with unwinding():
            yield Pool(executor, progress)
    except BaseException:
        for child in active_children():
            child.kill()
        raise
    finally:
        progress.clear()
        executor.shutdown(cancel_futures=True)


@contextmanager
def _blocked() -> Iterator[None]:
    """Processes that start meanwhile never see the signals of a terminal; this one sees them a moment later."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(parent: int) -> None:
    """A process of the pool does not outlive the one that started it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
