"""What the instrument can tell apart: clocks, stamps, and whom it shares its cores with."""

from __future__ import annotations

from loadstone.checks.client import CPU_HIGH
from loadstone.checks.evidence import Evidence, Verdict, answer
from loadstone.figures import counted
from loadstone.report import Check

SHARED_READS_PERCENT = 1.0
UNDATED_SHARE = 0.01
"""Answers without a kernel stamp: above 1 % they can shift a p99."""


def kernel_stamps(evidence: Evidence) -> Check:
    """Arrivals are dated by the kernel. Where not, a busy worker's lateness is in the latencies, unseen.

    DEGRADED when more than 1 % of the answers hold a read that was not, and a worker used 40 % of a core; else a NOTE.
    """
    tables = evidence.tables
    answers = int(tables.succeeded.sum())
    dated = int((tables.requests["kernel_stamps"].fill_null(False).to_numpy() & tables.succeeded).sum())
    share = dated / answers if answers else None
    if dated == answers:
        return answer("kernel_stamps", "VALID", share, "", "arrivals are dated by the kernel.")
    finding = (
        f"{answers - dated} of {answers} answers hold reads without a kernel stamp: there an arrival is the moment of"
        " reading it."
        if dated
        else "there are no kernel stamps here: an arrival is the moment of reading it."
    )
    logs = [log for log in tables.run.workers if log.wall_ns > 0]
    busy = max((log.cpu_ns / log.wall_ns for log in logs), default=0.0) > CPU_HIGH / 2
    verdict: Verdict = "DEGRADED" if busy and answers - dated > UNDATED_SHARE * answers else "NOTE"
    advice = "Keep the client's CPU share low, or measure from Linux." if not dated else ""
    return answer("kernel_stamps", verdict, share, "", finding, advice)


def clock_steps(evidence: Evidence) -> Check:
    """The wall clock, on which the kernel dates, was not set while the run lasted. A NOTE when it was."""
    steps = evidence.tables.run.clock.steps
    if not steps:
        return answer("clock_steps", "VALID", 0, "steps", "the wall clock was not set.")
    finding = (
        f"the wall clock was set {counted(steps, 'time')}; around that, arrivals are moments of reading."
    )
    return answer("clock_steps", "NOTE", steps, "steps", finding)


def shared_reads(evidence: Evidence) -> Check:
    """How many reads completed several token events: the limit of what the instrument can tell apart. A NOTE from 1 % on."""
    share = evidence.metrics["shared_reads"].mean
    if share is None or share < SHARED_READS_PERCENT:
        return answer("shared_reads", "VALID", share, "%", "tokens were read one at a time.")
    finding = f"{share:.3g} % of the reads held several tokens, of which only the last is dated exactly."
    return answer("shared_reads", "NOTE", share, "%", finding)


def server_local(evidence: Evidence) -> Check:
    """Whether client and server took cores from each other. A NOTE where they share a host."""
    if not evidence.tables.run.server_local:
        return answer("server_local", "VALID", 0, "", "the server runs on another host.")
    busy = evidence.tables.run.host_busy_share
    told = f", busy for {100 * busy:.3g} % of the time" if busy is not None else ""
    finding = f"client and server share this host's cores{told}."
    return answer(
        "server_local", "NOTE", 1, "", finding, "For the server's own limit, run the client elsewhere."
    )
