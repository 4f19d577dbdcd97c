"""What a worker records of what a server does, in both of its forms (`portable` runs every test twice)."""

from __future__ import annotations

import re
import socket
import time
from itertools import pairwise

import pytest

from loadstone import clock
from loadstone.board import Field
from loadstone.endpoints import chat
from loadstone.load import worker
from loadstone.load.job import StopOrder
from loadstone.plan.store import REST_NS
from loadstone.recording import WireEnd

MS = 1_000_000
pytestmark = pytest.mark.timeout(10)

COMPLETE, CLOSED, RESET = WireEnd.COMPLETE, WireEnd.CLOSED, WireEnd.RESET
PROTOCOL, REFUSED, CLIENT, CUT = WireEnd.PROTOCOL, WireEnd.REFUSED, WireEnd.CLIENT, WireEnd.CUT

JSON = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(autouse=True)
def _form(fly, portable):
    fly.portable = portable


@pytest.fixture
def short_linger(monkeypatch):
    monkeypatch.setattr(worker, "LINGER_NS", 30 * MS)


def answering(peer):
    peer.serve()


# ---- plain answers ----------------------------------------------------------------------------------


def test_requests_of_a_closed_loop_use_one_connection(fly):
    flew = fly(answering, requests=20)
    assert flew.ends == [COMPLETE] * 20
    assert flew.server.connections == 1
    assert [flown.facts.request for flown in flew.flights] == list(range(20))
    assert [flown.facts.connect_ns > 0 for flown in flew.flights] == [True] + [False] * 19
    first, *others = (flown.facts for flown in flew.flights)
    assert first.tcp_ns == first.connected_ns > first.connect_ns  # without TLS it stands with TCP
    assert {(facts.tcp_ns, facts.connected_ns) for facts in others} == {(0, 0)}
    assert all(
        later.due_ns == earlier.at_ns for earlier, later in zip(flew.flights, flew.flights[1:], strict=False)
    )


def test_what_is_sent_is_the_head_the_id_and_the_body(fly):
    flew = fly(answering, requests=2, body=b'{"a":1}')
    assert flew.server.requests[1].endswith(b"X-Request-ID: r-1\r\nContent-Length: 7\r\n\r\n" + b'{"a":1}')
    assert b"Authorization: Bearer key\r\n" in flew.server.requests[0]
    assert flew.flights[0].facts.body_bytes == 7


def test_nothing_on_disk_holds_the_key(fly):
    flew = fly(answering)
    written = [path.read_bytes() for path in flew.home.rglob("*") if path.is_file()]
    assert len(written) == 5
    assert not any(b"Bearer" in data for data in written)


def test_bytes_are_kept_as_they_came_and_dated(fly):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD, peer.TOKEN, peer.TOKEN, peer.DONE, peer.LAST)

    (flown,) = fly(script).flights
    assert flown.data == b"".join((b"", *[read.data for read in flown.reads]))
    assert flown.data.endswith(b"0\r\n\r\n")
    assert flown.facts.status == 200
    first = next(read for read in flown.reads if b"content" in read.data)
    assert flown.facts.begun_ns == first.at_ns


@pytest.fixture
def stamping():
    """The kernel dates packets from a moment after the first socket asked for it until the last one is gone."""
    if not clock.kernel_stamps_available():
        pytest.skip("no kernel stamps")
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as near:
        near.setsockopt(socket.SOL_SOCKET, clock.SO_TIMESTAMPNS, 1)
        near.connect(listener.getsockname())
        with listener.accept()[0] as far:
            for _ in range(200):
                far.send(b"x")
                if near.recvmsg(1, clock.ANCILLARY_BYTES)[1]:
                    break
                time.sleep(0.01)
            yield


@pytest.mark.usefixtures("stamping")
def test_the_kernel_dates_what_it_received(fly, portable):
    flew = fly(answering, requests=3)
    stamped = [read.stamped for flown in flew.flights for read in flown.reads]
    assert stamped == [not portable] * len(stamped) != []


