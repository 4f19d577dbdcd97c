"""Notices about the load: several phases, how one follows another, conversations, cancellations that were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from loadstone.clock import SECOND_NS
from loadstone.figures import brief, counted
from loadstone.metrics import Tables
from loadstone.summary.arrivals import arriving
from loadstone.summary.ramps import CutShort, cut_short
from loadstone.summary.turns import never_due


def about_load(tables: Tables) -> Iterator[str]:
    """One sentence for each trait of the load that changes what the numbers mean."""
    yield from _about_phases(tables)
    yield from _about_arrivals(tables)
    yield from _about_ramps(tables)
    yield from _about_conversations(tables)
    yield from _about_cancellation(tables)


def _about_phases(tables: Tables) -> Iterator[str]:
    names = [log.name for log in tables.phases]
    if len(names) > 1:
        yield (
            f"The numbers are those of {len(names)} measured phases together ({', '.join(names)}); report.json has"
            " each one's own."
        )
    for before, log in pairwise(tables.run.phases):
        if log.seamless and log.kind == before.kind == "measured":
            yield (
                f"{log.name} began while the last answers of {before.name} still came, as asked: at first the server had"
                " both."
            )


def _about_arrivals(tables: Tables) -> Iterator[str]:
    conditioned = [load.name for load in tables.loads if load.conditioned]
    if conditioned:
        yield (
            f"The arrivals of {', '.join(conditioned)} were stretched so that the last of N is due at N/rate exactly: they"
            " are no longer independent of each other, and a run is a little more even than the process it is named after."
        )


def _about_ramps(tables: Tables) -> Iterator[str]:
    """Rates and limits whose change the phase did not last long enough for."""
    loads = {load.name: load for load in tables.loads}
    for log in tables.phases:
        lasted_s = (log.stop_ns - log.start_ns) / SECOND_NS
        for ramp in cut_short(loads[log.name], lasted_s) if log.name in loads else ():
            unit = f" {arriving(tables)}/s" if ramp.of == "rate" else ""
            yield _cut_short(ramp, unit, log.name if len(tables.phases) > 1 else "", lasted_s)


def _cut_short(ramp: CutShort, unit: str, phase: str, lasted_s: float) -> str:
    of = f" of {phase}" if phase else ""
    return (
        f"The {ramp.of}{of} was to come to {brief(ramp.end)}{unit} by {brief(ramp.by_s)} s, but {phase or 'the load'} stopped"
        f" after {brief(lasted_s)} s, when it was {brief(ramp.reached)}: a shorter ramp, or a longer load, gets there."
    )


def _about_conversations(tables: Tables) -> Iterator[str]:
    later = tables.requests["turn"].fill_null(0).to_numpy() > 0
    if not later.any():
        return
    held = int((later & tables.attempted).sum())
    if held:
        yield (
            f"{counted(held, 'request')} {'is a later turn' if held == 1 else 'are later turns'}: the prompt holds the"
            " questions before it, not the server's answers."
        )
    missed = never_due(tables)
    if any(missed):
        reasons = (
            f"{missed.not_begun:,} of conversations that never began" if missed.not_begun else "",
            f"{missed.held_up:,} after a turn that failed, was cancelled or was not over"
            if missed.held_up
            else "",
            f"{missed.too_late:,} to come after the stop" if missed.too_late else "",
        )
        why = ", ".join(filter(None, reasons))
        yield f"{counted(sum(missed), 'later turn')} never became due: {why}."


def _about_cancellation(tables: Tables) -> Iterator[str]:
    cancelled = int(tables.cancelled.sum())
    if not cancelled:
        return
    delays = {load.cancel_after_ns for load in tables.loads if load.cancelled_share}
    it = ("it was", "it is") if cancelled == 1 else ("they were", "they are")
    after = f", {brief(delays.pop() / SECOND_NS)} s after {it[0]} sent" if len(delays) == 1 else ""
    yield f"{_were(cancelled)} cancelled as asked{after}; {it[1]} in no plain latency."


def _were(count: int) -> str:
    return f"{counted(count, 'request')} {'was' if count == 1 else 'were'}"
