"""Markdown: certificate, objectives and metrics with their intervals, to be read in a CI's summary or beside a change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from loadstone.export._load import load_shape
from loadstone.export._objectives import UNBELIEVED, promised
from loadstone.export._span import WITHHELD, span
from loadstone.export._tables import INFINITE, RATES, THIN, label, rates_shown, rows_shown
from loadstone.figures import UNKNOWN, counted, figures
from loadstone.read.outcome import SUCCESSES
from loadstone.report import MetricResult, Report, SloVerdict
from loadstone.terminal import printable

SUMMARY = "Certificate, objectives and metrics as Markdown"
COLUMNS = ("mean", "p50", "p90", "p99")
ABOUT = (
    "In brackets: the 95 % interval. Of a hundred runs like this one, the intervals of about 95 hold the true value; what differs"
    f" from start to start of a server it cannot know. `{THIN}`: too few samples for this percentile."
)
_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~])")


def text(report: Report, folder: Path | None) -> str:
    """The whole page."""
    sections = (
        _head(report),
        _objectives(report),
        _distributions(report),
        _numbers(report),
        _about(report),
        _ending(report),
    )
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(section))) + "\n"


def _head(report: Report) -> Iterator[str]:
    endpoint, run, counts = report.config.get("endpoint", {}), report.run, report.outcomes.counts
    good = sum(counts.get(name, 0) for name in SUCCESSES)
    lasted = f" in {figures(run.duration_s)} s" if run.duration_s else ""
    yield f"## {_plain(str(endpoint.get('model')))}: {report.certificate.verdict}"
    yield ""
    if run.simulated:
        yield "Simulated on a virtual clock; nothing was measured."
        yield ""
    yield f"{_plain(report.certificate.headline)}"
    yield ""
    yield f"{_plain(load_shape(report.load.arrivals) or '')} · {good:,} of {report.outcomes.planned:,} requests ok{lasted} · seed {run.seed}"


def _objectives(report: Report) -> Iterator[str]:
    if not report.slo:
        return
    if report.certificate.verdict == "INVALID":
        yield f"**{UNBELIEVED}**"
        yield ""
    yield from _table(
        ("Objective", "Verdict", "Value", "Finding"),
        [
            (_plain(promised(one)), f"**{one.verdict}**", _value(one), _plain(_finding(one)))
            for one in report.slo
        ],
    )


def _finding(one: SloVerdict) -> str:
    more = (
        f" About {counted(one.more_requests, 'more request')} would decide it." if one.more_requests else ""
    )
    return f"{one.finding}{more}"


def _value(one: SloVerdict) -> str:
    if one.infinite:
        return INFINITE
    return UNKNOWN if one.value is None else f"{figures(one.value)} {one.unit}"


def _distributions(report: Report) -> Iterator[str]:
    names = [name for name in rows_shown(report.metrics) if report.metrics[name].count]
    if names:
        yield from _table(
            ("Metric", "Unit", *COLUMNS),
            [
                (label(name), result.unit, *(_cell(result, stat) for stat in COLUMNS))
                for name in names
                if (result := report.metrics[name])
            ],
        )


def _numbers(report: Report) -> Iterator[str]:
    shown = [name for name in rates_shown(report.metrics) if report.metrics[name].mean is not None]
    if shown:
        yield from _table(
            ("Metric", "Value", "Unit"),
            [(RATES[name], _cell(report.metrics[name], "mean"), report.metrics[name].unit) for name in shown],
        )


def _about(report: Report) -> Iterator[str]:
    """What brackets and marks mean; nothing where there is no number."""
    if report.metrics:
        yield ABOUT


def _ending(report: Report) -> Iterator[str]:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", report.run.command)), default=0))
    yield fence
    yield printable(report.run.command)
    yield fence


def _cell(result: MetricResult, stat: str) -> str:
    """A statistic and its interval."""
    if stat in result.infinite:
        return INFINITE
    mark = r"\~" if stat in result.thin else ""
    told = span(result.intervals.get(stat))
    known = f" [{_plain(told)}]" if told and told != WITHHELD else ""
    return f"{figures(getattr(result, stat))}{mark}{known}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(row)} |"


def _plain(text: str) -> str:
    """Text that Markdown and HTML leave as it is."""
    escaped = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", escaped)
