"""Published figures beside our engine's, their errors, and the errors of groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from msgspec.structs import replace

from bench.published.play import figures
from bench.published.points import Point, points
from loadstone.roofline import gpus, models
from loadstone.roofline.shape import Shape

RATES = ("requests_s", "output_tok_s", "total_tok_s")
NEARBY = "h100-pcie"
"""What the machine in doubt behaves as."""


class Compared(NamedTuple):
    """One figure of one point."""

    point: Point
    figure: str
    published: float
    model: float

    @property
    def error(self) -> float:
        """By which share the model's time is longer; of rates, that of the time which they mean."""
        if self.figure in RATES:
            return self.published / self.model - 1
        return self.model / self.published - 1


@cache
def compared(gpu: str | None = None) -> tuple[Compared, ...]:
    """Every figure of every point; with `gpu` of those whose device is in doubt, on that one."""
    known = points()
    found = []
    for point in known.points:
        if gpu is not None:
            if point.use != "device in doubt":
                continue
            point = replace(point, gpu=gpu)
        for name, value in figures(point, known).items():
            found.append(Compared(point, name, point.measured[name], value))
    return tuple(found)


def first(rows: Iterable[Compared]) -> list[Compared]:
    """One figure a point: the one that stands for it."""
    return [row for row in rows if row.figure == next(iter(row.point.measured))]


def rms(rows: Iterable[Compared]) -> float:
    """Root of the mean square of errors."""
    errors = [row.error for row in rows]
    return math.sqrt(math.fsum(error * error for error in errors) / len(errors))


class Group(NamedTuple):
    """Points that are judged together."""

    name: str
    rows: list[Compared]


def has_experts(point: Point) -> bool:
    """Whether its model is one with experts."""
    shape: Shape | None = models.by_name(point.model)
    return shape is not None and shape.experts > 0


def is_amd(point: Point) -> bool:
    """Whether its devices are AMD's."""
    return gpus.find(point.gpu).name.startswith("mi")


KINDS: dict[str, Callable[[Point], bool]] = {
    "fitted: steps of small batches, A100, H100 and H200": lambda point: point.use == "fitted",
    "held out: dense models on NVIDIA": lambda point: not has_experts(point) and not is_amd(point),
    "held out: Mixtral and Qwen3-235B on NVIDIA": lambda point: (
        not is_amd(point) and point.model in ("mixtral-8x7b", "qwen3-235b-a22b")
    ),
    "held out: gpt-oss on NVIDIA": lambda point: not is_amd(point) and point.model.startswith("gpt-oss"),
    "held out: DeepSeek-R1 on NVIDIA": lambda point: point.model == "deepseek-v3",
    "held out: MI300X": is_amd,
}
"""The first that fits; points whose device is in doubt are in none."""


def groups() -> list[Group]:
    """All groups, those whose device is in doubt twice: as their source says, and as they behave."""
    found = {name: Group(name, []) for name in KINDS}
    doubtful = Group("in doubt, on the H100 SXM that is stated or assumed", [])
    for row in compared():
        if row.point.use == "device in doubt":
            doubtful.rows.append(row)
        else:
            found[next(name for name, fits in KINDS.items() if fits(row.point))].rows.append(row)
    again = Group("in doubt, on an H100 PCIe", list(compared(NEARBY)))
    return [*found.values(), doubtful, again]
