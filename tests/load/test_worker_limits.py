"""A worker's limits: pauses, sizes, descriptors, connections in the making; and what it gives up."""

from __future__ import annotations

import errno
import gzip
import socket

import msgspec
import pytest

from loadstone.load import connection, opening, sockets, worker
from loadstone.load.job import StopOrder, Trouble
from loadstone.load.tape import NoSpaceError
from loadstone.recording import WireEnd

MS = 1_000_000
pytestmark = pytest.mark.timeout(10)
COMPLETE, IDLE, LARGE, PROTOCOL = WireEnd.COMPLETE, WireEnd.TIMEOUT_IDLE, WireEnd.TOO_LARGE, WireEnd.PROTOCOL


@pytest.fixture(autouse=True)
def _form(fly, portable):
    fly.portable = portable


def answering(peer):
    peer.serve()


# ---- pauses -----------------------------------------------------------------------------------------


def test_a_pause_after_the_first_token_ends_the_request(fly):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD + peer.TOKEN)
        peer.hold()

    (flown,) = fly(script, idle_timeout_ns=60 * MS).flights
    assert flown.end == IDLE
    assert flown.at_ns - flown.reads[-1].at_ns > 60 * MS


def test_a_pause_before_the_first_token_is_another_limit(fly):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD)
        peer.hold()

    flew = fly(script, idle_timeout_ns=20 * MS, first_token_timeout_ns=80 * MS)
    assert flew.ends == [WireEnd.TIMEOUT_FIRST_TOKEN]


def test_a_pause_within_an_answer_that_is_not_streamed(fly):
    def script(peer):
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")
        peer.hold()

    assert fly(script, idle_timeout_ns=40 * MS, streaming=False).ends == [IDLE]


def test_an_answer_that_goes_on_has_no_pause(fly):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD, *[peer.TOKEN] * 40, peer.DONE + peer.LAST)

    assert fly(script, idle_timeout_ns=100 * MS).ends == [COMPLETE]


def test_the_pause_before_a_kept_alive_connection_is_used_again_does_not_count(fly):
    flew = fly(answering, due=[0, 120 * MS], idle_timeout_ns=50 * MS)
    assert flew.ends == [COMPLETE] * 2
    assert flew.server.connections == 1


def test_a_compressed_body_counts_as_begun(fly):
    """No look at it tells when its first token came; the limit for that must not end it."""
    packed = gzip.compress(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')

    def script(peer):
        peer.request()
        head = peer.HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
        peer.send(head + b"%x\r\n%b\r\n" % (len(packed), packed))
        peer.hold()

    flew = fly(script, first_token_timeout_ns=30 * MS, idle_timeout_ns=90 * MS)
    assert flew.ends == [IDLE]
    assert flew.flights[0].facts.begun_ns


# ---- sizes ------------------------------------------------------------------------------------------


def test_an_endless_answer_in_large_reads(fly):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD)
        while True:
            peer.send(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")

    (flown,) = fly(script, max_response_bytes=1 << 20).flights
    assert flown.end == LARGE
    assert 1 << 20 < len(flown.data) <= (1 << 20) + connection.LARGE_READ_BYTES


def test_an_endless_answer_in_small_events(fly, monkeypatch):
    monkeypatch.setattr(worker, "LOOK_NS", 5 * MS)

    def script(peer):
        peer.request()
        peer.send(peer.HEAD)
        while True:
            peer.send(peer.TOKEN, peer.TOKEN)

    (flown,) = fly(script, max_response_bytes=600).flights
    assert flown.end == LARGE
    assert len(flown.data) > 600


@pytest.mark.parametrize(
    "flood", [b"X-More: of it\r\n", b"x" * 4096, b"HTTP/1.1 100 Continue\r\n\r\n"], ids=["fields", "line", "interim"]
)  # fmt: skip
def test_an_endless_head(fly, flood):
    def script(peer):
        peer.request()
        peer.send(b"" if flood.startswith(b"HTTP") else b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            peer.send(flood * 64)

    (flown,) = fly(script).flights
    assert flown.end == PROTOCOL
    assert len(flown.data) < connection.MOST_HEAD_BYTES + 2 * connection.LARGE_READ_BYTES


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "whole"])
def test_an_endless_trailer(fly, streaming):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD + peer.TOKEN + b"0\r\nX: ")
        while True:
            peer.send(b"x" * 65536)

    (flown,) = fly(script, streaming=streaming).flights
    assert flown.end == PROTOCOL
    assert flown.words == "more than 256 kB between pieces of the body"
    assert len(flown.data) < 2 * connection.MOST_HEAD_BYTES


