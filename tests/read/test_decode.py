"""The fast way gives the answers of the exact one, or none."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.endpoints import chat, completions
from loadstone.read.answer import understand
from loadstone.read.decode import Reader
from loadstone.wire.http1 import Response

DONE = b"data: [DONE]\n\n"


def framed(body, media="text/event-stream", status=200):
    return Response(status, {"content-type": media}, body, [len(body)], complete=True)


def both(body, endpoint=chat):
    response = framed(body)
    exact = understand(response, endpoint, streaming=True, complete=True)
    return Reader(endpoint, streaming=True)(response, complete=True), exact


def plain(body, **more):
    return Reader(chat, streaming=True)._plain(framed(body, **more))


def event(value):
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def token(text):
    return event({"choices": [{"delta": {"content": text}}]})


def test_the_plain_form_goes_the_fast_way():
    body = token("a") + token("\n\ndata: {") + event({"usage": {"completion_tokens": 2}}) + DONE
    answer = plain(body)
    assert answer is not None
    assert answer == understand(framed(body), chat, streaming=True, complete=True)
    assert answer.reply.text == ["a", "\n\ndata: {"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        DONE,
        token("a"),
        token("a") + DONE[:-1],
        b": x\n\n" + token("a") + DONE,
        token("a") + b": x\n\n" + DONE,
        token("a") + b"\n" + DONE,
        token("a").replace(b"\n", b"\r\n") + DONE,
        token("a") + b"event: error\n" + token("b") + DONE,
        token("a") + b"data: 5\n\n" + DONE,
        token("a") + b"data: {}x\n\n" + DONE,
        b'data: {"choices":\n\ndata: []}\n\n' + DONE,
        b'data: {"a":{"b":1}\n\ndata: {"c":2}}\n\n' + DONE,
        b"data: {} {}\n\n" + DONE,
        b'data: {"a":[{}\n\ndata: {}]}\n\n' + DONE,
        token("a") + DONE + token("b") + DONE,
        token("a") + b'data: {"choices":7}\n\n' + DONE,
        b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n' + DONE,
    ],
)
def test_everything_else_goes_the_exact_way(body):
    assert plain(body) is None
    fast, exact = both(body)
    assert fast == exact


def test_the_head_has_to_be_that_of_a_stream():
    body = token("a") + DONE
    assert plain(body) is not None
    assert plain(body, media="text/plain") is None
    assert plain(body, status=500) is None


PIECES = st.sampled_from(
    [
        b"data: ", b"{", b"}", b"{}", b"\n\n", b"\n", b"\r\n", b"[", b"]", b",", b'"', b" ", b"[DONE]", b": c\n\n",
        b"event: error\n", token("x"), token("\u2028\n"), event({"error": "no"}), event({"choices": None}),
        event({"usage": {"completion_tokens": 1}, "choices": [{"delta": {"reasoning": "h"}}]}), b"\xff", b"\\",
        b'{"choices":[', b'{"message":"m"}',
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map(b"".join), st.booleans())
def test_both_ways_agree_on_anything(middle, closed):
    body = token("first") + middle + (b"\n\n" if closed else b"") + DONE
    fast, exact = both(body)
    assert fast == exact


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "choices": st.lists(
                    st.fixed_dictionaries(
                        {"text": st.one_of(st.none(), st.text(max_size=4))},
                        optional={"finish_reason": st.sampled_from([None, "stop", "length", "error"])},
                    ),
                    max_size=2,
                ),
                "usage": st.one_of(
                    st.none(), st.fixed_dictionaries({"completion_tokens": st.integers(0, 9)})
                ),
                "error": st.sampled_from([None, "no", {"message": "no", "code": 5}]),
                "other": st.text(max_size=6),
            },
        ),
        min_size=1,
        max_size=8,
    )
)
def test_both_ways_agree_on_streams(events):
    fast, exact = both(b"".join(map(event, events)) + DONE, completions)
    assert fast == exact
    assert Reader(completions, True)._plain(framed(b"".join(map(event, events)) + DONE)) is not None
