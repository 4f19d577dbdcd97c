from __future__ import annotations

import msgspec
import pytest

from loadstone.endpoints import Usage, _error, _usage


def normalised(raw):
    return _usage.normalised(msgspec.convert(raw, _usage.RawUsage))


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
        ({"prompt_tokens_details": {"cached_tokens": 6}}, Usage(cached_tokens=6)),
        ({"input_tokens_details": {"cached_tokens": 6}}, Usage(cached_tokens=6)),
        ({"cache_read_input_tokens": 6}, Usage(cached_tokens=6)),
        ({"prompt_cache_hit_tokens": 6}, Usage(cached_tokens=6)),
        ({"cachedContentTokenCount": 6}, Usage(cached_tokens=6)),
        ({"cacheReadInputTokens": 6}, Usage(cached_tokens=6)),
        ({"prompt_tokens": 1, "prompt_tokens_details": None}, Usage(prompt_tokens=1)),
        ({"completion_tokens": -1}, None),
        ({"completion_tokens": 2**80, "output_tokens": 2**31 - 1}, Usage(completion_tokens=2**31 - 1)),
        ({}, None),
        ({"total_tokens": 7}, None),
    ],
)
def test_synonyms(raw, usage):
    assert normalised(raw) == usage


def test_no_usage():
    assert _usage.normalised(None) is None


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
        ({}, False, None),
    ],
)
def test_errors_in_band(fields, has_choices, words):
    assert _error.in_band(_error.Fields(**fields), has_choices) == words
