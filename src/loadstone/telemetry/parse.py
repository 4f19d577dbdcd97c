"""The text of a Prometheus page as samples, each in its series. Pure; knows no server and no clock.

The meaning of a page is `prometheus_client`'s to find. Between two reads of one page little but numbers changes, so where
all else is as it was, the numbers alone are read: a fortieth of the work, and the same result.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

MOST_SAMPLES = 100_000
"""Of one page; fifty times what a large engine has."""
MOST_LINE_CHARS = 16_384
"""The parser's time grows with the square of a line."""
FIRST_WORDS = 60


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
    """The text is no Prometheus page; in words."""


class Parser:
    """Parses one page again and again."""

    def __init__(self) -> None:
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
                return Page(self._series, array("d", map(float, numbers)))
            except ValueError:
                pass  # let the parser say what it is
        page = self._parsed(text)
        plain = len(numbers) == len(page.values) and all(
            _reads(number, value) for number, value in zip(numbers, page.values, strict=True)
        )
        self._lines, self._series = (lines, page.series) if plain else ([], array("I"))
        return page

    def _parsed(self, text: str) -> Page:
        series: array[int] = array("I")
        values: array[float] = array("d")
        for found, value in _samples(text):
            if len(values) == MOST_SAMPLES:
                raise NotAPageError(f"it has more than {MOST_SAMPLES:,} samples")
            if found not in self._numbers:
                self._numbers[found] = len(self.series)
                self.series.append(found)
            series.append(self._numbers[found])
            values.append(value)
        if not values:
            raise NotAPageError("it has no sample" if text.strip() else "it is empty")
        return Page(series, values)


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
    except NotAPageError:
        raise
    except Exception as error:  # of any kind, for the text may be anything
        words = " ".join(text.split())[:FIRST_WORDS]
        raise NotAPageError(f"it is not in Prometheus's format: {words}") from error


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


def _reads(number: str, value: float) -> bool:
    """Whether `float` takes the text for the value that the parser does."""
    try:
        return float(number) == value or (float(number) != float(number) and value != value)
    except ValueError:
        return False
