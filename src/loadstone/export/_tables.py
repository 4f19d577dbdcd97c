"""The numbers of the summary as lines of text: a table of distributions, and the rates beside each other.

Columns are as wide as what stands in them, and as many as the width has room for, in the order of `CHOICE`.
Knows metrics by their names alone; a metric the report does not hold is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len

from loadstone.export._span import span
from loadstone.figures import UNKNOWN, figures
from loadstone.report import MetricResult
from loadstone.terminal import left, printable, right

Metrics = Mapping[str, MetricResult]

DISTRIBUTIONS = (
    "time_to_first_token",
    "time_to_first_output_token",
    "inter_token_latency",
    "time_per_output_token",
    "request_latency",
    "time_to_first_token_from_due",
    "request_latency_from_due",
    "queue_wait",
    "input_sequence_length",
    "output_sequence_length",
)
WAITING = ("time_to_first_token_from_due", "request_latency_from_due", "queue_wait")
HEADLINES = ("request_latency", "request_latency_from_due", "time_to_first_token_from_due")
"""What always has a row with the requests cut off below it, where there are some that were not cancelled as asked."""
ADJUSTED = {
    "request_latency": "adjusted_request_latency",
    "time_to_first_token": "adjusted_time_to_first_token",
}
"""What has a row below it in which requests that failed took for ever, where some did; of the second where it changes what is read."""
INFINITE = "inf"
QUOTED = frozenset({"p50", "p90", "p99"})
MOVED = 0.05
"""Else there is one where one of these percentiles differs from the plain one by more than this share of that."""
WAITED_MS = 10.0
"""A p99 above this is a queue, not the lag of sending."""
ALL_TOKENS = "output_token_throughput_under_load"
STALLED = "stalled_answers"
RATES = {
    "output_token_throughput": "output throughput",
    "request_throughput": "request throughput",
    "total_token_throughput": "total throughput",
    "output_token_throughput_per_user": "per user",
    "goodput": "goodput",
    "token_goodput": "token goodput",
    "goodput_attainment": "goodput attainment",
    "offered_rate": "offered",
    "completed_rate": "completed",
    "concurrency": "concurrency",
    "peak_concurrency": "peak concurrency",
    "peak_output_token_throughput": "peak output",
    ALL_TOKENS: "output, all tokens",
    "inter_token_latency_of_roofline": "ITL of roofline",
    "output_token_throughput_of_roofline": "output of roofline",
    "time_to_first_token_of_roofline": "TTFT of roofline",
    STALLED: "stalled answers",
    "cost_per_million_output_tokens": "cost of output",
    "energy_per_output_token": "energy",
}
"""Metrics of one number, and what they are called beside their unit; read in pairs."""

ORDER = ("min", "mean", "std", "p1", "p25", "p50", "p75", "p90", "p95", "p99", "p99_9", "max")
CHOICE = ("p50", "p99", "mean", "p90", "max", "p99_9", "min", "p95", "std", "p75", "p25", "p1")
"""Which statistics come first when there is not room for all."""

SHORT = {
    "time_to_first_token": "TTFT",
    "time_to_first_output_token": "TTFT, answer",
    "inter_token_latency": "ITL",
    "time_per_output_token": "TPOT",
    "request_latency": "latency",
    "time_to_first_token_from_due": "TTFT due",
    "request_latency_from_due": "from due",
    "queue_wait": "queue wait",
    "input_sequence_length": "ISL",
    "output_sequence_length": "OSL",
}
UNSENT = "never sent"
"""How requests are called whose wait for a slot had no end."""
NARROW = 72
BEYOND = ">"
"""Before a percentile that is longer than what is shown: than any request was seen to take, or than can be told."""
GAP = "   "
THIN = "~"
TAKES = {"p99": 1_000, "p95": 200, "p90": 100, "p50": 20}
"""Samples that a percentile takes not to be thin (ten beyond it; see `stats.thin`), the farthest first."""
NOTHING = f"{UNKNOWN} "
"""A cell without a number, as wide as its mark would make it."""


def label(name: str) -> str:
    """A metric's name in words."""
    return name.replace("_", " ")


def rows_shown(metrics: Metrics) -> list[str]:
    """The distributions of `metrics` that are worth a row and have a number, be it of requests cut off alone."""
    return [name for name in _of_use(metrics) if metrics[name].count or metrics[name].with_censored]


def rows_missed(metrics: Metrics) -> list[str]:
    """Those that a reader looks for in vain. A wait at the client is not missed where there can be none."""
    shown = rows_shown(metrics)
    return [name for name in _of_use(metrics) if name not in (*shown, *WAITING)]


