"""A comparison on a terminal and as Markdown."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from loadstone import compare
from loadstone.compare.page import markdown, render
from loadstone.compare.result import Row


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


def row(metric, low, high, **more):
    told = {
        "metric": metric,
        "stat": "mean",
        "unit": "ms",
        "better": "lower",
        "headline": False,
        "a": 10.0,
        "b": 11.0,
    }
    return Row(
        **{**told, "difference": False, "caveat": None, "change": 1.1, "low": low, "high": high, **more}
    )


def test_a_reason_that_many_rows_share_is_told_once(found):
    one = found.comparisons[0]
    rows = tuple(row(f"metric_{n}", None, None, reason="nobody knows.") for n in range(4))
    text = render(replace(found, comparisons=(replace(one, rows=rows),)), width=100, color=False)
    assert text.count("nobody knows") == 1
    assert "- Not compared (4 rows): nobody knows." in text


def test_a_row_that_is_a_difference_alone_has_a_star_and_the_star_its_meaning(found):
    one = found.comparisons[0]
    rows = (
        row("x", 1.01, 1.2, differs=False, shown_from=0.14),
        row("y", 0.9, 1.2, differs=False, shown_from=0.2),
    )
    text = render(replace(found, comparisons=(replace(one, rows=rows),)), width=100, color=False)
    assert "none; 14 % would be*" in text
    assert "none; 20 % would be\n" in text
    assert "- * Asked about alone it would be a difference" in text
