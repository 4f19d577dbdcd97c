from __future__ import annotations

import pytest

from loadstone import registry
from loadstone.metrics import NEEDS, Missing, all_metrics, names
from loadstone.metrics._docs import markdown


def test_every_metric_has_a_section_with_its_unit():
    page = markdown()
    for name, metric in all_metrics().items():
        assert f"### {name}\n\nUnit: {metric.unit}" in page
    assert page.count("### ") == len(names())


def test_latencies_come_first_and_the_instrument_last():
    assert names()[0] == "time_to_first_token"
    assert names()[-1] == "connect_time"
    assert "\n## Latency: how long a user waited\n\nOver successes only" in markdown()


@pytest.mark.parametrize("metric", all_metrics().values(), ids=names())
class TestEveryMetric:
    def test_says_what_it_means_in_its_first_line(self, metric):
        assert len(metric.doc.splitlines()[0]) > 20

    def test_names_needs_that_exist(self, metric):
        assert set(metric.needs) <= set(NEEDS)

    def test_is_missing_with_a_reason_on_an_empty_table(self, metric, tables):
        found = metric.result(tables())
        assert isinstance(found, Missing)
        assert found.reason.endswith(".")

    def test_never_fails_on_a_single_row(self, metric, tables, answer, unsent):
        for row in (answer(5), answer(), unsent(), answer(5, outcome="cut"), answer(5, outcome="reset")):
            for load in ({}, {"rate": 10}, {"rate": 10, "cap": 2}, {"streaming": False}):
                assert metric.result(tables(row, **load, goodput={"request_latency": 5})) is not None


def test_every_part_of_the_kind_has_metrics():
    modules = {one.fn.__module__.rpartition(".")[2].replace("_", "-") for one in all_metrics().values()}
    assert modules == set(registry.builtin("metrics"))
