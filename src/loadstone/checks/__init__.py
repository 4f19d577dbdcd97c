"""Checks: can this run be believed? Each one is a function from the evidence to one `Check`.

The subject is the client: a slow server is a finding, not a fault of the measurement. The server counts only where so
much of it failed that the rest says little (`succeeded`, `failures`). The verdict is the worst of the checks; a NOTE
says something worth knowing and never lowers it. Thresholds stand beside their reasons. Too few samples for a
percentile marks that number, not the run.
"""

from __future__ import annotations

from loadstone.checks import (
    arrivals,
    batching,
    client,
    counters,
    headroom,
    instrument,
    invariants,
    load,
    machine,
    output,
    prefix,
    roofline,
    server,
    simulated,
    stalls,
    steady,
    targets,
    warmth,
)
from loadstone.checks.bound import Bound, bound
from loadstone.checks.client import send_lags_ms
from loadstone.checks.evidence import SEVERITY, Evidence
from loadstone.checks.saturation import courses, saturated, saturation
from loadstone.report import Certificate, Check

__all__ = ["CHECKS", "Bound", "Evidence", "bound", "certify", "courses", "saturated", "send_lags_ms"]

CHECKS = (
    invariants.invariants,
    client.processes,
    client.lost_requests,
    server.succeeded,
    arrivals.offered_load,
    client.client_cpu,
    headroom.headroom,
    client.client_lag,
    client.first_tokens,
    client.send_lag,
    stalls.loop_stalls,
    arrivals.arrival_fidelity,
    load.resource_waits,
    load.warmup_apart,
    saturation,
    steady.steady_state,
    machine.machine_steal,
    machine.other_load,
    machine.clock_rate,
    machine.kernel_drops,
    machine.memory_pressure,
    instrument.kernel_stamps,
    instrument.clock_steps,
    machine.clock_source,
    instrument.shared_reads,
    instrument.server_local,
    stalls.garbage_collection,
    stalls.decoder_lag,
    server.sample_size,
    server.failures,
    targets.silent_targets,
    server.retries,
    server.cold_start,
    warmth.warm_up_leak,
    prefix.prefix_cache_leak,
    batching.batched_tokens,
    output.output_sanity,
    output.synthetic_text,
    roofline.percent_of_roofline,
    counters.server_tokens,
    load.cohort_lock,
)
"""All checks, the gravest questions first."""


def certify(evidence: Evidence) -> Certificate:
    """The certificate of a run: all checks, the worst verdict, and its reason in one sentence.

    Of a simulated run those checks alone that mean something without a client, and one that says so.
    """
    is_simulated = evidence.tables.run.simulated
    asked = simulated.CHECKS if is_simulated else CHECKS
    checks = tuple(check(evidence) for check in asked)
    found = {check.verdict for check in checks}
    verdict = next(verdict for verdict in SEVERITY if verdict in found or verdict == "VALID")
    return Certificate(verdict=verdict, headline=_headline(verdict, checks), checks=checks)


def _headline(verdict: str, checks: tuple[Check, ...]) -> str:
    """The worst check's finding; of a valid run the client's margins, or that the server did not keep up."""
    if verdict != "VALID":
        return next(check.finding for check in checks if check.verdict == verdict)
    by_name = {check.name: check for check in checks}
    if by_name["saturation"].advice:
        return by_name["saturation"].finding
    if simulated.NAME in by_name:
        return "the engine was offered what was asked; nothing else is to be judged of a simulated run."
    margins = [by_name[name] for name in ("client_cpu", "client_lag", "send_lag")]
    seen = [check.finding.rstrip(".") for check in margins if check.value is not None]
    return "; ".join(seen[:2]) + "." if seen else ""
