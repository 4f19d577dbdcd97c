from __future__ import annotations

import pytest

from loadstone.checks.batching import batched_tokens


def test_tokens_that_come_one_by_one(evidence, answer):
    told = batched_tokens(evidence(answer(50, 60, 70, 80)))
    assert (told.verdict, told.value) == ("VALID", 1)


def test_one_piece_shows_nothing(evidence, answer):
    assert batched_tokens(evidence(answer(50, tokens=8))).value is None
    assert batched_tokens(evidence(answer(50, 60), streaming=False)).value is None


@pytest.mark.parametrize(("later", "verdict"), [((1, 1, 2, 1), "VALID"), ((1, 2, 2, 1), "NOTE")])
def test_tokens_an_arrival_after_the_first(evidence, answer, later, verdict):
    told = batched_tokens(evidence(answer(50, 60, 70, 80, 90, tokens=9, counts=[4, *later])))
    assert (told.verdict, told.value) == (verdict, sum(later) / 4)


def test_a_server_that_sends_ten_at_a_time(evidence, answer):
    rows = [answer(*(50 + 100 * k for k in range(6)), tokens=60, counts=[10] * 6) for _ in range(5)]
    told = batched_tokens(evidence(*rows))
    assert told.value == 10
    assert told.finding.startswith(
        "tokens came 10 at a time every 100 ms exactly, in one event, so the server"
    )
    assert "--stream-interval" in told.advice


def test_a_proxy_that_holds_events_back(evidence, answer):
    arrivals = [50 + 40 * (k // 4) for k in range(20)]
    told = batched_tokens(evidence(answer(*arrivals)))
    assert told.value == 4
    assert "as several events together" in told.finding
    assert "proxy_buffering off" in told.advice


def test_gaps_that_differ_are_not_called_exact(evidence, answer):
    rows = [answer(0, 10, 40, 100, 220, tokens=10, counts=[2] * 5) for _ in range(3)]
    assert "tokens came 2 at a time every 45 ms, in one event" in batched_tokens(evidence(*rows)).finding
