"""Ctrl-C, SIGTERM and SIGHUP: what they do before, during and after a run.

Before there is anything to clean up, a signal ends the program at once (`leave_at_once`); while something has to
be taken back, the first one raises and what it unwinds is left undisturbed (`unwinding`); while a run lasts they
are counted, and acted on by whoever looks (`Interrupt`). No signal ever shows a trace.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CODE = 130
"""`errors.Exit.INTERRUPTED`; this module imports nothing, so that it stands before everything else."""
ENOUGH = 3
"""At so many signals a run is left at once."""
AGAIN_S = 0.005


def leave_at_once() -> None:
    """From now on a signal ends the program with one sentence: nothing has to be taken back."""
    for number in _heeded():
        signal.signal(number, lambda *_: leave("interrupted."))
    sys.unraisablehook = _unraisable


def all_done() -> None:
    """The exit code is known: a signal changes nothing any more.

    While the interpreter comes to its end it takes handlers back, and a signal would end it as if nothing had been heeded.
    """
    for number in _heeded():
        signal.signal(number, signal.SIG_IGN)


def leave(sentence: str) -> NoReturn:
    """Ends the process here and now, whatever it is doing; files are whole or not there at any moment."""
    with suppress(OSError, ValueError):
        if not select.select([], [2], [], 0)[1]:  # nobody reads it: a write would wait for ever
            os._exit(CODE)
        fresh_line = "\n" if os.isatty(2) else ""  # the terminal has echoed ^C, or shows progress
        os.write(2, f"{fresh_line}loadstone: error: {sentence}\n".encode(errors="backslashreplace"))
    os._exit(CODE)


@contextmanager
def unwinding() -> Iterator[None]:
    """The first signal raises `KeyboardInterrupt`, further ones are ignored while that is cleaned up after."""
    with _handled(_raise):
        yield


class Interrupt:
    """A context in which signals only count up `asked`. Handlers are put back at the end.

    The third one is too many: it raises `KeyboardInterrupt`, and further ones are ignored.
    """

    def __init__(self) -> None:
        self.asked = 0
        self._most = ENOUGH
        self._parting: str | None = None
        self._context: Any = None

    def __enter__(self) -> Interrupt:
        self._context = _handled(self._count)
        self._context.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.__exit__(kind, error, trace)

    def part_with(self, sentence: str) -> None:
        """The load is over and no process is left to end: the second signal from now on leaves with `sentence`."""
        self._most = min(ENOUGH, self.asked + 2)
        self._parting = sentence

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1
        if self.asked < self._most:
            return
        if self._parting is not None:
            leave(self._parting)
        _raise(number, frame)


def _heeded() -> list[signal.Signals]:
    """Those that were not set aside when we were started, as nohup does with SIGHUP."""
    return [n for n in SIGNALS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]


@contextmanager
def _handled(handler: Any) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _heeded()}
    try:
        yield
    finally:
        for number, old in before.items():
            if signal.getsignal(number) is handler:  # else `_raise` has set it aside until the end
                signal.signal(number, old)


def _raise(_number: int, _frame: FrameType | None) -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _unraisable(caught: sys.UnraisableHookArgs) -> None:
    """An interrupt that came where none can be raised (a finalizer) comes once more a moment later."""
    if not isinstance(caught.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(caught)
        return
    signal.signal(signal.SIGALRM, _raise)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
