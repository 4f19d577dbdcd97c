"""Ctrl-C and SIGTERM while a run lasts: counted, and acted on by whoever looks."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupt:
    """A context in which the two signals only count up `asked`. Handlers are put back at the end."""

    def __init__(self) -> None:
        self.asked = 0
        self._before: list[Any] = []

    def __enter__(self) -> Interrupt:
        self._before = [signal.signal(number, self._count) for number in SIGNALS]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in zip(SIGNALS, self._before, strict=True):
            signal.signal(number, handler)

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1
