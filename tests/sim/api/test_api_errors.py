"""Refusals: every request that is not answered says why, in the shape of the API."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.sim.api.told import CHAT, COMPLETIONS, OPTIONS, RESPONSES, asked, refused

from loadstone.sim.api.errors import ApiError
from loadstone.sim.api.spell import PATHS, ask, spell
from loadstone.sim.api.tokenize import detokenize, tokenize
from loadstone.sim.options import SimOptions
from loadstone.sim.vocabulary import Vocabulary


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "the body is not JSON: Input data was truncated"),
        (b"\xff", 400, "the body is not JSON: JSON is malformed: invalid character (byte 0)"),
        (b"[" * 100_000, 400, "Expected `object`, got `array`"),
        (b'{"model":"m"}', 400, "Object missing required field `messages`"),
        (b'{"model":"m","messages":[]}', 400, "Expected `array` of length >= 1 - at `$.messages`"),
        (b'{"model":"x","messages":[{"role":"user"}]}', 404, "The model `x` does not exist."),
        (b'{"messages":[{"role":"user","content":"\\ud800"}]}', 400, None),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(body: bytes, status: int, message: str | None) -> None:
    with pytest.raises(ApiError) as refusal:
        ask(CHAT, body, OPTIONS)
    error = json.loads(refusal.value.body())["error"]
    assert (refusal.value.status, error["code"]) == (status, status)
    assert message in (None, error["message"])


@pytest.mark.parametrize(
    ("path", "call", "message"),
    [
        (CHAT, {"max_tokens": 2, "min_tokens": 3}, "min_tokens = 3 is above max_tokens = 2"),
        (CHAT, {"max_tokens": 0}, "Expected `int` >= 1 - at `$.max_tokens`"),
        (CHAT, {"n": 129}, "Expected `int` <= 128 - at `$.n`"),
        (CHAT, {"n": 0}, "Expected `int` >= 1 - at `$.n`"),
        (CHAT, {"stop": ""}, "Expected `str` of length >= 1 - at `$.stop`"),
        (CHAT, {"stop": ["a", ""]}, "Expected `str` of length >= 1 - at `$.stop[1]`"),
        (CHAT, {"top_logprobs": 2}, "when using `top_logprobs`, `logprobs` must be set to true."),
        (CHAT, {"logprobs": True, "top_logprobs": 21}, "Expected `int` <= 20 - at `$.top_logprobs`"),
        (CHAT, {"best_of": 2}, "best_of = 2: this server does not support it; leave it out"),
        (CHAT, {"echo": True}, "echo = true: this server does not support it; leave it out"),
        (CHAT, {"use_beam_search": True}, "use_beam_search = true: this server does not support it; leave it out"),
        (CHAT, {"prompt_logprobs": 1}, "prompt_logprobs = 1: this server does not support it; leave it out"),
        (
            CHAT, {"response_format": {"type": "json_object"}},
            'response_format = {"type":"json_object"}: this server does not support it; leave it out',
        ),
        (CHAT, {"tool_choice": "required"}, "tool_choice = required: there are no tools; give some"),
        (COMPLETIONS, {"echo": True}, "echo = true: this server does not support it; leave it out"),
        (COMPLETIONS, {"suffix": "x" * 99}, f'suffix = "{"x" * 59}...: this server does not support it; leave it out'),
        (COMPLETIONS, {"logprobs": 21}, "Expected `int` <= 20 - at `$.logprobs`"),
        (COMPLETIONS, {"prompt": [-1]}, "Expected `int` >= 0 - at `$.prompt[0]`"),
        (RESPONSES, {"n": 2}, "n = 2: this server does not support it; leave it out"),
        (RESPONSES, {"background": True}, "background = true: this server does not support it; leave it out"),
        (RESPONSES, {"tools": [{"type": "web_search"}]}, 'tools = {"type":"web_search"}: this server does not support it; leave it out'),
        (RESPONSES, {"tools": [{"type": "function"}]}, "tools: Object missing required field `name`"),
        (
            RESPONSES, {"previous_response_id": "resp_1"},
            "previous_response_id: this server stores no responses; send the whole conversation as input",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused(path: str, call: dict[str, Any], message: str) -> None:
    assert refused(path, **call) == {
        **refused(path, **call),
        "message": message,
        "type": "BadRequestError",
        "code": 400,
    }


def test_a_prompt_must_leave_room_for_an_answer_in_vllms_words() -> None:
    short = SimOptions(model="m", max_model_len=10)
    assert refused(CHAT, short, messages=[{"role": "user", "content": "a " * 6}])["message"] == (
        "This model's maximum context length is 10 tokens. However, your request has 10 input tokens. Please reduce the"
        " length of the input messages."
    )
    assert refused(CHAT, short, max_tokens=5) == {
        "message": "'max_tokens' or 'max_completion_tokens' is too large: 5. This model's maximum context length is 10"
        " tokens and your request has 6 input tokens (5 > 10 - 6).",
        "type": "BadRequestError",
        "param": "max_tokens",
        "code": 400,
    }
    assert asked(CHAT, short, max_tokens=4).output_tokens == 4
    assert asked(CHAT, short).output_tokens == 4


def test_priorities_are_refused_where_nobody_looks_at_them() -> None:
    assert refused(priority=1)["message"] == (
        "Got priority 1 but Priority scheduling is not enabled: start the server with --scheduling-policy priority"
    )
    assert asked(priority=0).priority == 0
    assert asked(CHAT, SimOptions(model="m", scheduling_policy="priority"), priority=-5).priority == -5


_NAMES = [
    "model", "messages", "prompt", "input", "query", "documents", "text_1", "text_2", "tokens", "stream", "n", "stop", "role",
    "content", "tools", "tool_choice", "function", "name", "parameters", "properties", "type", "max_tokens", "min_tokens",
    "max_output_tokens", "logprobs", "top_logprobs", "seed", "priority", "encoding_format", "dimensions", "top_n",
    "stream_options", "include_usage", "response_format", "ignore_eos", "text", "tool_calls", "arguments", "instructions",
]  # fmt: skip
_WORDS = ["m", "user", "hello there", "function", "required", "auto", "none", "string", "base64", "text", ""]
_LEAVES = (
    st.none()
    | st.booleans()
    | st.sampled_from(_WORDS)
    | st.integers(-2, 300)
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False)
)
_JSON = st.recursive(
    _LEAVES | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=5),
    max_leaves=12,
)
_CALLS = st.dictionaries(st.sampled_from(_NAMES), _JSON, max_size=8) | st.fixed_dictionaries(
    {
        "messages": st.just([{"role": "user", "content": "hi"}]) | _JSON,
        "prompt": st.just("hi") | st.just([1, 2]) | _JSON,
        "input": st.just("hi") | _JSON,
        "query": st.just("q"),
        "documents": st.just(["d"]) | _JSON,
        "text_1": st.just("q"),
        "text_2": _JSON,
        "tokens": st.just([1]) | _JSON,
    },
    optional=dict.fromkeys(
        (
            "stop",
            "n",
            "tools",
            "tool_choice",
            "max_tokens",
            "max_output_tokens",
            "seed",
            "logprobs",
            "stream",
            "dimensions",
        ),
        _JSON,
    ),
)


@given(
    st.sampled_from(sorted(PATHS)),
    _CALLS.map(lambda call: json.dumps(call).encode()) | st.binary(max_size=40),
)
@example(
    CHAT,
    b'{"messages":[{"role":"user"}],"tools":[{"function":{"name":"f","parameters":{"properties":[]}}}],"tool_choice":"required"}',
)
@example(RESPONSES, b'{"input":"a","tool_choice":{"type":"function"}}')
@example(CHAT, b'{"messages":[{"role":"user"}],"seed":-5}')
def test_any_body_is_answered_or_refused(path: str, body: bytes) -> None:
    options = SimOptions(model="m", default_max_tokens=8, embedding_dimensions=8)
    try:
        found = ask(path, body, options)
    except ApiError as error:
        assert 400 <= error.status < 500
        assert json.loads(error.body())["error"]["message"]
        return
    if found.output_tokens < 300:
        assert isinstance(json.loads(spell(found, 1, 7).whole()), dict)
    assert all(isinstance(key, int) for keys in map(list, found.keys()[:3]) for key in keys[:3])


@given(_CALLS)
def test_any_body_is_tokenized_or_refused(call: dict[str, Any]) -> None:
    for act in (tokenize, detokenize):
        try:
            assert isinstance(json.loads(act(json.dumps(call).encode(), OPTIONS, Vocabulary())), dict)
        except ApiError as error:
            assert 400 <= error.status < 500


def test_a_refusal_is_json_whatever_it_quotes() -> None:
    body = msgspec.json.encode({"model": 'a"\n`', "messages": [{"role": "user"}]})
    with pytest.raises(ApiError) as refusal:
        ask(CHAT, body, OPTIONS)
    assert json.loads(refusal.value.body())["error"] == {
        "message": 'The model `a"\n`` does not exist.', "type": "NotFoundError", "param": "model", "code": 404,
    }  # fmt: skip
