"""Whether the load came to a steady state, and stayed in it long enough for its numbers to be those of the state."""

from __future__ import annotations

from loadstone.checks.evidence import Evidence, answer, even
from loadstone.checks.saturation import saturated
from loadstone.checks.server import FEW_REQUESTS
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.metrics._steady import Drift, Steady, drifts, steady
from loadstone.report import Check

NAME = "steady_state"
HALF_PERCENT = 50.0
"""Of the measured time: where less of it is steady, ramp and drain make more of the numbers than the state does."""


def steady_state(evidence: Evidence) -> Check:
    """The run came to a steady state, which is most of it, and in which latencies and rates do not drift.

    Of phases whose load is the same throughout. A NOTE where there is no steady state (windows in report.json says what one
    is), where it is less than half of the measured time, or where in it a latency or the rate of answers drifts by more than
    5 % (trend test, p < 0.01). A server that falls behind never comes to one: that is what `saturation` says.
    """
    tables = evidence.tables
    if not tables.loads or not all(map(even, tables.loads)):
        return answer(NAME, "VALID", None, "%", "the load was meant to change with time.")
    if int(tables.succeeded.sum()) < FEW_REQUESTS:
        return answer(NAME, "VALID", None, "%", "too few answers to tell.")
    if saturated(evidence):
        return answer(NAME, "VALID", None, "%", "a server that falls behind comes to none: see saturation.")
    found = [_of_phase(phase) for phase in tables.by_phase]
    return next((check for check in found if check.verdict != "VALID"), found[0])


def _of_phase(tables: Tables) -> Check:
    span = steady(tables)
    if not isinstance(span, Steady):
        finding = f"no steady state was reached: {span}"
        return answer(
            NAME, "NOTE", None, "%", finding, "Run for longer: --benchmark-duration, --request-count."
        )
    share = 100 * (span.stop_ns - span.start_ns) / 1e9 / tables.window_s if tables.window_s else 0.0
    if share < HALF_PERCENT:
        finding = (
            f"the run was in its steady state for {brief(share)} % of the time; the rest is ramp and drain, in which less is"
            " under way."
        )
        advice = "Run for longer, or take the numbers of the steady window (windows in report.json)."
        return answer(NAME, "NOTE", share, "%", finding, advice)
    moved = [drift for drift in drifts(tables, span) if drift.found]
    if moved:
        finding = f"{', '.join(map(_told, moved))} from the beginning of the steady state to its end, so it was not steady yet."
        return answer(
            NAME, "NOTE", share, "%", finding, "Warm up for longer, or run for longer and see where it ends."
        )
    return answer(NAME, "VALID", share, "%", f"{brief(share)} % of the time was steady.")


def _told(drift: Drift) -> str:
    change = 100 * (drift.change or 0.0)
    return f"{drift.of} {'rose' if change > 0 else 'fell'} by {brief(abs(change))} %"
