"""What the instrument can tell apart: clocks, stamps, and whom it shares its cores with."""

from __future__ import annotations

from loadstone.checks.client import CPU_HIGH
from loadstone.checks.evidence import Evidence, answer
from loadstone.report import Check

SHARED_READS_PERCENT = 1.0


def kernel_stamps(evidence: Evidence) -> Check:
    """Arrivals are dated by the kernel. Where not, a busy worker's lateness is in the latencies, unseen."""
    if evidence.tables.run.clock.kernel_stamps:
        return answer("kernel_stamps", "VALID", 1, "", "arrivals are dated by the kernel.")
    shares = [log.cpu_ns / log.wall_ns for log in evidence.tables.run.workers if log.wall_ns > 0]
    busy = max(shares, default=0.0) > CPU_HIGH / 2
    finding = "there are no kernel stamps here: an arrival is the moment of reading it."
    advice = "Keep the client's CPU share low, or measure from Linux."
    return answer("kernel_stamps", "DEGRADED" if busy else "NOTE", 0, "", finding, advice)


def clock_steps(evidence: Evidence) -> Check:
    """The wall clock, on which the kernel dates, was not set while the run lasted."""
    steps = evidence.tables.run.clock.steps
    if not steps:
        return answer("clock_steps", "VALID", 0, "steps", "the wall clock was not set.")
    finding = f"the wall clock was set {steps} times; around that, arrivals are moments of reading."
    return answer("clock_steps", "NOTE", steps, "steps", finding)


def shared_reads(evidence: Evidence) -> Check:
    """How many reads completed several token events: the limit of what the instrument can tell apart."""
    share = evidence.metrics["shared_reads"].mean
    if share is None or share < SHARED_READS_PERCENT:
        return answer("shared_reads", "VALID", share, "%", "tokens were read one at a time.")
    finding = f"{share:.3g} % of the reads held several tokens, of which only the last is dated exactly."
    return answer("shared_reads", "NOTE", share, "%", finding)


def server_local(evidence: Evidence) -> Check:
    """Whether client and server took cores from each other."""
    if not evidence.tables.run.server_local:
        return answer("server_local", "VALID", 0, "", "the server runs on another host.")
    busy = evidence.tables.run.host_busy_share
    told = f", busy for {100 * busy:.3g} % of the time" if busy is not None else ""
    finding = f"client and server share this host's cores{told}."
    return answer(
        "server_local", "NOTE", 1, "", finding, "For the server's own limit, run the client elsewhere."
    )
