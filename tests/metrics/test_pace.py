"""What time each request of a run took up."""

from __future__ import annotations

import numpy as np
import pytest

from loadstone.metrics import all_metrics
from loadstone.metrics._pace import paced
from loadstone.metrics.throughput import request_throughput


def spent(tables):
    return tables.pace.paced.spent.tolist()


def test_in_an_open_loop_it_is_the_time_to_the_next_send_and_a_share_of_the_drain(tables, answer):
    run = tables(answer(1000, sent=300), answer(700, sent=0), answer(1600, sent=1000), rate=2.0)
    assert run.pace.sent.tolist() == [1, 0, 2]
    # After the last send 0.6 s, of which 0.5 are a gap like the others.
    assert spent(run) == pytest.approx([0.3 + 0.1 / 3, 0.7 + 0.1 / 3, 0.5 + 0.1 / 3])


def test_where_a_duration_ended_it_gaps_are_stretched(tables, answer):
    run = tables(
        answer(1000, sent=300),
        answer(700, sent=0),
        answer(1600, sent=1000),
        load={"request_rate": 2.0, "duration_s": 1.0},
    )
    assert spent(run) == pytest.approx([0.3 * 1.6 / 1.5, 0.7 * 1.6 / 1.5, 0.5 * 1.6 / 1.5])


def test_in_a_closed_loop_it_is_the_time_in_flight(tables, answer):
    run = tables(*(answer(1000 * (1 + number), sent=1000 * number) for number in range(10)), cap=1)
    assert spent(run) == pytest.approx([1.0] * 10)
    two = tables(
        *(answer(1000 * (1 + number // 2), sent=1000 * (number // 2)) for number in range(19)), cap=2
    )
    assert spent(two) == pytest.approx([10 / 19] * 19)


def test_a_cap_that_is_always_reached_makes_a_closed_loop_of_a_rate(tables, answer):
    full = [answer(1000 * (1 + number), sent=1000 * number, due=100 * number) for number in range(10)]
    assert spent(tables(*full, rate=10.0, cap=1)) == pytest.approx([1.0] * 10)
    gaps = tables(*(answer(1000 * number + 400, sent=1000 * number) for number in range(10)), rate=1.0, cap=2)
    assert spent(gaps) == pytest.approx([1.0] * 9 + [0.4])


def test_what_was_never_sent_takes_up_none(tables, answer, unsent):
    run = tables(answer(700, sent=0), unsent(due=100), answer(1600, sent=1000), rate=2.0)
    assert run.pace.sent.tolist() == [0, 2]


def test_a_part_brings_its_own_over_the_time_of_the_whole(tables, answer):
    run = tables(*(answer(10 * number + 5, sent=10 * number, tokens=2) for number in range(100)), rate=100.0)
    part = run.part(np.arange(100) % 2 == 1)
    amounts, pace = paced(part, np.ones(50))
    assert amounts.tolist() == [0.0, 1.0] * 50
    assert pace is run.pace.paced
    inner = part.part(np.arange(50) < 10)
    assert paced(inner, np.ones(10))[0].tolist() == [0.0, 1.0] * 10 + [0.0] * 80


def test_where_no_time_passed_there_is_no_pace(tables, answer):
    assert tables(answer(0, sent=0)).pace is None


def test_stretches_of_time_follow_each_other(tables, answer, phase_log):
    early = [answer(number * 10 + 10, sent=number * 10, phase="a") for number in range(5)]
    late = [answer(5000 + number * 10, sent=5000 + number * 10 - 10, phase="b") for number in range(5)]
    phases = [phase_log("a", 0, 60), phase_log("b", 4900, 5100)]
    run = tables(*late, *early, rate=100.0, phases=phases)
    assert run.pace.sent.tolist() == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
    assert sum(spent(run)) == pytest.approx(run.window_s) == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["request_throughput", "output_token_throughput", "total_token_throughput"])
def test_the_rate_is_the_one_sum_over_the_other(tables, answer, name):
    run = tables(
        *(answer(7 * number + 90, sent=7 * number, tokens=number + 1) for number in range(40)), rate=9.0
    )
    found = all_metrics()[name].result(run)
    amounts, pace = found.rate
    assert amounts.sum() / pace.spent.sum() == pytest.approx(found.value)
    assert request_throughput(run).value == pytest.approx(40 / run.window_s)
