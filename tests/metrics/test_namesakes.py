"""What is said of other tools' metrics belongs to metrics that exist, and every name leads to one."""

from __future__ import annotations

import re

import pytest

from loadstone.metrics import all_metrics, names
from loadstone.metrics._docs import markdown
from loadstone.metrics._namesakes import ALL, SHORT, namesakes, ours, words

FORMULA = re.compile(r" [-/=x>] |\b(?:sum|max|min|number|mean) of\b")
COUNTED = {"requests", "tokens"}
"""Units of what is counted: what is counted is the formula."""


@pytest.mark.parametrize("metric", all_metrics().values(), ids=names())
def test_every_metric_has_a_unit_a_direction_and_a_formula(metric):
    assert metric.unit
    assert metric.better in ("lower", "higher", "neither")
    by_others = any(name in metric.doc for name in names() if name != metric.name)
    assert FORMULA.search(metric.doc) or metric.unit in COUNTED or by_others


@pytest.mark.parametrize("one", ALL, ids=lambda one: f"{one.tool}:{one.name}:{one.ours}")
class TestEveryNamesake:
    def test_is_of_a_metric_that_exists(self, one):
        assert one.ours in names()

    def test_has_a_name_without_a_space_and_words_without_a_full_stop(self, one):
        assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in one.names)
        assert one.names
        assert one.how
        assert not (one.how.endswith(".") or one.differs.endswith("."))

    def test_is_found_by_each_of_its_names(self, one):
        for name in one.names:
            assert ours(name, names()) in {other.ours for other in ALL if name in other.names} | {name}


def test_no_fact_stands_there_twice():
    assert len({(one.ours, one.tool, one.name) for one in ALL}) == len(ALL)


@pytest.mark.parametrize(
    ("word", "metric"),
    [
        ("tpot", "time_per_output_token"),
        ("TTFT", "time_to_first_token"),
        ("e2el", "request_latency"),
        ("mean_ttft_ms", "time_to_first_token"),
        ("p99_itl_ms", "inter_token_latency"),
        ("inter-chunk-latency", "inter_token_latency"),
        ("output_throughput", "output_token_throughput"),
        ("adj_request_latency", "adjusted_request_latency"),
        ("effective_concurrency", "concurrency"),
        ("effective_latency", "request_latency_from_due"),
        ("request_goodput", "goodput"),
        ("ntpot", "normalized_latency"),
        ("error_isl", "failed_input_sequence_length"),
        ("time to first token", "time_to_first_token"),
    ],
)
def test_other_tools_names_are_understood(word, metric):
    assert ours(word, names()) == metric


def test_an_own_name_goes_before_another_tool_s():
    assert ours("inter_token_latency", names()) == "inter_token_latency"
    assert {one.tool for one in namesakes("inter_token_latency")} >= {
        "AIPerf",
        "vLLM bench serve",
        "GuideLLM",
    }


def test_a_word_that_means_nothing_is_none():
    assert ours("latency_of_the_moon", names()) is None


def test_short_names_are_of_metrics_that_exist():
    assert set(SHORT.values()) <= set(names())
    assert {"tpot", "mean", "itl"} & set(words(names())) == {"tpot", "itl"}


def test_the_page_has_them_with_their_differences():
    page = markdown()
    assert "\nElsewhere:\n- AIPerf, `time_to_first_token`: first chunk with content" in page
    assert page.count("- GuideLLM, ") == sum(one.tool == "GuideLLM" for one in ALL)
