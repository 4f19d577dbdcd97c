"""Texts after a flag become typed values."""

from __future__ import annotations

import math
from datetime import date

import pytest

from loadstone.config.values import fields, is_json, json_or_text, limits


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


@pytest.mark.parametrize("text", ["ttft", "ttft:", "ttft:fast", ":5", "ttft:200,itl:20", "ttft:true"])
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