@pytest.mark.parametrize("status", [b"000", b"099", b"001"])
def test_a_status_that_is_none(fly, status):
    def script(peer):
        peer.request()
        peer.send(b"HTTP/1.1 %b No\r\nContent-Length: 0\r\n\r\n" % status)
        peer.hold()

    assert fly(script).ends == [PROTOCOL]


# ---- what follows an answer ---------------------------------------------------------------------------


@pytest.mark.parametrize("stray", [b"HTTP/1.1 200 OK\r\nContent-Le", b"rubbish", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_bytes_behind_an_answer_do_not_spoil_the_next(fly, stray):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER + stray)
        peer.hold()

    flew = fly(first, answering, requests=2)
    assert flew.ends == [COMPLETE] * 2
    assert [flown.facts.retries for flown in flew.flights] == [0, 0]
    assert flew.server.connections == 2


def test_bytes_that_come_while_a_connection_is_idle(fly):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER, b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        peer.hold()

    flew = fly(first, answering, due=[0, 300 * MS])
    assert flew.ends == [COMPLETE] * 2
    assert flew.server.connections == 2


def test_bytes_that_come_behind_the_next_request_are_not_its_answer(fly):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER)
        peer.request()
        peer.send(b"the rest of it")
        peer.hold()

    flew = fly(first, answering, requests=2)
    assert flew.ends == [COMPLETE] * 2
    assert [flown.facts.retries for flown in flew.flights] == [0, 1]


def test_an_answer_that_is_none_is_tried_once_on_a_new_connection(fly):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER)
        peer.request()
        peer.send(b"nonsense")
        peer.hold()

    def second(peer):
        peer.request()
        peer.send(b"nonsense")
        peer.hold()

    flew = fly(first, second, requests=2)
    assert flew.ends == [COMPLETE, PROTOCOL]
    assert flew.flights[1].facts.retries == 1


# ---- connections --------------------------------------------------------------------------------------


def test_a_request_waits_for_a_descriptor(fly, monkeypatch):
    start_connect, refusals = sockets.start_connect, [errno.EMFILE] * 4 + [errno.EADDRNOTAVAIL] * 2

    def scarce(*arguments):
        if refusals:
            raise OSError(refusals.pop(), "none left")
        return start_connect(*arguments)

    monkeypatch.setattr(sockets, "start_connect", scarce)
    flew = fly(answering, requests=3, slots=3)
    assert flew.ends == [COMPLETE] * 3
    assert flew.done[0].waits == 3  # the first of them in line, and those behind it
    assert flew.done[0].waited_ns > 0


def test_what_waits_for_a_descriptor_goes_on_a_connection_that_becomes_free(fly, monkeypatch):
    """Idle connections hold all descriptors there are: whoever waits takes the next of them, in turn."""
    start_connect, left = sockets.start_connect, [1, 1]

    def two_descriptors(*arguments):
        if not left:
            raise OSError(errno.EMFILE, "none left")
        left.pop()
        return start_connect(*arguments)

    monkeypatch.setattr(sockets, "start_connect", two_descriptors)
    flew = fly(answering, requests=20, slots=8)
    assert flew.ends == [COMPLETE] * 20
    assert flew.server.connections == 2
    sent = sorted(flew.flights, key=lambda flown: flown.sends[0])
    assert [flown.facts.request for flown in sent[:8]] == list(range(8))