def test_an_answer_without_streaming(fly):
    flew = fly(lambda peer: peer.serve(JSON), requests=3, streaming=False)
    assert flew.ends == [COMPLETE] * 3
    assert flew.server.connections == 1
    assert [flown.data for flown in flew.flights] == [JSON] * 3


def begun_ns(flown):
    """When the read came that brought the first letter of content."""
    seen = b""
    for read in flown.reads:
        seen += read.data
        if b'"content":"a' in seen:
            return read.at_ns
    return 0


@pytest.mark.parametrize("size", [29, 58, 64])
def test_a_stream_may_be_cut_into_reads_anywhere(fly, size):
    def script(peer):
        data = peer.HEAD + peer.TOKEN * 6 + peer.DONE + peer.LAST
        while True:
            peer.request()
            peer.send(*(data[at : at + size] for at in range(0, len(data), size)))

    flew = fly(script, requests=2)
    assert flew.ends == [COMPLETE] * 2
    assert flew.server.connections == 1
    assert [flown.facts.begun_ns for flown in flew.flights] == [begun_ns(flown) for flown in flew.flights]
    assert [flown.data.count(b'"a"') for flown in flew.flights] == [6, 6]


def test_a_long_stream_of_single_tokens(fly):
    def script(peer):
        while True:
            peer.request()
            peer.send(peer.HEAD)
            for _ in range(150):
                peer.send(peer.TOKEN)
                time.sleep(0.0003)
            peer.send(peer.DONE + peer.LAST)

    flew = fly(script, requests=2)
    assert flew.ends == [COMPLETE] * 2
    assert flew.server.connections == 1
    assert [flown.data.count(b'"a"') for flown in flew.flights] == [150, 150]


def test_many_at_once(fly):
    flew = fly(answering, requests=400, slots=90)
    assert flew.ends == [COMPLETE] * 400
    assert flew.server.connections == 90
    assert flew.fields[Field.BYTES] == sum(path.stat().st_size for path in flew.home.rglob("*.dat"))


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_ipv6(fly):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback")
    assert fly(answering, requests=2, family=socket.AF_INET6).ends == [COMPLETE] * 2


def test_a_head_larger_than_any_buffer(fly):
    def script(peer):
        peer.request()
        peer.send(peer.ANSWER.replace(b"\r\n", b"\r\nX-Long: " + b"x" * 200_000 + b"\r\n", 1))

    (flown,) = fly(script).flights
    assert (flown.end, flown.facts.status) == (COMPLETE, 200)
    assert len(flown.data) > 200_000


def test_interim_answers_are_not_the_answer(fly):
    def script(peer):
        peer.request()
        peer.send(
            b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", peer.ANSWER
        )

    (flown,) = fly(script).flights
    assert (flown.end, flown.facts.status) == (COMPLETE, 200)


def test_an_error_answer_is_an_answer(fly):
    def script(peer):
        peer.request()
        peer.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")

    (flown,) = fly(script).flights
    assert (flown.end, flown.facts.status, flown.facts.begun_ns) == (COMPLETE, 503, 0)


# ---- how answers end ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [0, 9, 20])
def test_a_head_without_a_length_is_ended_by_the_close(fly, cut):
    head, body = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", b"data: {}\n\n"

    def script(peer):
        peer.request()
        peer.send(*filter(None, (head[:cut], head[cut:])), body)

    assert fly(script).ends == [COMPLETE]


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 100 Continue\r\n\r\n"])
@pytest.mark.parametrize("told", [b"Content-Length: 20", b"Transfer-Encoding: chunked"])
def test_a_close_before_the_length_that_was_told(fly, before, told):
    def script(peer):
        peer.request()
        peer.send(before + b"HTTP/1.1 200 OK\r\n" + told + b"\r\n\r\n5\r\nhello\r\n")

    assert fly(script).ends == [CLOSED]


