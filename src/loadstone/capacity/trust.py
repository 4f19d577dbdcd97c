"""How far a way is to be believed, by what published runs say of the model's times on its devices."""

from __future__ import annotations

from loadstone.capacity.candidates import Asked, Setup
from loadstone.roofline import calibration, models
from loadstone.roofline.case import Case
from loadstone.roofline.validation import Validity
from loadstone.roofline.validation import caution as of_case
from loadstone.sim.case import case_of


def caution(setup: Setup, asked: Asked) -> Validity | None:
    """Why this way is to be believed less than others; None: published runs were near, or it was fitted to runs of the same."""
    case = case_of(setup.options)
    return None if case is None else of_case(case, _fitted(asked))


def _fitted(asked: Asked) -> Case | None:
    """What the efficiencies were measured with; None where nothing was, or it was the simulator's own."""
    if asked.base.calibration is None:
        return None
    measured = calibration.read(asked.base.calibration)
    return None if measured.simulated else measured.case()


def model_of(calibrated: str | None) -> str | None:
    """The model that a calibration was measured with, in the word that names it."""
    if calibrated is None:
        return None
    word = calibration.read(calibrated).setup.model
    models.find(word)
    return word
