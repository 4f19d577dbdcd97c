from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadstone.config import Config, EndpointConfig, SloConfig


@pytest.fixture
def read(tables):
    """The tables of a run whose reader reads `speed` tokens a second, and whose stalls are longer than `stall_ms`."""
    import msgspec

    def make(*rows, speed=5.3, stall_ms=1000.0):
        config = Config(
            endpoint=EndpointConfig(streaming=True), slo=SloConfig(stall_ms=stall_ms, reading_speed=speed)
        )
        return tables(*rows, config=msgspec.to_builtins(config))

    return make


def test_the_worst_stall_is_the_longest_gap_of_each_answer(tables, answer, result):
    run = tables(answer(50, 60, 560, 600), answer(10, 12), answer(9), answer(5, 900, outcome="reset"))
    assert result("worst_stall", run).values.tolist() == [500.0, 2.0]


def test_a_gap_is_not_divided_by_the_tokens_it_brought(tables, answer, result):
    run = tables(answer(50, 150, tokens=8, counts=[4, 4]))
    assert result("worst_stall", run).values.tolist() == [100.0]


def test_stalls_are_counted_and_added_up(read, answer, result, mean):
    rows = answer(0, 100, 350, 400, 700), answer(0, 100, 200), answer(0)
    run = read(*rows, stall_ms=200)
    assert result("stall_count", run).values.tolist() == [2, 0]
    assert result("stall_time", run).values.tolist() == [550.0, 0.0]
    assert mean("stalled_answers", run) == 50.0
    assert result("stalled_answers", run).note == "a stall is a pause longer than 200 ms."
    assert result("smooth_answers", run).note == "read at 5.3 tokens/s."


def test_a_gap_as_long_as_the_threshold_is_no_stall(read, answer, mean):
    assert mean("stalled_answers", read(answer(0, 200), stall_ms=200)) == 0.0
    assert mean("stalled_answers", read(answer(0, 200.000001), stall_ms=200)) == 100.0


def test_the_threshold_is_a_second_unless_told(tables, answer, mean):
    assert mean("stalled_answers", tables(answer(0, 1000), answer(0, 1001))) == 50.0


def test_answers_in_one_piece_are_no_smooth_ones(tables, answer, reason):
    run = tables(answer(50, 50, 50, coalesced=True), answer(9))
    for name in ("worst_stall", "stall_count", "stalled_answers", "rebuffering_time", "smooth_answers"):
        assert reason(name, run) == "every answer came in one piece, so there is no gap between tokens."


def test_what_was_coalesced_is_left_out_whatever_came_later(tables, answer, result):
    run = tables(answer(50, 50, 90, coalesced=True), answer(0, 7))
    assert result("worst_stall", run).values.tolist() == [7.0]


class TestAReader:
    """Reads ten tokens a second: one in 100 ms."""

    def test_who_is_slower_than_the_tokens_never_waits(self, read, answer, result, mean):
        run = read(answer(50, 100, 150, 200), speed=10)
        assert result("rebuffering_time", run).values.tolist() == [0.0]
        assert mean("smooth_answers", run) == 100.0

    def test_just_in_time_is_no_wait(self, read, answer, mean):
        assert mean("smooth_answers", read(answer(50, 150, 250, 350), speed=10)) == 100.0

    def test_tokens_in_hand_bridge_a_pause(self, read, answer, result):
        # four tokens at hand last 400 ms; the fifth comes after 500
        run = read(answer(0, 10, 20, 30, 500), speed=10)
        assert result("rebuffering_time", run).values.tolist() == [100.0]

    def test_waits_add_up(self, read, answer, result):
        # the second token is 50 ms late, and when it is read the third another 100
        run = read(answer(0, 150, 350), speed=10)
        assert result("rebuffering_time", run).values.tolist() == [150.0]

    def test_who_has_waited_once_is_late_for_the_next_pause(self, read, answer, result):
        run = read(answer(0, 300, 350), speed=10)
        assert result("rebuffering_time", run).values.tolist() == [200.0]

    def test_a_chunk_is_as_much_to_read_as_it_brought(self, read, answer, result):
        run = read(answer(0, 450, tokens=8, counts=[4, 4]), speed=10)
        assert result("rebuffering_time", run).values.tolist() == [50.0]

    def test_the_share_is_of_the_answers_with_a_gap(self, read, answer, result):
        run = read(answer(0, 50, sent=-2), answer(0, 500, sent=-3), answer(0), speed=10)
        found = result("smooth_answers", run)
        assert (found.value, found.hits.tolist()) == (50.0, [False, True])  # in the order of sending


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(st.lists(st.integers(1, 400_000), min_size=1, max_size=20), min_size=1, max_size=5),
    st.integers(1, 50),
)
def test_pauses_are_those_of_a_reader_who_is_followed(read, answer, result, answers, speed):
    arrivals = [[sum(gaps[: i + 1]) / 1000 for i in range(len(gaps))] for gaps in answers]
    run = read(*(answer(*moments) for moments in arrivals), speed=speed, stall_ms=100)
    told = [moments for moments in arrivals if len(moments) > 1]
    if not told:
        return
    waits = []
    for moments in told:
        at, waited = moments[0], 0.0
        for moment in moments:
            waited += max(moment - at, 0.0)
            at = max(at, moment) + 1000 / speed
        waits.append(waited)
    assert result("rebuffering_time", run).values.tolist() == pytest.approx(waits, abs=2e-3)
    gaps = [[b - a for a, b in pairwise(moments)] for moments in told]
    assert result("worst_stall", run).values.tolist() == pytest.approx([max(one) for one in gaps])
    stalls = [sum(round(gap * 1e6) > 100_000_000 for gap in one) for one in gaps]
    assert result("stall_count", run).values.tolist() == stalls


def test_of_several_choices_the_worst_counts_and_stalls_add_up(read, answer, result):
    choices = answer(0, 10, 160, 170, 470, 475) | {"choices": 2, "chunk_choice": [0, 1, 0, 1, 0, 1]}
    run = read(choices, stall_ms=140, speed=10)
    # choice 0: 0, 160, 470; choice 1: 10, 170, 475
    assert result("worst_stall", run).values.tolist() == [310.0]
    assert result("stall_count", run).values.tolist() == [4.0]
    assert result("stall_time", run).values.tolist() == [160.0 + 310 + 160 + 305]
    assert result("rebuffering_time", run).values.tolist() == [270.0]
