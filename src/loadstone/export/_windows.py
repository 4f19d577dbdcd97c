"""The steady state in a line of the summary, and the slices in another."""

from __future__ import annotations

from collections.abc import Mapping

from loadstone.export._tables import label
from loadstone.figures import brief, counted, figures
from loadstone.report import MetricResult, Report, Trend, Window
from loadstone.terminal import wrap

THROUGHPUTS = {"output_token_throughput": "tok/s", "request_throughput": "requests/s"}
"""What a window is known by: the first of these that it has."""
BESIDE = {
    "concurrency": ("{} in flight", "mean"),
    "time_to_first_token": ("TTFT p50 {} ms", "p50"),
    "request_latency": ("latency p50 {} ms", "p50"),
}
"""What stands beside the throughput, and the statistic of it."""
OTHER = 0.03
"""A throughput that is off by more is another number."""


def steady(report: Report, width: int) -> list[str]:
    """When it was, its numbers where they are others than those of all that was measured, and what went on changing in it.

    Nothing where there was none.
    """
    found = next((window for window in report.windows if window.name == "steady"), None)
    if found is None or found.reason:
        return []
    start, end, share = found.start_s or 0.0, found.end_s or 0.0, found.share or 0.0
    when = f"steady state {start:.1f}-{end:.1f} s ({100 * share:.0f} %): "
    told = _numbers(found) if _differs(found, report) else [f"the same within {100 * OTHER:.0f} %"]
    if not told:
        return []
    return wrap(when + " · ".join([*told, *map(_drift, filter(_drifted, found.trends))]), width, "  ")


def slices(report: Report, width: int) -> list[str]:
    """How many there are, from where to where their throughput goes, and where they are; nothing where none were asked for."""
    found = report.timeslices
    if not found:
        return []
    whole = [one for one in found if one.complete] or list(found)
    length_s = (whole[0].end_s or 0.0) - (whole[0].start_s or 0.0)
    shorter = " and a shorter one" if len(whole) < len(found) else ""
    told = f"{counted(len(whole), 'slice')} of {brief(length_s)} s{shorter}"
    for name, unit in THROUGHPUTS.items():
        if known := [value for one in whole if (value := _mean(one.metrics, name)) is not None]:
            told += f": {figures(min(known))} to {figures(max(known))} {unit}"
            break
    return wrap(f"{told} (report.csv; timeslices in report.json)", width, "  ")


def _numbers(found: Window) -> list[str]:
    """Its throughput, and what stands beside it."""
    name, unit = _known_by(found)
    told = [f"{figures(_mean(found.metrics, name))} {unit}"] if name else []
    for metric, (words, stat) in BESIDE.items():
        if (value := getattr(found.metrics.get(metric), stat, None)) is not None:
            told.append(words.format(figures(value)))
    return told


def _known_by(found: Window) -> tuple[str, str]:
    """The throughput that it has, and its unit; empty where it has none."""
    known = ((name, unit) for name, unit in THROUGHPUTS.items() if _mean(found.metrics, name) is not None)
    return next(known, ("", ""))


def _differs(found: Window, report: Report) -> bool:
    """Whether its throughput is another one than that of all that was measured, or is not to be held against it."""
    name, _ = _known_by(found)
    own, all_of_it = _mean(found.metrics, name), _mean(report.metrics, name)
    return not own or not all_of_it or abs(own - all_of_it) > OTHER * all_of_it


def _mean(metrics: Mapping[str, MetricResult], name: str) -> float | None:
    return metrics[name].mean if name in metrics else None


def _drifted(trend: Trend) -> bool:
    return bool(trend.found and trend.change_percent)


def _drift(trend: Trend) -> str:
    change = trend.change_percent or 0.0
    return f"{label(trend.of)} {'rose' if change > 0 else 'fell'} by {brief(abs(change))} % in it"
