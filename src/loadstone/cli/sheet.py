"""How a verb whose flags come from a tree shows them: `--help` in groups on two screens, `--help-all` whole.

Knows click and `Option`; no verb and no key by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from loadstone.config import Option

SETTINGS = {"help_option_names": ["--help", "-h"], "max_content_width": 100}
HELP_ALL = "--help-all"
_WHOLE = f"{__name__}.whole"
_UNITS = {"s": "SECONDS", "ms": "MS"}
_FORMS = {"whole": "N", "number": "NUMBER", "text": "TEXT"}


class Given(click.types.StringParamType):
    """A text that is passed on as it is; the tree gives it its meaning. Completes from `words`."""

    def __init__(self, words: Callable[[], Sequence[str]]) -> None:
        self.words = words

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The words that begin with what is typed so far."""
        return [CompletionItem(word) for word in self.words() if word.startswith(incomplete)]


class Flag(click.Option):
    """The flags of one leaf. Every one may repeat here; the tree refuses what must not."""

    def __init__(self, option: Option) -> None:
        self.option = option
        name = option.path.replace(".", "__")
        if option.kind == "switch":
            main, *others = option.flags
            if main.startswith("--no-"):  # what it leaves out has a flag of another kind
                super().__init__([*option.flags, name], is_flag=True, flag_value=False, default=None)
                return
            declared = [f"{main}/--no-{main.removeprefix('--')}", *others]
            super().__init__([*declared, name], default=None)
        else:
            super().__init__([*option.flags, name], multiple=True, type=Given(lambda: option.choices))

    def row(self, whole: bool) -> tuple[str, str]:
        """Names and help; all synonyms and both ways of a switch when `whole`."""
        option = self.option
        shorts = [flag for flag in option.flags if not flag.startswith("--")]
        longs = [flag for flag in option.flags if flag.startswith("--")]
        if option.kind == "switch" and not longs[0].startswith("--no-"):
            off = f"--no-{longs[0].removeprefix('--')}"
            longs = [*longs, off] if whole else [off if option.default else longs[0]]
        names = ", ".join(shorts + (longs if whole else longs[:1]))
        default = f"; default: {option.shown_default}." if option.shown_default else "."
        return f"{names} {_form(option)}".rstrip(), option.help.removesuffix(".") + default


def _form(option: Option) -> str:
    """What stands for the value in help."""
    if option.kind == "choice":
        return "|".join(option.choices)
    unit = _UNITS.get(option.path.rpartition("_")[2])
    return "|".join([unit or option.form or _FORMS.get(option.kind, ""), *option.choices])


def given(parameters: dict[str, Any]) -> dict[str, Any]:
    """What was given on the command line, by path."""
    return {name.replace("__", "."): value for name, value in parameters.items() if value not in (None, ())}


def _show_all(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted:
        ctx.meta[_WHOLE] = True
        click.echo(ctx.get_help())
        ctx.exit()


class Sheet(click.Command):
    """A verb whose flags are the leaves of a tree, shown in its groups."""

    def __init__(self, *args: Any, leaves: Sequence[Option], **more: Any) -> None:
        super().__init__(*args, **more)
        self.params = [*self.params, *map(Flag, leaves)]
        if any(leaf.rare for leaf in leaves):
            self.params.append(
                click.Option(
                    [HELP_ALL],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=_show_all,
                    help="Show all flags, with every synonym.",
                )
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuses words that belong to no flag without showing them: they may be what follows a space in a key."""
        ctx.allow_extra_args = True
        left = super().parse_args(ctx, args)
        if left and not ctx.resilient_parsing:
            ctx.fail(
                f"{len(left)} {'word belongs' if len(left) == 1 else 'words belong'} to no flag. "
                "Quote a value that holds spaces: --header 'NAME: VALUE'."
            )
        return left

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The flags by group; then the general ones."""
        whole = ctx.meta.get(_WHOLE, False)
        groups: dict[str, list[tuple[str, str]]] = {}
        for flag in self.params:
            if isinstance(flag, Flag) and (whole or not flag.option.rare):
                groups.setdefault(flag.option.group, []).append(flag.row(whole))
        general = [flag.get_help_record(ctx) for flag in self.get_params(ctx) if not isinstance(flag, Flag)]
        groups["General"] = [record for record in general if record]
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl(rows, col_max=32)


verbose = click.option(
    "-v", "--verbose", is_flag=True, help="Say more: a detailed log, the trace of a defect."
)
