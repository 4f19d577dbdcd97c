"""`loadstone report FOLDER`: rebuild every output of a run."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import MsgspecError

from loadstone import folder as layout
from loadstone.cli.sheet import SETTINGS, verbose
from loadstone.errors import LoadstoneError, UsageError

_DAMAGE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
"""What reading a folder meets that somebody else has changed; a full disk is none of it."""


@click.command(context_settings=SETTINGS)
@click.argument("folder", type=click.Path(path_type=Path))
@verbose
def report(folder: Path, verbose: bool) -> int:
    """Rebuild summary, report.json, report.csv and the rest from what FOLDER, a run's folder, recorded."""
    if not (folder / layout.RUN).is_file():
        raise UsageError(f"{folder}: holds no {layout.RUN}; give the folder that a run named at its end.")
    from loadstone.rebuild import rebuild  # the analysis; not needed to find a mistake in the path

    try:
        return rebuild(folder)
    except (*_DAMAGE, ValueError, MsgspecError) as error:
        if verbose:
            raise
        raise LoadstoneError(f"{folder}: a file of the run is damaged or missing: {error}.") from None
