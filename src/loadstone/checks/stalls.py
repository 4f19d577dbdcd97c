"""Whether the client's own processes kept step: loops that stood still, garbage collections, decoders that fell behind."""

from __future__ import annotations

from loadstone.checks.evidence import Evidence, Verdict, answer
from loadstone.figures import brief, counted
from loadstone.report import Check

STALL_MS = 100.0
"""A scheduler on a shared machine lets a process wait for some ten milliseconds now and then."""
STALLED_PERCENT = 1.0
"""Of the time, in stalls: from here on they may shift a p99."""
BEHIND_PERCENT = 10.0
"""Of the requests, not decoded when the load ended ..."""
BEHIND_S = 2.0
"""... if it took so long to decode them: below that it was what ended last."""


def loop_stalls(evidence: Evidence) -> Check:
    """Every worker's loop went round in time: none came to what it does every 20 ms more than 100 ms late.

    A loop stalls where one round of it takes long, a write of the recording waits for the disk, or the system lets another
    process run. Meanwhile nothing is sent; what arrives is dated by the kernel all the same, but tokens that wait together
    bear one stamp. NOTE from 100 ms on; DEGRADED when stalls of more than 50 ms were 1 % of the time of a worker.
    """
    logs = [log for log in evidence.tables.run.workers if log.stall_ns is not None and log.wall_ns > 0]
    if not logs:
        return answer("loop_stalls", "VALID", None, "ms", "not known: no worker told of its loop.")
    longest = max(log.stall_ns or 0 for log in logs) / 1e6
    share = max(100 * (log.stalled_ns or 0) / log.wall_ns for log in logs)
    if longest < STALL_MS and share < STALLED_PERCENT:
        return answer(
            "loop_stalls", "VALID", longest, "ms", f"no loop was more than {brief(longest)} ms late."
        )
    finding = (
        f"a worker's loop stood still for up to {brief(longest)} ms, in all for {brief(share)} % of its time"
    )
    write_ms = max(log.write_ns or 0 for log in logs) / 1e6
    advice = "Something starved a worker: give the client cores of its own, or run on a quieter machine."
    if 2 * write_ms >= longest:
        finding += f"; a write of the recording took {brief(write_ms)} ms"
        advice = "The disk is too slow for the recording: choose another one with --artifact-dir."
    verdict: Verdict = "DEGRADED" if share >= STALLED_PERCENT else "NOTE"
    return answer("loop_stalls", verdict, longest, "ms", f"{finding}.", advice)


def garbage_collection(evidence: Evidence) -> Check:
    """No garbage was collected in the workers, where it is frozen and off: a collection stops a loop for milliseconds.

    A NOTE when any was.
    """
    logs = [log for log in evidence.tables.run.workers if log.collections is not None]
    if not logs:
        return answer("garbage_collection", "VALID", None, "", "not known: no worker told of it.")
    count = sum(log.collections or 0 for log in logs)
    if not count:
        return answer("garbage_collection", "VALID", 0, "", "off in every worker, and it stayed off.")
    finding = f"{counted(count, 'garbage collection')} stopped the workers' loops, where they should be off."
    advice = "An endpoint or a package of yours turns them on (gc.enable, gc.collect); leave that out."
    return answer("garbage_collection", "NOTE", count, "", finding, advice)


def decoder_lag(evidence: Evidence) -> Check:
    """Decoders kept up with the recording, so that what was decided while the load ran was decided on all of it.

    No number of the report depends on it, but --stop-when, the limit of failures and the screen do. NOTE when at the end of
    the load a tenth of the requests was not decoded and it took 2 s to decode them.
    """
    log = evidence.tables.run.decoding
    if log is None:
        return answer("decoder_lag", "VALID", None, "s", "not known: the run did not come to the end of it.")
    took_s = log.took_ns / 1e9
    ended = sum(worker.flights for worker in evidence.tables.run.workers)
    share = 100 * log.behind / max(1, ended, log.behind)
    if share < BEHIND_PERCENT or took_s < BEHIND_S:
        return answer("decoder_lag", "VALID", took_s, "s", "decoders kept up with the recording.")
    finding = (
        f"{counted(log.behind, 'request')} ({brief(share)} %) were not decoded when the load ended, which took {brief(took_s)} s"
        " more: what the screen and --stop-when went by was old."
    )
    advice = "Give the client more cores, and the recording a faster disk (--artifact-dir)."
    return answer("decoder_lag", "NOTE", took_s, "s", finding, advice)
