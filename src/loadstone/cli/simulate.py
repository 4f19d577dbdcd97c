"""`loadstone simulate`: the built-in engine behind a real HTTP server."""

from __future__ import annotations

from typing import Any

import click

from loadstone import config
from loadstone.cli.sheet import SETTINGS, Sheet, given, verbose
from loadstone.errors import Exit
from loadstone.sim.options import SimOptions, check_given

PORT = 8000
"""Where people look for a server; only `--url sim:` takes a free port by default."""

LEAVES = tuple(
    leaf._replace(default=PORT) if leaf.path == "port" else leaf
    for leaf in config.leaves(SimOptions)
    if leaf.path != "network_us"  # there is a real network
)


def _list_faults(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        from loadstone.sim.faults.listing import text

        click.echo(text())
        ctx.exit()


@click.command(cls=Sheet, leaves=LEAVES, context_settings=SETTINGS)
@click.option(
    "--faults",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_faults,
    help="List the faults: outcome, requests that can get it, what the server does.",
)
@verbose
def simulate(verbose: bool, **flags: Any) -> int:
    """Serve an OpenAI-compatible API without a model: real HTTP, real time, simulated steps."""
    asked = {"port": [str(PORT)], **given(flags)}
    options = config.from_flags(SimOptions, LEAVES, asked)
    check_given(asked, options)
    from loadstone.sim.case import named
    from loadstone.sim.caution import caution
    from loadstone.sim.server import serve

    options = named(options)
    if warned := caution(options):
        click.echo(f"caution: {warned.caution}.", err=True)
    serve(options, announce=lambda port: _announce(options, port))
    return Exit.DONE


def _announce(options: SimOptions, port: int) -> None:
    host = f"[{options.host}]" if ":" in options.host else options.host
    click.echo(f"http://{host}:{port} model {options.model}; Ctrl-C ends it")
