from __future__ import annotations

import math

import pytest

from loadstone.endpoints import Usage, _error, _usage


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (
            {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
            Usage(prompt_tokens=1, completion_tokens=2),
        ),
        ({"input_tokens": 1, "output_tokens": 2}, Usage(prompt_tokens=1, completion_tokens=2)),
        ({"promptTokenCount": 1, "candidatesTokenCount": 2}, Usage(prompt_tokens=1, completion_tokens=2)),
        ({"inputTokens": 1, "outputTokens": 2}, Usage(prompt_tokens=1, completion_tokens=2)),
        ({"input_token_count": 1, "generated_token_count": 2}, Usage(prompt_tokens=1, completion_tokens=2)),
        ({"prompt_tokens": 0, "input_tokens": 9}, Usage(prompt_tokens=0)),
        ({"completion_tokens_details": {"reasoning_tokens": 5}}, Usage(reasoning_tokens=5)),
        ({"output_tokens_details": {"reasoning_tokens": 5}}, Usage(reasoning_tokens=5)),
        ({"reasoning_tokens": 5}, Usage(reasoning_tokens=5)),
        ({"thoughtsTokenCount": 5}, Usage(reasoning_tokens=5)),
        (
            {"candidatesTokenCount": 100, "thoughtsTokenCount": 500},
            Usage(completion_tokens=600, reasoning_tokens=500),
        ),
        (
            {"completion_tokens": 100, "completion_tokens_details": {"reasoning_tokens": 500}},
            Usage(completion_tokens=100, reasoning_tokens=500),
        ),
        ({"candidatesTokenCount": 2**31 - 1, "thoughtsTokenCount": 1}, Usage(reasoning_tokens=1)),
        ({"prompt_tokens_details": {"cached_tokens": 6}}, Usage(cached_tokens=6)),
        ({"input_tokens_details": {"cached_tokens": 6}}, Usage(cached_tokens=6)),
        ({"cache_read_input_tokens": 6}, Usage(cached_tokens=6)),
        ({"prompt_cache_hit_tokens": 6}, Usage(cached_tokens=6)),
        ({"cachedContentTokenCount": 6}, Usage(cached_tokens=6)),
        ({"cacheReadInputTokens": 6}, Usage(cached_tokens=6)),
        ({"prompt_tokens": 1, "prompt_tokens_details": None}, Usage(prompt_tokens=1)),
        ({"completion_tokens": -1}, None),
        ({"completion_tokens": 2**80, "output_tokens": 2**31 - 1}, Usage(completion_tokens=2**31 - 1)),
        (
            {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 1}},
            Usage(prompt_tokens=1, cached_tokens=1),
        ),
        (
            {"input_tokens": 1, "cache_read_input_tokens": 6, "cache_creation_input_tokens": 2},
            Usage(prompt_tokens=9, cached_tokens=6),
        ),
        ({"input_tokens": 1, "cache_creation_input_tokens": 2}, Usage(prompt_tokens=3)),
        (
            {"inputTokens": 1, "cacheReadInputTokens": 6, "cacheWriteInputTokens": 2},
            Usage(prompt_tokens=9, cached_tokens=6),
        ),
        ({"prompt_tokens": 9, "cache_read_input_tokens": 6}, Usage(prompt_tokens=9, cached_tokens=6)),
        ({"input_tokens": 2**31 - 1, "cache_read_input_tokens": 1}, Usage(cached_tokens=1)),
        (
            {"prompt_cache_hit_tokens": 6, "prompt_cache_miss_tokens": 3},
            Usage(prompt_tokens=9, cached_tokens=6),
        ),
        ({"prompt_tokens": 9, "prompt_cache_miss_tokens": 3}, Usage(prompt_tokens=9, cached_tokens=6)),
        ({"prompt_tokens": 2, "prompt_cache_miss_tokens": 3}, Usage(prompt_tokens=2)),
        ({"prompt_tokens": 2, "prompt_cache_miss_tokens": None}, Usage(prompt_tokens=2)),
        ({"prompt_cache_miss_tokens": 3}, None),
        ({"prompt_tokens": 1, "prompt_tokens_details": [6]}, Usage(prompt_tokens=1)),
        (
            {"prompt_tokens_details": "x", "input_tokens_details": {"cached_tokens": 6}},
            Usage(cached_tokens=6),
        ),
        ({"completion_tokens": None, "output_tokens": 2}, Usage(completion_tokens=2)),
        ({}, None),
        ({"total_tokens": 7}, None),
        (None, None),
        ([1], None),
        ("7", None),
        (7, None),
    ],
)
def test_synonyms(raw, usage):
    assert _usage.normalised(raw) == usage