def test_a_redirect_takes_its_address_from_the_answer_and_not_from_what_came_before(fly):
    def first(peer):
        peer.request()
        peer.send(b"HTTP/1.1 103 Early Hints\r\nLocation: /style.css\r\n\r\n" + redirect(b"/moved"))
        peer.serve()

    flew = fly(first)
    assert flew.ends == [COMPLETE]
    assert flew.server.requests[1].startswith(b"POST /moved HTTP/1.1\r\n")


def test_a_request_that_never_gets_a_descriptor_is_our_own_fault(fly, monkeypatch):
    def start_connect(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(sockets, "start_connect", start_connect)
    flew = fly(answering, requests=2, slots=2, timeout_ns=50 * MS)
    assert flew.ends == [WireEnd.CLIENT] * 2
    assert {flown.words for flown in flew.flights} == {
        "the client had no descriptor or no port for it within the time limit"
    }
    assert [flown.sends for flown in flew.flights] == [[], []]


def test_only_so_many_connections_are_made_at_a_time(fly, monkeypatch):
    monkeypatch.setattr(opening, "MOST_CONNECTING", 3)
    start_connect, most = sockets.start_connect, []

    def counted(*arguments):
        most.append(len(fly.worker._links.opening._making))
        return start_connect(*arguments)

    monkeypatch.setattr(sockets, "start_connect", counted)
    flew = fly(answering, requests=40, slots=20)
    assert flew.ends == [COMPLETE] * 40
    assert max(most) == 2  # beside the one that is begun
    assert flew.done[0].waits == 0


def test_a_connection_a_request(fly):
    flew = fly(answering, requests=5, reuse="never")
    assert flew.ends == [COMPLETE] * 5
    assert flew.server.connections == 5


def test_a_connection_a_conversation(fly):
    """Conversations of one turn each: none has use for the connection of another."""
    flew = fly(answering, requests=5, reuse="sticky-user-sessions")
    assert flew.ends == [COMPLETE] * 5
    assert flew.server.connections == 5


def test_a_server_that_closed_in_the_meantime_costs_no_retry(fly):
    def first(peer):
        peer.request()
        peer.send(peer.ANSWER)

    flew = fly(first, answering, due=[0, 300 * MS])
    assert flew.ends == [COMPLETE] * 2
    assert [flown.facts.retries for flown in flew.flights] == [0, 0]


# ---- redirects ------------------------------------------------------------------------------------------


def redirect(location, status=b"307 Temporary Redirect"):
    return b"HTTP/1.1 %b\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (status, location)


@pytest.mark.parametrize("status", [b"307 Temporary Redirect", b"308 Permanent Redirect"])
def test_a_redirect_to_the_same_server_is_followed(fly, status):
    def script(peer):
        peer.request()
        peer.send(redirect(b"http://host:1/elsewhere", status))
        peer.serve()

    flew = fly(script)
    (flown,) = flew.flights
    assert (flown.end, flown.facts.status, flown.facts.redirects, flown.redirected) == (COMPLETE, 200, 1, 1)
    first, second = flew.server.requests
    assert first.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert second == first.replace(b"/v1/chat/completions", b"/elsewhere", 1)
    assert flew.server.connections == 1


def test_a_redirect_is_followed_on_a_new_connection_when_the_server_closes(fly):
    def first(peer):
        peer.request()
        peer.send(redirect(b"/elsewhere").replace(b"Content-Length", b"Connection: close\r\nContent-Length"))

    flew = fly(first, answering)
    assert flew.ends == [COMPLETE]
    (flown,) = flew.flights
    assert (flew.server.connections, flown.facts.redirects) == (2, 1)
    again_ns = flown.sends[1]
    assert (
        flown.facts.connected_ns <= flown.facts.sent_ns <= flown.facts.written_ns < again_ns
    )  # the first send's


@pytest.mark.parametrize(
    ("location", "status"),
    [
        (b"http://other:1/x", b"307 Temporary Redirect"),
        (b"https://host:1/x", b"308 Permanent Redirect"),
        (b"/x", b"302 Found"),
        (b"/x", b"303 See Other"),
    ],
)
def test_no_other_redirect_is_followed(fly, location, status):
    def script(peer):
        peer.request()
        peer.send(redirect(location, status))
        peer.hold()

    (flown,) = fly(script).flights
    assert (flown.end, flown.facts.status, flown.facts.redirects) == (COMPLETE, int(status[:3]), 0)


def test_a_second_redirect_is_the_answer(fly):
    def script(peer):
        peer.serve(redirect(b"/again"))

    (flown,) = fly(script).flights
    assert (flown.end, flown.facts.status, flown.facts.redirects) == (COMPLETE, 307, 1)


# ---- a proxy --------------------------------------------------------------------------------------------

TUNNEL = b"CONNECT host:1 HTTP/1.1\r\nHost: host:1\r\n\r\n"


def tunnelled(peer):
    peer.tunnel = b""
    while not peer.tunnel.endswith(b"\r\n\r\n"):
        peer.tunnel += peer.sock.recv(1)
    assert peer.tunnel == TUNNEL


def test_a_tunnel_through_a_proxy(fly):
    def script(peer):
        tunnelled(peer)
        peer.send(b"HTTP/1.1 200 Connection established\r\n", b"Via: us\r\n\r\n")
        peer.serve()

    flew = fly(script, requests=3, tunnel=TUNNEL)
    assert flew.ends == [COMPLETE] * 3
    assert flew.server.connections == 1
    assert flew.flights[0].data.startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "the proxy said: HTTP/1.1 407 Proxy Authentication Required"),
        (b"HTTP/1.1 502 Bad Gateway\r\nX: y\r\n\r\n", "the proxy said: HTTP/1.1 502 Bad Gateway"),
        (b"nonsense\r\n\r\n", "the proxy said: nonsense"),
        (b"", "the proxy: it closed the connection"),
        (b"x" * 300_000, "the proxy: it does not end its head"),
    ],
)  # fmt: skip
def test_a_proxy_that_refuses(fly, answer, words):
    def script(peer):
        tunnelled(peer)
        peer.send(answer)

    (flown,) = fly(script, tunnel=TUNNEL).flights
    assert (flown.end, flown.words, flown.sends) == (WireEnd.CONNECT, words, [])


