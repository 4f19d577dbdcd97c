"""The steady state in a line of the summary, where its numbers are others than those of all that was measured."""

from __future__ import annotations

from loadstone.export._tables import label
from loadstone.figures import brief, figures
from loadstone.report import Report, Window
from loadstone.terminal import wrap

THROUGHPUT = "output_token_throughput"
BESIDE = {
    "concurrency": ("{} in flight", "mean"),
    "time_to_first_token": ("TTFT p50 {} ms", "p50"),
    "request_latency": ("latency p50 {} ms", "p50"),
}
"""What stands beside the throughput, and the statistic of it."""
OTHER = 0.03
"""A throughput that is off by more is another number."""


def steady(report: Report, width: int) -> list[str]:
    """When it was, its numbers, and what went on changing in it; nothing where there was none, or it says nothing new."""
    found = next((window for window in report.windows if window.name == "steady"), None)
    if found is None or found.reason or not _differs(found, report):
        return []
    start, end, share = found.start_s or 0.0, found.end_s or 0.0, found.share or 0.0
    parts = [
        f"steady state {start:.1f}-{end:.1f} s ({100 * share:.0f} %): {_number(found, THROUGHPUT)} tok/s"
    ]
    for name, (words, stat) in BESIDE.items():
        if (value := getattr(found.metrics.get(name), stat, None)) is not None:
            parts.append(words.format(figures(value)))
    drifting = [
        f"{label(trend.of)} {'rose' if trend.change_percent > 0 else 'fell'} by {brief(abs(trend.change_percent))} % in it"
        for trend in found.trends
        if trend.found and trend.change_percent
    ]
    return wrap(" · ".join([*parts, *drifting]), width, "  ")


def _differs(found: Window, report: Report) -> bool:
    steady, measured = (
        getattr(metrics.get(THROUGHPUT), "mean", None) for metrics in (found.metrics, report.metrics)
    )
    return bool(steady and measured and abs(steady - measured) > OTHER * measured)


def _number(found: Window, name: str) -> str:
    return figures(found.metrics[name].mean)
