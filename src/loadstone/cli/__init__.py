"""The command `loadstone`: one file per verb, imported when it is asked for.

A verb parses, calls and prints; it decides nothing. Results go to stdout, talk to stderr. Imports neither numpy,
polars, rich nor tokenizers: `--help` costs a tenth of a second.
"""

from __future__ import annotations

import importlib

import click

from loadstone import __version__
from loadstone.cli.sheet import SETTINGS
from loadstone.errors import did_you_mean

VERBS = {
    "profile": "Benchmark a server.",
    "report": "Rebuild every output of a run from its folder.",
    "compare": "Two runs side by side: what differs, and how sure that is.",
    "plot": "Draw figures of runs.",
    "roofline": "How fast a model can be on a device; fit it to runs.",
    "calibrate": "What the client can do at most on this machine.",
    "simulate": "Serve the built-in engine over HTTP.",
    "plan": "How many devices a load needs, and at what cost.",
    "explain": "What a metric means, and why other tools' numbers differ.",
}


class Verbs(click.Group):
    """The group; a verb `x` is the command `x` in the module `loadstone.cli.x`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, imported now."""
        if cmd_name not in VERBS:
            return None
        verb: click.Command = getattr(importlib.import_module(f"loadstone.cli.{cmd_name}"), cmd_name)
        return verb

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that the first word names. An unknown word is an error that names the nearest verb."""
        if args[0] not in VERBS and not ctx.resilient_parsing:
            advice = did_you_mean(args[0], VERBS) or f"Known: {', '.join(VERBS)}."
            ctx.fail(f"There is no verb {args[0]!r}. {advice}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs with one line each, without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(cls=Verbs, context_settings=SETTINGS, invoke_without_command=True, subcommand_metavar="VERB ...")
@click.version_option(__version__, message="loadstone %(version)s")
@click.pass_context
def loadstone(ctx: click.Context) -> None:
    """A load generator for LLM inference servers whose numbers can be believed.

    Start with: loadstone profile --url sim: --streaming
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
