from __future__ import annotations

from itertools import permutations

import pytest

from loadstone.errors import Exit, LoadstoneError, TargetError, UsageError, did_you_mean, precedence


def test_exit_codes():
    assert {code.name: int(code) for code in Exit} == {
        "DONE": 0,
        "FAILED": 1,
        "USAGE": 2,
        "SLO_MISSED": 3,
        "UNDECIDED": 4,
        "INVALID": 5,
        "INTERRUPTED": 130,
    }


def test_the_order_in_which_exit_codes_win():
    order = [Exit(number) for number in (2, 130, 1, 5, 3, 4, 0)]
    assert set(order) == set(Exit)
    for stronger, weaker in permutations(Exit, 2):
        expected = stronger if order.index(stronger) < order.index(weaker) else weaker
        assert precedence(stronger, weaker) == expected
    assert precedence() == Exit.DONE


@pytest.mark.parametrize(("error", "code"), [(UsageError, 2), (TargetError, 1), (LoadstoneError, 1)])
def test_errors_know_their_exit_code(error, code):
    assert error("x").exit == code
    assert issubclass(error, LoadstoneError)


def test_the_nearest_of_the_known_words_is_named():
    assert did_you_mean("chatt", iter(["completions", "chat"])) == "Did you mean chat?"
    assert did_you_mean("x", ["completions", "chat"]) == did_you_mean("chat", []) == ""


def test_one_slip_in_a_short_word_is_near():
    assert did_you_mean("pmg", ["svg", "png"]) == "Did you mean png?"
    assert did_you_mean("crfl", ["bom", "crlf"]) == "Did you mean crlf?"


def test_what_has_little_in_common_is_no_slip():
    assert did_you_mean("num-prompt", ["num-warmups"]) == did_you_mean("sonnet", ["set"]) == ""
