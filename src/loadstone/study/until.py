"""Whether enough runs are done: how well a mean over them is known. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from loadstone.config import LEAST_RUNS
from loadstone.errors import UsageError, did_you_mean
from loadstone.figures import brief
from loadstone.study.aggregate import STATS, Metrics, of_run, percent, spread

Goals = Mapping[tuple[str, str], float]
"""The width wanted in percent of the mean, by metric and statistic."""


def goals(asked: Mapping[str, float], metrics: Sequence[str]) -> Goals:
    """What --stop-runs-when asks for, `METRIC[.STAT]:PERCENT`; the mean where no statistic is named. Raises `UsageError`."""
    found: dict[tuple[str, str], float] = {}
    for text, width in asked.items():
        name, _, stat = text.partition(".")
        if name not in metrics:
            advice = did_you_mean(name, metrics) or "`loadstone explain` lists them."
            raise UsageError(f"runs.stop_when.{text}: there is no metric {name}. {advice}")
        if (stat or "mean") not in STATS:
            raise UsageError(f"runs.stop_when.{text}: there is no {stat}. Known: {', '.join(STATS)}.")
        found[name, stat or "mean"] = width
    return found


def enough(wanted: Goals, sides: Collection[Sequence[Metrics]]) -> str | None:
    """Why no more runs are needed, in words; None: they are. Every side has to reach every goal."""
    if not wanted or any(len(runs) < LEAST_RUNS for runs in sides):
        return None
    told = []
    for (name, stat), width in wanted.items():
        for runs in sides:
            one = spread([of_run(metrics, name) for metrics in runs], stat)
            known = None if one is None or one.runs < LEAST_RUNS else percent(one)
            if known is None or known > width:
                return None
            told.append(f"{name}.{stat} within {brief(known)} %")
    return f"{', '.join(told)} after {len(next(iter(sides)))} runs"
