"""What runs say together: Student's interval over them, and whether they differ by more than chance within each."""

from __future__ import annotations

import pytest

from loadstone.report import Interval, MetricResult
from loadstone.study.aggregate import chi_square_99, percent, spread, spreads


def result(mean, half=None):
    intervals = {} if half is None else {"mean": Interval(low=mean - half, high=mean + half)}
    return MetricResult(unit="ms", better="lower", count=100, mean=mean, intervals=intervals)


def test_the_interval_over_runs_is_students():
    one = spread([result(10.0), result(12.0), result(14.0)], "mean")
    assert (one.runs, one.mean, one.min, one.max, one.std) == (3, 12.0, 10.0, 14.0, 2.0)
    assert one.cv == pytest.approx(1 / 6)
    # t with 2 degrees of freedom is 4.3027; 4.3027 * 2 / sqrt(3) = 4.9683
    assert one.high - one.mean == pytest.approx(4.9683, abs=1e-3)
    assert one.mean - one.low == pytest.approx(4.9683, abs=1e-3)
    assert percent(one) == pytest.approx(41.4, abs=0.1)


def test_of_what_is_never_negative_the_interval_is_not_either():
    assert spread([result(10.0), result(30.0)], "mean").low == 0.0
    assert spread([result(-10.0), result(30.0)], "mean").low < -100


def test_one_run_has_no_interval():
    one = spread([result(10.0)], "mean")
    assert (one.low, one.high, one.std, one.cv, one.between) == (None, None, None, None, None)
    assert percent(one) is None


def test_a_run_without_the_metric_does_not_count_but_keeps_its_place():
    one = spread([result(10.0), None, result(None), result(14.0)], "mean")
    assert (one.runs, one.mean, one.values) == (2, 12.0, (10.0, None, None, 14.0))


def test_what_no_run_has_is_none():
    assert spread([result(None), None], "mean") is None
    assert spread([result(3.0)], "p99") is None


def test_runs_that_scatter_as_their_own_intervals_say_are_alike():
    assert spread([result(10.0, 1.0), result(10.5, 1.0), result(9.6, 1.0)], "mean").between is False


def test_runs_that_scatter_by_far_more_are_not():
    assert spread([result(10.0, 0.5), result(12.0, 0.5), result(14.0, 0.5)], "mean").between is True


def test_without_the_intervals_of_every_run_nobody_knows():
    assert spread([result(10.0, 0.5), result(12.0), result(14.0, 0.5)], "mean").between is None


@pytest.mark.parametrize(
    ("freedom", "point"), [(2, 9.210), (3, 11.345), (4, 13.277), (9, 21.666), (29, 49.588)]
)
def test_the_point_of_chi_square_is_within_a_percent(freedom, point):
    assert chi_square_99(freedom) == pytest.approx(point, rel=0.01)


def test_an_endless_run_is_not_left_out_of_the_mean():
    endless = MetricResult(unit="ms", better="lower", count=100, infinite=("mean",))
    one = spread([result(500.0), result(510.0), endless], "mean")
    assert (one.runs, one.infinite, one.mean, one.high) == (3, 1, None, None)
    assert one.values == (500.0, 510.0, None)


def test_where_nothing_failed_the_adjusted_latency_is_the_plain_one():
    plain, none = result(10.0), MetricResult(unit="ms", better="lower", reason="nothing failed")
    adjusted = result(30.0)
    runs = [
        {"request_latency": plain, "adjusted_request_latency": none},
        {"request_latency": plain, "adjusted_request_latency": adjusted},
    ]
    assert spreads(runs)["adjusted_request_latency"].stats["mean"].values == (10.0, 30.0)


def test_the_error_of_a_mean_is_that_of_its_independent_samples():
    """An interval of few of them is wider than its error times 1.96, and would hide that runs differ."""

    def run(mean):
        interval = Interval(low=mean - 9, high=mean + 9, effective=4.0)
        return MetricResult(
            unit="ms", better="lower", count=9, mean=mean, std=2.0, intervals={"mean": interval}
        )

    assert spread([run(10.0), run(15.0), run(20.0)], "mean").between is True
    assert spread([run(10.0), run(10.5), run(11.0)], "mean").between is False
