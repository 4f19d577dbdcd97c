"""Texts after a flag become typed values."""

from __future__ import annotations

import math
from datetime import date

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.config.values import (
    fields,
    is_json,
    json_or_text,
    limits,
    numbers,
    one_or_more,
    points,
    tables,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("128", 128),
        ("0.5", 0.5),
        ("true", True),
        ("null", None),
        ('"128"', "128"),
        ("[1, 2]", [1, 2]),
        ("b", "b"),
        ("", ""),
        ("True", "True"),
        ("NaN", "NaN"),
        ("1e999", "1e999"),
    ],
)
def test_json_stays_typed_and_the_rest_is_text(text, value):
    assert json_or_text(text) == value


def test_extra_fields_are_typed_as_json():
    texts = ["min_tokens:128", "ignore_eos:true", "a:b", 'nested:{"x":[1]}', "url:http://h:1/p", "empty:"]
    assert fields(texts) == {
        "min_tokens": 128,
        "ignore_eos": True,
        "a": "b",
        "nested": {"x": [1]},
        "url": "http://h:1/p",
        "empty": "",
    }


def test_a_whole_object_may_stand_among_pairs_and_later_names_win():
    assert fields(["a:1", ' {"a": 2, "b": null}', "b:3"]) == {"a": 2, "b": 3}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("min_tokens", "must be NAME:VALUE or a JSON object, such as min_tokens:128."),
        (":5", "must be NAME:VALUE or a JSON object, such as min_tokens:128."),
        ("{'a': 1}", "looks like a JSON object but is not valid JSON; check quotes and commas."),
    ],
)
def test_a_malformed_field_says_what_it_must_be(text, sentence):
    with pytest.raises(ValueError) as caught:
        fields([text])
    assert str(caught.value) == sentence


def test_limits_are_separated_by_spaces():
    assert limits(["time_to_first_token:200  inter_token_latency:20.5", "request_latency:9"]) == {
        "time_to_first_token": 200,
        "inter_token_latency": 20.5,
        "request_latency": 9,
    }


@pytest.mark.parametrize(
    "text", ["ttft", "ttft:", "ttft:fast", ":5", "ttft:200,itl:20", "ttft:true", "", " "]
)
def test_a_limit_is_a_name_and_a_number(text):
    with pytest.raises(ValueError, match="METRIC:NUMBER"):
        limits([text])


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "x", [1, [None]], {"a": {"b": []}}])
def test_json_can_carry(value):
    assert is_json(value)


@pytest.mark.parametrize("value", [math.inf, [math.nan], {"d": date(2026, 1, 1)}, {1: "a"}, b"x"])
def test_json_cannot_carry(value):
    assert not is_json(value)


def test_limits_may_be_named_as_vllm_does():
    assert limits(["ttft:200 tpot:20 itl:9 e2el:900"]) == {
        "time_to_first_token": 200,
        "time_per_output_token": 20,
        "inter_token_latency": 9,
        "request_latency": 900,
    }


def test_one_text_is_itself_and_several_are_a_list():
    assert one_or_more(["a"]) == "a"
    assert one_or_more(["a", "b"]) == ["a", "b"]


@pytest.mark.parametrize("texts", [["3,1"], ["3 1"], ["3", "1"], [" 3, 1 "]])
def test_numbers_are_separated_by_commas_or_spaces(texts):
    assert numbers(texts) == [3, 1]


@pytest.mark.parametrize("text", ["a", "1,a", "true", "1,null", "[1]", "", " , "])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(ValueError, match="must be numbers separated by commas"):
        numbers([text])


@pytest.mark.parametrize("text", ["0:1,60:20.5", "0:1 60:20.5", "[[0, 1], [60, 20.5]]"])
def test_points_are_pairs(text):
    assert points([text]) == [[0, 1], [60, 20.5]]


@pytest.mark.parametrize("text", ["0:1,60", "0:a", ":1", "5", "0:1:2", "true:1", "", " , "])
def test_what_is_no_point_is_refused(text):
    with pytest.raises(ValueError, match="must be SECONDS:RATE separated by commas"):
        points([text])


def test_points_that_look_like_json_must_be():
    with pytest.raises(ValueError, match="not valid JSON"):
        points(["[[0, 1], [60 20]]"])
    with pytest.raises(ValueError, match="empty or not valid JSON"):
        points(["[]"])


def test_tables_are_a_json_list():
    assert tables(['[{"name": "a"}]']) == [{"name": "a"}]
    with pytest.raises(ValueError, match="must be a list of tables"):
        tables(["name:a"])


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=9))
def test_points_written_with_colons_or_in_json_are_the_same(pairs):
    written = ",".join(f"{at_s!r}:{rate!r}" for at_s, rate in pairs)
    assert (
        points([written]) == points([msgspec.json.encode(pairs).decode()]) == [list(pair) for pair in pairs]
    )
