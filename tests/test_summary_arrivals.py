"""The arrival process of a phase in words and as data."""

from __future__ import annotations

import pytest

from loadstone.config import LoadConfig
from loadstone.plan import schedule
from loadstone.summary.arrivals import arrivals, words


def phase(**load):
    return schedule.phases(LoadConfig(**load))[-1]


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ({}, "concurrency 1"),
        ({"concurrency": 8}, "concurrency 8"),
        ({"concurrency": 64, "concurrency_ramp_s": 30.0}, "concurrency 1 to 64 (by 29.8 s)"),
        ({"request_rate": 2.5}, "poisson 2.5 requests/s, unconditioned"),
        ({"request_rate": 2.5, "conditioned": True, "request_count": 9}, "poisson 2.5 requests/s, conditioned"),
        ({"request_rate": 10.0, "arrival_pattern": "constant", "concurrency": 64},
         "constant 10 requests/s, at most 64 in flight"),
        ({"request_rate": 10.0, "arrival_smoothness": 0.5}, "gamma (shape 0.5) 10 requests/s, unconditioned"),
        ({"request_rate": 10.0, "request_rate_ramp_s": 30.0},
         "poisson 0 to 10 requests/s (over 30 s), unconditioned"),
        ({"request_rate": 10.0, "request_rate_ramp_s": 30.0, "request_rate_ramp_strategy": "exponential"},
         "poisson 1 to 10 requests/s (over 30 s, exponential), unconditioned"),
        ({"request_rate_series": ((0.0, 5.0), (10.0, 20.0), (20.0, 1.0))},
         "poisson 1 to 20 requests/s (a curve of 3 pieces), unconditioned"),
        ({"request_rate": "inf"}, "everything at once"),
        ({"fixed_schedule": True}, "at given times"),
        ({"user_centric_rate": 2.0, "users": 10}, "10 users, 2 requests/s"),
        ({"index_ramp_strategy": "linear", "index_ramp_start": 1.0, "index_ramp_end": 9.0, "request_count": 5},
         "gamma (shape 1) 1 to 9 requests/s (by number, linear)"),
        ({"request_rate": 3.0, "prefill_concurrency": 2},
         "poisson 3 requests/s, unconditioned, at most 2 before their first token"),
        ({"concurrency": 4, "cancellation_percent": 20.0, "cancellation_delay_s": 0.5},
         "concurrency 4, 20 % cancelled 0.5 s after they were sent"),
    ],
)  # fmt: skip
def test_the_load_in_a_few_words(load, told):
    assert words(phase(**load)) == told


def test_the_rate_of_conversations_is_not_called_one_of_requests():
    assert words(phase(request_rate=2.0), "conversations") == "poisson 2 conversations/s, unconditioned"
    assert words(phase(user_centric_rate=2.0, users=3), "conversations") == "3 users, 2 requests/s"


def test_a_slot_holds_a_conversation_and_not_a_request():
    capped = phase(request_rate=2.0, concurrency=3, prefill_concurrency=1, arrival_pattern="constant")
    assert words(capped, "conversations") == (
        "constant 2 conversations/s, at most 3 conversations, at most 1 before their first token"
    )
    ramp = phase(request_rate=2.0, concurrency=3, concurrency_ramp_s=4.0, arrival_pattern="constant")
    assert words(ramp, "conversations") == "constant 2 conversations/s, at most 1 to 3 (by 3 s) conversations"


def test_the_same_as_data():
    found = arrivals(
        phase(request_rate=8.0, request_rate_ramp_s=4.0, concurrency=2, concurrency_ramp_s=1.0, conditioned=False)
    )  # fmt: skip
    ramp = {"start_s": 0.0, "rate": 0.0, "end_rate": 8.0, "span_s": 4.0, "course": "linear"}
    assert (found.phase, found.pattern, found.rate, found.curve) == ("measured", "poisson", 8.0, (ramp,))
    assert (found.conditioned, found.smoothness, found.slots) == (False, None, 2)
    assert found.slot_steps[0] == (0.0, 1) and found.slot_steps[-1][1] == 2


@pytest.mark.parametrize("load", [{}, {"request_rate": "inf"}, {"fixed_schedule": True}])
def test_where_nothing_is_drawn_nothing_is_conditioned(load):
    assert arrivals(phase(**load)).conditioned is None


def test_a_limit_that_stays_has_no_steps():
    assert arrivals(phase(concurrency=3, prefill_concurrency=2)).slot_steps == ()
