from __future__ import annotations

from rich.cells import cell_len

from loadstone.tui.chart import Mark, Panel, beside, chart

FLAT = Panel("flat", [(2.0**k, 5.0) for k in range(7)])
LINE = Panel("line", [(1.0, 1.0), (64.0, 64.0)])


def drawn(panel, *marks, width=40, height=5, **more):
    return chart(panel, marks, width=width, height=height, axis="batch", **more)


def test_a_straight_line_goes_from_corner_to_corner():
    assert drawn(LINE, width=20, unicode=False) == [
        "line",
        " 64|              **",
        "   |          ****",
        "  8|      ****",
        "   |  ****",
        "  1|**",
        "   +----------------",
        "    1    4    16  64",
    ]


def test_what_is_flat_lies_in_one_row():
    rows = drawn(FLAT)[1:6]
    assert sum(any(0x2800 < ord(char) < 0x2900 for char in row) for row in rows) == 1


def test_no_line_is_wider_than_asked():
    for width in (40, 80, 120):
        lines = drawn(LINE, Mark(8, "B_sat 8"), Mark(60, "KV 60"), width=width)
        assert max(map(cell_len, lines)) <= width


def test_marks_stand_under_their_names():
    lines = drawn(LINE, Mark(8, "B_sat 8"), width=60)
    assert lines[1].rstrip().index("B_sat 8") == lines[2].index("┊")
    assert all(row[lines[2].index("┊")] != " " for row in lines[2:7])


def test_names_that_come_close_stand_beside_each_other():
    names = drawn(LINE, Mark(8, "B_sat 8"), Mark(12, "KV 12"), width=60)[1]
    assert names.index("B_sat 8") < names.index("KV 12")


def test_a_mark_out_of_sight_is_not_drawn():
    assert "far" not in "".join(drawn(LINE, Mark(1000, "far")))


def test_a_terminal_without_braille_gets_stars():
    text = "\n".join(drawn(LINE, Mark(8, "B"), unicode=False))
    assert text.isascii()
    assert "*" in text


def test_ticks_never_touch():
    for width in (24, 30, 40, 60, 90):
        ticks = drawn(Panel("", [(1.0, 1.0), (1024.0, 2.0)]), width=width)[-1].replace("batch", "").split()
        assert all(int(tick) & (int(tick) - 1) == 0 and int(tick) <= 1024 for tick in ticks)


def test_beside_pads_the_shorter_block():
    assert beside(["a", "bb"], ["c"], 4) == ["a   c", "bb"]
