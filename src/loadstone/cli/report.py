"""`loadstone report FOLDER`: rebuild every output of a run."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone import folder as layout
from loadstone.cli.sheet import SETTINGS, verbose
from loadstone.errors import LoadstoneError, UsageError


@click.command(context_settings=SETTINGS)
@click.argument("folder", type=click.Path(path_type=Path))
@verbose
def report(folder: Path, verbose: bool) -> int:
    """Rebuild summary, report.json, report.csv and the rest from what FOLDER, a run's or a study's folder, recorded."""
    if (folder / "study.json").is_file():
        from loadstone.study import rebuild as rebuild_study

        return rebuild_study(folder)
    if not (folder / layout.RUN).is_file():
        raise UsageError(f"{folder}: holds no {layout.RUN}; give the folder that a run named at its end.")
    layout.look_through(folder)
    from loadstone.rebuild import rebuild  # the analysis; not needed to find a mistake in the path

    try:
        return rebuild(folder)
    except LoadstoneError:
        raise
    except Exception as error:  # somebody else may have written anything into these files
        if verbose:
            raise
        words = str(error) or type(error).__name__
        raise LoadstoneError(f"{folder}: a file of the run is damaged or missing: {words}.") from None
