"""When so much fails that a run is given up: what the board says, look by look."""

from __future__ import annotations

import pytest

from loadstone.board import FIELDS, Field
from loadstone.load.failures import Failures


class Told:
    """A board of which only the sums are known, looked at four times a second."""

    def __init__(self, threshold=0.5, concurrency=None, ended=0, decoded=0):
        self.fields = [0] * FIELDS
        self.fields[Field.ENDED], self.fields[Field.DECODED] = ended, decoded
        self.failures = Failures(threshold, concurrency, self.fields)
        self.elapsed_s = 0.0

    def look(self, ok=0, failed=0, ended=None):
        """The verdict after that many outcomes more; flights have `ended` before they are decoded."""
        self.elapsed_s += 0.25
        self.fields[Field.OK] += ok
        self.fields[Field.FAILED] += failed
        self.fields[Field.DECODED] += ok + failed
        self.fields[Field.ENDED] += ok + failed if ended is None else ended
        return self.failures.look(self.fields, self.elapsed_s)


def test_half_of_the_last_hundred_may_fail_and_one_more_not():
    told = Told()
    assert told.look(ok=1_000) is None
    assert told.look(failed=50) is None
    assert told.look(failed=1) == "51 of the last 100 requests failed, since about 0.5 s"


def test_it_needs_twenty_outcomes_or_as_many_as_are_in_flight():
    assert Told().look(failed=19) is None
    assert Told().look(failed=20) == "20 of the last 20 requests failed, since about 0.2 s"
    assert Told(concurrency=64).look(failed=63) is None
    assert Told(concurrency=64).look(failed=64) == "64 of the last 64 requests failed, since about 0.2 s"


def test_failures_long_ago_do_not_count():
    told = Told()
    assert told.look(ok=25, failed=24) is None
    assert told.look(ok=90) is None
    for _ in range(5):
        assert told.look(ok=10, failed=9) is None
    assert told.look(failed=10).startswith("5")


@pytest.mark.parametrize(("failed", "given_up"), [(4_900, False), (5_100, True)])
def test_more_outcomes_at_once_than_the_window_holds_count_by_their_share(failed, given_up):
    assert (Told().look(ok=10_000 - failed, failed=failed) is not None) == given_up


@pytest.mark.parametrize(
    ("threshold", "failed", "given_up"), [(0, 1, True), (0.1, 10, False), (0.1, 11, True)]
)
def test_another_threshold(threshold, failed, given_up):
    assert (Told(threshold).look(ok=100 - failed, failed=failed) is not None) == given_up


def test_a_threshold_of_one_is_never_exceeded():
    assert Told(threshold=1).look(failed=1_000) is None


def test_nothing_happens_without_outcomes():
    told = Told(threshold=0)
    assert [told.look() for _ in range(3)] == [None] * 3


def test_what_is_left_of_the_phase_before_does_not_count():
    told = Told(ended=40, decoded=10)
    assert told.look(failed=30, ended=0) is None
    assert told.look(ok=15, failed=5) is None
    assert told.look(failed=11) == "16 of the last 31 requests failed, since about 0.5 s"


def test_since_is_when_the_requests_ended_and_not_when_they_were_decoded():
    told = Told()
    told.look(ended=30)
    told.look(ended=10)
    for _ in range(8):
        assert told.look(ended=0) is None
    assert told.look(ok=30, ended=0) is None
    assert told.look(failed=40, ended=100) == "40 of the last 70 requests failed, since about 0.5 s"
