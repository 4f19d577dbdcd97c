"""`loadstone compare A B...`: saved runs side by side."""

from __future__ import annotations

import os
import shutil
import sys

import click

from loadstone.cli.guarded import guarded
from loadstone.cli.sheet import SETTINGS, verbose
from loadstone.errors import Exit, UsageError, did_you_mean
from loadstone.slo import SHORT_NAMES
from loadstone.terminal import wants_color


@click.command(context_settings=SETTINGS)
@click.argument("sides", nargs=-1, required=True, metavar="A B...")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME,...",
    help="Compare these metrics alone; repeatable.",
)
@click.option(
    "--headline",
    metavar="NAME[.STAT]",
    help="The one question that is judged by itself; default: time_to_first_token.mean, else request_latency.mean.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="TEXT",
    help="A side's name, once for each; default: A, B, ...",
)
@click.option(
    "--pair/--no-pair",
    default=None,
    help="Pair requests by position where their prompts are not known to be the same, or not at all.",
)
@click.option("--anyway", is_flag=True, help="Compare though what was asked differs.")
@click.option(
    "--fail-on",
    type=click.FloatRange(min=0),
    metavar="PERCENT",
    help="Exit with 3 when something is shown to be worse by more than this; what is not shown is 0. With 4 when nothing could be compared.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="How to print it.",
)
@verbose
def compare(
    sides: tuple[str, ...],
    metrics: tuple[str, ...],
    headline: str | None,
    labels: tuple[str, ...],
    pair: bool | None,
    anyway: bool,
    fail_on: float | None,
    form: str,
    verbose: bool,
) -> int:
    """Compare saved runs with the first of them: ours by their folders, or files of AIPerf, vLLM, SGLang and GuideLLM.

    A side of several runs is written A1,A2, or is the folder of a study. For example: loadstone compare before/ after/ --fail-on 5
    """
    if len(sides) < 2:
        raise UsageError(f"compare takes two sides or more, and {sides[0]} is one; name the other one too.")
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from loadstone import compare as comparing  # numpy and polars; not needed for help
    from loadstone.study.members import runs_of

    chosen = _metrics(metrics, comparing.METRICS)
    asked = _headline(headline, chosen)
    with guarded(f"{', '.join(sides)}: cannot be compared", verbose):
        read = comparing.sides(sides, labels, runs_of)
        found = comparing.report(read, metrics=chosen, headline=asked, pair=pair, anyway=anyway)
    if fail_on is not None:
        found = comparing.limited(found, fail_on)
    click.echo(_printed(found, form))
    if fail_on is None or found.regressions:
        return Exit.SLO_MISSED if found.regressions else Exit.DONE
    if unknown := comparing.untold(found):
        click.echo(
            f"--fail-on {fail_on:g}: undecided, since no row of {', '.join(unknown)} could be compared.",
            err=True,
        )
        return Exit.UNDECIDED
    return Exit.DONE


def _printed(found: object, form: str) -> str:
    import msgspec

    from loadstone.compare import Comparison, page

    assert isinstance(found, Comparison), "what report gives"
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    if form == "markdown":
        return page.markdown(found)
    width = shutil.get_terminal_size((100, 40)).columns
    return page.render(found, width=width, color=wants_color(sys.stdout, os.environ))


def _metrics(given: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    names = [
        _name(name.strip(), known, "--metric") for text in given for name in text.split(",") if name.strip()
    ]
    return tuple(names) or known


def _headline(given: str | None, known: tuple[str, ...]) -> tuple[str, str] | None:
    if given is None:
        return None
    name, _, stat = given.strip().partition(".")
    if stat not in ("", "mean", "p50", "p90", "p99"):
        raise UsageError(f"--headline {given}: the statistics are mean, p50, p90 and p99.")
    return _name(name, known, "--headline"), stat or "mean"


def _name(name: str, known: tuple[str, ...], flag: str) -> str:
    full = SHORT_NAMES.get(name, name)
    if full not in known:
        advice = did_you_mean(full, known) or f"Known: {', '.join(known)}."
        raise UsageError(f"{flag} {name}: is no metric that is compared. {advice}")
    return full
