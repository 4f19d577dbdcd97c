"""A page as samples; what is no page is told in words."""

from __future__ import annotations

import math
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.telemetry import parse
from loadstone.telemetry.parse import NotAPageError, Parser, Series

PAGE = """\
# HELP wait_seconds Time in the queue.
# TYPE wait_seconds histogram
wait_seconds_bucket{le="0.1",model="a b"} 1.0
wait_seconds_bucket{le="+Inf",model="a b"} 2.0
wait_seconds_count{model="a b"} 2.0
wait_seconds_sum{model="a b"} 3.5
# TYPE tokens_total counter
tokens_total 7
# TYPE running gauge
running{z="1",a="2"} NaN
bare 1e3
"""
TOKENS = Series("tokens", "counter", "tokens_total", "{}")
NUMBERS = st.floats() | st.integers(-(2**53), 2**53)


def samples(parser, page):
    return [
        (parser.series[number].name, value) for number, value in zip(page.series, page.values, strict=True)
    ]


def test_every_sample_has_its_family_type_name_and_sorted_labels():
    parser = Parser()
    page = parser(PAGE)
    assert [parser.series[number] for number in page.series] == [
        Series("wait_seconds", "histogram", "wait_seconds_bucket", '{"le":"0.1","model":"a b"}'),
        Series("wait_seconds", "histogram", "wait_seconds_bucket", '{"le":"+Inf","model":"a b"}'),
        Series("wait_seconds", "histogram", "wait_seconds_count", '{"model":"a b"}'),
        Series("wait_seconds", "histogram", "wait_seconds_sum", '{"model":"a b"}'),
        TOKENS,
        Series("running", "gauge", "running", '{"a":"2","z":"1"}'),
        Series("bare", "unknown", "bare", "{}"),
    ]
    assert list(page.values[:5]) == [1.0, 2.0, 2.0, 3.5, 7.0]
    assert math.isnan(page.values[5])
    assert page.values[6] == 1000.0


def test_a_page_on_which_only_numbers_changed_is_not_parsed_again(monkeypatch):
    parser = Parser()
    first = parser(PAGE)
    monkeypatch.setattr(parse, "_samples", None)
    again = parser(PAGE.replace("total 7", "total 8"))
    assert again.series is first.series
    assert again.values[4] == 8.0


@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=4))
def test_the_short_way_gives_what_the_long_one_does(reads):
    parser = Parser()
    for a, b, c in reads:
        text = f'# TYPE x counter\nx_total{{a="}} 1"}} {a}\nx_total{{a="2"}}  {b}\ny {c}\n'
        fresh = Parser()
        assert str(samples(parser, parser(text))) == str(samples(fresh, fresh(text)))


def test_a_series_that_comes_later_gets_a_number_of_its_own():
    parser = Parser()
    parser("a 1\nb 2\n")
    page = parser("a 1\nnew 3\nb 2\n")
    assert samples(parser, page) == [("a", 1.0), ("new", 3.0), ("b", 2.0)]
    assert list(page.series) == [0, 2, 1]


def test_a_moment_behind_the_number_is_not_taken_for_the_number():
    parser = Parser()
    for text, value in (
        ("a 1 1700000000000\n", 1.0),
        ("a 2 1700000001000\n", 2.0),
        ("a 3 1700000001000\n", 3.0),
    ):
        assert list(parser(text).values) == [value]


def test_a_number_that_is_none_any_more_is_told():
    parser = Parser()
    parser("a 1\n")
    with pytest.raises(NotAPageError, match=r"^it is not in Prometheus's format$"):
        parser("a one\n")
    assert list(parser("a 2\n").values) == [2.0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("# TYPE a gauge\n", "it has no sample"),
        ("<!doctype html>\n<p>Hello</p>", "^it is not in Prometheus's format$"),
        ('{"status": "ok"}', "not in Prometheus's format"),
        ('a{b="c', "not in Prometheus's format"),
        ("a{,} \n", "not in Prometheus's format"),
        ("a 1" + "0" * 400 + "\n", "not in Prometheus's format"),
        ("a" * 20_000 + " 1\n", "it has a line of 20,002 characters"),
    ],
)
def test_what_is_no_page_is_told(text, told):
    with pytest.raises(NotAPageError, match=told):
        Parser()(text)


def test_a_page_of_too_many_samples_is_refused(monkeypatch):
    monkeypatch.setattr(parse, "MOST_SAMPLES", 2)
    assert len(Parser()("a 1\nb 2\n").values) == 2
    with pytest.raises(NotAPageError, match="more than 2 samples"):
        Parser()("a 1\nb 2\nc 3\n")


@given(st.text(max_size=200))
def test_any_text_is_a_page_or_told_to_be_none(text):
    try:
        page = Parser()(text)
    except NotAPageError:
        return
    assert len(page.values) == len(page.series) > 0


def test_why_a_text_is_no_page_repeats_nothing_of_it():
    page = " ".join(["Bearer", "sk-hunter2", "\x1b[31m"])
    with pytest.raises(NotAPageError) as told:
        Parser()(page)
    logged = traceback.format_exception(told.value)
    assert not [line for line in logged if "Bearer sk" in line]
    assert str(told.value) == "it is not in Prometheus's format"


@pytest.mark.parametrize("later", ["1_0", "１", "1\t", "0x1", "1\r"])
def test_only_what_the_parser_takes_for_a_number_is_one_the_second_time_too(later):
    """`float` takes more than the parser does, such as 1_0."""

    def read(parser):
        try:
            return list(parser(f"a {later}\n").values)
        except NotAPageError:
            return "no page"

    parser = Parser()
    parser("a 1\n")
    assert read(parser) == read(Parser())


def test_a_secret_of_ours_is_in_no_name_and_no_label():
    parser = Parser(["sk-hunter2", "hunter2_x"])
    parser('a{key="Bearer sk-hunter2",sk="2"} 1\nhunter2_x 2\n')
    assert parser.series == [
        Series("a", "unknown", "a", '{"key":"Bearer ***","sk":"2"}'),
        Series("***", "unknown", "***", "{}"),
    ]


def test_a_secret_of_ours_is_no_value():
    parser = Parser(["1234567890123", "12", "nan", "sk-hunter2"])
    for _ in range(2):
        page = parser("a 1234567890123\nb 12\nc NaN\nd 1.234567890123e+12\n")
        assert str(page.values.tolist()) == "[nan, 12.0, nan, nan]"
