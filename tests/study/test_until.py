"""When enough runs are done."""

from __future__ import annotations

import pytest

from loadstone.errors import UsageError
from loadstone.report import MetricResult
from loadstone.study.until import enough, goals


def of_means(*means):
    return [
        {"request_latency": MetricResult(unit="ms", better="lower", count=9, mean=mean)} for mean in means
    ]


NAMES = ("request_latency", "time_to_first_token")


def test_a_goal_names_a_metric_and_a_statistic():
    assert goals({"request_latency": 2.0, "time_to_first_token.p99": 5.0}, NAMES) == {
        ("request_latency", "mean"): 2.0,
        ("time_to_first_token", "p99"): 5.0,
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [("request_latencey", "Did you mean request_latency"), ("request_latency.p42", "there is no p42")],
)
def test_a_goal_nobody_knows_is_refused(text, says):
    with pytest.raises(UsageError, match=says):
        goals({text: 2.0}, NAMES)


def test_three_runs_that_agree_are_enough():
    told = enough({("request_latency", "mean"): 5.0}, [of_means(100.0, 101.0, 99.0)])
    assert told == "request_latency.mean within 2.48 % after 3 runs"


def test_two_runs_never_are():
    assert enough({("request_latency", "mean"): 50.0}, [of_means(100.0, 100.0)]) is None


def test_every_side_has_to_be_known():
    sides = [of_means(100.0, 101.0, 99.0), of_means(100.0, 150.0, 50.0)]
    assert enough({("request_latency", "mean"): 5.0}, sides) is None


def test_without_a_goal_all_runs_are_done():
    assert enough({}, [of_means(100.0, 100.0, 100.0)]) is None