def test_a_proxy_that_says_nothing(fly):
    def script(peer):
        tunnelled(peer)
        peer.hold()

    (flown,) = fly(script, tunnel=TUNNEL, connect_timeout_ns=40 * MS).flights
    assert (flown.end, flown.sends) == (WireEnd.TIMEOUT_CONNECT, [])


# ---- giving up ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given_up", "end"), [(False, WireEnd.CUT), (True, WireEnd.CANCELLED)])
def test_what_is_under_way_when_the_run_is_given_up_is_cancelled(fly, given_up, end):
    def script(peer):
        peer.request()
        peer.send(peer.HEAD + peer.TOKEN)
        fly.worker.tell(StopOrder(stop_ns=0, cut_ns=0, given_up=given_up))
        peer.hold()

    assert fly(script, requests=3).ends == [end]


def test_no_space_for_the_recording_is_said_and_ends_the_worker(monkeypatch, capfd):
    class Full:
        def __init__(self, job, control):
            pass

        def run(self):
            raise NoSpaceError("the recording cannot be written: No space left on device")

        say = worker.Worker.say

    monkeypatch.setattr(worker, "Worker", Full)
    worker.serve(None, control=0)
    word = msgspec.json.decode(capfd.readouterr().out, type=Trouble)
    assert word.message == "the recording cannot be written: No space left on device"


