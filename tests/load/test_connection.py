"""The framing of answers: what a connection knows after each piece."""

from __future__ import annotations

import socket

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.endpoints import chat
from loadstone.load.connection import (
    LARGE_READ_BYTES,
    SMALL_READ_BYTES,
    TOKEN_READ_BYTES,
    Connection,
    Streaming,
)
from loadstone.load.flight import Flight
from loadstone.plan.store import Row

ROW = Row(0, -1, 0, 2, -1, -1, 0, 0, 0)
ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
TOKEN = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def sock():
    with socket.socket() as one:
        yield one


def flight():
    return Flight(1, ROW, 0, b"")


def connection(sock):
    return Connection(sock, flight(), None)


def streaming(sock):
    return Streaming(sock, flight(), None, chat.begun, chat.ended)


def feed(connection, *pieces):
    """As the loop does it: read number n is at n ns."""
    for number, piece in enumerate(pieces, 1):
        connection.read_ns = number
        if connection.flight.status < 200:
            connection.opening += piece
        connection.feed(piece)


def chunks(data, size):
    cut = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in cut)


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n", True),
    ],
)
def test_a_message_with_a_length(sock, head, keeps):
    one = connection(sock)
    feed(one, head, b"{")
    assert not one.complete
    feed(one, b"}")
    assert (one.complete, one.keeps_alive, one.flight.status) == (True, keeps, 200)


def test_a_new_flight_starts_afresh(sock):
    one = streaming(sock)
    feed(one, CHUNKED + b"5\r\ndata:\r\n0\r\n\r\n")
    one.renew(flight())
    assert (one.complete, one.reused, one.carry, one.opening, one.flight.status) == (False, True, b"", b"", 0)
    feed(one, CHUNKED + chunks(TOKEN, 100) + b"0\r\n\r\n")
    assert one.complete


def test_an_interim_answer_is_not_the_answer(sock):
    one = connection(sock)
    feed(one, b"HTTP/1.1 100 Continue\r\n\r\n")
    assert (one.complete, one.flight.status) == (False, 100)
    feed(one, b"HTTP/1.1 204 No Content\r\n\r\n")
    assert (one.complete, one.flight.status) == (True, 204)


LENGTHLESS = b"HTTP/1.1 200 OK\r\nServer: s\r\n\r\nabc"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n"


@pytest.mark.parametrize("interim", [b"", INTERIM])
@pytest.mark.parametrize(
    ("head", "closes"),
    [
        (LENGTHLESS, True),
        (b"HTTP/1.1 200 OK\r\ncontent-length : 9\r\n\r\nabc", False),
        (b"HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: chunked\r\n\r\n3\r\nabc\r\n", False),
        (b"HTTP/1.1 200 OK\r\nX-Content-Length: 9\r\n\r\nabc", True),
        (b"HTTP/1.1 200 OK\r\nServer: s", False),
    ],
)
def test_whether_the_close_ends_the_message(sock, interim, head, closes):
    for size in (1, 1_000):
        one = connection(sock)
        data = (interim + head).replace(b" :", b":")
        feed(one, *(data[at : at + size] for at in range(0, len(data), size)))
        assert one.ends_with_close() is closes


def test_the_first_output_is_dated_by_the_read_that_brought_it(sock):
    one = streaming(sock)
    feed(one, CHUNKED, chunks(ROLE, 100), chunks(TOKEN, 100), chunks(TOKEN, 100), chunks(DONE, 100))
    assert one.flight.begun_ns == 3
    assert one.flight.ended_mark


@given(first=st.integers(1, 80), size=st.integers(1, 80))
def test_however_a_stream_is_cut_its_marks_are_seen(sock, first, size):
    one = streaming(sock)
    data = ROLE + TOKEN + DONE
    feed(one, CHUNKED, chunks(data[:first], size) + chunks(data[first:], size))
    assert one.flight.ended_mark
    assert one.flight.begun_ns == 2


@given(size=st.integers(1, 200))
def test_a_mark_inside_the_text_is_not_the_end(sock, size):
    one = streaming(sock)
    text = TOKEN.replace(b'"a"', b'"say data: [DONE] and then"')
    quoted = TOKEN.replace(b'"a"', b'"[DONE]"')
    feed(one, CHUNKED, chunks(TOKEN + text + quoted, size))
    assert not one.flight.ended_mark


def test_an_empty_role_is_no_output(sock):
    one = streaming(sock)
    feed(one, CHUNKED, chunks(ROLE, 9))
    assert one.flight.begun_ns == 0


def test_what_is_carried_over_is_bounded(sock):
    one = streaming(sock)
    long = ROLE[:-2] + b" " * 300_000
    feed(one, CHUNKED, *(chunks(long[at : at + 4000], 4000) for at in range(0, len(long), 4000)))
    assert len(one.carry) <= 4096


@pytest.mark.parametrize("size", [100, 3_000])
def test_output_behind_a_long_beginning_of_its_line_is_seen(sock, size):
    one = streaming(sock)
    long = TOKEN.replace(b'{"choices"', b'{"prompt_token_ids":[%s0],"choices"' % (b"151644," * 10_000))
    pieces = [long[at : at + size] for at in range(0, len(long), size)]
    feed(one, CHUNKED, *(chunks(piece, size) for piece in pieces))
    begins = long.index(b'"content":"a')
    assert one.flight.begun_ns == 2 + (begins + len(b'"content":"')) // size


def test_the_framer_is_let_go_with_the_connection(sock):
    one = streaming(sock)
    one.release()
    assert (one.flight, one.parser) == (None, None)
    assert not hasattr(one, "feed")


def test_a_callback_of_a_released_flight_does_nothing(sock):
    one = streaming(sock)
    one.flight = None
    one.feed(CHUNKED + chunks(TOKEN, 100) + b"0\r\n\r\n")
    assert not one.complete


def test_what_is_not_http_is_refused(sock):
    with pytest.raises(httptools.HttpParserError):
        connection(sock).feed(b"SSH-2.0\r\n")


class Talk:
    """TLS in the middle of a connection: bytes come, and the protocol wants to say something."""

    ended = False

    def decrypt(self, received):
        return received.lower()

    def pending(self):
        return b"reply"


@pytest.mark.parametrize(("outgoing", "then", "sent"), [(b"", b"", b"reply"), (b"half", b"halfreply", b"")])
def test_what_tls_wants_to_say_never_cuts_a_record_that_is_half_sent(outgoing, then, sent):
    near, far = socket.socketpair()
    with near, far:
        far.setblocking(False)
        one = Connection(near, flight(), Talk())
        one.outgoing = outgoing
        far.send(b"DATA")
        assert one.recvmsg(100, 0)[0] == b"data"
        assert bytes(one.outgoing) == then
        if sent:
            assert far.recv(100) == sent
        else:
            with pytest.raises(BlockingIOError):
                far.recv(100)


def test_reads_get_small_once_an_answer_and_stay_wide_when_that_proved_too_small(sock):
    one = streaming(sock)
    assert one.want == SMALL_READ_BYTES
    feed(one, CHUNKED, chunks(TOKEN, len(TOKEN)))
    assert (one.under_way, one.want) == (True, TOKEN_READ_BYTES)
    one.widen()
    feed(one, chunks(TOKEN, len(TOKEN)), chunks(TOKEN, len(TOKEN)))
    assert (one.under_way, one.want) == (True, SMALL_READ_BYTES)
    one.widen()
    assert one.want == LARGE_READ_BYTES
    one.renew(flight())
    assert (one.under_way, one.want) == (False, SMALL_READ_BYTES)
