from __future__ import annotations

from bench.table import Item, figure, merge, render


def test_the_median_is_held_against_the_bar() -> None:
    assert Item("a", "ms", [9.0, 1.0, 2.0], bar=2.0).passed
    assert not Item("a", "ms", [9.0, 1.0, 2.1], bar=2.0).passed
    assert Item("a", "", [1.0, 0.99], bar=0.99, direction="at least").passed
    assert not Item("a", "", [0.98], bar=0.99, direction="at least").passed
    assert Item("a", "ms", [1e9]).passed


def test_repeats_are_merged_item_by_item() -> None:
    merged = merge(
        [[Item("a", "s", [1.0], 5), Item("b", "s", [2.0])], [Item("a", "s", [3.0], 5), Item("b", "s", [4.0])]]
    )
    assert merged == [Item("a", "s", [1.0, 3.0], 5), Item("b", "s", [2.0, 4.0])]


def test_figures_are_short() -> None:
    assert [figure(value) for value in (0.012345, 2.5, 10_000.4, 0)] == ["0.0123", "2.5", "10,000", "0"]


def test_the_table_says_what_was_missed() -> None:
    table = render(
        [Item("slow", "ms", [3.0], 2.0), Item("fine", "", [1.0, 2.0, 3.0], 2.0), Item("shown", "x", [1.0])]
    )
    assert [line.split() for line in table.splitlines()[2:]] == [
        ["slow", "3", "ms", "at", "most", "2", "MISSED"],
        ["fine", "2", "(1", "..", "3)", "at", "most", "2", "pass"],
        ["shown", "1", "x"],
    ]
