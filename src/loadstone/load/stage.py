"""A phase as one worker goes through it: its order, its slots, and what is under way of it."""

from __future__ import annotations

from loadstone.load.job import PhaseOrder
from loadstone.load.slots import Slots


class Stage:
    """One phase in one worker. Moments are CLOCK_MONOTONIC ns; `cpu_ns` is what the worker had used when it began."""

    __slots__ = (
        "cpu_ns",
        "cut_ns",
        "ended",
        "flying",
        "given_up",
        "order",
        "slots",
        "start_ns",
        "told_spent",
    )

    def __init__(self, order: PhaseOrder, start_ns: int, slots: Slots, cpu_ns: int) -> None:
        self.order = order
        self.start_ns = start_ns
        self.slots = slots
        self.cpu_ns = cpu_ns
        self.cut_ns = _cut_ns(order, start_ns)
        """When what is still under way is cancelled; None: never."""
        self.flying = 0
        self.ended = 0
        self.given_up = False
        """It is cut before its time, so what is cancelled then ends as cancelled and not as cut."""
        self.told_spent = False

    def stop(self, stop_ns: int, cut_ns: int, given_up: bool, now: int) -> None:
        """Sends nothing more that is due from `stop_ns` on."""
        self.cut_ns = cut_ns if self.cut_ns is None else min(cut_ns, self.cut_ns)
        self.given_up = given_up
        self.slots.stop(stop_ns, now)

    def is_over(self) -> bool:
        """Nothing is under way, and nothing will be."""
        return not self.flying and self.slots.exhausted()


def _cut_ns(order: PhaseOrder, start_ns: int) -> int | None:
    if order.duration_ns is None or order.grace_ns is None:
        return None
    return start_ns + order.duration_ns + order.grace_ns
