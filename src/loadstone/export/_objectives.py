"""The rows about objectives of the summary: what was promised, what came of it, and what is left to be done."""

from __future__ import annotations

from loadstone.export._tables import INFINITE, label
from loadstone.figures import brief, counted
from loadstone.report import Report, SloVerdict
from loadstone.terminal import paint, printable, wrap

COLORS = {"PASS": "green", "FAIL": "red", "UNDECIDED": "yellow"}
UNBELIEVED = "The measurement is INVALID, so neither can these verdicts be believed."
_WORD = max(map(len, COLORS)) + 2


def objectives(report: Report, width: int, color: bool) -> list[str]:
    """Every objective of the run behind its verdict; none where none was set."""
    lines = [line for one in report.slo for line in _row(one, width, color)]
    if lines and report.certificate.verdict == "INVALID":
        lines += wrap(UNBELIEVED, width, "  ")
    return lines


def said(one: SloVerdict) -> str:
    """An objective and what came of it in words: a verdict that is not PASS says why, and what would decide it."""
    words = [f"{promised(one)}: {_value(one)}."]
    if one.verdict != "PASS":
        words.append(one.finding)
    if one.more_requests is not None:
        words.append(f"About {counted(one.more_requests, 'more request')} would decide it.")
    return " ".join(words)


def promised(one: SloVerdict) -> str:
    """The objective in words: `time to first token p99 < 500 ms`."""
    stat = f" {one.stat.replace('_', '.')}" if one.stat else ""
    sign = "<" if one.better == "lower" else ">"
    return f"{label(one.metric)}{stat} {sign} {brief(one.limit)} {one.unit}"


def _value(one: SloVerdict) -> str:
    if one.infinite:
        return INFINITE
    return "not known" if one.value is None else f"{brief(one.value)} {one.unit}"


def _row(one: SloVerdict, width: int, color: bool) -> list[str]:
    first, *rest = wrap(printable(said(one)), width, " " * _WORD, f"{one.verdict:<{_WORD}}")
    return [paint(one.verdict, COLORS[one.verdict], color) + first.removeprefix(one.verdict), *rest]