@pytest.mark.parametrize("goodbye", ["close", "reset"])
def test_a_stream_that_breaks_off_after_some_tokens(fly, goodbye):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD, *[peer.TOKEN] * 5)
        time.sleep(0.02)
        getattr(peer, goodbye)()

    (flown,) = fly(script).flights
    assert (flown.end, "reset" in flown.words) == {"close": (CLOSED, False), "reset": (RESET, True)}[goodbye]
    assert flown.data.count(b'"a"') == 5


def test_a_close_in_the_middle_of_the_head(fly):
    def script(peer):
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-")

    assert fly(script).ends == [CLOSED]


def test_the_end_mark_ends_a_stream_whose_message_does_not(fly):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD + peer.TOKEN + peer.DONE)

    assert fly(script).ends == [COMPLETE]


@pytest.mark.parametrize("size", [1, 7, 64])
def test_the_end_mark_is_seen_however_it_is_cut(fly, short_linger, size):
    stream = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n'
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]

    def script(peer):
        peer.request()
        peer.send(peer.HEAD + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces))
        peer.hold()

    assert fly(script).ends == [COMPLETE]


@pytest.mark.usefixtures("short_linger")
def test_a_connection_left_open_after_the_end_mark_is_not_waited_for_long(fly):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD + peer.TOKEN + peer.DONE)
        peer.hold()

    flew = fly(script, requests=2)
    assert flew.ends == [COMPLETE] * 2
    assert flew.server.connections == 2


def test_a_reset_after_the_end_mark(fly):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD + peer.TOKEN + peer.DONE)
        time.sleep(0.02)
        peer.reset()

    assert fly(script).ends == [COMPLETE]


def test_a_cut_after_the_end_mark(fly):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD + peer.TOKEN + peer.DONE)
        time.sleep(0.02)
        now = time.monotonic_ns()
        fly.worker.tell(StopOrder(stop_ns=now, cut_ns=now))
        peer.hold()

    assert fly(script).ends == [COMPLETE]


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\x00\x02\x02\x50",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a length\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
    ids=["ssh", "tls", "chunk", "upgrade"],
)  # fmt: skip
def test_what_is_not_http(fly, said):
    def script(peer):
        peer.request()
        peer.send(said)
        peer.hold()

    (flown,) = fly(script).flights
    assert flown.end == PROTOCOL
    assert flown.data == said
    assert flown.words


def test_bytes_after_a_whole_answer_cost_the_connection_only(fly):
    def script(peer):
        peer.request()
        peer.send(peer.ANSWER + b"rubbish")
        peer.hold()

    flew = fly(script, requests=2)
    assert flew.ends == [COMPLETE] * 2
    assert flew.server.connections == 2


# ---- connections ------------------------------------------------------------------------------------


def test_a_refused_connection(fly):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    flew = fly(answering, address=address, requests=3)
    assert flew.ends == [REFUSED] * 3
    assert [flown.sends for flown in flew.flights] == [[]] * 3
    assert all("ECONNREFUSED" in flown.words for flown in flew.flights)


def test_a_slot_rests_after_a_request_that_nobody_answered(fly):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    flew = fly(answering, address=address, requests=3)
    assert [later.facts.due_ns - earlier.at_ns for earlier, later in pairwise(flew.flights)] == [REST_NS] * 2


def test_every_connection_refused_at_once(fly):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    assert fly(answering, address=address, requests=300, slots=200).ends == [REFUSED] * 300


def test_a_server_too_busy_to_accept(fly):
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        flew = fly(answering, address=listener.getsockname(), connect_timeout_ns=50 * MS)
    (flown,) = flew.flights
    assert (flown.end, flown.facts.connected_ns, flown.sends) == (WireEnd.TIMEOUT_CONNECT, 0, [])
    assert flown.words == "no connection within 0.05 s"


