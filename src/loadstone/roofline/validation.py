"""How far the roofline's default efficiencies were off when they were held against published runs, by kind of model and device.

One rule: every figure is that of the table "How far it is off" in docs/roofline-validation.md, which a test compares. What no
published run was of is unknown, and said to be. Knows no runs.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from loadstone.roofline.case import Case
from loadstone.roofline.gpu import Gpu
from loadstone.roofline.shape import Shape

PAGE = "docs/roofline-validation.md"
ADVICE = f"fit it to a run first (loadstone roofline --fit; {PAGE})"
Standing = Literal["close", "fast", "untried"]
"""Published runs were near the model, took longer than it says, or there were none."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Points of one kind, and the errors of the model's times: minus is a model that is too fast."""

    row: str
    """What its line of the page begins with."""
    what: str
    """It in a word or two."""
    rms_percent: float
    median_percent: float
    worst_percent: float
    fast: bool
    """The model is too fast there, and not by chance."""

    @property
    def typical(self) -> float:
        """So many times as long as the model says took the median of the published points."""
        return 1 / (1 + self.median_percent / 100)

    @property
    def most(self) -> float:
        """The same of the point that was furthest off."""
        return 1 / (1 + self.worst_percent / 100)


DENSE = Group(
    row="held out: dense models on NVIDIA",
    what="dense models on NVIDIA",
    rms_percent=19.9,
    median_percent=10,
    worst_percent=-55,
    fast=False,
)
MIXTURES = Group(
    row="held out: Mixtral and Qwen3-235B on NVIDIA",
    what="mixtures of experts on NVIDIA",
    rms_percent=18.6,
    median_percent=-11,
    worst_percent=-35,
    fast=False,
)
GPT_OSS = Group(
    row="held out: gpt-oss on NVIDIA",
    what="gpt-oss",
    rms_percent=27.4,
    median_percent=-17,
    worst_percent=-54,
    fast=True,
)
DEEPSEEK = Group(
    row="held out: DeepSeek-R1 on NVIDIA",
    what="DeepSeek",
    rms_percent=54.5,
    median_percent=-58,
    worst_percent=-67,
    fast=True,
)
AMD = Group(
    row="held out: MI300X", what="AMD", rms_percent=29.0, median_percent=-22, worst_percent=-48, fast=True
)
GROUPS = (DENSE, MIXTURES, GPT_OSS, DEEPSEEK, AMD)
FITTED_VERSIONS = "0.2.6 to 0.11"
"""Of vLLM: those of the runs that the defaults were fitted to (versions that a source does not state apart)."""
TRIED = ("a100", "h100", "h200")
"""What the names of the NVIDIA devices begin with that published runs were of."""


class Validity(msgspec.Struct, frozen=True, kw_only=True):
    """What published runs say of the model's times for one kind of model on one kind of device."""

    standing: Standing
    groups: tuple[Group, ...]
    """Those it belongs to, the worst first; none where nothing of the kind was published."""
    why: str
    """Why there is none."""

    @property
    def short(self) -> str | None:
        """What belongs beside a figure, in a few words; None: published runs were near."""
        if self.standing == "close":
            return None
        if self.standing == "untried":
            return f"no published run {self.why} was held against the roofline"
        return f"published runs {_on(self.groups)} took up to {self.groups[0].most:.1f} times as long"

    @property
    def caution(self) -> str | None:
        """The same in a sentence without its full stop, with what to do; None: published runs were near."""
        if self.standing == "close":
            return None
        if self.standing == "untried":
            return f"{self.short}, so nobody knows how far it is off here: {ADVICE}"
        worst = self.groups[0]
        more = ", and both apply here" if len(self.groups) > 1 else ""
        return (
            f"published runs {_on(self.groups)} took {worst.typical:.1f} (median) to {worst.most:.1f} times as long as the roofline"
            f" says{more}: {ADVICE}"
        )


def validity(shape: Shape, gpu: Gpu) -> Validity:
    """What is known of the default efficiencies for this model on this device."""
    found = [_model(shape), AMD if gpu.name.startswith("mi") else None]
    fast = sorted((one for one in found if one and one.fast), key=lambda one: one.worst_percent)
    if fast:
        return Validity(standing="fast", groups=tuple(fast), why="")
    if not gpu.name.startswith(TRIED):
        return Validity(standing="untried", groups=(), why=f"on {gpu.name}")
    if found[0] is None:
        return Validity(standing="untried", groups=(), why="of a dense model with windowed attention")
    return Validity(standing="close", groups=(found[0],), why="")


def caution(case: Case, fitted: Case | None = None) -> Validity | None:
    """What to be told of times of this case; `fitted`: what the efficiencies were measured with, if they were.

    None: published runs were near, or the efficiencies are those of this model on this device.
    """
    if fitted is not None and (fitted.shape.name, fitted.gpu.name) == (case.shape.name, case.gpu.name):
        return None
    found = validity(case.shape, case.gpu)
    return None if found.standing == "close" else found


def _model(shape: Shape) -> Group | None:
    """The group of a model; None: no published run was of its kind."""
    if shape.latent is not None:
        return DEEPSEEK
    if shape.experts:
        return GPT_OSS if shape.window else MIXTURES
    return None if shape.window else DENSE


def _on(groups: tuple[Group, ...]) -> str:
    """`of DeepSeek`, `on AMD`, or both."""
    return " and ".join(f"{'on' if one is AMD else 'of'} {one.what}" for one in groups)
