"""Every command line of every page is understood: its flags, their values, and that they go together.

The slow tests of the pages execute some of them; here all are read as `loadstone` reads them, without a server.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.docs.test_pages import blocks, write

from loadstone import config
from loadstone.cli.plot import plot
from loadstone.cli.profile import profile
from loadstone.cli.sheet import given
from loadstone.config.check_phases import STOPPING
from loadstone.wire.request import SESSION_HEADERS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHAPES = (ROOT / "docs/load-shapes.md").read_text()
COMMAND = re.compile(r"^(\$ )?(?:\S*/)?loadstone profile ((?:.*\\\n)*.*)", re.MULTILINE)


def profiles(page: Path) -> list[list[str]]:
    """The words behind every `loadstone profile` in the blocks of a page; without `$ ` a console printed it."""
    return [
        shlex.split(words.replace("\\\n", " "), comments=True)
        for kind, text in blocks(page)
        if kind in ("sh", "console", "text")
        for prompt, words in COMMAND.findall(text)
        if prompt or kind != "console"
    ]


def understood(words: list[str]) -> config.Config:
    found = profile.make_context("profile", words).params
    flags = {name: value for name, value in found.items() if name not in ("file", "sets", "verbose")}
    return config.load(found["file"], given(flags), found["sets"], environ={})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_is_understood(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, text in blocks(page):
        if " file=" in kind and "pyproject" not in kind:
            write(kind.partition(" file=")[2], text, tmp_path)
    for words in profiles(page):
        assert config.phase_loads(understood(words).load), words


def test_the_pages_have_commands() -> None:
    assert len(profiles(ROOT / "docs/load-shapes.md")) == 30
    assert sum(len(profiles(page)) for page in PAGES) > 40


def test_all_of_a_shape_is_in_its_command() -> None:
    ramp = next(words for words in profiles(ROOT / "docs/load-shapes.md") if "exponential" in words)
    assert ramp[-4:] == ["--request-rate-ramp-start", "10", "--request-rate-ramp-strategy", "exponential"]


# ---- the page of load shapes ----------------------------------------------------------------------------


def ours() -> str:
    """What it says of our own flags: all of it but the first column of the table of other tools."""
    text, _, table = SHAPES.partition("## Coming from another tool")
    return text + "".join("|".join(line.split("|")[2:]) for line in table.splitlines())


def test_every_flag_named_is_one() -> None:
    known = {name for command in (profile, plot) for parameter in command.params for name in
             (*parameter.opts, *parameter.secondary_opts)}  # fmt: skip
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", ours()))
    assert named - known == set()
    assert len(named) > 50


def test_every_setting_of_a_shape_is_named() -> None:
    kinds = {"Arrivals", "Ramps", "Stops", "Load"}
    flags = {
        option.flags
        for option in config.options()
        if option.path.startswith("load.") and option.group in kinds
    }
    ramps = {
        "--prefill-concurrency-ramp-start",
        "--prefill-concurrency-ramp-strategy",
    }  # "like the other limits"
    unnamed = {names[0] for names in flags if names and not any(name in SHAPES for name in names)}
    assert unnamed <= ramps | {"--workers", "--num-users"}


def test_the_known_headers_of_a_conversation_are_listed() -> None:
    chapter = SHAPES.partition("**Session headers.**")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"`(X-[\w-]+)`", chapter)) == SESSION_HEADERS


def test_what_can_stop_a_load_is_listed() -> None:
    chapter = SHAPES.partition("It goes by ")[2].partition(".\n")[0]
    assert set(re.findall(r"`(\w+)`", chapter)) == set(STOPPING)
