"""`loadstone report FOLDER`: rebuild every output of a run, or write its report as another tool would."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone import folder as layout
from loadstone import registry
from loadstone.cli.sheet import SETTINGS, Given, verbose
from loadstone.errors import Exit, LoadstoneError, UsageError


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
    if slo and (form is not None or (folder / "study.json").is_file()):
        raise UsageError(
            "--slo: judges one run, and has no effect with --format or on a study; leave it out."
        )
    if form is not None:
        return _written(folder, form, output)
    if output is not None:
        raise UsageError("--output: has no effect without --format.")
    if (folder / "study.json").is_file():
        from loadstone.study import rebuild as rebuild_study

        return rebuild_study(folder)
    if not (folder / layout.RUN).is_file():
        raise UsageError(f"{folder}: holds no {layout.RUN}; give the folder that a run named at its end.")
    layout.look_through(folder)
    from loadstone.rebuild import rebuild  # the analysis; not needed to find a mistake in the path

    try:
        return rebuild(folder, slo=slo)
    except LoadstoneError:
        raise
    except Exception as error:  # somebody else may have written anything into these files
        if verbose:
            raise
        words = str(error) or type(error).__name__
        raise LoadstoneError(f"{folder}: a file of the run is damaged or missing: {words}.") from None


def _written(folder: Path, form: str, output: Path | None) -> int:
    """Writes the report that lies in a run's folder in the format `form`; the run itself is left as it is."""
    import msgspec

    from loadstone.formats import named
    from loadstone.report import Report

    chosen = named(form)
    path = folder / layout.REPORT
    try:
        told = msgspec.json.decode(path.read_bytes(), type=Report)
    except FileNotFoundError:
        raise UsageError(
            f"{path} is missing; `loadstone report {folder}` makes it from a run's folder."
        ) from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is damaged or of another version: {error}.") from None
    text = chosen.text(told, folder)
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
        return Exit.DONE
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output}: {error.strerror}.") from None
    return Exit.DONE
