"""Which engines come with a caution."""

from __future__ import annotations

from tests.calibrations import written

from loadstone.roofline.case import Asked
from loadstone.sim.caution import caution
from loadstone.sim.options import SimOptions

SETUP = Asked(gpu="mi300x", model="llama-3.1-8b")


def test_an_engine_without_a_device_needs_none():
    assert caution(SimOptions()) is None


def test_a_device_on_which_the_roofline_is_too_fast():
    assert caution(SimOptions(gpu="h100", model="llama-3.1-8b")) is None
    assert caution(SimOptions(gpu="mi300x", model="llama-3.1-8b")).standing == "fast"


def test_what_was_fitted_to_this_model_on_this_device_needs_none(tmp_path):
    fitted = written(tmp_path / "a.toml", SETUP)
    assert caution(SimOptions(calibration=fitted)) is None
    assert caution(SimOptions(gpu="mi300x", model="llama-3.1-8b", calibration=fitted)) is None
    assert caution(SimOptions(gpu="mi300x", model="llama-3.1-70b", calibration=fitted)).standing == "fast"


def test_what_was_fitted_to_the_simulator_says_nothing_of_hardware(tmp_path):
    simulated = written(tmp_path / "b.toml", SETUP, simulated=True)
    assert caution(SimOptions(calibration=simulated)).standing == "fast"
