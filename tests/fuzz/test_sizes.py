"""Large responses: exact counts, work in proportion to the bytes, memory within a stated multiple of them.

Work is counted in bytes copied, memory by `tracemalloc`; no clock is asked.
"""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from loadstone import registry
from loadstone.read.decode import Reader
from loadstone.wire.http1 import frame
from loadstone.wire.inflate import inflate
from loadstone.wire.sse import Parser

CHAT = registry.load("endpoints", "chat")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
MB = 1 << 20
LONG = 5 * MB
EVENT = b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n'
ONE_LARGE = EVENT % (b"x" * LONG)
TINY = 100_000
MANY_TINY = (EVENT % b"x") * TINY
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


def pieces_of(stream, size):
    return [stream[at : at + size] for at in range(0, len(stream), size)]


def peak_bytes(work):
    """The most memory that `work` held at a time, and what it returned."""
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


class Line(bytearray):
    """A line in the making that counts the bytes put into it and taken out of it."""

    moved = 0

    def __iadd__(self, piece):
        type(self).moved += len(piece)
        return super().__iadd__(piece)

    def __bytes__(self):
        type(self).moved += len(self)
        return bytes(memoryview(self))


@pytest.mark.parametrize("size", [1, 100, 65_536, LONG * 2])
def test_a_line_in_pieces_is_moved_twice_at_most_whatever_their_size(size):
    stream = ONE_LARGE if size > 1 else EVENT % (b"x" * (LONG // 16))
    parser = Parser()
    parser._line = Line()
    Line.moved = 0
    events = [event for piece in pieces_of(stream, size) for event in parser.feed(piece)]
    assert [len(event.data) for event in events] == [len(stream) - len(b"data: \n\n")]
    assert Line.moved <= 2 * len(stream)


@pytest.mark.parametrize("size", [100, 65_536])
def test_one_large_event_in_pieces_takes_a_few_times_its_size(size):
    pieces = pieces_of(ONE_LARGE, size)
    parser = Parser()
    peak, events = peak_bytes(lambda: [event for piece in pieces for event in parser.feed(piece)])
    assert len(events) == 1
    assert peak < 4 * LONG


@pytest.mark.parametrize("framing", ["chunks", "length"])
@pytest.mark.parametrize("ending", [STOP + DONE, STOP])
def test_one_large_event_is_one_output(judged, framing, ending):
    body = ONE_LARGE + ending
    if framing == "length":
        reads = pieces_of(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body, 65_536)
    else:
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in pieces_of(body, 5_000))
        reads = pieces_of(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n", 65_536)
    peak, (name, answer) = peak_bytes(lambda: judged(reads, CHAT))
    assert (name, answer.reply.output, len(answer.reply.text[0])) == ("ok", [0], LONG)
    assert peak < 7 * len(body)


@pytest.mark.parametrize("size", [1_000, 65_536])
def test_many_tiny_events_are_as_many_outputs(judged, size):
    body = MANY_TINY + DONE
    reads = pieces_of(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body, size)
    name, answer = judged(reads, CHAT)
    assert (name, answer.reply.output, len(answer.reply.text)) == ("ok", [*range(TINY)], TINY)
    assert list(answer.ends) == [*range(answer.ends[0], len(MANY_TINY) + 1, answer.ends[0])]


@pytest.mark.parametrize("ending", [DONE, STOP], ids=["the fast way", "the exact way"])
def test_many_tiny_events_take_a_few_times_their_bytes(ending):
    response = frame([HEAD + b"\r\n" + MANY_TINY + ending])
    peak, answer = peak_bytes(lambda: Reader(CHAT, streaming=True)(response, True))
    assert len(answer.reply.output) == TINY
    assert peak < 4 * len(response.body)


@pytest.mark.parametrize(
    ("event", "multiple"),
    [
        (b"data:{}\n\n", 4),
        (b"data: {}\n\n", 5),
        (b'data:{"usage":{}}\n\n', 3),
        (b"data:5\n\n", 2),
        (b"data\n\n", 2),
        (b"event:error\ndata\n\n", 2),
        (b"data\n", 4),
        (b"{}\n", 8),
    ],
)
def test_what_brings_nothing_takes_little_beside_its_bytes(event, multiple):
    body = EVENT % b"x" + event * (MB // len(event)) + b"\n" + DONE
    response = frame([HEAD + b"\r\n" + body])
    peak, answer = peak_bytes(lambda: Reader(CHAT, streaming=True)(response, True))
    assert answer.reply.text == ["x"]
    assert peak < multiple * len(body)


def test_chunks_of_one_byte_take_little_beside_theirs():
    raw = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * MB + b"0\r\n\r\n"
    reads = pieces_of(raw, 4096)
    peak, response = peak_bytes(lambda: frame(reads))
    assert (len(response.body), response.complete) == (MB, True)
    assert peak < len(raw)
    assert [response.arrived[at] for at in (0, 1, 700, -1)] == [
        frame([raw[:end]]).arrived[0] for end in (4096, 2 * 4096, 701 * 4096, len(raw))
    ]


def test_many_tiny_events_of_as_many_choices_as_there_can_be(judged):
    event = b'data: {"choices":[{"index":%d,"delta":{"content":"x"}}]}\n\n'
    body = b"".join(event % (number % 32_768) for number in range(TINY)) + DONE
    name, answer = judged([HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body], CHAT)
    assert (name, answer.reply.choices, len(answer.reply.output)) == ("ok", 32_768, TINY)


def test_a_bomb_brings_no_more_than_the_limit():
    bomb = gzip.compress(bytes(64 * MB))
    assert len(bomb) < MB
    peak, found = peak_bytes(lambda: inflate(pieces_of(bomb, 1_000), "gzip", MB))
    assert (sum(map(len, found.pieces)), found.too_large) == (MB, True)
    assert peak < 3 * MB


@pytest.mark.parametrize("header", [b"X: %s\r\n" % (b"y" * (8 * MB)), b"X: y\r\n" * (2 * MB)])
def test_megabytes_of_headers_are_not_kept(header):
    reads = pieces_of(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n", 1_000)
    peak, response = peak_bytes(lambda: frame(reads))
    assert response.fault.startswith("a head or trailer of more than")
    assert peak < 2 * MB
