from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from loadstone.terminal import HIDDEN, escaped, fit, left, paint, printable, right, wants_color, wrap

anything = st.text(st.characters(codec=None))


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain é 日本 🙂", "plain é 日本 🙂"),
        ("two\n lines\tand  gaps ", "two lines and gaps"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202eright to left\u200b", r"\u202eright to left\u200b"),
        ("\ud800", r"\ud800"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_hidden_characters_become_visible(raw: str, shown: str) -> None:
    assert printable(raw) == shown


def test_a_command_keeps_its_spaces() -> None:
    assert escaped('--header "a:  b"\n') == '--header "a:  b"\\x0a'


@given(anything)
def test_nothing_hidden_is_ever_printed(text: str) -> None:
    assert not {unicodedata.category(char) for char in printable(text)} & HIDDEN
    assert printable(text).encode().decode() == printable(text)


@given(st.text(), st.integers(0, 60))
def test_text_fits_where_it_is_put(text: str, width: int) -> None:
    shown = printable(text)
    assert cell_len(fit(shown, width)) <= width
    assert cell_len(left(shown, width)) == width


@given(st.text(), st.integers(10, 60))
def test_wrapped_lines_fit_and_lose_no_short_word(text: str, width: int) -> None:
    shown = printable(text)
    lines = wrap(shown, width, "  ")
    assert max(map(cell_len, lines)) <= width
    if all(cell_len(word) <= width - 2 for word in shown.split()):
        assert " ".join(lines).split() == shown.split()


def test_lines_after_the_first_are_indented() -> None:
    assert wrap("aa bb cc dd", 6, "  ", "- ") == ["- aa", "  bb", "  cc", "  dd"]
    assert wrap("aa bb cc dd", 8, "  ") == ["aa bb cc", "  dd"]


def test_a_long_word_is_cut_and_marked() -> None:
    assert wrap("a abcdefghij b", 6) == ["a", "abcde…", "b"]
    assert fit("日本語", 5) == "日本…"
    assert right("7", 3) == "  7"


@pytest.mark.parametrize(
    ("stream", "environ", "colored"),
    [
        (Screen(), {"TERM": "xterm"}, True),
        (Screen(), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (Screen(), {"TERM": "xterm", "NO_COLOR": ""}, True),
        (Screen(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"TERM": "xterm"}, False),
    ],
)
def test_colour_is_for_terminals_whose_user_wants_it(
    stream: io.StringIO, environ: dict[str, str], colored: bool
) -> None:
    assert wants_color(stream, environ) is colored


def test_paint_colours_only_when_it_is_on() -> None:
    assert paint("x", "red", True) == "\x1b[1;31mx\x1b[0m"
    assert paint("x", "red", False) == paint("x", None, True) == "x"