def _of_use(metrics: Metrics) -> list[str]:
    """The distributions of `metrics` that would be worth a row.

    The first output token is one only where it differs from the first token: where the server thought; the
    waiting at the client only where there was some.
    """
    rows = [name for name in DISTRIBUTIONS if name in metrics]
    if not waited(metrics):
        rows = [name for name in rows if name not in WAITING]
    first, answer = metrics.get("time_to_first_token"), metrics.get("time_to_first_output_token")
    if first and answer and _shown(first) == _shown(answer):
        rows.remove("time_to_first_output_token")
    return rows


def _shown(result: MetricResult) -> tuple[object, ...]:
    """What tells two rows apart."""
    return result.p50, result.p99, result.count, result.cut_off, result.with_censored


def waited(metrics: Metrics) -> bool:
    """Whether a queue stood at the client: by the wait for a slot, or where there are none by the latencies."""
    wait, due, sent = map(metrics.get, ("queue_wait", "request_latency_from_due", "request_latency"))
    if wait is not None and wait.p99 is not None:
        return wait.p99 > WAITED_MS or wait.censored > 0
    if due is None or sent is None or due.p99 is None or sent.p99 is None:
        return False
    return due.p99 - sent.p99 > WAITED_MS


def distributions(metrics: Metrics, width: int, cancelled: int = 0) -> list[str]:
    """The table of distributions: a header, one line a metric, and below it one with the requests cut off.

    Of these `cancelled` were cancelled as asked. Without a number there is no table.
    """
    names = rows_shown(metrics)
    if not names:
        return []
    rows = list(_rows(metrics, names, width < NARROW, cancelled))
    fixed = [
        _column(["", *(row.name for row in rows)], left),
        _column(["", *(row.unit for row in rows)], left),
    ]
    cells = {stat: _cells(rows, stat) for stat in ORDER}
    columns = {stat: _column(told, right) for stat, told in cells.items() if set(told[1:]) - {"", NOTHING}}
    chosen = _that_fit(columns, width - sum(len(column[0]) for column in fixed) - 1)
    shown = [*fixed, *(column for stat, column in columns.items() if stat in chosen)]
    return [" ".join(line).rstrip() for line in zip(*shown, strict=True)]


class _Row(NamedTuple):
    """One line of the table: what it is called, its unit, and what stands in each column that has something."""

    name: str
    unit: str
    cells: Mapping[str, str]


def _rows(metrics: Metrics, names: Iterable[str], narrow: bool, cancelled: int) -> Iterator[_Row]:
    for name in names:
        result = metrics[name]
        called = SHORT.get(name, label(name)) if narrow else label(name)
        yield _Row(called, printable(result.unit), _numbers(result))
        if result.with_censored and result.cut_off and _matters(name, result, cancelled):
            ended = UNSENT if name == "queue_wait" else _ended(result.cut_off, cancelled)
            more = f"  with {result.cut_off:,} {ended}"
            more = f" +{result.cut_off:,} {'unsent' if ended == UNSENT else 'cut'}" if narrow else more
            yield _Row(more, "", _curve(result, result.with_censored))
        failed = metrics.get(ADJUSTED.get(name, ""))
        if failed is not None and failed.infinite and (name in HEADLINES or _reaches(failed)):
            count = f"{failed.count - result.count:,}"
            yield _Row(f" +{count} failed" if narrow else f"  with {count} failed", "", _numbers(failed))


def _matters(name: str, result: MetricResult, cancelled: int) -> bool:
    """Whether a time with the requests that were cut off is worth a row."""
    if name in HEADLINES and result.cut_off > cancelled:
        return True
    curve = result.with_censored or {}
    pairs = ((getattr(result, stat), curve.get(stat)) for stat in QUOTED if stat in curve)
    return any(plain is None or other is None or abs(other - plain) > MOVED * plain for plain, other in pairs)


def _reaches(failed: MetricResult) -> bool:
    """Whether so many failed that a percentile which people quote is infinite."""
    return not QUOTED.isdisjoint(failed.infinite)


def _ended(count: int, cancelled: int) -> str:
    """How requests that we ended are called."""
    if not cancelled:
        return "cut off"
    return "cancelled" if count <= cancelled else "cut off or cancelled"


def _numbers(result: MetricResult) -> dict[str, str]:
    """The cells of a metric; what is infinite is no number that is missing."""
    return {stat: _cell(result, stat) for stat in ORDER}