@pytest.mark.parametrize("value", [7, 7.0, "7", "07"])
def test_what_is_a_count(value):
    assert _usage.count(value) == 7


@pytest.mark.parametrize(
    "value",
    [None, True, False, -1, 7.5, -7.0, math.nan, math.inf, 1e300, 2**31, 2**80, "", "-7", "7.0", "9" * 5000,
     "\u0667", "\xb2", [], {}],
)  # fmt: skip
def test_what_is_none(value):
    assert _usage.count(value) is None


def test_the_largest_count():
    assert _usage.count(2**31 - 1) == 2**31 - 1


@pytest.mark.parametrize("raw", [None, [], "x", {"completion_tokens": True}])
def test_running_counts_that_are_none(raw):
    assert _usage.completion_tokens(raw) is None


def test_the_last_usage_that_says_anything():
    told = [{"completion_tokens": 1}, {"completion_tokens": 2}, {}, {"total_tokens": 9}, "x", None]
    assert _usage.last(told) == Usage(completion_tokens=2)
    assert _usage.last([]) is None


@pytest.mark.parametrize(
    ("counts", "numbers", "total", "running"),
    [
        ([1, 1, 2, 2], [0, 1, 0, 1], 4, [1, 2, 3, 4]),
        ([1, 3, 4, 2], [0, 1, 1, 0], 6, [1, 4, 5, 6]),
        ([1, 2, 3, 4], [0, 1, 0, 1], 4, [1, 2, 3, 4]),
        ([1, 1, 2, 2], [0, 1, 0, 1], 9, None),
        ([1, 1, 2, 2], [0, 1, 0, 1], None, None),
        ([1, None, 2], [0, 1, 0], 3, None),
        ([2, 1, 1], [0, 0, 1], 2, None),
    ],
)
def test_running_counts_of_choices_are_their_own_or_those_of_all(counts, numbers, total, running):
    assert _usage.running_of_choices(counts, numbers, total) == running


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("too busy", "too busy"),
        ({"message": "too busy"}, "too busy"),
        ({"message": "too busy", "code": 503}, "too busy (503)"),
        ({"message": "too busy", "code": ""}, "too busy"),
        ({"error": {"message": "too busy", "code": "overloaded"}}, "too busy (overloaded)"),
        ({"error": {"message": "too busy", "code": 503}, "code": 503}, "too busy (503)"),
        ({"error": "too busy", "code": 503}, "too busy (503)"),
        ({"detail": "Not Found"}, "Not Found"),
        (
            {"detail": [{"loc": ["body"], "msg": "field required"}]},
            '[{"loc":["body"],"msg":"field required"}]',
        ),
        ({"error": True, "message": "too busy"}, "too busy"),
        ({"message": "too busy", "code": {"a": 1}}, "too busy"),
        ({"message": "too busy", "code": True}, "too busy"),
        ({"error": " "}, ""),
        ({"reason": 2**80}, '{"reason":1208925819614629174706176}'),
        ({"reason": "x"}, '{"reason":"x"}'),
        (["x"], '["x"]'),
        ({"error": {"error": {"error": {"error": {"error": "deep"}}}}}, '{"error":"deep"}'),
    ],
)
def test_words_of_an_error(value, words):
    assert _error.words(value) == words


@pytest.mark.parametrize(
    ("data", "words"),
    [(b'{"error":"no"}', "no"), (b" <h1>502</h1> ", "<h1>502</h1>"), (b"\xff", "\ufffd"), (b"", "")],
)
def test_words_of_a_body(data, words):
    assert _error.of_text(data) == words


@pytest.mark.parametrize(
    ("fields", "has_choices", "words"),
    [
        ({"error": {"message": "no"}}, False, "no"),
        ({"error": "no"}, True, "no"),
        ({"error": None}, False, None),
        ({"error": ""}, False, None),
        ({"message": "no", "code": 400}, False, "no (400)"),
        ({"message": "fine"}, True, None),
        ({"detail": "no"}, False, "no"),
        ({"error": True, "message": "no"}, True, "no"),
        ({"error": " "}, True, "the server told of an error without a word"),
        ({}, False, None),
    ],
)
def test_errors_in_band(fields, has_choices, words):
    assert _error.in_band(_error.Fields(**fields), has_choices) == words
