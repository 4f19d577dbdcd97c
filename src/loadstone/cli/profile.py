"""`loadstone profile`: benchmark a server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from loadstone import config
from loadstone.cli.sheet import SETTINGS, Given, Sheet, given, verbose


def _keys() -> list[str]:
    return [f"{option.path}=" for option in config.options()]


@click.command(
    cls=Sheet,
    leaves=[option for option in config.options() if option.flags],
    context_settings=SETTINGS,
    epilog="Exit codes: 0 done, 1 failed, 2 wrong input, 3 objective missed, 4 undecided, 5 not to be believed, 130 interrupted.",
)
@click.option(
    "-f",
    "--config",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Settings from a TOML or YAML file; flags go over it.",
)
@click.option(
    "--set",
    "sets",
    multiple=True,
    type=Given(_keys),
    metavar="KEY=VALUE",
    help="Set any key of a file, such as load.concurrency=8.",
)
@verbose
@click.pass_obj
def profile(
    words: Sequence[str], /, file: Path | None, sets: tuple[str, ...], verbose: bool, **flags: Any
) -> int:
    """Send load to a server and report how fast it answered, and whether the numbers can be believed."""
    asked = given(flags)
    if verbose:
        asked.setdefault("output.log_level", ["debug"])
    settings = config.load(file, asked, sets)
    os.environ.pop(
        config.KEY_VARIABLE, None
    )  # the environment of every process that is started can be read by others
    command = config.masked_command(["loadstone", *words], settings)
    if settings.runs.count > 1 or settings.runs.interleave:
        from loadstone.study import study  # numpy and polars: a single run does without them until its end

        return study(settings, command)
    from loadstone.run import run  # the whole instrument; not needed to find a mistake in the flags

    return run(settings, command)
