"""The summary of a run on one screen, and `summary.txt`, the same without colour.

In the order in which a reader needs it: was it stopped, can it be believed, is what was promised kept, what ran, the
numbers, what failed, what one has to know to read the numbers right, and last the command to run it again and where the
files are.
Colour is for verdicts alone. Nothing from the server or the user is printed raw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from loadstone.export import replacing
from loadstone.export._groups import groups
from loadstone.export._intervals import about_intervals, intervals
from loadstone.export._load import load, load_shape
from loadstone.export._objectives import objectives
from loadstone.export._server import server
from loadstone.export._tables import (
    about_thin,
    distributions,
    label,
    rates,
    rates_shown,
    rows_missed,
    rows_shown,
)
from loadstone.export._windows import slices, steady
from loadstone.figures import counted, figures
from loadstone.read.outcome import (
    CANCELLED_AS_PLANNED,
    CENSORED,
    CLIENT_FAULT,
    NOT_SENT,
    SUCCESSES,
    TIMEOUT_CONNECT,
    TIMEOUT_FIRST_TOKEN,
    TIMEOUT_IDLE,
    TIMEOUT_TOTAL,
    TOO_LARGE,
)
from loadstone.report import Check, Failing, Report
from loadstone.terminal import escaped, fit, paint, printable, wrap

ROLE = "summary"
FILE = "summary.txt"
WIDTH = 100
COLORS = {"VALID": "green", "DEGRADED": "yellow", "INVALID": "red"}
STOPPED = {"user": "yellow", "steady": "green"}
"""The colour of what stopped a run; anything else is a trouble, and red."""
SEVERITY = ("INVALID", "DEGRADED")
MOST_CHECKS = 3
MOST_FAULTS = 3
MOST_REMARKS = 6
LEAST_REMARKS = 3
ROWS = 40
"""Rows of a screen. Remarks beyond them are left out, but for the first `LEAST_REMARKS`."""
LEAST_WORDS = 24
"""Cells that the end of a fault's message needs, for the name of its sample to stand beside it."""
USUAL = "the server's total for an answer was spread evenly over its chunks; no gap brought several tokens."
"""The note of a latency between tokens that nothing is special about."""
NO_SUCCESS = "no request succeeded."
"""The reason why a metric of successes has no number."""
JUDGED = 100
"""Of so many requests that ended last too many had failed when a run is given up."""
LIMITS = {
    TIMEOUT_CONNECT: ("endpoint.connect_timeout_s", "s", "--connect-timeout-seconds"),
    TIMEOUT_FIRST_TOKEN: ("endpoint.first_token_timeout_s", "s", "--first-token-timeout-seconds"),
    TIMEOUT_IDLE: ("endpoint.idle_timeout_s", "s", "--idle-timeout-seconds"),
    TIMEOUT_TOTAL: ("endpoint.timeout_s", "s", "--request-timeout-seconds"),
    TOO_LARGE: ("endpoint.max_response_bytes", "bytes", "--max-response-bytes"),
}
"""Which limit an outcome speaks of: its key in `report.run.limits`, its unit and its flag."""
WITHIN = {"warmup": "warm-up", "measured": "measurement", "cooldown": "cooldown"}
INDENT = " " * len("files  ")


def wanted(report: Report) -> bool:
    """Always."""
    return True


def write(report: Report, folder: Path) -> None:
    """Writes `summary.txt`."""
    with replacing(folder / FILE) as file:
        file.write(render(report, width=WIDTH, color=False, folder=folder).encode() + b"\n")


