"""Which tool is called, and its arguments."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim.api.asked import Call
from loadstone.sim.api.errors import ApiError
from loadstone.sim.api.tools import Function, Named, arguments, called, piece

PLACE = Function("weather", {"properties": {"days": {"type": "integer"}, "place": {"type": "string"}}})
CLOCK = Function("clock")


def test_a_tool_is_called_when_it_has_to_be() -> None:
    assert called([PLACE, CLOCK], "required", 0, False) == Call("weather", "place")
    assert called([PLACE, CLOCK], "required", 3, False) == Call("clock", "text")
    assert called([PLACE, CLOCK], Named("function", Function("clock")), 0, False) == Call("clock", "text")
    assert called([PLACE, CLOCK], Named("function", name="weather"), 1, False) == Call("weather", "place")


def test_where_it_is_left_open_the_server_decides() -> None:
    for wanted in (None, "auto"):
        assert called([CLOCK], wanted, 0, False) is None  # type: ignore[arg-type]
        assert called([CLOCK], wanted, 0, True) == Call("clock", "text")  # type: ignore[arg-type]
        assert called([], wanted, 0, True) is None  # type: ignore[arg-type]
    assert called([CLOCK], "none", 0, True) is None


def test_a_tool_that_there_is_not_is_refused() -> None:
    with pytest.raises(ApiError, match="tool_choice names train, which is none of the tools"):
        called([CLOCK], Named("function", Function("train")), 0, False)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [(1, "{}"), (2, "{}"), (3, '{"text": " stone"}'), (5, '{"text": " stone that points"}')],
)
def test_arguments_have_a_word_for_every_token_but_the_first_and_the_last(tokens: int, said: str) -> None:
    assert arguments(Call("f", "text"), 0, tokens) == said


@given(st.text(), st.integers(0, 100), st.integers(1, 100))
def test_arguments_are_json_whatever_the_argument_is_called(name: str, start: int, tokens: int) -> None:
    call = Call("f", name)
    said = arguments(call, start, tokens)
    assert list(json.loads(said)) == ([name] if tokens > 2 else [])
    assert "".join(piece(call, start, index, tokens) for index in range(tokens)) == said
