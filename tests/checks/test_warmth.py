from __future__ import annotations

import pytest

from loadstone.checks.warmth import warm_up_leak


def run(answer, ttfts_ms, gap_ms=100.0):
    """Requests every 100 ms with these times to first token."""
    return [
        answer(gap_ms * number + ttft, gap_ms * number + ttft + 1, sent=gap_ms * number)
        for number, ttft in enumerate(ttfts_ms)
    ]


def test_too_few_requests_show_no_warm_up(evidence, answer):
    assert warm_up_leak(evidence(*run(answer, [90.0] + [10.0] * 198), rate=10)).value is None


@pytest.mark.parametrize(
    ("first", "verdict", "more"),
    [(120.0, "VALID", None), (121.0, "NOTE", 1.05), (190.0, "NOTE", 4.5), (210.0, "DEGRADED", 5.5)],
)
def test_a_first_twentieth_that_was_slower(evidence, answer, first, verdict, more):
    told = warm_up_leak(evidence(*run(answer, [first] * 10 + [100.0] * 190), rate=10))
    assert (told.verdict, told.value) == (verdict, None if more is None else pytest.approx(more))


@pytest.mark.parametrize(("first", "verdict"), [(14.9, "VALID"), (15.1, "NOTE")])
def test_what_is_slower_by_less_than_5_ms_may_be_the_clients_beginning(evidence, answer, first, verdict):
    assert warm_up_leak(evidence(*run(answer, [first] * 10 + [10.0] * 190), rate=10)).verdict == verdict


@pytest.mark.parametrize(
    ("warm", "verdict"), [(10, "DEGRADED"), (20, "DEGRADED"), (50, "DEGRADED"), (110, "VALID")]
)
def test_a_warm_up_may_last_for_a_quarter_of_the_run(evidence, answer, warm, verdict):
    found = warm_up_leak(evidence(*run(answer, [21.0] * warm + [10.0] * (200 - warm)), rate=10))
    assert found.verdict == verdict


def test_a_later_twentieth_that_was_as_slow_is_no_warm_up(evidence, answer):
    ttfts = [30.0] * 10 + [10.0] * 100 + [30.0] * 10 + [10.0] * 80
    assert warm_up_leak(evidence(*run(answer, ttfts), rate=10)).verdict == "VALID"


def test_the_rounds_that_open_a_closed_loop_are_left_out(evidence, answer):
    told = warm_up_leak(evidence(*run(answer, [90.0] * 8 + [10.0] * 200), cap=4))
    assert told.verdict == "VALID"


def test_where_the_load_changes_latencies_may(evidence, answer):
    rows = run(answer, [30.0] * 10 + [10.0] * 190)
    ramp = {"request_rate_ramp_s": 5.0}
    assert warm_up_leak(evidence(*rows, rate=10)).verdict == "DEGRADED"
    assert warm_up_leak(evidence(*rows, rate=10, load=ramp)).value is None
