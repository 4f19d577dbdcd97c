"""What every endpoint has to hold, run over the registry: a new one is tested by being there."""

from __future__ import annotations

import pytest

from loadstone import registry
from loadstone.read.answer import understand
from loadstone.wire.http1 import Response, frame

ENDPOINTS = [registry.load("endpoints", name) for name in registry.names("endpoints")]
CASES = [
    pytest.param(endpoint, example, id=f"{endpoint.__name__.rpartition('.')[2]}: {example.name}")
    for endpoint in ENDPOINTS
    for example in endpoint.EXAMPLES
]


def read(endpoint, example, body, arrived):
    media = "text/event-stream" if example.ask.streaming else "application/json"
    response = Response(200, {"content-type": media}, body, arrived, complete=True)
    return understand(response, endpoint, streaming=example.ask.streaming, complete=True)


def whole_events(stream):
    """A stream cut after each of its events."""
    blank = b"\r\n\r\n" if b"\r" in stream else b"\n\n"
    return [event + blank for event in stream.split(blank)[:-1]]


def test_chat_and_completions_are_there():
    assert {"chat", "completions"} <= set(registry.names("endpoints"))


@pytest.mark.parametrize(("endpoint", "example"), CASES)
def test_the_request_is_the_one_of_the_example(endpoint, example):
    assert endpoint.body(example.turns, example.ask) == example.request


@pytest.mark.parametrize(("endpoint", "example"), CASES)
def test_the_response_means_what_the_example_says(endpoint, example):
    answer = read(endpoint, example, example.response, [len(example.response)])
    assert answer.fault is None
    assert answer.reply == example.reply


@pytest.mark.parametrize(("endpoint", "example"), CASES)
def test_split_at_every_byte_it_means_the_same(endpoint, example):
    media = b"text/event-stream" if example.ask.streaming else b"application/json"
    body = example.response
    raw = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (media, len(body), body)
    splits = [[raw[:cut], raw[cut:]] for cut in range(1, len(raw))]
    for reads in (*splits, [raw[at : at + 1] for at in range(len(raw))]):
        response = frame(reads)
        assert (
            understand(response, endpoint, streaming=example.ask.streaming, complete=True).reply
            == example.reply
        )
        assert response.arrived[-1] == len(body)


@pytest.mark.parametrize(("endpoint", "example"), CASES)
def test_output_events_end_where_they_end_in_the_stream(endpoint, example):
    answer = read(endpoint, example, example.response, [])
    assert bool(answer.ends) == example.ask.streaming
    for position in example.reply.output:
        end = answer.ends[position]
        assert example.response[:end].endswith((b"\n\n", b"\n\r"))


@pytest.mark.parametrize(("endpoint", "example"), [case for case in CASES if case.values[1].ask.streaming])
def test_begun_is_true_first_with_the_first_output(endpoint, example):
    pieces = whole_events(example.response)
    begun = [index for index, piece in enumerate(pieces) if endpoint.begun(piece)]
    first = read(endpoint, example, example.response, []).reply.output[:1]
    ends = read(endpoint, example, example.response, []).ends
    lengths = [sum(map(len, pieces[: index + 1])) for index in begun[:1]]
    assert [length - ends[position] in (0, 1) for length, position in zip(lengths, first, strict=True)] == [
        True for _ in first
    ]


@pytest.mark.parametrize(("endpoint", "example"), [case for case in CASES if case.values[1].ask.streaming])
def test_ended_is_true_for_the_end_mark_alone(endpoint, example):
    pieces = whole_events(example.response)
    assert [endpoint.ended(piece) for piece in pieces[:-1]] == [False] * (len(pieces) - 1)
    assert endpoint.ended(pieces[-1]) is example.reply.ended
    assert endpoint.ended(example.response) is example.reply.ended


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_the_facts_of_the_module(endpoint):
    assert endpoint.SUMMARY
    assert endpoint.PATH.startswith("/")
    assert len({example.name for example in endpoint.EXAMPLES}) == len(endpoint.EXAMPLES) > 0
    assert any(example.ask.streaming for example in endpoint.EXAMPLES) is endpoint.STREAMS
    assert (
        any(turn.token_ids for example in endpoint.EXAMPLES for turn in example.turns) is endpoint.TOKEN_IDS
    )
