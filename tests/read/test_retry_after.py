from __future__ import annotations

import pytest

from loadstone.read.retry_after import seconds

DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("told", "wait"), [("0", 0.0), ("30", 30.0), (" 1.5 ", 1.5), ("999999999", 999999999.0)]
)
def test_seconds(told, wait):
    assert seconds({"retry-after": told}) == wait


@pytest.mark.parametrize(
    ("told", "wait"),
    [
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 09:28:30 +0200", 30.0),
        ("Wednesday, 21-Oct-15 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
    ],
)
def test_a_date_counts_from_the_date_of_the_response(told, wait):
    assert seconds({"retry-after": told, "date": DATE}) == wait
    assert seconds({"retry-after": told}) is None


@pytest.mark.parametrize(
    "told",
    ["", "soon", "-1", "1e9", "nan", "inf", "1234567890123", "\u0661", "Wed, 99 Oct 2015 07:28:30 GMT", "x" * 9999,
     "Wed, 21 Oct 2015 07:28:30", "Wed, 21 Oct 2015 07:28:30 -0000", "Wed, 21 Oct 99999999999 07:28:30 GMT", ","],
)  # fmt: skip
def test_what_cannot_be_understood_says_nothing(told):
    assert seconds({"retry-after": told, "date": DATE}) is None
    assert seconds({"retry-after": DATE, "date": told}) is None


def test_no_header():
    assert seconds({}) is None
