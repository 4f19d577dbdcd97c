"""Verdicts on objectives over several runs: by the interval over runs, which holds what differs from run to run. Pure.

An objective of one run asks what the server does in this run; of a study, what it does in such runs. So it is the mean over
runs that is held against the limit. A run that missed is not outvoted silently: how many did is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from loadstone.errors import Exit
from loadstone.figures import brief
from loadstone.report import Interval, SloVerdict
from loadstone.study.aggregate import Spread, over

METHOD = "Student t over runs"
CODES = {"FAIL": Exit.SLO_MISSED, "UNDECIDED": Exit.UNDECIDED, "PASS": Exit.DONE}
OF_ONE_RUN = frozenset({Exit.SLO_MISSED, Exit.UNDECIDED})
"""What a run says of objectives by itself; a study of several says it of all of them."""


def verdicts(runs: Sequence[Sequence[SloVerdict]]) -> tuple[SloVerdict, ...]:
    """One verdict for each objective, from those of every run that counts; a lone run's are its own."""
    if len(runs) < 2:
        return tuple(runs[0]) if runs else ()
    return tuple(
        _verdict(one, [verdict for run in runs for verdict in run if verdict.objective == one.objective])
        for one in runs[0]
    )


def code(sides: Iterable[Sequence[SloVerdict]]) -> Sequence[Exit]:
    """What these verdicts mean for how the study exits."""
    return [CODES[one.verdict] for side in sides for one in side]


def _verdict(one: SloVerdict, of_runs: Sequence[SloVerdict]) -> SloVerdict:
    """By the values that the runs were judged by. None is met that a run has missed for certain."""
    found = over([math.inf if verdict.infinite else verdict.value for verdict in of_runs])
    missed = sum(verdict.verdict == "FAIL" for verdict in of_runs)
    by_run = f"{missed} of {len(of_runs)} runs missed it" if missed else "no run missed it"
    if found is not None and found.infinite:
        return _made(
            one, found, "FAIL", f"It is infinite in {found.infinite} of {len(of_runs)} runs; {by_run}."
        )
    if found is None or found.low is None or found.high is None or found.runs < len(of_runs):
        return _made(one, found, "UNDECIDED", f"Not every run has a value; {by_run}.")
    span = f"The mean over {found.runs} runs is {brief(found.low)} to {brief(found.high)} {one.unit} (95 %)"
    ends = [_keeps(one, found.low), _keeps(one, found.high)]
    if not any(ends):
        return _made(one, found, "FAIL", f"{span}, all beyond the limit; {by_run}.")
    if not all(ends):
        return _made(
            one, found, "UNDECIDED", f"{span}, and the limit lies within; {by_run}. More runs would tell."
        )
    if missed:
        return _made(one, found, "UNDECIDED", f"{span}, all within the limit, but {by_run}: see why it did.")
    return _made(one, found, "PASS", f"{span}, all within the limit; {by_run}.")


def _keeps(one: SloVerdict, value: float) -> bool:
    return value <= one.limit if one.better == "lower" else value >= one.limit


def _made(one: SloVerdict, found: Spread | None, word: str, finding: str) -> SloVerdict:
    interval = None if found is None else Interval(low=found.low, high=found.high, method=METHOD)
    return msgspec.structs.replace(
        one,
        value=None if found is None else found.mean,
        infinite=bool(found and found.infinite),
        interval=interval,
        verdict=word,
        finding=finding,
        more_requests=None,
    )
