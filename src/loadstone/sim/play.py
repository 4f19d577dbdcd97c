"""One fault under way: the steps that are left, its time line, its truth. Knows no sockets; told the time."""

from __future__ import annotations

from loadstone.sim.faults.steps import Send, Steps
from loadstone.sim.truth import TruthRow

LATE_NS = 5_000_000
"""A wait may end this much in the past; a server that is later than that gives the time up for lost."""


class Play:
    """The steps of one answer, on a time line of its own."""

    __slots__ = ("blocked", "deaf", "due_ns", "steps", "truth")

    def __init__(self, steps: Steps, truth: TruthRow) -> None:
        self.steps = steps
        self.truth = truth
        self.due_ns = truth.read_ns
        self.blocked = False
        """The kernel has not taken all of what was sent last."""
        self.deaf = False
        """It goes on when the client closes."""

    def wait(self, ns: int, now_ns: int) -> bool:
        """Lets time pass on the time line; whether it has not passed yet."""
        self.due_ns = max(self.due_ns + ns, now_ns - LATE_NS)
        return self.due_ns > now_ns

    def note(self, send: Send, now_ns: int) -> None:
        """Notes what is about to be sent."""
        truth = self.truth
        truth.bytes_sent += len(send.data)
        if send.tokens:
            truth.tokens += send.tokens
            truth.first_sent_ns = truth.first_sent_ns or now_ns
            truth.last_sent_ns = now_ns

    def row(self) -> TruthRow:
        """The truth, when it is over or the client has left."""
        return self.truth
