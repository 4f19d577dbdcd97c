"""Whatever comes back, there is no exception and exactly one outcome, the same on the fast and on the exact way.

The statements that every response has to hold are in `judged`.
"""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone import registry
from loadstone.recording import WireEnd
from loadstone.wire.sse import Parser

CHAT, COMPLETIONS = registry.load("endpoints", "chat"), registry.load("endpoints", "completions")
ENDS = st.sampled_from(list(WireEnd))
ENDPOINTS = st.sampled_from([CHAT, COMPLETIONS])
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
MEDIA = [b"text/event-stream", b"application/json", b"text/html; charset=x", b"", b"\xff"]

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 5),
    st.sampled_from([2**31, 2**63, 2**80, -(2**70)]),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from(
        ["", "a", "stop", "length", "tool_calls", "abort", "error", "\u202e\x1b[2J", "7", "\U0001f600"]
    ),
)
NAMES = st.sampled_from(
    ["choices", "usage", "error", "message", "code", "detail", "index", "delta", "text", "content", "finish_reason",
     "reasoning", "reasoning_content", "tool_calls", "function_call", "function", "name", "arguments", "refusal",
     "prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens", "object", "x"]
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
MESSAGES = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "content": st.sampled_from([None, "", "a", "b"]),
        "reasoning": st.sampled_from([None, "", "h"]),
        "reasoning_content": st.sampled_from([None, "", "h"]),
        "refusal": st.sampled_from([None, "r"]),
        "tool_calls": st.none()
        | st.lists(
            st.none()
            | st.fixed_dictionaries(
                {}, optional={"function": st.none() | st.just({"name": "f", "arguments": {"a": 1}})}
            ),
            max_size=2,
        ),
    },
)
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([None, 0, 0, 1, 2, 32_767]),
        "delta": MESSAGES,
        "message": MESSAGES,
        "text": st.sampled_from([None, "", "a"]),
        "finish_reason": st.sampled_from([None, "", "stop", "length", "abort"]),
    },
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.none() | st.lists(CHOICES, max_size=3) | ANYTHING,
        "usage": st.fixed_dictionaries({"completion_tokens": st.integers(0, 4)}) | ANYTHING,
        "error": st.none() | ANYTHING,
        "message": st.none() | SCALARS,
    },
)


def framed(body, status=200, media=MEDIA[0], more=b""):
    return b"HTTP/1.1 %d X\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s" % (
        status, media, more, len(body), body,
    )  # fmt: skip


@settings(max_examples=300)
@given(ENDPOINTS, st.lists(EVENTS, max_size=6), st.booleans(), ENDS)
def test_streams_of_events_that_nearly_make_sense(judged, endpoint, events, done, end):
    body = b"".join(b"data: %s\n\n" % msgspec.json.encode(event) for event in events)
    judged([framed(body + b"data: [DONE]\n\n" * done)], endpoint, end)


@settings(max_examples=200)
@given(
    ENDPOINTS,
    EVENTS | ANYTHING,
    st.sampled_from([200, 201, 206, 302, 400, 429, 503]),
    st.sampled_from(MEDIA),
    ENDS,
)
def test_documents_that_nearly_make_sense(judged, endpoint, document, status, media, end):
    judged([framed(msgspec.json.encode(document), status, media)], endpoint, end)


@settings(max_examples=200)
@given(ENDPOINTS, st.sampled_from(MEDIA), st.lists(st.binary(max_size=30), max_size=6), ENDS)
def test_bodies_of_any_bytes(judged, endpoint, media, pieces, end):
    body = b"".join(pieces)
    judged([framed(body, media=media)[: -len(body) or None], *pieces], endpoint, end)
    judged([framed(b"data: " + body + b"\n\ndata: {" + body, media=media)], endpoint, end)


@settings(max_examples=200)
@given(
    st.lists(st.binary(max_size=30), max_size=6),
    st.sampled_from([b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n", HEAD]),
    ENDS,
)
def test_reads_of_any_bytes(judged, reads, begin, end):
    judged([begin, *reads], CHAT, end)


ODD = [
    b"\r\n", b"\n", b"\r", b"\0", b"{", b"}", b"[", b"]", b'"', b",", b":", b"data:", b"data: ", b"data: [DONE]\n\n",
    b"0\r\n\r\n", b"ffffffffffffffffff\r\n", b"-1\r\n", b"\xff", b"\xef\xbb\xbf", b"NaN", b"Infinity", b"1e999",
    b"null", b"\\ud800", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 18446744073709551616\r\n",
    b"Content-Encoding: gzip\r\n", b"Retry-After: soon\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"event: error\n", b" ",
]  # fmt: skip


@settings(max_examples=600)
@given(st.data())
def test_good_responses_damaged_at_random(judged, responses, data):
    response = data.draw(st.sampled_from(responses))
    raw = data.draw(
        st.sampled_from([response.raw(), response.chunked(), response.head(b"\r\n") + response.body])
    )
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        stop = data.draw(st.sampled_from([start, start + 1, start + 20]))
        put = data.draw(st.sampled_from(ODD) | st.binary(max_size=3) | st.just(raw[stop : stop + 40]))
        raw = raw[:start] + put + raw[stop:]
    at = data.draw(st.integers(0, len(raw)))
    judged([raw[:at], raw[at:]], response.endpoint, data.draw(ENDS))


@pytest.mark.parametrize("endpoint", [CHAT, COMPLETIONS])
@pytest.mark.parametrize(
    "opening", [b"[", b'{"a":', b'{"error":', b'{"choices":[', b'{"usage":', b'{"usage":{"a":[']
)
@pytest.mark.parametrize("depth", [100, 900, 5_000, 200_000])
def test_nesting_without_end(judged, endpoint, opening, depth):
    opened = opening + b"[" * depth
    closing = b"".join(b"]" if byte == ord("[") else b"}" for byte in reversed(opened) if byte in b"[{")
    deep = opened + closing
    for body in (
        deep,
        b"data: " + deep + b"\n\n",
        b"event: error\ndata: " + deep + b"\n\n",
        b'data: {"choices":[]}\n\n' + deep,
    ):
        for status in (200, 500):
            judged([framed(body, status)], endpoint)


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from([b"data", b"event", b":", b" ", b"\n", b"\r", b"\r\n", b"x", b"\xef\xbb\xbf", b"\xe2\x82", b"\0"]) | st.binary(max_size=3), max_size=40),
)  # fmt: skip
def test_the_parser_takes_any_bytes_cut_anywhere(pieces):
    def parsed(parts):
        parser = Parser()
        return [*itertools.chain.from_iterable(map(parser.feed, parts)), *parser.close()]

    stream = b"".join(pieces)
    whole = parsed([stream])
    assert parsed(pieces) == whole
    assert parsed([stream[at : at + 1] for at in range(len(stream))]) == whole
    assert [event.whole for event in whole[:-1]] == [True] * len(whole[:-1])
