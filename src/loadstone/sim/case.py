"""The case that a built-in engine is asked to be: what it is compared with when its answers are measured."""

from __future__ import annotations

import msgspec

from loadstone.roofline import calibration
from loadstone.roofline.case import Asked, Case, case
from loadstone.sim.options import SimOptions


def case_of(options: SimOptions) -> Case | None:
    """The model and the devices of an engine; None of one whose steps take times of their own.

    UsageError: a name that is not known, or a model that cannot be split so.
    """
    measured = calibration.read(options.calibration) if options.calibration else None
    if options.gpu is None:
        return measured.case() if measured else None
    hardware = measured.hardware if measured else None
    values = {name: getattr(options, name) for name in Asked.__struct_fields__ if name != "model"}
    model = options.hf_config_path or options.models[0]
    return case(msgspec.convert({**values, "model": model}, Asked), hardware)
