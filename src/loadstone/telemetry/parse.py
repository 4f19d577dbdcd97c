"""The text of a Prometheus page as samples, each in its series. Pure; knows no server and no clock.

One rule: nothing of the text goes into the words of an error, and no secret of ours into a series or a value. The meaning of a page is `prometheus_client`'s to find. Between two reads of one page little but numbers changes, so where
all else is as it was, the numbers alone are read: a fortieth of the work, and the same result.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from loadstone.config import hide
from loadstone.config.secrets import LEAST

MOST_SAMPLES = 100_000
"""Of one page; fifty times what a large engine has."""
MOST_LINE_CHARS = 16_384
"""The parser's time grows with the square of a line."""
_PLAIN = re.compile(r"[0-9.eE+\-NaInf ]*")
"""What numbers are made of that `float` and the parser take for the same; not `1_0`, which only `float` takes."""


class Series(NamedTuple):
    """What a sample is one of."""

    family: str
    """Its name as the parser has it, of a counter without `_total`."""
    type: str
    """counter, gauge, histogram, summary, or untyped."""
    name: str
    """Of the sample; one of a counter always ends in `_total`."""
    labels: str
    """A JSON object, sorted by name."""


class Page(NamedTuple):
    """The samples of one page in their order; `series` are positions in `Parser.series`."""

    series: array[int]
    values: array[float]


class NotAPageError(ValueError):
    """The text is no Prometheus page; in words that are all our own."""


class Parser:
    """Parses one page again and again. `hidden` are overwritten in names and labels; a value that is one is NaN."""

    def __init__(self, hidden: Sequence[str] = ()) -> None:
        self._hidden = hidden
        self._secret_values = frozenset(_numbers(hidden))
        self.series: list[Series] = []
        """Every series ever seen, by its number."""
        self._numbers: dict[Series, int] = {}
        self._lines: list[str] = []
        """Of the last page, all that is no number; empty where its lines are not simply one sample each."""
        self._series: array[int] = array("I")

    def __call__(self, text: str) -> Page:
        """The samples of `text`. Raises `NotAPageError`."""
        lines, numbers = _split(text)
        if lines == self._lines:
            try:
                return Page(self._series, self._shown(_floats(numbers)))
            except ValueError:
                pass  # let the parser say what it is
        page = self._parsed(text)
        plain = _reads(numbers, page.values)
        self._lines, self._series = (lines, page.series) if plain else ([], array("I"))
        return page._replace(values=self._shown(page.values))

    def _shown(self, values: array[float]) -> array[float]:
        """The values without those that are a secret."""
        if not self._secret_values or self._secret_values.isdisjoint(values):
            return values
        return array("d", (math.nan if value in self._secret_values else value for value in values))

    def _parsed(self, text: str) -> Page:
        series: array[int] = array("I")
        values: array[float] = array("d")
        for found, value in _samples(text):
            if len(values) == MOST_SAMPLES:
                raise NotAPageError(f"it has more than {MOST_SAMPLES:,} samples")
            if found not in self._numbers:
                self._numbers[found] = len(self.series)
                self.series.append(_masked(found, self._hidden))
            series.append(self._numbers[found])
            values.append(value)
        if not values:
            raise NotAPageError("it has no sample" if text.strip() else "it is empty")
        return Page(series, values)


def _masked(series: Series, hidden: Sequence[str]) -> Series:
    """The series without the `hidden` in its names and labels."""
    labels = msgspec.json.decode(series.labels, type=dict[str, str])
    shown = {hide(name, hidden): hide(value, hidden) for name, value in labels.items()}
    return Series(
        family=hide(series.family, hidden),
        type=series.type,
        name=hide(series.name, hidden),
        labels=msgspec.json.encode(shown).decode(),
    )


def _numbers(hidden: Sequence[str]) -> Iterator[float]:
    """Those secrets that a value can be: a key may consist of digits."""
    for secret in hidden:
        if len(secret) >= LEAST and _PLAIN.fullmatch(secret):
            try:
                value = float(secret)
            except ValueError:
                continue
            if math.isfinite(value):
                yield value


def _samples(text: str) -> Iterator[tuple[Series, float]]:
    from prometheus_client.parser import text_string_to_metric_families  # 40 ms

    longest = max(map(len, text.split("\n")))
    if longest > MOST_LINE_CHARS:
        raise NotAPageError(f"it has a line of {longest:,} characters")
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = msgspec.json.encode(dict(sorted(sample.labels.items()))).decode()
                yield Series(family.name, family.type, sample.name, labels), float(sample.value)
    except Exception:  # of any kind, for the text may be anything; its words may be words of the text
        raise NotAPageError("it is not in Prometheus's format") from None


def _split(text: str) -> tuple[list[str], list[str]]:
    """Every line without the number at its end, and the numbers; a comment has none."""
    lines: list[str] = []
    numbers: list[str] = []
    for line in text.split("\n"):
        if not line or line[0] == "#":
            lines.append(line)
            continue
        before, _, number = line.rpartition(" ")
        lines.append(before)
        numbers.append(number)
    return lines, numbers


def _floats(numbers: list[str]) -> array[float]:
    """The numbers as `float` has them. Raises `ValueError` where one is not plainly a number."""
    if not _PLAIN.fullmatch(" ".join(numbers)):
        raise ValueError("not plain numbers")
    return array("d", map(float, numbers))


def _reads(numbers: list[str], values: array[float]) -> bool:
    """Whether `float` takes the texts for the values that the parser does."""
    try:
        read = _floats(numbers)
    except ValueError:
        return False
    return len(read) == len(values) and all(
        one == other or (one != one and other != other) for one, other in zip(read, values, strict=True)
    )
