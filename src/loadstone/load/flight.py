"""One request in flight: the plain facts a worker notes about it, and nothing computed from them."""

from __future__ import annotations

from loadstone.plan.store import Row
from loadstone.recording import END_FACTS, REDIRECTED, START, WireEnd


class Flight:
    """A request from the moment it is launched to its one end. Times are CLOCK_MONOTONIC ns, 0 for never."""

    __slots__ = (
        "begun_ns", "connect_ns", "connected_ns", "due_ns", "ended_mark", "payload", "received",
        "redirects", "retries", "row", "sending", "sent_ns", "serial", "status", "target", "tcp_ns", "waited",
        "written_ns",
    )  # fmt: skip

    def __init__(self, serial: int, row: Row, due_ns: int, payload: bytes, target: int = 0) -> None:
        self.serial = serial
        self.row = row
        self.target = target
        """Which server it goes to."""
        self.due_ns = due_ns
        self.payload = payload
        self.connect_ns = 0
        self.tcp_ns = 0
        self.connected_ns = 0
        self.sent_ns = 0
        self.written_ns = 0
        self.begun_ns = 0
        self.status = 0
        self.retries = 0
        self.redirects = 0
        self.received = False
        self.sending = START
        """The code of the row that its next send is noted with."""
        self.ended_mark = False
        self.waited = False
        """The client had no descriptor or no port for it at first."""

    def redirect(self, payload: bytes) -> None:
        """The answer was a redirect: begins once more with this request. The moments up to `written` stay what they were."""
        self.payload = payload
        self.sending = REDIRECTED
        self.redirects += 1
        self.status = 0
        self.received = False

    def untouched(self) -> bool:
        """No byte of an answer has come, and it has not been tried twice."""
        return not self.received and not self.retries

    def facts(self, end: WireEnd) -> bytes:
        """`recording.Facts`, packed."""
        return END_FACTS.pack(
            self.row.request, self.due_ns, self.sent_ns, self.written_ns, self.connect_ns, self.tcp_ns,
            self.connected_ns, self.begun_ns, end, self.status, self.retries, self.redirects,
            self.row.phase, self.target, self.row.body_bytes,
        )  # fmt: skip
