"""`loadstone calibrate`: what the client can do at most on this machine."""

from __future__ import annotations

import sys

import click

from loadstone.cli.sheet import SETTINGS, verbose
from loadstone.errors import Exit, LoadstoneError

PACE = 50
"""Tokens per second of one stream: faster than anybody reads, and about what servers give a user."""


@click.command(context_settings=SETTINGS)
@click.option(
    "--duration",
    type=click.FloatRange(0.5, 600),
    default=3.0,
    metavar="SECONDS",
    help="Of each of six short loads; default: 3.",
)
@verbose
def calibrate(duration: float, verbose: bool) -> int:
    """Measure how many requests, tokens and streams the client can take on this machine, and keep it: reports then tell
    how much of that a load needed.
    """
    from loadstone import ceiling
    from loadstone.figures import brief
    from loadstone.study.calibrate import calibrate as measure

    found = measure(duration, lambda line: print(line, file=sys.stderr, flush=True))
    workers = f"{found.workers} worker{'' if found.workers == 1 else 's'}"
    click.echo(f"one request   {brief(found.request_us)} us of CPU")
    click.echo(f"one token     {brief(found.token_us)} us of CPU, read by itself")
    click.echo(f"{workers}, each with {100 * ceiling.ROOM:.0f} % of a core to use:")
    click.echo(f"  {brief(found.requests_per_s)} requests/s, or {brief(found.tokens_per_s)} tokens/s")
    click.echo(
        f"  {found.streams(PACE):,} streams of {PACE} tokens/s each; at most {found.connections:,} connections"
    )
    try:
        place = ceiling.keep(found)
    except OSError as error:
        raise LoadstoneError(
            f"{ceiling.path()}: {error.strerror}; set XDG_STATE_HOME to a folder of yours."
        ) from None
    click.echo(f"kept in {place}")
    return Exit.DONE
