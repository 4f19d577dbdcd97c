"""`loadstone report FOLDER`: rebuild every output of a run, or write its report as another tool would."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone import folder as layout
from loadstone import registry
from loadstone.cli.guarded import guarded
from loadstone.cli.sheet import SETTINGS, Given, verbose
from loadstone.errors import Exit, UsageError

if TYPE_CHECKING:
    from loadstone.report import Report


@click.command(context_settings=SETTINGS)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=Given(lambda: registry.names("formats")),
    metavar="NAME",
    help="Write the report as another tool does, to stdout: " + ", ".join(registry.names("formats")) + ".",
)
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", help="With --format: to this file."
)
@click.option(
    "--slo",
    multiple=True,
    metavar="METRIC.STAT<LIMIT,...",
    help="Judge the run by these objectives instead of its own: summary and exit code only, no file is written.",
)
@verbose
def report(folder: Path, form: str | None, output: Path | None, slo: tuple[str, ...], verbose: bool) -> int:
    """Rebuild summary, report.json, report.csv and the rest from what FOLDER, a run's or a study's folder, recorded."""
    several = (folder / "study.json").is_file()
    if slo and several:
        raise UsageError(
            f"--slo: judges one run, and {folder} is a study of several; name one of its folders."
        )
    if form is not None:
        return _study_written(folder, form, output) if several else _written(folder, form, output, slo)
    if output is not None:
        raise UsageError("--output: has no effect without --format.")
    if several:
        from loadstone.study import rebuild as rebuild_study

        return rebuild_study(folder)
    if not (folder / layout.RUN).is_file():
        raise UsageError(f"{folder}: holds no {layout.RUN}; give the folder that a run named at its end.")
    layout.look_through(folder)
    from loadstone.rebuild import rebuild  # the analysis; not needed to find a mistake in the path

    with guarded(f"{folder}: a file of the run is damaged or missing", verbose):
        return rebuild(folder, slo=slo)


def _study_written(folder: Path, form: str, output: Path | None) -> int:
    from loadstone.study import PAGES, read

    if form not in PAGES:
        raise UsageError(
            f"--format {form}: is for one run, and {folder} is a study of several: name one of its folders, or choose"
            f" {' or '.join(PAGES)}."
        )
    return _put(PAGES[form](read(folder)), folder, output)


def _written(folder: Path, form: str, output: Path | None, slo: Sequence[str]) -> int:
    """Writes the report of a run's folder in the format `form`, judged by `slo` where that is given; the run is left as it is."""
    from loadstone.formats import named

    chosen = named(form)
    if not slo:
        return _put(chosen.text(_kept(folder), folder), folder, output)
    from loadstone import summary

    told = summary.summarise(folder, slo)
    _put(chosen.text(told, folder), folder, output)
    return summary.exit_code(told)


def _kept(folder: Path) -> Report:
    """The report that lies in a run's folder."""
    import msgspec

    from loadstone.report import Report

    path = folder / layout.REPORT
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except FileNotFoundError:
        raise UsageError(
            f"{path} is missing; `loadstone report {folder}` makes it from a run's folder."
        ) from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is damaged or of another version: {error}.") from None


def _put(text: str, folder: Path, output: Path | None) -> int:
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
        return Exit.DONE
    from loadstone.export import replacing

    if output.parent.resolve() == folder.resolve() and output.name in layout.OURS:
        raise UsageError(f"{output}: is a file of the run itself; choose another name.")
    try:
        with replacing(output) as file:
            file.write(text.encode())
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror}.") from None
    return Exit.DONE
