"""What is said of a row says nothing that cannot be: nothing falls by more than all of it."""

from __future__ import annotations

import pytest

from loadstone.compare.result import Row
from loadstone.compare.words import short


def row(shown_from, *, better="lower", difference=False, unit="ms"):
    none = 0.0 if difference else 1.0
    return Row(
        metric="m",
        stat=None,
        unit=unit,
        better=better,
        a=1.0,
        b=1.0,
        difference=difference,
        change=none,
        low=none - 0.1,
        high=none + 0.1,
        differs=False,
        shown_from=shown_from,
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (row(0.05, better="higher"), "none; 5.0 % would be"),
        (row(0.99, better="higher"), "none; 99 % would be"),
        (row(2.36, better="higher"), "none; a multiple would be"),
        (row(2.36), "none; 236 % would be"),
        (row(10.0), "none; a multiple would be"),
        (row(12.0, difference=True, unit="%"), "none; 12 pp would be"),
        (row(108.0, difference=True, unit="%"), "none; nothing would be"),
    ],
)
def test_the_difference_that_would_be_shown_is_one_that_can_be(found, said):
    assert short(found) == said
