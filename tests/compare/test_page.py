"""A comparison on a terminal and as Markdown."""

from __future__ import annotations

import numpy as np
import pytest
from rich.cells import cell_len

from loadstone import compare
from loadstone.compare.page import markdown, render


@pytest.fixture
def found(side):
    a = 20 + np.random.default_rng(1).gamma(4, 5, 400)
    b = side("B", a * 0.95, path="b|\x1b[31m", verdict="DEGRADED", headline="sent late", asked={"seed": 2})
    return compare.report([side("A", a, path="a", asked={"seed": 1}), b])


def test_what_may_be_compared_stands_before_what_came_of_it(found):
    lines = render(found, width=100, color=False).splitlines()
    assert lines[0] == "A: a (loadstone 1, 400 requests)"
    assert lines[1] == "B: b|\\x1b[31m (loadstone 1, 400 requests)"
    assert lines[2] == "  DEGRADED: sent late"
    assert lines[3] == "B was asked for another seed: 2 instead of 1."
    assert lines[4] == "Compared request by request: 400 have the same prompt on both sides."
    assert lines[6] == "time to first token mean: B is 5.0 % faster [5.0, 5.0]."


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(found, width):
    assert max(map(cell_len, render(found, width=width, color=False).splitlines())) <= width


def test_colour_is_for_verdicts_alone(found):
    assert "\x1b" not in render(found, width=100, color=False)
    coloured = render(found, width=100, color=True)
    assert "\x1b[1;32m" in coloured
    assert "\x1b[31m" not in coloured


def test_markdown_is_one_table_that_no_name_breaks(found):
    lines = markdown(found).splitlines()
    assert lines[0] == "## B against A"
    assert "- B: b\\|\\x1b[31m (loadstone 1, 400 requests); DEGRADED: sent late" in lines
    table = [line for line in lines if line.startswith("|")]
    assert table[0] == "| metric | A | B | change [95 %] | verdict |"
    assert table[2].startswith("| **time to first token mean** (ms) | ")
    assert len(table) == 2 + len(found.comparisons[0].rows)
