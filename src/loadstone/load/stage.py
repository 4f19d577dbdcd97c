"""A phase as one worker goes through it: its order, its slots, and what is under way of it."""

from __future__ import annotations

import time

from loadstone.load.job import PhaseOrder
from loadstone.load.slots import Slots


class Stage:
    """One phase in one worker. Moments are CLOCK_MONOTONIC ns."""

    __slots__ = (
        "_cpu_ns",
        "ended",
        "flying",
        "given_up",
        "order",
        "slots",
        "start_ns",
        "told_spent",
    )

    def __init__(self, order: PhaseOrder, start_ns: int, slots: Slots) -> None:
        self.order = order
        self.start_ns = start_ns
        self.slots = slots
        self.flying = 0
        self.ended = 0
        self.given_up = False
        """It is cut before its time, so what is cancelled then ends as cancelled and not as cut."""
        self.told_spent = False
        self._cpu_ns = time.process_time_ns()

    def stop(self, stop_ns: int, cut_ns: int, given_up: bool, now: int) -> None:
        """Sends nothing more that is due from `stop_ns` on."""
        self.given_up = given_up
        self.slots.stop(stop_ns, cut_ns, now)

    def is_over(self) -> bool:
        """Nothing is under way, and nothing will be."""
        return not self.flying and self.slots.exhausted()

    def cpu_ns(self) -> int:
        """The worker's CPU time since the phase began."""
        return time.process_time_ns() - self._cpu_ns
