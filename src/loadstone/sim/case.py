"""The case that a built-in engine is asked to be: what its steps cost, and what its answers are compared with.

One rule: whoever asks which model runs on which devices asks here, so that an engine and its roofline are of the same case.
"""

from __future__ import annotations

import msgspec

from loadstone.errors import UsageError
from loadstone.roofline import calibration, gpus
from loadstone.roofline.case import Asked, Case, case, convert
from loadstone.roofline.setup import Efficiency
from loadstone.sim.options import SimOptions


def asked_of(options: SimOptions) -> Asked:
    """What the options ask for; the model by its config, or else by the first name it answers to."""
    values = {name: getattr(options, name) for name in Asked.__struct_fields__ if name != "model"}
    model = options.hf_config_path or options.models[0]
    return convert({**values, "gpu": options.gpu or "", "model": model}, "sim:")


def modelled(options: SimOptions) -> tuple[Case, Efficiency] | None:
    """The model on its devices, and how near to the datasheet its steps come; None of steps with times of their own.

    A calibration says both where no device is named. Of another device it says the efficiency alone.
    UsageError: a name that is not known, or a model that cannot be split so.
    """
    measured = calibration.read(options.calibration) if options.calibration else None
    efficiency = measured.efficiency if measured else Efficiency()
    if options.gpu is None:
        return (measured.case(), efficiency) if measured else None
    named = gpus.find(options.gpu)
    if options.hf_config_path is None and options.model == SimOptions().model:
        raise UsageError(
            f"gpu = {options.gpu}: which model runs on it is not said; give one: model=llama-3.1-8b in an address, --model"
            " llama-3.1-8b as a flag, or hf_config_path (its config.json)."
        )
    hardware = measured.hardware if measured else None
    same = hardware is not None and hardware.name == named.name
    return case(asked_of(options), hardware if same else named), efficiency


def case_of(options: SimOptions) -> Case | None:
    """The model and the devices alone."""
    found = modelled(options)
    return None if found is None else found[0]


def named(options: SimOptions) -> SimOptions:
    """The options with the name of the model that is computed, where there is one and nobody has called it otherwise."""
    if options.model != SimOptions().model or (options.gpu is None and options.calibration is None):
        return options
    found = case_of(options)
    return options if found is None else msgspec.structs.replace(options, model=found.shape.name)
