"""Sentences about a row: `B is 4.1 % faster [1.8, 6.3]`, `no difference shown; 5 % would have been`."""

from __future__ import annotations

from msgspec.structs import replace

from loadstone.compare.result import Row

LATENCY_UNIT = "ms"
SAME = "the same"
ALL = 100
"""Percent, or percentage points, that there are of anything that can only be lost once."""
MUCH = 1000
"""Percent from which on a figure says no more."""


def verdict(row: Row, name: str) -> Row:
    """The row with its verdict about the side `name`."""
    return replace(row, verdict=_verdict(row, name))


def _verdict(row: Row, name: str) -> str:
    if row.low is None or row.high is None or row.change is None:
        return f"not compared: {row.reason}" if row.reason else "not compared."
    if row.differs:
        worse = (row.change < (0 if row.difference else 1)) != (row.better == "lower")
        over = f", over the {row.pairs:,} requests that have it on both sides" if row.pairs else ""
        return f"{name} is {_size(row)} {_word(row, worse)} {_interval(row)}{over}"
    if row.change == row.low == row.high == (0 if row.difference else 1):
        return SAME
    shown = f"no difference shown; {_amount(row, row.shown_from)} would have been"
    return f"{shown} (asked about alone it would be one)" if alone(row) else shown


ALONE = "*"
"""Behind a row that would be a difference were it the only one that was asked about."""
NOT_COMPARED = "not compared"


def short(row: Row) -> str:
    """The verdict beside the change and its interval, which it does not repeat; reasons stand below the table."""
    if row.low is None or row.high is None or row.change is None:
        return NOT_COMPARED
    if row.differs:
        worse = (row.change < (0 if row.difference else 1)) != (row.better == "lower")
        return _word(row, worse)
    if row.change == row.low == row.high == (0 if row.difference else 1):
        return SAME
    return f"none; {_amount(row, row.shown_from)} would be{ALONE if alone(row) else ''}"


def alone(row: Row) -> bool:
    """Whether nothing is shown though the row's own interval leaves out that there is no difference."""
    none = 0 if row.difference else 1
    return (
        not row.differs and row.low is not None and row.high is not None and not row.low <= none <= row.high
    )


def change(row: Row) -> str:
    """The change and its interval for a column: `-4.1 % [-6.3, -1.8]`."""
    if row.change is None:
        return "-"
    low, high = row.low, row.high
    if row.difference:
        text, unit = f"{row.change:+.3g} pp", 1.0
        ends = (low, high)
    else:
        text, unit = f"{100 * (row.change - 1):+.3g} %", 100.0
        ends = (None if low is None else low - 1, None if high is None else high - 1)
    if ends[0] is None or ends[1] is None:
        return text
    return f"{text} [{unit * ends[0]:+.3g}, {unit * ends[1]:+.3g}]"


def label(row: Row) -> str:
    """The name of a row: `time to first token p50`."""
    words = row.metric.replace("_", " ")
    return f"{words} {row.stat}" if row.stat else words


def _word(row: Row, worse: bool) -> str:
    if row.unit == LATENCY_UNIT:
        return "slower" if worse else "faster"
    assert row.change is not None, "a difference that is shown has a size"
    direction = "higher" if row.change > (0 if row.difference else 1) else "lower"
    return f"{direction} ({'worse' if worse else 'better'})"


def _size(row: Row) -> str:
    assert row.change is not None, "a difference that is shown has a size"
    if row.difference:
        return f"{_figure(abs(row.change))} pp"
    return f"{_figure(100 * abs(row.change - 1))} %"


def _interval(row: Row) -> str:
    assert row.low is not None and row.high is not None, "a difference that is shown has an interval"
    apart = (row.low, row.high) if row.difference else (100 * (row.low - 1), 100 * (row.high - 1))
    if apart[0] + apart[1] < 0:
        apart = (-apart[1], -apart[0])
    return f"[{_figure(apart[0])}, {_figure(apart[1])}]"


def _amount(row: Row, size: float | None) -> str:
    if size is None:
        return "nothing"
    if row.difference:
        return f"{_figure(size)} pp" if size < ALL else "nothing"
    most = ALL if row.better == "higher" else MUCH  # nothing gets worse by more than all of it
    return f"{_figure(100 * size)} %" if 100 * size < most else "a multiple"


def _figure(value: float) -> str:
    """Two significant figures, as far as they say anything: `4.1`, `0.32`, `12`."""
    if abs(value) >= 9.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 0.995 else f"{value:.2g}"
