"""Why an engine's times are to be believed less than others', by what published runs say of its model and devices."""

from __future__ import annotations

from loadstone.roofline import calibration
from loadstone.roofline.validation import Validity
from loadstone.roofline.validation import caution as of_case
from loadstone.sim.case import case_of
from loadstone.sim.options import SimOptions


def caution(options: SimOptions) -> Validity | None:
    """None: published runs were near, it was fitted to runs of this model on this device, or it plays none.

    A calibration that was fitted to the simulator says nothing of hardware, and does not count.
    """
    case = case_of(options)
    if case is None:
        return None
    measured = calibration.read(options.calibration) if options.calibration else None
    return of_case(case, measured.case() if measured and not measured.simulated else None)
