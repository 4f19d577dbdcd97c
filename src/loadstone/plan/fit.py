"""Whether a load fits its data: that it sends anything, and that what counts requests counts conversations too.

Known before the clock starts, and before a server is started for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from loadstone.clock import SECOND_NS
from loadstone.config import LoadConfig
from loadstone.config.phases import place
from loadstone.config.rules import refused
from loadstone.errors import UsageError
from loadstone.plan import schedule
from loadstone.plan.schedule import Phase
from loadstone.plan.turn import Conversation

FAR_S = 86_400.0
"""A first timestamp so far from where a schedule begins is counted from another origin, such as 1970."""
_MS_NS = 1_000_000
_AUTO = "--fixed-schedule-auto-offset begins with the first timestamp."

Outlines = Callable[[], Iterator[Conversation]]
"""The conversations of the data, each once, from the first one on; endless when the data is."""


def check_fit(load: LoadConfig, phases: Sequence[Phase], seed: int, outlines: Outlines) -> None:
    """Raises `UsageError` for a load whose measured phases all send nothing, or that counts what the data does not."""
    measured = [at for at, phase in enumerate(phases) if phase.kind == "measured"]
    idle = [why for at in measured if (why := _idle(load, at, phases[at], seed, outlines)) is not None]
    if idle and len(idle) == len(measured):
        raise idle[0]
    for at, phase in enumerate(phases):
        _check_one_turn(load, at, phase, outlines)


def _idle(load: LoadConfig, at: int, phase: Phase, seed: int, outlines: Outlines) -> UsageError | None:
    """Why phase number `at` sends nothing; None: it does, or nobody knows."""
    if phase.pattern in ("closed", "burst", "users") or phase.conditioned:
        return None
    due_ns = schedule.first_due_ns(phase, seed, outlines())
    if due_ns is None:
        return _never(load, at, phase, outlines)
    if phase.duration_ns is not None and due_ns >= phase.duration_ns:
        seconds = phase.duration_ns / SECOND_NS
        why = (
            f"no request would be sent: the first one is due at {due_ns / SECOND_NS:.6g} s. {_advice(phase)}"
        )
        return refused(place(load, at, "duration_s"), why, seconds)
    if phase.pattern == "fixed" and due_ns >= FAR_S * SECOND_NS:
        why = f"the first request is due after {due_ns / SECOND_NS:,.0f} s. {_advice(phase)}"
        return refused(place(load, at, "fixed_schedule"), why, True)
    return None


def _advice(phase: Phase) -> str:
    if phase.pattern != "fixed":
        return "Give it more time, or a higher rate."
    return "Give it more time." if phase.origin_ns is None else _AUTO


def _never(load: LoadConfig, at: int, phase: Phase, outlines: Outlines) -> UsageError:
    """Of a phase in which nothing is ever due."""
    if phase.pattern != "fixed":
        name = "request_rate_series" if load.request_rate_series else "request_rate"
        return refused(place(load, at, name), "no request would be sent: the rate never comes to one.")
    begins = [one.turns[0].at_ns or 0 for one in outlines()]
    where = f"the conversations begin from {min(begins) / _MS_NS:.15g} to {max(begins) / _MS_NS:.15g} ms"
    name = "fixed_schedule_start_ms" if phase.origin_ns else "fixed_schedule_end_ms"
    value_ns = phase.origin_ns or phase.latest_ns or 0
    return refused(place(load, at, name), f"no request would be sent: {where}.", value_ns / _MS_NS)


def _check_one_turn(load: LoadConfig, at: int, phase: Phase, outlines: Outlines) -> None:
    """Raises `UsageError` where the number of a request is that of a conversation, but conversations are longer."""
    if phase.one_turn or not (phase.conditioned or phase.index_ramp):
        return
    if any(len(one.turns) > 1 for one in outlines()):
        name = "conditioned" if phase.conditioned else "index_ramp_strategy"
        why = "counts requests, so it is for conversations of one turn; the file has longer ones."
        raise refused(place(load, at, name), why)