def test_a_defect_of_a_predicate_is_our_own_fault(fly, monkeypatch):
    monkeypatch.setattr(chat, "ended", lambda data: data.no_such_thing)
    assert fly(answering).ends == [CLIENT]


@pytest.mark.parametrize("goodbye", ["close", "reset"])
def test_a_kept_alive_connection_that_dies_with_the_request_is_tried_once_more(fly, goodbye):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER)
        peer.request()
        getattr(peer, goodbye)()

    flew = fly(first, answering, requests=3)
    assert flew.ends == [COMPLETE] * 3
    assert [flown.facts.retries for flown in flew.flights] == [0, 1, 0]
    assert [flown.resent for flown in flew.flights] == [0, 1, 0]
    ids = [re.search(rb"r-\d", request)[0] for request in flew.server.requests]
    assert ids == [b"r-0", b"r-1", b"r-1", b"r-2"]


def test_the_second_try_is_the_last(fly):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER)
        peer.request()

    flew = fly(first, lambda peer: peer.request(), answering, requests=3)
    assert flew.ends == [COMPLETE, CLOSED, COMPLETE]
    assert [flown.facts.retries for flown in flew.flights] == [0, 1, 0]


def test_a_fresh_connection_is_not_tried_again(fly):
    flew = fly(lambda peer: peer.request(), answering, requests=2)
    assert flew.ends == [CLOSED, COMPLETE]
    assert [flown.facts.retries for flown in flew.flights] == [0, 0]


def test_nothing_is_sent_twice_once_a_byte_has_come_back(fly):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER)
        peer.request()
        peer.send(b"H")

    flew = fly(first, answering, requests=2)
    assert flew.ends == [COMPLETE, CLOSED]
    assert flew.flights[1].facts.retries == 0


@pytest.mark.parametrize("goodbye", [b"", b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"])
def test_a_connection_that_dies_while_idle_is_simply_replaced(fly, goodbye):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER)
        time.sleep(0.01)
        peer.send(goodbye)

    due = [0, 300 * MS]
    flew = fly(first, answering, due=due, slots=None)
    assert flew.ends == [COMPLETE] * 2
    assert [flown.facts.retries for flown in flew.flights] == [0, 0]
    assert flew.server.connections == 2


def test_connection_close_is_heeded(fly):
    flew = fly(
        lambda peer: (
            peer.request(),
            peer.send(peer.ANSWER.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)),
        ),
        requests=3,
    )
    assert flew.ends == [COMPLETE] * 3
    assert [flown.facts.retries for flown in flew.flights] == [0, 0, 0]
    assert flew.server.connections == 3


# ---- an answer before the request is complete ----------------------------------------------------------

LARGE = b"x" * (8 << 20)
TOO_LARGE = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("then", ["hold", "reset", "close"])
def test_an_answer_that_does_not_wait_for_the_request(fly, then):
    def script(peer):
        peer.head()
        peer.send(TOO_LARGE)
        if then == "hold":
            time.sleep(0.05)
        else:
            getattr(peer, then)()

    (flown,) = fly(script, body=LARGE).flights
    assert (flown.end, flown.facts.status, flown.facts.written_ns) == (COMPLETE, 413, 0)


def test_a_large_request_goes_out_in_pieces(fly):
    flew = fly(answering, requests=2, body=LARGE)
    assert flew.ends == [COMPLETE] * 2
    assert flew.server.connections == 1
    assert [request.endswith(LARGE) for request in flew.server.requests] == [True, True]


# ---- time limits ---------------------------------------------------------------------------------------


def silent(peer):
    peer.request()
    peer.hold()


def only_a_role(peer):
    peer.request()
    peer.send(peer.HEAD + peer.TOKEN.replace(b'"a"', b'"" '))
    peer.hold()


def stuck(peer):
    peer.request()
    peer.send(peer.HEAD + peer.TOKEN)
    peer.hold()


