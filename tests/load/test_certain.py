"""An objective that cannot be met any more ends the load."""

from __future__ import annotations

import pytest

from loadstone.board import FIELDS, Field
from loadstone.load.certain import certain
from loadstone.slo import MOST_WATCHED, Watched


def watch(most):
    return Watched(objective="error_rate<1%", limits={}, failures=True, most=most, planned=1000)


def counters(*beyond):
    return [0] * Field.BEYOND + [*beyond, *[0] * (FIELDS - Field.BEYOND - len(beyond))]


def test_the_board_has_room_for_all_that_may_be_watched():
    assert Field.BEYOND + MOST_WATCHED == FIELDS


@pytest.mark.parametrize(("beyond", "over"), [(0, False), (16, False), (17, True)])
def test_it_takes_one_more_than_may_be(beyond, over):
    why = certain([watch(16)], counters(beyond))
    assert (why is not None) == over


def test_the_first_that_is_missed_is_told_with_its_numbers():
    assert certain([watch(50), watch(16), watch(0)], counters(3, 17, 9)) == (
        "error_rate<1%: 17 requests are beyond it, so that with 1,000 planned it cannot be met any more, whatever follows"
    )


def test_nothing_is_watched():
    assert certain([], counters(99)) is None