def _cell(result: MetricResult, stat: str) -> str:
    if stat in result.infinite:
        return f"{INFINITE} "
    value = getattr(result, stat)
    return NOTHING if value is None else figures(value) + _mark(result, stat)


def _mark(result: MetricResult, stat: str) -> str:
    return THIN if stat in result.thin else " "


def _curve(result: MetricResult, percentiles: Mapping[str, float | None]) -> dict[str, str]:
    """The percentiles with the requests cut off; one that nobody saw is beyond the longest time seen."""
    beyond = BEYOND + figures(result.with_censored_least) + " "
    least = BEYOND if result.with_censored_at_least else ""
    return {
        stat: beyond if value is None else least + figures(value) + _mark(result, stat)
        for stat, value in percentiles.items()
    }


def _cells(rows: Sequence[_Row], stat: str) -> list[str]:
    return [stat.replace("_", ".") + " ", *(row.cells.get(stat, "") for row in rows)]


def _column(cells: list[str], align: Callable[[str, int], str]) -> list[str]:
    width = max(map(cell_len, cells))
    return [align(cell, width) for cell in cells]


def _that_fit(columns: Mapping[str, list[str]], width: int) -> set[str]:
    """The longest run of `CHOICE` that stands in `width` cells, a space before each; at least one."""
    chosen: set[str] = set()
    for stat in filter(columns.__contains__, CHOICE):
        width -= len(columns[stat][0]) + 1
        if width < 0 and chosen:
            break
        chosen.add(stat)
    return chosen


def rates_shown(metrics: Metrics) -> list[str]:
    """The metrics of one number that have one.

    What was completed stands beside what was offered, or not at all; the tokens of all requests only where some were cut
    off, which the other throughputs leave out; stalls where there were some; the load not alone.
    """
    known = [name for name in RATES if name in metrics and metrics[name].mean is not None]
    latency = metrics.get("request_latency")
    of_use = {
        "completed_rate": "offered_rate" in known,
        ALL_TOKENS: latency is not None and latency.cut_off > 0,
        STALLED: STALLED in known and bool(metrics[STALLED].mean),
    }
    shown = [name for name in known if of_use.get(name, True)]
    return shown if any(metrics[name].better != "neither" for name in shown) else []


def rates(metrics: Metrics, width: int) -> list[str]:
    """The metrics that are one number each, in two columns where there is room.

    Else those with an interval have a line each, then all; and where that is too wide too, none has its interval.
    """
    names = rates_shown(metrics)
    spread = [name for name in names if _beside(metrics[name])]
    plain = [name for name in names if name not in spread]
    for told in (
        _pairs(metrics, names),
        [*_entries(metrics, spread), *_pairs(metrics, plain)],
        _entries(metrics, names),
    ):
        if max(map(cell_len, told), default=0) <= width:
            return [line.rstrip() for line in told]
    return [entry.rstrip() for entry in _entries(metrics, names, intervals=False)]


def _pairs(metrics: Metrics, names: Sequence[str]) -> list[str]:
    """Two beside each other, to be read line by line."""
    beside = [_entries(metrics, names[start::2]) for start in (0, 1)]
    return [GAP.join(pair).rstrip() for pair in zip_longest(*beside, fillvalue="")]


def _entries(metrics: Metrics, names: Sequence[str], *, intervals: bool = True) -> list[str]:
    """One below the other: what it is called, its number, its unit, its interval."""
    if not names:
        return []
    labels = _column([RATES[name] for name in names], left)
    numbers = _column([figures(metrics[name].mean) for name in names], right)
    units = [printable(metrics[name].unit) + (_beside(metrics[name]) if intervals else "") for name in names]
    return _column(list(map("{}  {} {}".format, labels, numbers, units)), left)


def _beside(result: MetricResult) -> str:
    """The interval of a number, behind its unit."""
    told = span(result.intervals.get("mean"))
    return f" [{told}]" if told else ""


def about_thin(metrics: Metrics) -> str | None:
    """That some percentile of a row shown has too few samples, and what the farthest of those that users look at takes."""
    thin = {name: metrics[name].thin for name in rows_shown(metrics) if metrics[name].thin}
    if not thin:
        return None
    told = f"{THIN} too few samples for this percentile"
    wanted = [(stat, name) for stat in TAKES for name in thin if stat in thin[name]]
    if not wanted:
        return told
    stat, name = wanted[0]
    return f"{told}: {stat} takes {TAKES[stat]:,}, and {label(name)} has {metrics[name].count:,}"
