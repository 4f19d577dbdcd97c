"""A calibration file, as somebody else's fit would have left it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loadstone.roofline import calibration
from loadstone.roofline.case import Asked

REACHED = calibration.Reached(bandwidth=0.8, compute=0.5, step_s=0.0, layer_s=6e-5, sequence_s=2e-5, link=0.5)


def written(path: Path, setup: Asked, reached: calibration.Reached = REACHED, **more: Any) -> str:
    """Writes a calibration of a setup to a file; the file's path as a flag takes it."""
    made = calibration.Calibration(
        format=calibration.FORMAT,
        made="2026-12-01T00:00:00Z",
        loadstone_version="0",
        runs=("a",),
        setup=setup,
        reached=reached,
        told={},
        rms_percent=1.0,
        worst_percent=1.0,
        points=(),
        **more,
    )
    calibration.write(made, path)
    return str(path)
