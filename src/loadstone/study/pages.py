"""A study for a CI: JUnit XML and Markdown. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from loadstone.export import junit_xml
from loadstone.export.junit_xml import Case
from loadstone.figures import figures
from loadstone.study.aggregate import MetricSpread, RunLine
from loadstone.study.console import ROWS, head
from loadstone.study.document import Study
from loadstone.terminal import printable


def junit(told: Study) -> str:
    """Every run as a test case, whether it counts, and every objective of every side."""
    cases = [*map(_run, told.runs)]
    for side, verdicts in told.slo.items():
        found = map(junit_xml.of_objective, verdicts)
        cases += [one._replace(name=f"{side}: {one.name}") if len(told.slo) > 1 else one for one in found]
    return junit_xml.page({"command": told.command}, told.started, 0.0, cases)


def markdown(told: Study) -> str:
    """What counts, the objectives and the table of every side."""
    lines = [f"## {head(told)}", ""]
    for line in told.runs:
        why = f": left out, {printable(line.fault)}" if line.fault else ""
        lines.append(f"- {line.name}: {line.verdict or 'no report'}, seed {line.seed}{why}")
    for side, metrics in told.sides.items():
        lines += (
            ["", f"### {side.upper()} {_cell(told.targets.get(side, ''))}"] if len(told.sides) > 1 else []
        )
        lines += ["", *_objectives(told, side), *_table(metrics)]
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[Study], str]] = {"junit": junit, "markdown": markdown}
"""What a study can be written as, by the name of `loadstone report --format`."""


def _run(line: RunLine) -> Case:
    case = Case("run", f"{line.name} counts", line.verdict or "no report")
    if line.fault is None:
        return case
    return case._replace(tag="failure", word=line.verdict or "no report", why=line.fault)


def _objectives(told: Study, side: str) -> Iterator[str]:
    if not told.slo.get(side):
        return
    yield from ("| Objective | Verdict | Finding |", "|---|---|---|")
    for one in told.slo[side]:
        yield f"| {_cell(one.objective)} | **{one.verdict}** | {_cell(one.finding)} |"
    yield ""


def _table(metrics: dict[str, MetricSpread]) -> Iterator[str]:
    """The rows of the console: the mean over runs, its 95 % interval, the least and the greatest."""
    yield from (
        "| Metric | Unit | Mean over runs | 95 % interval | Min | Max | Runs |",
        "|---|---|---|---|---|---|---|",
    )
    for name, stats in ROWS:
        for stat in stats:
            one = metrics[name].stats.get(stat) if name in metrics else None
            if one is None:
                continue
            called = f"{name.replace('_', ' ')}{'' if stats == ('mean',) else f' {stat}'}"
            mean = "inf" if one.infinite else figures(one.mean)
            span = "-" if one.low is None else f"{figures(one.low)} to {figures(one.high)}"
            cells = (
                called,
                metrics[name].unit,
                mean,
                span,
                figures(one.min),
                figures(one.max),
                str(one.runs),
            )
            yield f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("<", "&lt;")
