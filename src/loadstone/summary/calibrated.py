"""From the folders of runs to a calibration: how near their steps came to the datasheet. Reads, writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import polars as pl
from msgspec.structs import replace

from loadstone import __version__
from loadstone import folder as layout
from loadstone.errors import LoadstoneError, UsageError
from loadstone.metrics import Tables
from loadstone.metrics.roofline import points
from loadstone.roofline import gpus
from loadstone.roofline.calibration import FORMAT, Calibration, Measured, Reached, Told
from loadstone.roofline.case import Asked, Case, case
from loadstone.roofline.cost import Roofline
from loadstone.roofline.fit import UNKNOWN_HARDWARE, Fit, Model, fit
from loadstone.roofline.gpu import Gpu
from loadstone.roofline.setup import Efficiency
from loadstone.roofline.work import Work
from loadstone.summary import alike


def fitted(folders: Sequence[Path], setup: Callable[[Asked | None], Asked]) -> tuple[Calibration, Fit]:
    """The calibration of these runs, and the fit behind it.

    `setup` makes what was asked for from what the runs say. Raises `UsageError` when a folder holds no run that can be used,
    or the runs are not of one setup.
    """
    folders = list(dict.fromkeys(folders))
    tables = [_tables(folder) for folder in folders]
    runs = {str(folder): alike.told(str(folder), one) for folder, one in zip(folders, tables, strict=True)}
    alike.refuse_unlike(runs)
    said = (alike.words_of(run, one) for run, one in zip(runs.values(), tables, strict=True))
    settled = setup(next(filter(None, said), None))
    where = case(settled)
    alike.refuse_unfit(runs, where)
    window = where.roofline().window
    measured = [
        point
        for folder, one in zip(folders, tables, strict=True)
        for point in points(one, str(folder), where.replicas, window)
    ]
    if not any(point.kind == "decode" for point in measured):
        raise LoadstoneError(
            "these runs show no decode step by itself: it takes streams (--streaming) of many tokens, at times when no prompt"
            " is taken in. Measure fixed concurrencies such as 1, 4 and 16, with long answers (--osl 256)."
        )
    measured.sort(key=lambda point: (point.kind, point.sequences, point.tokens))
    bounds = UNKNOWN_HARDWARE if where.gpu.cpu else None
    found = fit(measured, model_of(where), bounds=bounds)
    return calibration(found, settled, where, runs), found


def model_of(where: Case) -> Model:
    """The time of a step of this case as a function of its efficiency."""
    last: list[Roofline] = [where.roofline(Efficiency())]

    def seconds(efficiency: Efficiency, work: Work) -> float:
        if last[0].efficiency is not efficiency and last[0].efficiency != efficiency:
            last[0] = where.roofline(efficiency)
        return last[0].parts(work).total

    return seconds


def calibration(found: Fit, settled: Asked, where: Case, runs: Mapping[str, alike.Told]) -> Calibration:
    """The file: of a processor with what it was measured to be worth, of an accelerator with shares of its datasheet."""
    reached, hardware = found.efficiency, None
    if where.gpu.cpu:
        hardware = _as_measured(where.gpu, reached)
        reached = replace(reached, bandwidth=1.0, compute=1.0)
    elif gpus.GPUS.get(where.gpu.name) != where.gpu:
        hardware = where.gpu
    return Calibration(
        format=FORMAT,
        made=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        loadstone_version=__version__,
        runs=tuple(runs),
        setup=settled,
        reached=Reached(**{name: getattr(reached, name) for name in Reached.__struct_fields__}),
        told={
            one.name: Told(
                prior=one.prior, used=one.used, value=one.value, error=one.error, reason=one.reason
            )
            for one in found.estimates
        },
        rms_percent=100 * found.rms,
        worst_percent=100 * found.worst,
        simulated=any(run.built_in for run in runs.values()),
        notes=alike.notes(runs, where, 100 * found.rms),
        hardware=hardware,
        points=tuple(
            Measured(
                kind=one.point.kind,
                sequences=one.point.sequences,
                tokens=one.point.tokens,
                samples=one.point.samples,
                measured_s=one.point.seconds,
                model_s=one.model_s,
                error_percent=100 * one.error,
                run=one.point.source,
            )
            for one in found.residuals
        ),
    )


def _as_measured(gpu: Gpu, reached: Efficiency) -> Gpu:
    """A processor with the bandwidth and FLOP/s that the runs came to."""
    return replace(
        gpu,
        title=f"{gpu.title}, as measured",
        bandwidth=gpu.bandwidth * reached.bandwidth,
        flops={name: peak * reached.compute for name, peak in gpu.flops.items()},
        sources={**gpu.sources, "bandwidth": "fitted to runs", "flops": "fitted to runs"},
    )


def _tables(folder: Path) -> Tables:
    if not (folder / layout.RUN).is_file():
        raise UsageError(f"{folder}: holds no {layout.RUN}; give the folder that a run named at its end.")
    layout.look_through(folder)
    if not (folder / layout.REQUESTS).is_file():
        raise UsageError(
            f"{folder}: holds no {layout.REQUESTS}; `loadstone report {folder}` makes it from what was recorded."
        )
    try:
        return Tables.read(pl.scan_parquet(folder / layout.REQUESTS, glob=False), layout.read_run(folder))
    except (OSError, msgspec.MsgspecError, pl.exceptions.PolarsError) as error:
        raise UsageError(
            f"{folder}: a file of the run is damaged, or from another version of loadstone: {error}."
        ) from None
