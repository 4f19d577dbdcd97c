"""The page of a fit: what was found, and how far it can be trusted."""

from __future__ import annotations

import pytest

from loadstone.roofline.calibration import FORMAT, Calibration, Reached, Told
from loadstone.roofline.case import Asked
from loadstone.roofline.fit import Estimate, Fit, Point, Residual
from loadstone.roofline.setup import Efficiency
from loadstone.roofline.work import decodes
from loadstone.tui.fitted import page


def estimates(bandwidth_error):
    return (
        Estimate("bandwidth", 0.8, bandwidth_error, 0.8, 0.8),
        Estimate(
            "compute", None, None, 0.02, 0.31, "No measured step was bound by compute. It is 0.31 or more."
        ),
        Estimate("link", None, None, 0.5, 0.5, "No measured step waited for links."),
        Estimate("request_s", 0.0123, 0.0004, 0.0, 0.0123),
        Estimate("step_s", None, None, 0.0, 0.0, "In runs of one model it cannot be told from layer_s."),
    )


@pytest.fixture
def shown():
    """The lines of a page with one point that the model is so far off."""

    def make(off=0.0, bandwidth_error=8.01e-6, devices=1, notes=()):
        point = Point("decode", decodes(8, 500), 0.01, 123, 8, 500, "run")
        found = Fit(Efficiency(), estimates(bandwidth_error), (Residual(point, 0.01 * (1 + off)),))
        made = Calibration(
            format=FORMAT, made="2026-12-01T00:00:00Z", loadstone_version="0", runs=("run",),
            setup=Asked(gpu="h100", model="llama-3.1-8b", tensor_parallel_size=devices),
            reached=Reached(bandwidth=0.8, compute=0.31, step_s=0.0, layer_s=6e-5, sequence_s=0.0, link=0.5),
            told={"bandwidth": Told(prior=0.8, used=0.8)}, rms_percent=100 * off, worst_percent=100 * off,
            points=(), notes=notes,
        )  # fmt: skip
        return [" ".join(line.split()) for line in page(found, made, 100).splitlines()]

    return make


def test_an_error_has_two_digits_and_is_no_better_than_models_are(shown):
    assert "bandwidth 80.0 +- 0.08 % of peak" in shown()


def test_an_error_is_no_better_than_the_model_describes_the_points(shown):
    assert "bandwidth 80.0 +- 4 % of peak" in shown(off=0.05)
    assert "bandwidth 80.0 +- 14 % of peak" in shown(off=0.05, bandwidth_error=0.1437)


def test_what_is_not_told_says_what_stands_in(shown):
    lines = "\n".join(shown())
    assert "not known: No measured step was bound by compute. It is 0.31 or more. 31.0 % of peak" in lines


def test_links_are_told_of_where_there_are_several_devices(shown):
    assert not [line for line in shown() if line.startswith("links")]
    [links] = [line for line in shown(devices=2) if line.startswith("links")]
    assert links.startswith("links not known: No measured step waited for links. 50.0 % of peak stands in.")


def test_what_a_request_takes_is_in_milliseconds(shown):
    assert "a request 12.3 +- 0.4 ms beside its prompt" in shown()


def test_notes_stand_at_the_end(shown):
    assert shown(notes=("The model is 40 % off.",))[-1] == "! The model is 40 % off."
