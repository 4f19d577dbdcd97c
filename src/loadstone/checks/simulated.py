"""What can be judged of a run that was computed on a virtual clock: the load and what came of it, not the client.

There was none, so nothing could be late, lost or blurred. A check of that would pass whatever happened, and say nothing.
"""

from __future__ import annotations

from loadstone.checks import arrivals, batching, invariants, load, prefix, roofline, server, steady, targets
from loadstone.checks.evidence import Evidence, answer
from loadstone.checks.saturation import saturation
from loadstone.figures import counted
from loadstone.report import Check

NAME = "simulated"
STORED = "stored"
WITHOUT_CLIENT = (
    "processes", "lost_requests", "client_cpu", "headroom", "client_lag", "first_tokens", "send_lag", "loop_stalls",
    "arrival_fidelity", "resource_waits", "machine_steal", "other_load", "clock_rate", "kernel_drops",
    "memory_pressure", "kernel_stamps", "clock_steps", "clock_source", "shared_reads", "server_local",
    "garbage_collection", "decoder_lag", "retries", "cold_start", "warm_up_leak", "output_sanity",
    "synthetic_text", "server_tokens",
)  # fmt: skip
"""Checks of what a simulated run does not have: processes, clocks, sockets, a server that may be cold or has pages of its own."""


def simulated(evidence: Evidence) -> Check:
    """Nothing was measured, so nothing is said of an instrument."""
    finding = f"there was no client and no clock to judge: {len(WITHOUT_CLIENT)} checks do not apply."
    return answer(NAME, "NOTE", None, "", finding)


def stored(evidence: Evidence) -> Check:
    """What came of the requests is all there: the simulation was not cut off while it held some of it in memory alone.

    What is lost is what ended last, so that the rest is no fair sample of the end: DEGRADED; INVALID when nothing is left.
    """
    run, lost = evidence.tables.run, int(evidence.tables.lost.sum())
    if not run.cut_off:
        return answer(STORED, "VALID", lost, "requests", "what came of every request was stored.")
    again = f"Give --random-seed {run.seed} to make it again."
    if not run.phases:
        finding = "the simulation was cut off before anything that came of it was stored."
        return answer(STORED, "INVALID", None, "requests", finding, again)
    known = f"; of {counted(lost, 'request')} due by then nobody knows what came of them" if lost else ""
    finding = f"the simulation was cut off, and what ended after the last part was stored is lost{known}."
    return answer(STORED, "DEGRADED", lost, "requests", finding, again)


CHECKS = (
    invariants.invariants,
    stored,
    server.succeeded,
    simulated,
    arrivals.offered_load,
    load.warmup_apart,
    saturation,
    steady.steady_state,
    server.sample_size,
    server.failures,
    targets.silent_targets,
    prefix.prefix_cache_leak,
    batching.batched_tokens,
    roofline.percent_of_roofline,
    load.cohort_lock,
)
"""The checks that apply, the gravest questions first."""