@pytest.mark.parametrize("script", [silent, only_a_role])
def test_the_first_token_has_a_limit(fly, script):
    (flown,) = fly(script, first_token_timeout_ns=50 * MS).flights
    assert (flown.end, flown.facts.begun_ns) == (WireEnd.TIMEOUT_FIRST_TOKEN, 0)
    assert flown.at_ns - flown.facts.sent_ns >= 50 * MS


def test_the_first_token_takes_its_limit_off(fly):
    (flown,) = fly(stuck, first_token_timeout_ns=50 * MS, timeout_ns=150 * MS).flights
    assert flown.end == WireEnd.TIMEOUT_TOTAL
    assert flown.facts.begun_ns > 0
    assert flown.at_ns - flown.facts.sent_ns >= 140 * MS


def test_a_flight_that_timed_out_frees_its_slot(fly):
    flew = fly(stuck, answering, requests=2, timeout_ns=50 * MS)
    assert flew.ends == [WireEnd.TIMEOUT_TOTAL, COMPLETE]


def test_what_is_under_way_at_the_end_of_the_grace_is_cut(fly):
    order = fly.phase(3, slots=2, duration_ns=200 * MS, grace_ns=50 * MS)
    flew = fly(stuck, requests=3, orders=[order])
    assert flew.ends == [CUT, CUT]
    start_ns = flew.flights[0].due_ns
    assert all(flown.at_ns - start_ns >= order.duration_ns + order.grace_ns for flown in flew.flights)


# ---- orders --------------------------------------------------------------------------------------------


def test_after_a_stop_nothing_is_sent_and_answers_are_awaited(fly):
    def script(peer):
        peer.request()
        now = time.monotonic_ns()
        fly.worker.tell(StopOrder(stop_ns=now, cut_ns=now + 10_000 * MS))
        time.sleep(0.05)
        peer.send(peer.ANSWER)

    flew = fly(script, requests=5)
    assert flew.ends == [COMPLETE]


def test_a_stop_before_the_next_due_time_does_not_wait_for_the_cut(fly):
    def script(peer):
        peer.request()
        peer.send(peer.ANSWER)
        now = time.monotonic_ns()
        fly.worker.tell(StopOrder(stop_ns=now, cut_ns=now + 20_000 * MS))
        peer.hold()

    flew = fly(script, due=[0, 60_000 * MS], slots=None)
    assert flew.ends == [COMPLETE]
    assert flew.done[0].wall_ns < 10_000 * MS


def test_a_worker_without_slots_is_done_when_the_others_have_taken_all(fly):
    flew = fly(answering, requests=3, orders=[fly.phase(0, slots=0)])
    assert flew.ends == []
    assert flew.done[0].flights == 0


def test_an_open_loop_sends_at_its_due_times(fly):
    due = [0, 20 * MS, 40 * MS, 40 * MS]
    flew = fly(answering, due=due, slots=None)
    start_ns = flew.flights[0].due_ns
    assert [flown.due_ns - start_ns for flown in flew.flights] == due
    assert flew.ends == [COMPLETE] * 4


def test_a_capped_open_loop_counts_the_wait_from_the_due_time(fly):
    def script(peer):
        while True:
            peer.request()
            time.sleep(0.02)
            peer.send(peer.ANSWER)

    flew = fly(script, due=[0, MS, 2 * MS], slots=1)
    start_ns = flew.flights[0].due_ns
    assert [flown.due_ns - start_ns for flown in flew.flights] == [0, MS, 2 * MS]
    assert all(
        earlier.at_ns <= later.facts.sent_ns
        for earlier, later in zip(flew.flights, flew.flights[1:], strict=False)
    )


def test_phases_follow_each_other_on_the_same_connections(fly):
    orders = [fly.phase(2), fly.phase(3, first_row=2, number=1)]
    flew = fly(answering, requests=5, orders=orders)
    assert [(word.number, word.flights) for word in flew.done] == [(0, 2), (1, 3)]
    assert flew.ends == [COMPLETE] * 5
    assert flew.server.connections == 1
