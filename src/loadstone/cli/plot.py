"""`loadstone plot FOLDER...`: figures of one or several runs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from loadstone import registry
from loadstone.cli.sheet import SETTINGS, Given, verbose
from loadstone.errors import Exit, LoadstoneError, UsageError

NEEDED = ("altair", "vl_convert")


def _installed() -> None:
    """Raises `UsageError` when what draws figures is not installed."""
    if not all(map(find_spec, NEEDED)):
        raise UsageError(
            "plot needs Altair and vl-convert, which are not installed: pip install '.[plot]' in loadstone's folder."
        )


def _list_figures(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        _installed()
        from loadstone.plot import summaries

        found = summaries()
        width = max(map(len, found))
        for name, summary in found.items():
            click.echo(f"{name.ljust(width)}  {summary}")
        ctx.exit()


@click.command(context_settings=SETTINGS)
@click.argument("folders", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FOLDER...")
@click.option(
    "--figure",
    "names",
    multiple=True,
    type=Given(lambda: registry.names("plot")),
    metavar="NAME",
    help="Which figure; repeatable. Default: all that can show so many runs.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A folder, or for one figure a file; default: plots/ in the first FOLDER.",
)
@click.option(
    "--format",
    "kinds",
    metavar="FORMAT,...",
    help="png, svg, html (one page that needs no network); default: by the file's name, else png.",
)
@click.option("--title", help="Title of the figures; default: what they show.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="TEXT",
    help="A run's name in the figures, once for each FOLDER; default: what differs between the runs.",
)
@click.option(
    "--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True, help="Ground."
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_figures,
    help="List the figures.",
)
@verbose
def plot(
    folders: tuple[Path, ...],
    names: tuple[str, ...],
    output: Path | None,
    kinds: str | None,
    title: str | None,
    labels: tuple[str, ...],
    theme: str,
    verbose: bool,
) -> int:
    """Draw figures of runs from their folders; prints the files it writes.

    Several folders are drawn together: loadstone plot poisson/ constant/ --figure request-rate
    """
    _installed()
    from loadstone.plot import draw  # the analysis and Altair; not needed for help

    try:
        written = draw(
            folders,
            names=names,
            labels=labels,
            title=title,
            theme="dark" if theme == "dark" else "light",
            output=output,
            kinds=kinds,
        )
    except LoadstoneError:
        raise
    except Exception as error:  # somebody else may have written anything into these folders
        if verbose:
            raise
        words = str(error) or type(error).__name__
        raise LoadstoneError(f"{', '.join(map(str, folders))}: cannot be drawn: {words}.") from None
    for path in written:
        click.echo(path)
    return Exit.DONE