def render(report: Report, *, width: int, color: bool, folder: Path | None = None) -> str:
    """The summary, every line at most `width` cells except the command, which is never broken.

    `folder` is where the files of `report.run.files` lie, as the reader should type it.
    """
    above = (
        simulated(report, width) + stopped(report, width, color) + verdict(report, width, color),
        objectives(report, width, color),
        headline(report, width) + load(report, width) + server(report, width),
        distributions(report.metrics, width, report.load.cancelled_as_planned),
        intervals(report.metrics, width),
        rates(report.metrics, width) + steady(report, width) + slices(report, width),
        groups(report, width),
        failures(report, width),
    )
    below = ending(report, width, folder)
    room = ROWS - sum(_rows(lines, width) for lines in (*above, below) if lines)
    sections = (*above, remarks(report, width, room), below)
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _rows(lines: Iterable[str], width: int) -> int:
    """Rows of the screen that a section takes, with the blank one behind it; a long command goes on in the next."""
    return 1 + sum(max(1, -(-cell_len(line) // width)) for line in lines)


def simulated(report: Report, width: int) -> list[str]:
    """That nothing here was measured, first of all."""
    told = "by the built-in engine, on a virtual clock; no server was asked and nothing was measured."
    return _titled("SIMULATED", None, told, width) if report.run.simulated else []


def stopped(report: Report, width: int, color: bool) -> list[str]:
    """That the load ended before its time, and why."""
    run = report.run
    if run.stopped_by is None:
        return []
    why = run.stopped_why or ""
    if run.stopped_by == "user":
        why = "by you (Ctrl-C or a signal); the numbers are those of what had happened until then"
    elif run.failing:
        why = _too_many(run.failing, run.limits.get("load.failed_request_threshold"))
    tint = STOPPED.get(run.stopped_by, "red") if color else None
    return _titled("STOPPED", tint, f"{why.rstrip('.')}." if why else "", width)


def _too_many(failing: Failing, allowed: float | None) -> str:
    """Which failures ended the run, counted from the table: what was seen while it ran may lag behind."""
    limit = "" if allowed is None else f" (more than {100 * allowed:.3g} % of the last {JUDGED})"
    how = (
        f"all of them {failing.outcome}"
        if failing.of_outcome == failing.failed
        else f"most of them {failing.outcome} ({failing.of_outcome:,})"
    )
    return (
        f"too many requests failed{limit}: from {failing.since_s:.2f} s into the {WITHIN[failing.kind]} on, {failing.failed:,} of"
        f" {failing.ended:,}, {how}"
    )


def verdict(report: Report, width: int, color: bool) -> list[str]:
    """The certificate, what led to it and what to do; and whether the server was saturated."""
    word, said = report.certificate.verdict, report.certificate.headline
    saturation = [check for check in report.certificate.checks if check.name == "saturation"]
    full = " ".join(_unsaid(check, said) for check in saturation) if report.run.saturated else ""
    yellow = "yellow" if color else None
    if full and any(check.finding == said for check in saturation):
        return _titled(f"{word}, SATURATED", yellow, f"{said} {full}", width)
    lines = _titled(word, COLORS[word] if color else None, said, width)
    for check in _troubles(report.certificate.checks)[:MOST_CHECKS]:
        if unsaid := _unsaid(check, said):
            lines += wrap(printable(unsaid), width, "  ", "  ")
    return lines + (_titled("SATURATED", yellow, full, width) if full else [])


def _unsaid(check: Check, said: str) -> str:
    """What a check found, unless the headline has said so, and its advice."""
    return check.advice if check.finding in said else f"{check.finding} {check.advice}"


def _titled(word: str, tint: str | None, text: str, width: int) -> list[str]:
    """`text` behind a word in the colour `tint`."""
    first, *rest = wrap(f"{word}: {printable(text)}" if text else word, width, "  ")
    return [paint(word, tint, tint is not None) + first.removeprefix(word), *rest]


def _troubles(checks: Iterable[Check]) -> list[Check]:
    wrong = [check for check in checks if check.verdict in SEVERITY]
    return sorted(wrong, key=lambda check: SEVERITY.index(check.verdict))


def headline(report: Report, width: int) -> list[str]:
    """What ran against what, how it ended, and how long it took."""
    endpoint, run = report.config.get("endpoint", {}), report.run
    api = f"{endpoint.get('type')}, streaming" if endpoint.get("streaming") else endpoint.get("type")
    what = _joined(
        endpoint.get("model"), api, load_shape(report.load.arrivals), _servers(endpoint.get("url"))
    )
    lasted = f"{figures(run.duration_s)} s" if run.duration_s else None
    end = None if run.end == "complete" or run.stopped_by else f"{run.end} before its end"
    how = _joined(_counts(report), end, lasted, f"seed {run.seed}")
    with_tokens = _joined(_counts(report), end, lasted, _tokens(report), f"seed {run.seed}")
    return [
        *wrap(what, width, "  "),
        *wrap(with_tokens if cell_len(with_tokens) <= width else how, width, "  "),
    ]


def _tokens(report: Report) -> str | None:
    """How many tokens went in and came out with the successes; None where that is not known."""
    sums = (report.metrics.get(name) for name in ("total_input_tokens", "total_output_tokens"))
    read, written = (None if result is None else result.mean for result in sums)
    return f"{read:,.0f} tokens in, {written:,.0f} out" if read and written is not None else None


def _servers(url: str | Sequence[str] | None) -> str | None:
    """The server, or the first of several and how many more there are."""
    if url is None or isinstance(url, str):
        return url
    first, *more = url
    return f"{first} and {len(more)} more" if more else first


def _joined(*parts: str | None) -> str:
    return " · ".join(printable(part) for part in parts if part)


def _counts(report: Report) -> str:
    """How many were planned, were ok and failed; and no failures of the server: cancelled, cut off, lost, never sent, and
    turns that never became due.
    """
    counts = report.outcomes.counts
    good = sum(counts.get(name, 0) for name in SUCCESSES)
    cancelled = counts.get(CANCELLED_AS_PLANNED, 0)
    cut = sum(counts.get(name, 0) for name in CENSORED) - cancelled
    lost, never_due = counts.get(CLIENT_FAULT, 0), report.load.never_due
    unsent = counts.get(NOT_SENT, 0) - never_due
    failed = sum(_failed(report).values())
    planned = counted(report.outcomes.planned, "request")
    if report.run.simulated and report.run.end == "aborted" and not report.outcomes.planned:
        return "of no request is known what came of it"
    parts = [
        f"{good:,} ok",
        f"{failed:,} failed" if failed else "",
        f"{cancelled:,} cancelled as asked" if cancelled else "",
        f"{cut:,} cut off" if cut else "",
        f"{lost:,} {'lost' if report.run.simulated else 'lost by the client'}" if lost else "",
        f"{unsent:,} never sent" if unsent else "",
        f"{never_due:,} never due" if never_due else "",
    ]
    return f"{planned}: {', '.join(filter(None, parts))}"


def _failed(report: Report) -> dict[str, int]:
    """The failures of the server by outcome."""
    none = SUCCESSES | CENSORED | {CLIENT_FAULT, NOT_SENT}
    return {name: count for name, count in report.outcomes.counts.items() if count and name not in none}


def failures(report: Report, width: int) -> list[str]:
    """How many failed in which way, the most frequent faults in the server's words, and why others were not sent."""
    outcomes = report.outcomes
    lines = wrap(printable(total), width, "  ") if (total := _total(report)) else []
    for fault in outcomes.faults[:MOST_FAULTS]:
        lines += _fault(fault, width)
    if (more := outcomes.fault_kinds - MOST_FAULTS) > 0:
        listed = outcomes.fault_kinds == len(outcomes.faults)
        lines.append(
            fit(
                f"  and {counted(more, 'more kind')} ({'report.json' if listed else 'requests.jsonl'})", width
            )
        )
    for fact in _not_sent(report):
        lines += _in_two(f"{fact['count']:,} x {NOT_SENT}: {fact['reason']}", "", width)
    for line in _limits(report):
        lines += wrap(line, width, "    ", "  ")
    return lines


def _total(report: Report) -> str:
    """How many failed in which way; empty when none did. What was lost or never sent has been counted before."""
    failed = _failed(report)
    if not failed:
        return ""
    kinds = sorted(failed.items(), key=lambda kind: -kind[1])
    total = f"{sum(failed.values()):,} of {counted(report.outcomes.planned, 'request')} failed"
    return f"{total}: {', '.join(f'{name} {count:,}' for name, count in kinds)}"


def _not_sent(report: Report) -> Sequence[Mapping[str, Any]]:
    """Why requests were never sent, unless that has been said: that the load was stopped, or bound by a cap.

    Where none of them had become due a notice tells why.
    """
    never_due = report.outcomes.counts.get(NOT_SENT, 0) == report.load.never_due
    if never_due or report.run.stopped_by or report.load.bound_by == "cap":
        return ()
    return report.outcomes.not_sent[:MOST_FAULTS]


def _limits(report: Report) -> Iterator[str]:
    """The limits that ended a request."""
    ended = [
        f"{report.run.limits[key]:,.10g} {unit} ({flag})"
        for outcome, (key, unit, flag) in LIMITS.items()
        if report.outcomes.counts.get(outcome) and report.run.limits.get(key) is not None
    ]
    if ended:
        yield f"limits that ended requests: {', '.join(ended)}"


def _fault(fault: Mapping[str, Any], width: int) -> list[str]:
    """How often a fault came, its outcome, the server's words, and where the first such answer is kept."""
    sample = f"({fault['sample']})" if fault.get("sample") else ""
    return _in_two(f"{fault['count']:,} x {fault['outcome']}: {fault['message']}", sample, width)


def _in_two(text: str, last: str, width: int) -> list[str]:
    """`text` on at most two lines, cut where it is longer, with `last` at its end; without it where words have no room."""
    text, last = printable(text), printable(last)
    lines = wrap(f"{text} {last}", width, "    ", "  ")
    if len(lines) <= 2:
        return lines
    first, *rest = wrap(text, width, "    ", "  ")
    room = width - cell_len(last) - 1 if last else width
    if room < LEAST_WORDS:
        room, last = width, ""
    words = "    " + " ".join(line.strip() for line in rest)
    return [first, f"{fit(words, room)} {last}".rstrip()]


def remarks(report: Report, width: int, room: int) -> list[str]:
    """What a reader has to know to read the numbers right, the most important first, in so many rows.

    The last one is not left out where it takes no more room than to say that it is missing.
    """
    checks = [
        f"{check.finding} {check.advice}" for check in report.certificate.checks if check.verdict == "NOTE"
    ]
    said = [
        *((text, "metrics") for text in _about_metrics(report, "reason")),
        *((text, "run.notices") for text in report.run.notices),
        *((text, "certificate.checks") for text in checks),
        *((text, "metrics") for text in _about_metrics(report, "note")),
    ]
    told = [wrap(f"- {printable(text)}", width, "  ") for text, _ in said]
    marks = filter(None, (about_thin(report.metrics), *about_intervals(report.metrics, width)))
    thin = [line for text in marks for line in wrap(text, width, "  ")]
    most = _that_fit(told, room - len(thin))
    where = ", ".join(dict.fromkeys(branch for _, branch in said[most:]))
    more = wrap(f"- and {len(said) - most} more in report.json: {where}", width, "  ") if where else []
    return [*(line for lines in told[:most] for line in lines), *more, *thin]


def _that_fit(told: Sequence[Sequence[str]], room: int) -> int:
    """How many remarks there is room for, beside the row that says how many more there are."""
    ends = list(accumulate(map(len, told)))
    if ends and len(told) <= MOST_REMARKS + 1 and ends[-1] <= max(room, ends[:LEAST_REMARKS][-1]):
        return len(told)
    fitting = sum(end < room for end in ends)
    return min(max(fitting, LEAST_REMARKS), MOST_REMARKS, len(told))


def _about_metrics(report: Report, field: str) -> list[str]:
    """Each different `reason` or `note` of the metrics shown, or missed, once, after the names it holds for.

    That no request succeeded says the certificate; what is so in nearly every run stands in `report.json` alone.
    """
    metrics = report.metrics
    texts: dict[str, list[str]] = {}
    for name in (*rows_missed(metrics), *rows_shown(metrics), *rates_shown(metrics)):
        if (text := getattr(metrics[name], field)) and text not in (NO_SUCCESS, USUAL):
            texts.setdefault(text, []).append(label(name))
    return [f"{_several(about)}: {text}" for text, about in texts.items()]


def _several(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


def ending(report: Report, width: int, folder: Path | None) -> list[str]:
    """The command to run it again, on one line, and where the files are."""
    lines = [escaped(report.run.command)]
    if folder:
        lines.append(f"files  {escaped(str(folder))}/")
    return lines + wrap(" ".join(report.run.files.values()), width, INDENT, INDENT)
