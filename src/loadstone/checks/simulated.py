"""What can be judged of a run that was computed on a virtual clock: the load and what came of it, not the client.

There was none, so nothing could be late, lost or blurred. A check of that would pass whatever happened, and say nothing.
"""

from __future__ import annotations

from loadstone.checks import arrivals, load, roofline, server, targets
from loadstone.checks.evidence import Evidence, answer
from loadstone.checks.saturation import saturation
from loadstone.report import Check

NAME = "simulated"
WITHOUT_CLIENT = (
    "processes", "lost_requests", "client_cpu", "client_lag", "first_tokens", "send_lag", "arrival_fidelity",
    "resource_waits", "kernel_stamps", "clock_steps", "shared_reads", "server_local", "retries", "cold_start",
    "server_tokens",
)  # fmt: skip
"""Checks of what a simulated run does not have: processes, clocks, sockets, a server that may be cold or has pages of its own."""


def simulated(evidence: Evidence) -> Check:
    """Nothing was measured, so nothing is said of an instrument."""
    finding = f"there was no client and no clock to judge: {', '.join(WITHOUT_CLIENT)} do not apply."
    return answer(NAME, "NOTE", None, "", finding)


CHECKS = (
    server.succeeded,
    simulated,
    arrivals.offered_load,
    load.warmup_apart,
    saturation,
    server.sample_size,
    server.failures,
    targets.silent_targets,
    roofline.percent_of_roofline,
    load.cohort_lock,
)
"""The checks that apply, the gravest questions first."""
