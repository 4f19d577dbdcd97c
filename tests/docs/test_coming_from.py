"""The page for those who come from another tool: every flag it sends people to is one of ours, and none we know is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadstone.cli.compare import compare
from loadstone.cli.elsewhere import ADVICE
from loadstone.cli.plot import plot
from loadstone.cli.profile import profile
from loadstone.cli.report import report
from loadstone.metrics import names
from loadstone.metrics._namesakes import ALL
from loadstone.registry import names as modules

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text(encoding="utf-8")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
OURS = {
    name
    for command in (profile, report, compare, plot)
    for parameter in command.params
    for name in (*parameter.opts, *parameter.secondary_opts)
}


def rows() -> list[list[str]]:
    """The cells of the tables whose first column is theirs and whose second is ours."""
    found = []
    for table in re.findall(r"^\| there \| here \|[^\n]*\n\|[-|]+\n((?:\|[^\n]*\n)+)", PAGE, re.MULTILINE):
        found += [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return found


def prose() -> str:
    """What is in no table and no block of code."""
    text = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    return "\n".join(line for line in text.splitlines() if not line.startswith("|"))


def test_the_page_has_tables_of_flags() -> None:
    assert len(rows()) > 70


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_a_flag_that_people_are_sent_to_is_one_of_ours(row: list[str]) -> None:
    theirs, here = row[0], row[1]
    assert set(FLAG.findall(here)) <= OURS, here
    if here == "the same":
        assert set(FLAG.findall(theirs)) <= OURS, theirs


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_what_there_is_none_of_is_refused(row: list[str]) -> None:
    if row[1] in ("none", "leave it out", "leave them out"):
        assert not set(FLAG.findall(row[0])) & OURS


def test_flags_in_the_text_are_ours() -> None:
    assert set(FLAG.findall(prose())) <= OURS | {"--random-range-ratio"}


def test_every_flag_that_the_command_line_knows_from_elsewhere_is_on_the_page() -> None:
    elsewhere = " ".join(row[0] for row in rows())
    assert set(ADVICE) - set(FLAG.findall(elsewhere)) == set()


def test_the_formats_named_are_those_there_are() -> None:
    cells = " ".join(row[2] for row in rows() if len(row) > 2 and "--format" in row[2])
    named = set(re.findall(r"\b[a-z]+-(?:json|jsonl|csv)\b", cells))
    assert named == {name for name in modules("formats") if "-" in name}


def test_every_name_of_the_best_known_tools_is_in_the_table_of_metrics() -> None:
    table = PAGE.partition("<!-- made: metrics -->")[2].partition("<!-- end -->")[0]
    lines = {cells[1].strip("` "): line for line in table.splitlines() if (cells := line.split("|"))[1:]}
    assert set(lines) - {"here", "---"} <= set(names())
    assert "`inter_token_latency` |" in lines["time_per_output_token"]  # the same, so without a mark
    assert "`inter_token_latency` *" in lines["inter_token_latency"]
    assert all(f"`{one.names[0]}`" in table for one in ALL if one.tool == "AIPerf")
