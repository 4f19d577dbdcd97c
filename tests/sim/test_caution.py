"""Which engines come with a caution."""

from __future__ import annotations

from loadstone.roofline import calibration
from loadstone.roofline.case import Asked
from loadstone.sim.caution import caution
from loadstone.sim.options import SimOptions


def written(path, **more):
    made = calibration.Calibration(
        format=calibration.FORMAT,
        made="2026-12-01T00:00:00Z",
        loadstone_version="0",
        runs=("a",),
        setup=Asked(gpu="mi300x", model="llama-3.1-8b"),
        reached=calibration.Reached(
            bandwidth=0.8, compute=0.5, step_s=0.0, layer_s=6e-5, sequence_s=2e-5, link=0.5
        ),
        told={},
        rms_percent=1.0,
        worst_percent=1.0,
        points=(),
        **more,
    )
    calibration.write(made, path)
    return str(path)


def test_an_engine_without_a_device_needs_none():
    assert caution(SimOptions()) is None


def test_a_device_on_which_the_roofline_is_too_fast():
    assert caution(SimOptions(gpu="h100", model="llama-3.1-8b")) is None
    assert caution(SimOptions(gpu="mi300x", model="llama-3.1-8b")).standing == "fast"


def test_what_was_fitted_to_this_model_on_this_device_needs_none(tmp_path):
    fitted = written(tmp_path / "a.toml")
    assert caution(SimOptions(calibration=fitted)) is None
    assert caution(SimOptions(gpu="mi300x", model="llama-3.1-8b", calibration=fitted)) is None
    assert caution(SimOptions(gpu="mi300x", model="llama-3.1-70b", calibration=fitted)).standing == "fast"


def test_what_was_fitted_to_the_simulator_says_nothing_of_hardware(tmp_path):
    simulated = written(tmp_path / "b.toml", simulated=True)
    assert caution(SimOptions(calibration=simulated)).standing == "fast"
