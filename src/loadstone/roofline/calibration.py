"""A calibration: how near a setup came to the datasheet when it was measured, as a file that others read.

The file is TOML. What the measurement did not tell has no value there, but the prior that stands in for it and a reason.
Knows neither how it is fitted nor run folders.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import tomli_w

from loadstone.errors import UsageError
from loadstone.roofline import small_file
from loadstone.roofline.case import Asked, Case, case, checked
from loadstone.roofline.gpu import Gpu
from loadstone.roofline.setup import Efficiency

FORMAT = 1

Share = Annotated[float, msgspec.Meta(gt=0, le=1e6)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
HEAD = """\
# How near to the datasheet this setup came: loadstone roofline --fit made it from measured runs.
# Read with --calibration by loadstone roofline, simulate and plan, and with --roofline by profile.

"""


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """`setup.Efficiency` as a file has it, within its bounds."""

    bandwidth: Share
    compute: Share
    step_s: Seconds
    layer_s: Seconds
    sequence_s: Seconds
    link: Share
    latency: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 1.0


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the runs told of one parameter: one of `reached`, or `request_s`, what a first token takes beside its prompt."""

    prior: float
    used: float
    """The value; where there is none, what stands in for it: the prior, or the least that the runs allow."""
    value: float | None = None
    """None: the runs do not tell it."""
    error: float | None = None
    """Standard error of the value, as if the model were right; None where there is none."""
    reason: str | None = None


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A measured step beside what the model says of it."""

    kind: Literal["decode", "prefill"]
    sequences: int
    tokens: int
    """Mean context of a decode, length of the prompt of a prefill."""
    samples: int
    """Steps of a decode, prompts of a prefill, of which it is the median."""
    measured_s: float
    model_s: float
    error_percent: float
    """(model - measured) / measured."""
    run: str


class Calibration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The file."""

    format: int
    made: str
    """RFC 3339, UTC."""
    loadstone_version: str
    runs: tuple[str, ...]
    """Folders of the runs it was fitted to, as they were named."""
    setup: Asked
    reached: Reached
    told: dict[str, Told]
    rms_percent: float
    """Root mean square of the points' relative errors."""
    worst_percent: float
    points: tuple[Measured, ...]
    simulated: bool = False
    """Runs of the built-in engine are among them: it says how that was set, and nothing of hardware."""
    notes: tuple[str, ...] = ()
    """What is to be known of it, in sentences."""
    hardware: Gpu | None = None
    """What the hardware is worth where no datasheet says it: bandwidth and FLOP/s as reached. None: the datasheet's."""

    @property
    def efficiency(self) -> Efficiency:
        """To be used with the datasheet, or with `hardware` where there is one."""
        return Efficiency(**msgspec.structs.asdict(self.reached))

    def case(self) -> Case:
        """The setup it was measured on. UsageError: a name in it is no longer known."""
        return case(self.setup, self.hardware)


def read(path: str | Path) -> Calibration:
    """The calibration in a file. UsageError: there is none, or it is damaged or from another version."""
    where = Path(path)
    try:
        values = tomllib.loads(small_file.read(where).decode())
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read: {error.strerror}. Give the file that --fit wrote."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: is no TOML: {error}. Give the file that --fit wrote.") from None
    if values.get("format") != FORMAT:
        raise UsageError(
            f"{path}: is no calibration of this version (format = {values.get('format')!r} and not {FORMAT}); make it"
            " again with loadstone roofline --fit."
        )
    try:
        found = msgspec.convert(values, Calibration)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{path}: is damaged: {error}. Make it again with loadstone roofline --fit."
        ) from None
    checked(found.setup, f"{path}: setup")
    return found


def text(calibration: Calibration) -> str:
    """The file's text."""
    return HEAD + tomli_w.dumps(_without_none(msgspec.to_builtins(calibration)))


def as_json(calibration: Calibration) -> str:
    """The same as JSON, in the keys of the file."""
    told = _without_none(msgspec.to_builtins(calibration))
    return json.dumps(told, indent=2, allow_nan=False)


def write(calibration: Calibration, path: str | Path) -> None:
    """Writes the file, whole or not at all. UsageError: it cannot be written."""
    where = Path(path)
    draft = where.with_name(f".{where.name}.new")
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text(calibration), "utf-8")
        draft.replace(where)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror}. Choose another place with -o."
        ) from None


def _without_none(value: Any) -> Any:
    """TOML has no null: what is not known has no key."""
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_none(inner) for inner in value]
    return value
