"""Which objectives are watched while the load lasts (`--slo-abort`), and how many requests beyond them are too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from loadstone.config import Config
from loadstone.errors import UsageError
from loadstone.estimate import clopper_pearson
from loadstone.plan import schedule
from loadstone.plan.schedule import Phase
from loadstone.read.beyond import VALUES
from loadstone.slo import ADJUSTED, MOST_WATCHED, Objective, Watched

NO_END = 2**63 - 1


def watched(
    config: Config, objectives: Sequence[Objective], phases: Sequence[Phase], seed: int
) -> tuple[Watched, ...]:
    """The objectives of which it can be certain before the end that this run does not meet them.

    Raises `UsageError` where there is none, where there are too many, or where nobody knows how many requests are planned.
    """
    if not objectives:
        raise UsageError("slo.abort = true: has no effect without an objective of the whole run (--slo).")
    chosen = [(one, how) for one in objectives if (how := _how(one, config)) is not None]
    if not chosen:
        raise UsageError(
            "slo.abort = true: none of the objectives can be missed for certain before the end; error_rate,"
            f" goodput_attainment, and percentiles of {', '.join(VALUES)} can."
        )
    if len(chosen) > MOST_WATCHED:
        raise UsageError(f"slo.abort = true: at most {MOST_WATCHED} objectives can be watched.")
    planned = sum(_most(phase, seed) for phase in phases if phase.kind == "measured")
    return tuple(
        Watched(
            objective=str(one),
            limits=limits,
            failures=failures,
            most=_allowed(planned, share),
            planned=planned,
        )
        for one, (limits, failures, share) in chosen
    )


def measured_rows(phases: Sequence[Phase]) -> list[tuple[int, int]]:
    """The numbers of the requests that are measured: from the first one on, up to the last one, that left out."""
    stops = [*(phase.first_row for phase in phases[1:]), NO_END]
    return [
        (phase.first_row, stop) for phase, stop in zip(phases, stops, strict=True) if phase.kind == "measured"
    ]


def _how(one: Objective, config: Config) -> tuple[dict[str, float], bool, float | None] | None:
    """What is beyond an objective, whether failures are, and the share that may be (None: not one request); None: nobody sees."""
    if one.metric == "error_rate":
        return {}, True, one.limit / 100
    if one.metric == "goodput_attainment":
        limits = {name: limit for name, limit in config.slo.goodput.items() if name in VALUES}
        return limits, True, 1 - one.limit / 100
    plain = one.metric.removeprefix(ADJUSTED)
    if plain not in VALUES or not one.stat or one.stat in ("mean", "min"):
        return None
    share = None if one.stat == "max" else 1 - float(one.stat[1:].replace("_", ".")) / 100
    return {plain: one.limit}, plain != one.metric, share


def _most(phase: Phase, seed: int) -> int:
    """How many requests a phase has at most. Raises `UsageError` where nothing says it."""
    if phase.requests is not None:
        return phase.requests
    if phase.one_turn and phase.sessions is not None:
        return phase.sessions
    if phase.one_turn and phase.duration_ns is not None and phase.curve and schedule.arrives(phase):
        return sum(1 for _ in _due(phase, seed))
    raise UsageError(
        "slo.abort = true: an objective is missed for certain only of so many requests; give --request-count, or a rate"
        " with a --benchmark-duration."
    )


def _due(phase: Phase, seed: int) -> Iterator[int]:
    """The due times of a phase that come before its end."""
    for due_ns in schedule.due_times(phase, seed):
        if phase.duration_ns is not None and due_ns >= phase.duration_ns:
            return
        yield due_ns


def _allowed(planned: int, share: float | None) -> int:
    """The most requests beyond an objective, of so many, with which the verdict on all of them, if each stood alone, would not be FAIL.

    It is FAIL when the whole interval of their share is above the share allowed. Requests that come in crowds take more.
    """
    if share is None:
        return 0
    low, high = 0, planned
    while low < high:
        middle = (low + high + 1) // 2
        if clopper_pearson.low(middle / planned, planned) > share:
            high = middle - 1
        else:
            low = middle
    return low
