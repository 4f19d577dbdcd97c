"""What main and a worker say to each other: JSON lines, one message a line, over the worker's stdin and stdout.

The job holds the request head and with it the key; it exists in memory and in a pipe only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec


class TlsJob(msgspec.Struct, frozen=True, kw_only=True):
    """How to speak TLS: the name to ask for and to expect, whom to believe, and how we prove who we are.

    Files are PEM; `ca` None: the system's authorities.
    """

    server_name: str
    verify: bool
    ca: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None


class TargetJob(msgspec.Struct, frozen=True, kw_only=True):
    """One server: how it is reached, and the head of a request to it."""

    head: bytes
    family: int
    address: tuple[Any, ...]
    """Of the server, or of the proxy that leads to it."""
    authority: str
    """Host and port of the server, as in the Host header: a redirect elsewhere is not followed."""
    tls: TlsJob | None = None
    tunnel: bytes = b""
    """What to say to a proxy before TLS (a whole CONNECT request); empty without one."""


class Job(msgspec.Struct, frozen=True, kw_only=True, tag="job"):
    """All that a worker has to know, sent once."""

    worker: int
    workers: int
    folder: str
    """The run folder."""
    board: str
    blocks: int
    targets: list[TargetJob]
    """The servers, in the order of `endpoint.urls`; a row's `target` is a position here."""
    id_prefix: str
    session_headers: list[str] = []
    """Names of the headers that carry the id of the conversation."""
    session_end_header: str | None = None
    """NAME:VALUE, sent with the last turn of every conversation."""
    reuse: Literal["pooled", "never", "sticky-user-sessions"]
    endpoint: str
    streaming: bool
    connect_timeout_ns: int
    first_token_timeout_ns: int
    idle_timeout_ns: int
    timeout_ns: int
    max_response_bytes: int
    portable: bool


class PhaseOrder(msgspec.Struct, frozen=True, kw_only=True, tag="phase"):
    """Run one phase. Moments are CLOCK_MONOTONIC ns."""

    number: int
    rows_fd: int
    """Inherited, shared description of the phase's rows: the queue of all workers where there are slots."""
    first_row: int
    rows: int | None = None
    """How many rows the phase has; None: up to the mark of its end, or as many as the time allows."""
    start_ns: int | None = None
    """None: as soon as this worker has nothing more to send of the phase before."""
    awaits: bool = False
    """Without a start: it begins when main says, which has heard that the phase before has nothing more to send."""
    duration_ns: int | None = None
    """From its start on; then nothing is sent that is due later, and with slots nothing at all (see `drain_queue`)."""
    grace_ns: int | None = None
    """So long after that, what is still under way is cancelled; None: never."""
    slots: tuple[tuple[int, int], ...] | None = None
    """This worker's share of the slots, from which moment (ns from the start) on; None: send every row when it is due."""
    prefill: tuple[tuple[int, int], ...] | None = None
    """The same of the requests that may be before their first token."""
    drain_queue: bool = False
    """What was due before the end of the duration is sent however late."""
    cancel_after_ns: int = 0
    """For rows that are to be cancelled: how long after they were sent."""

    def cut_ns(self, start_ns: int | None) -> int | None:
        """When what is still under way is cancelled, should the phase begin then; None: never, or not known."""
        if start_ns is None or self.duration_ns is None or self.grace_ns is None:
            return None
        return start_ns + self.duration_ns + self.grace_ns


def latest(cuts: Iterable[int | None]) -> int | None:
    """The last of several moments at which what is under way is cancelled; None: one of them never comes."""
    known = list(cuts)
    return None if None in known else max((cut for cut in known if cut is not None), default=None)


class BeginOrder(msgspec.Struct, frozen=True, kw_only=True, tag="begin"):
    """Begin a phase that was waiting for this, in all workers at one moment."""

    number: int
    start_ns: int


class StopOrder(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """Send nothing more; cancel what is under way at `cut_ns`.

    `given_up`: before its time, so what is cancelled then ends as cancelled and not as cut.
    """

    stop_ns: int
    cut_ns: int
    given_up: bool = False


class Quit(msgspec.Struct, frozen=True, kw_only=True, tag="quit"):
    """Write everything and exit."""


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The worker has started and waits for a phase."""

    kernel_stamps: bool


class PhaseSent(msgspec.Struct, frozen=True, kw_only=True, tag="sent"):
    """A worker has nothing more to send of a phase; its last answers may still be under way."""

    number: int
    start_ns: int
    """When the phase began here."""
    end_ns: int


class PhaseDone(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """A phase has ended in this worker: every flight has."""

    number: int
    start_ns: int
    """When it began here."""
    flights: int
    reads: int
    """Since the phase that was told of before, as the waits; the CPU time is that of the phase's whole span."""
    cpu_ns: int
    wall_ns: int
    end_ns: int
    starved: int
    """How often a row was wanted that had not been composed yet."""
    waits: int = 0
    """Connects that had to wait because the client had no descriptor or no port left."""
    waited_ns: int = 0
    """The time during which at least one of them waited."""
    stall_ns: int = 0
    """The longest time by which the loop came too late to its tick,"""
    stalled_ns: int = 0
    """and all those together that were longer than 50 ms."""
    write_ns: int = 0
    """The longest write of the recording."""
    collections: int = 0
    """Garbage collections since the worker began, which are off."""

    @property
    def begun(self) -> bool:
        """Whether the phase began here; a stop may have come before."""
        return self.start_ns > 0

    @classmethod
    def never(cls, number: int, now: int) -> PhaseDone:
        """What is said of a phase that was to follow and never began."""
        return cls(number=number, start_ns=0, flights=0, reads=0, cpu_ns=0, wall_ns=0, end_ns=now, starved=0)


class Trouble(msgspec.Struct, frozen=True, kw_only=True, tag="trouble"):
    """A worker cannot go on (no space for the recording); it exits then, and what it wrote stays."""

    message: str


Order = Job | PhaseOrder | BeginOrder | StopOrder | Quit
Word = Ready | PhaseSent | PhaseDone | Trouble