def test_a_listener_whose_queue_is_full_is_waited_for(fly):
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        flew = fly(answering, address=listener.getsockname(), requests=2, slots=2, connect_timeout_ns=60 * MS)
    assert flew.ends == [WireEnd.TIMEOUT_CONNECT] * 2


# ---- the stop ---------------------------------------------------------------------------------------------


def test_what_waits_for_a_connection_at_the_stop_is_not_sent(fly, monkeypatch):
    monkeypatch.setattr(opening, "MOST_CONNECTING", 1)

    def script(peer):
        peer.request()
        peer.send(peer.HEAD + peer.TOKEN)
        fly.worker.tell(StopOrder(stop_ns=0, cut_ns=1 << 62))
        peer.send(peer.DONE, peer.LAST)

    start_connect, left = sockets.start_connect, [1]

    def one_descriptor(*arguments):
        if not left:
            raise OSError(errno.EMFILE, "none left")
        left.pop()
        return start_connect(*arguments)

    monkeypatch.setattr(sockets, "start_connect", one_descriptor)
    flew = fly(script, requests=9, slots=4)
    assert [(flown.end, bool(flown.sends)) for flown in flew.flights] == [(COMPLETE, True)] + [
        (WireEnd.NOT_SENT, False)
    ] * 3
    assert flew.flights[1].words == "still waiting for a connection when the load was stopped"


def test_a_planned_stop_leaves_nothing_waiting_where_there_are_slots(fly, monkeypatch):
    def start_connect(*_):
        raise OSError(errno.EADDRNOTAVAIL, "none left")

    monkeypatch.setattr(sockets, "start_connect", start_connect)
    flew = fly(
        answering, orders=[fly.phase(9, slots=2, duration_ns=30 * MS, grace_ns=2_970 * MS)], requests=9
    )
    assert flew.ends == [WireEnd.NOT_SENT] * 2


def test_behind_connections_that_are_not_made_it_is_the_servers_limit(fly, monkeypatch):
    monkeypatch.setattr(opening, "MOST_CONNECTING", 1)
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        flew = fly(answering, address=listener.getsockname(), requests=2, slots=2, timeout_ns=60 * MS)
    assert flew.ends == [WireEnd.TIMEOUT_TOTAL, WireEnd.TIMEOUT_CONNECT]
    assert flew.flights[1].words == "no connection within the time limit: others were being made before it"


def test_a_slot_that_has_rested_goes_on_at_once(fly, monkeypatch):
    """No tick wakes it: its lag is not the client's."""
    monkeypatch.setattr(worker, "TICK_NS", 400 * MS)

    def script(peer):
        peer.request()
        peer.reset()

    flew = fly(script, answering, requests=2)
    first, second = flew.flights
    assert (first.end, second.end) == (WireEnd.RESET, COMPLETE)
    assert second.sends[0] - second.facts.due_ns < 200 * MS


# ---- redirects that end otherwise ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 307 Moved\r\nLocation: /x\r\nConnection: close\r\n\r\nsee there",
        b"HTTP/1.1 307 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\nstray bytes",
        b"HTTP/1.1 307 Moved\r\nLocation: /x\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
        b'HTTP/1.1 307 Moved\r\nLocation: /x\r\nContent-Length: 19\r\n\r\n{"content":"see x"}',
    ],
    ids=["ended by the close", "with strays behind it", "compressed", "that looks like output"],
)
def test_a_redirect_is_followed_however_it_ends(fly, answer):
    def first(peer):
        peer.request()
        peer.send(answer)

    flew = fly(first, answering)
    (flown,) = flew.flights
    assert (flown.end, flown.facts.status, flown.facts.redirects) == (COMPLETE, 200, 1)


def test_a_proxy_that_leaves_at_once(fly, monkeypatch):
    def script(peer):
        peer.reset()

    (flown,) = fly(script, tunnel=TUNNEL).flights
    assert (flown.end, flown.sends) == (WireEnd.CONNECT, [])
