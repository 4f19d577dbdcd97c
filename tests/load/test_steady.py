"""When the numbers of a load are good enough to stop."""

from __future__ import annotations

import random
import re

import pytest

from loadstone.board import FIELDS, Field, Live
from loadstone.figures import brief
from loadstone.load import steady
from loadstone.load.steady import BATCHES, Steady


def course(latencies_ms, a_look=10, every_s=0.25):
    """The board as it is seen, when so many answers of these latencies come between two looks."""
    fields = [0] * FIELDS
    for at, start in enumerate(range(0, len(latencies_ms), a_look), 1):
        for latency_ms in latencies_ms[start : start + a_look]:
            fields[Field.OK] += 1
            fields[Field.LATENCY_US] += round(1000 * latency_ms)
            fields[Field.TOKENS] += 5
        yield Live(list(fields), []), at * every_s


def stopped_at(limits, *arguments, **how):
    """When it would be stopped, and why; (None, None): never."""
    judge = Steady(limits)
    for live, elapsed_s in course(*arguments, **how):
        if why := judge.look(live, elapsed_s):
            return elapsed_s, why
    return None, None


def noisy(n, mean=100.0, spread=20.0, seed=1, trend=0.0):
    draw = random.Random(seed)
    return [draw.gauss(mean + trend * i, spread) for i in range(n)]


def test_nothing_asked_never_stops():
    assert stopped_at({}, noisy(5_000)) == (None, None)


def test_it_stops_when_the_interval_is_narrow_enough_and_says_so():
    at_s, why = stopped_at({"request_latency": 2.0}, noisy(20_000))
    assert re.fullmatch(
        r"request_latency is [\d.]+ ms within [\d.]+ %, over the last three quarters of the phase", why
    )
    assert at_s < 60


def test_a_narrower_interval_takes_longer():
    times = [stopped_at({"request_latency": percent}, noisy(50_000))[0] for percent in (4.0, 1.0, 0.5)]
    assert times == sorted(times)
    assert len(set(times)) == 3


def test_the_interval_of_independent_answers_is_the_textbooks():
    judge = Steady({"request_latency": 1e-9})
    for live, elapsed_s in course(noisy(40_000)):
        judge.look(live, elapsed_s)
    interval = judge.interval("request_latency")
    answers = 0.75 * 40_000
    assert interval.mean == pytest.approx(100.0, abs=0.5)
    assert interval.half == pytest.approx(1.96 * 20 / answers**0.5, rel=0.5)


def test_the_interval_holds_the_true_mean_about_as_often_as_it_says():
    missed = 0
    for seed in range(200):
        judge = Steady({"request_latency": 1e-9})
        for live, elapsed_s in course(noisy(800, seed=seed)):
            judge.look(live, elapsed_s)
        interval = judge.interval("request_latency")
        missed += abs(interval.mean - 100.0) > interval.half
    assert 2 <= missed <= 24


def test_a_load_that_slows_down_is_not_steady():
    assert stopped_at({"request_latency": 2.0}, noisy(4_000, trend=0.1)) == (None, None)


def test_answers_that_hang_together_take_longer():
    draw, latencies, drift = random.Random(3), [], 0.0
    for _ in range(60_000):
        drift = 0.99 * drift + draw.gauss(0, 3)
        latencies.append(100 + drift)
    alone = noisy(60_000, spread=21)  # the same spread, without memory
    assert (
        stopped_at({"request_latency": 4.0}, latencies)[0]
        > 5 * stopped_at({"request_latency": 4.0}, alone)[0]
    )


def test_all_metrics_that_were_asked_have_to_be_narrow():
    limits = {"request_latency": 50.0, "request_throughput": 1e-6}
    latencies = noisy(3_000)
    draw = random.Random(2)
    judge = Steady(limits)
    whys = [judge.look(live, at + draw.random() / 10) for live, at in course(latencies)]
    assert set(whys) == {None}
    assert stopped_at({"request_latency": 50.0}, latencies)[0] is not None


def test_throughputs_are_per_second():
    judge = Steady({"output_token_throughput": 1e-9, "request_throughput": 1e-9})
    for live, elapsed_s in course([100.0] * 2_000):
        judge.look(live, elapsed_s)
    assert judge.interval("request_throughput").mean == pytest.approx(40.0)
    assert judge.interval("output_token_throughput").mean == pytest.approx(200.0)


def test_few_answers_never_stop_a_load():
    assert stopped_at({"request_latency": 50.0}, [100.0] * 99, a_look=1) == (None, None)


def test_batches_are_joined_so_that_memory_stays_bounded():
    judge = Steady({"request_latency": 1e-9})
    for live, elapsed_s in course(noisy(200_000)):
        judge.look(live, elapsed_s)
        assert len(judge._marks) <= 2 * BATCHES / (1 - steady.LEFT_OUT)


def test_another_phase_begins_anew():
    judge = Steady({"request_latency": 50.0})
    looks = list(course(noisy(300)))
    for live, elapsed_s in looks:
        judge.look(live, elapsed_s)
    assert judge.look(*looks[0]) is None
    assert len(judge._marks) == 1


def test_what_was_not_met_is_told_with_how_near_it_came():
    judge = Steady({"request_latency": 0.2, "request_throughput": 50.0})
    for live, elapsed_s in course(noisy(4_000)):
        judge.look(live, elapsed_s)
    near = judge.interval("request_latency").percent
    assert list(judge.unmet()) == [
        "--stop-when request_latency:0.2 was not met: at the end it was known within"
        f" {brief(near)} %, over {steady.OF_WHAT}."
    ]


def test_of_a_load_too_short_to_judge_that_is_told():
    judge = Steady({"request_latency": 5.0})
    judge.look(*next(course(noisy(10))))
    assert list(judge.unmet()) == [
        "--stop-when request_latency:5 was not met: too little came to know its mean well."
    ]


def test_whatever_can_stop_a_load_is_a_metric():
    from loadstone.metrics import names

    assert set(steady.METRICS) <= set(names())
