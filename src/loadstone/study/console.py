"""The study on a screen: which runs there were, what they say together, and where it lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from loadstone.figures import brief, counted, figures
from loadstone.study.aggregate import MetricSpread, Spread, percent
from loadstone.study.document import SUMMARY, Study
from loadstone.terminal import escaped, left, paint, printable, right, wrap

ROWS = (
    ("time_to_first_token", ("p50", "p99")),
    ("inter_token_latency", ("p50", "p99")),
    ("time_per_output_token", ("p50", "p99")),
    ("request_latency", ("p50", "p99")),
    ("request_latency_from_due", ("p99",)),
    ("output_token_throughput", ("mean",)),
    ("request_throughput", ("mean",)),
    ("goodput", ("mean",)),
    ("goodput_attainment", ("mean",)),
    ("error_rate", ("mean",)),
)
"""What is shown of a side; everything is in `study.json`."""
HEAD = ("", "", "mean", "95 % low", "high", "spread", "min", "max")
VERDICTS = {"PASS": "green", "UNDECIDED": "yellow", "FAIL": "red"}
TINTS = {"VALID": "green", "DEGRADED": "yellow", "INVALID": "red"}


def render(told: Study, home: Path, *, width: int, color: bool) -> str:
    """All of it as text."""
    sections = [wrap(head(told), width, "  "), list(_runs(told, width, color))]
    for side, metrics in told.sides.items():
        sections.append([*_title(told, side), *_table(metrics)])
        sections.append(list(_verdicts(told, side, width, color)))
    sections += [
        list(_remarks(told, width)),
        [escaped(told.command), f"files  {escaped(str(home))}/  study.json {SUMMARY}"],
    ]
    return "\n\n".join("\n".join(section) for section in sections if section)


def head(told: Study) -> str:
    """How many runs count, and why there are no more."""
    counting = sum(line.fault is None for line in told.runs)
    text = f"{counting} of {counted(told.asked, 'run')} count"
    if told.ended_early:
        return f"{text}; no more were needed: {told.ended_early}."
    return f"{text}; it ended after {len(told.runs)}." if len(told.runs) < told.asked else f"{text}."


def _runs(told: Study, width: int, color: bool) -> Iterator[str]:
    names = max((len(line.name) for line in told.runs), default=0)
    for line in told.runs:
        verdict = line.verdict or "no report"
        yield f"  {line.name:<{names}}  {paint(verdict, TINTS.get(verdict, 'red'), color)}  seed {line.seed}"
        if line.fault:
            yield from wrap(printable(f"left out: {line.fault}"), width, "    ", "    ")


def _title(told: Study, side: str) -> list[str]:
    if len(told.sides) < 2:
        return []
    return [f"{side.upper()}  {printable(told.targets.get(side, ''))}"]


def _verdicts(told: Study, side: str, width: int, color: bool) -> Iterator[str]:
    for one in told.slo.get(side, ()):
        first, *more = wrap(printable(f"{one.objective}. {one.finding}"), width - 11)
        yield f"{paint(one.verdict, VERDICTS[one.verdict], color)}{' ' * (11 - len(one.verdict))}{first}"
        yield from (f"{'':11}{line}" for line in more)


def _table(metrics: Mapping[str, MetricSpread]) -> list[str]:
    rows: list[tuple[str, ...]] = [HEAD]
    for name, stats in ROWS:
        if name not in metrics:
            continue
        known = metrics[name]
        for stat in stats:
            if (one := known.stats.get(stat)) is not None:
                called = f"{name.replace('_', ' ')}{'' if stats == ('mean',) else f' {stat}'}"
                rows.append((called, printable(known.unit), *_cells(one)))
    columns = list(zip(*rows, strict=True))
    wide = [max(map(len, column)) for column in columns]
    aligned = [
        [(left if place < 2 else right)(cell, wide[place]) for place, cell in enumerate(row)] for row in rows
    ]
    return ["  ".join(row).rstrip() for row in aligned] if len(rows) > 1 else []


def _cells(one: Spread) -> tuple[str, ...]:
    spread = "-" if one.cv is None else f"{100 * one.cv:.2g} %"
    if one.infinite:
        return "inf", "-", "-", "-", "-", "inf"
    return figures(one.mean), figures(one.low), figures(one.high), spread, figures(one.min), figures(one.max)


def _remarks(told: Study, width: int) -> Iterator[str]:
    """What has to be known to read the table right."""
    if any(
        one.runs < 2
        for metrics in told.sides.values()
        for known in metrics.values()
        for one in known.stats.values()
    ):
        yield from wrap(
            "- One run says nothing of how far runs differ; two or more do (--num-profile-runs).", width, "  "
        )
    for side, metrics in told.sides.items():
        apart = [
            f"{name} {stat}"
            for name, stats in ROWS
            for stat in stats
            if name in metrics and (one := metrics[name].stats.get(stat)) is not None and one.between
        ]
        if apart:
            whose = f" of {side.upper()}" if len(told.sides) > 1 else ""
            yield from wrap(
                f"- Runs{whose} differ by more than chance within a run explains ({', '.join(apart[:3])}): something changes from"
                " run to run. The interval over runs holds it, that of a single run does not.",
                width,
                "  ",
            )
    widest = [
        (known, name)
        for metrics in told.sides.values()
        for name, _ in ROWS
        if name in metrics
        and (one := metrics[name].stats.get("mean")) is not None
        and (known := percent(one)) is not None
    ]
    if widest and max(widest)[0] > 10:
        most, name = max(widest)
        yield from wrap(
            f"- The mean {name.replace('_', ' ')} is known within {brief(most)} % only; four times the runs halve that.",
            width,
            "  ",
        )
