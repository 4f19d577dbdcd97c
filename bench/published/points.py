"""The published measurements as data: where each was made, under which load, and what was measured."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from loadstone.roofline.setup import Weights

FILE = Path(__file__).parent / "points.toml"
Use = Literal["fitted", "held out", "device in doubt"]
FIGURES = {
    "duration_s": "time to the last answer, s",
    "requests_s": "requests/s",
    "output_tok_s": "output tokens/s",
    "total_tok_s": "input and output tokens/s",
    "tpot_ms": "TPOT, mean, ms",
    "tpot_p50_ms": "TPOT, median, ms",
    "ttft_ms": "TTFT, mean, ms",
}
"""What can have been measured, as it is called in tables."""


class Load(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Requests of one length, or of many lengths with a known sum; all at once or so many at a time."""

    requests: int
    concurrency: int | None = None
    """None: all come at once."""
    input: int | None = None
    """Tokens of every prompt; None: `input_total` is the sum of all."""
    output: int | None = None
    input_total: int | None = None
    output_total: int | None = None

    @property
    def words(self) -> str:
        """It in a few words."""
        lengths = f"{self.input}/{self.output}" if self.input else "ShareGPT"
        if self.concurrency is None:
            return f"{self.requests} x {lengths} at once"
        return f"{lengths}, {self.concurrency} at a time"


class Point(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One measurement; the first of its figures stands for it where there is to be only one."""

    id: str
    use: Use
    """Whether the defaults of `Efficiency` were fitted to it."""
    source: str
    """A key of `sources`."""
    version: str
    """Of vLLM."""
    defaults: str
    """A key of `defaults`: the flags of that version where none is given."""
    gpu: str
    model: str
    weights: Weights | None = None
    """None: as published."""
    tensor: int = 1
    flags: dict[str, Any] = {}
    load: Load
    measured: dict[str, float]
    note: str = ""
    """What the source does not say, or what is unusual."""
    reason: str | None = None
    """A key of `reasons`: why the model is likely to be off; None: it is not, by much."""


class Points(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    sources: dict[str, str]
    defaults: dict[str, dict[str, Any]]
    reasons: dict[str, str]
    configs: dict[str, dict[str, Any]]
    """What `config.json` says of models that are not in the table of shapes."""
    points: tuple[Point, ...]

    def of(self, use: Use) -> Iterator[Point]:
        """The points of one group."""
        return (point for point in self.points if point.use == use)


@cache
def points() -> Points:
    """All of them."""
    return msgspec.convert(tomllib.loads(FILE.read_text("utf-8")), Points)
