"""Help: on stdout, in groups, short, and the truth about the defaults."""

from __future__ import annotations

import re

import pytest

from loadstone.config import options

SCREENS = 100
"""Two screens of 50 lines."""
GROUPS = [
    "Endpoint", "Server", "Input", "Load", "Arrivals", "Ramps", "Stops", "Warm-up and cooldown", "Objectives",
    "Repeated runs", "Output",
]  # fmt: skip


@pytest.mark.parametrize("columns", [80, 100])
def test_help_fits_two_screens(loadstone, columns):
    done = loadstone("profile", "--help", columns=columns)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert 40 < len(lines) <= SCREENS
    assert max(map(len, lines)) <= columns


def test_help_has_a_group_for_every_section(loadstone):
    lines = loadstone("profile", "--help").stdout.splitlines()
    headings = [line for line in lines if line and not line.startswith((" ", "Usage"))]
    assert headings == [f"{title}:" for title in (*GROUPS, "General")]


def test_help_leaves_out_what_few_need_and_help_all_does_not(loadstone):
    short, whole = (loadstone("profile", flag).stdout for flag in ("--help", "--help-all"))
    rare = [option.flags[0] for option in options() if option.rare and option.flags]
    assert len(rare) > 5
    assert [flag for flag in rare if re.search(rf"^ .*(?<![\w-]){flag}[ \n]", short, re.MULTILINE)] == []
    assert [flag for option in options() for flag in option.flags if flag not in whole] == []


def test_help_states_the_defaults(loadstone):
    text = " ".join(loadstone("profile", "--help").stdout.split())
    assert "--concurrency N Requests in flight at most; 1 when no rate is given." in text
    assert "Requests to send; max(50, 2 x concurrency) when nothing else stops the run." in text
    assert "--isl NUMBER Mean prompt length, tokens; default: 550." in text
    assert "default: poisson" in text
    assert "--request-rate NUMBER|inf Requests per second" in text
    assert "--warmup-duration SECONDS Warm up for this long." in text


def test_a_switch_that_is_on_is_shown_by_the_flag_that_turns_it_off(loadstone):
    whole = loadstone("profile", "--help-all").stdout
    assert "--inputs-json, --no-inputs-json" in whole
    assert "--streaming, --no-streaming" in whole


def test_the_program_names_its_verbs(loadstone):
    bare, asked = loadstone(), loadstone("--help")
    assert bare.stdout == asked.stdout
    assert bare.returncode == asked.returncode == 0
    for verb in ("profile", "report", "plot", "simulate"):
        assert f"\n  {verb} " in bare.stdout


@pytest.mark.parametrize("verb", ["profile", "report", "plot", "simulate"])
def test_every_verb_has_help(loadstone, verb):
    done = loadstone(verb, "-h")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: loadstone {verb} ")


def test_the_version(loadstone):
    from loadstone import __version__

    assert loadstone("--version").stdout == f"loadstone {__version__}\n"


def test_simulate_shows_the_port_it_uses(loadstone):
    assert "default: 8000." in loadstone("simulate", "--help").stdout


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("loadstone pro", ["profile"]),
        ("loadstone profile --max-concurr", ["--max-concurrency"]),
        ("loadstone profile --keep a", ["all"]),
        ("loadstone profile --endpoint-type comp", ["completions"]),
        ("loadstone profile --request-rate i", ["inf"]),
        ("loadstone profile --url-strategy least", ["least-in-flight"]),
        ("loadstone profile --ramp-up-strategy e", ["exponential"]),
        ("loadstone profile --set load.phas", ["load.phases="]),
    ],
)
def test_the_shell_completes(loadstone, words, completions):
    done = loadstone(
        _LOADSTONE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1)
    )
    assert [line.removeprefix("plain,") for line in done.stdout.split()] == completions


def test_colour_and_terminal_are_not_needed(loadstone):
    assert "\x1b" not in loadstone("profile", "--help", TERM="dumb").stdout


def test_a_switch_shows_its_other_names(loadstone):
    assert "--server-profiler, --profile, --no-server-profiler" in loadstone("profile", "--help-all").stdout
