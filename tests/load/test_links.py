"""The connections of a worker to several targets, over real sockets, without the worker: the loop here does no more
than bring `Links` what is ready."""

from __future__ import annotations

import errno
import random
import socket
import time

import pytest

from loadstone.endpoints import chat
from loadstone.load import opening, sockets
from loadstone.load.flight import Flight
from loadstone.load.job import Job, TargetJob, TlsJob
from loadstone.load.links import Links
from loadstone.load.poller import poller
from loadstone.plan.store import Row
from loadstone.recording import WireEnd
from loadstone.wire.request import tail

pytestmark = pytest.mark.timeout(20)

MS = 1_000_000
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
COMPLETE = WireEnd.COMPLETE


def serving(peer):
    peer.serve(OK)


def target(server, name, **changes):
    """A server under a name that its requests give as their host."""
    head = f"POST /v1 HTTP/1.1\r\nHost: {name}:1\r\nX-Request-ID: ".encode()
    settings = {"family": socket.AF_INET, "address": server.address, "authority": f"{name}:1", **changes}
    return TargetJob(head=head, **settings)


def job(*targets, reuse="pooled"):
    return Job(
        worker=0,
        workers=1,
        folder="",
        board="",
        blocks=1,
        targets=list(targets),
        id_prefix="r-",
        reuse=reuse,
        endpoint="chat",
        streaming=False,
        connect_timeout_ns=5_000 * MS,
        first_token_timeout_ns=5_000 * MS,
        idle_timeout_ns=5_000 * MS,
        timeout_ns=5_000 * MS,
        max_response_bytes=1 << 20,
        portable=False,
    )


class Loop:
    """Brings the links what is ready, and notes what becomes of flights."""

    def __init__(self, job):
        self._job = job
        self._poller = poller(False)
        self.links = Links(job, self._poller, False, (chat.begun, chat.ended), self._started, self._ended)
        self.sent = []
        self.ends = {}

    def _started(self, connection, flight, now):
        assert connection.target == flight.target
        self.sent.append(flight)

    def _ended(self, flight, end, now, message):
        self.ends[flight] = (end, message)

    @property
    def open(self):
        """How many connections are open."""
        return sum(connection is not None for connection in self.links.by_fd)

    def begin(self, target=0, *, conversation=0, turn=0, final=1, phase=0):
        """A flight on its way to a target."""
        row = Row(turn, -1, 0, 2, -1, -1, conversation, turn, phase, final)
        flight = Flight(1, row, 0, self._job.targets[target].head + tail("r", b"{}"), target)
        self.links.carry(flight)
        return flight

    def fly(self, target=0, **row):
        """A flight from its beginning to its end."""
        flight = self.begin(target, **row)
        self.until(lambda: flight in self.ends)
        assert self.ends[flight][0] == COMPLETE, self.ends[flight]
        return flight

    def until(self, done):
        end = time.monotonic() + 5
        while not done():
            assert time.monotonic() < end, "nothing more happens"
            self.round()

    def round(self):
        for fd, mask in self._poller.poll(0.005, 64):
            connection = self.links.by_fd[fd]
            if connection is not None and (not connection.state or self.links.proceed(connection, mask)):
                self._read(connection)
        if self.links.opening.postponed:
            self.links.resume(time.monotonic_ns())

    def _read(self, connection):
        try:
            data = connection.recvmsg(connection.want, 0)[0]
        except BlockingIOError:
            return
        now, flight = time.monotonic_ns(), connection.flight
        if flight is None or not data:
            self.links.closed(connection, now)
            return
        connection.read_ns = now
        flight.received = True
        connection.opening += data
        connection.feed(data)
        if connection.complete:
            self.links.complete(connection, flight, now)

    def close(self):
        for connection in filter(None, self.links.by_fd):
            self.links.drop(connection)


@pytest.fixture
def loop():
    loops = []

    def start(*targets, **settings):
        loops.append(Loop(job(*targets, **settings)))
        return loops[-1]

    yield start
    for one in loops:
        one.close()


@pytest.fixture
def two(serve, loop):
    """A loop with two servers that answer everything, and these."""

    def start(*scripts, **settings):
        servers = [serve(script) for script in scripts or (serving, serving)]
        names = [target(server, name) for server, name in zip(servers, "abcd", strict=False)]
        return loop(*names, **settings), *servers

    return start


@pytest.fixture
def descriptors(monkeypatch):
    """So many connections may be open, and then there is this error."""

    def limit(loop, most, code=errno.EMFILE):
        start_connect = sockets.start_connect

        def refuse(*arguments):
            if loop.open >= most:
                raise OSError(code, "none left")
            return start_connect(*arguments)

        monkeypatch.setattr(sockets, "start_connect", refuse)

    return limit


def hosts(server):
    return {request.split(b"Host: ")[1].split(b"\r\n")[0].decode() for request in server.requests}


# ---- each target for itself ---------------------------------------------------------------------------


@pytest.mark.parametrize("reuse", ["pooled", "never", "sticky-user-sessions"])
def test_connections_never_cross_targets(two, reuse):
    one, a, b = two(reuse=reuse)
    rng = random.Random(4)
    flights = []
    for _ in range(60):
        which = rng.randrange(2)
        flights.append(one.begin(which, conversation=rng.randrange(5), final=rng.randrange(2)))
        if rng.random() < 0.5:
            one.until(lambda: len(one.ends) == len(flights))
    one.until(lambda: len(one.ends) == len(flights))
    assert set(one.ends.values()) == {(COMPLETE, "")}
    assert (hosts(a), hosts(b)) == ({"a:1"}, {"b:1"})
    assert len(a.requests) == sum(flight.target == 0 for flight in flights)
    assert len(b.requests) == sum(flight.target == 1 for flight in flights)
    assert one.links.connects == a.connections + b.connections


def test_each_target_has_its_own_idle_connections(two):
    one, a, b = two()
    for which in (0, 1, 1, 0, 0, 1):
        one.fly(which)
    assert (a.connections, b.connections, one.links.connects, one.open) == (1, 1, 2, 2)
    assert (len(a.requests), len(b.requests)) == (3, 3)


def test_an_idle_connection_that_its_server_closes_is_taken_from_its_own_target(two):
    def once(peer):
        peer.request()
        peer.send(OK)

    one, a, b = two(serving, once)
    one.fly(0)
    one.fly(1)
    one.until(lambda: one.open == 1)
    one.fly(0)
    one.fly(1)
    assert (a.connections, b.connections) == (1, 2)


def test_tls_to_one_target_and_none_to_the_other(serve, loop, trusted):
    plain, secret = serve(serving), serve(serving, context=trusted)
    tls = TlsJob(server_name="localhost", verify=True)
    one = loop(target(plain, "a"), target(secret, "b", tls=tls))
    for which in (1, 0, 1, 0):
        one.fly(which)
    assert (hosts(plain), hosts(secret)) == ({"a:1"}, {"b:1"})
    assert (plain.connections, secret.connections) == (1, 1)


def test_each_target_has_its_own_rules_for_tls(serve, loop, trusted):
    server = serve(serving, context=trusted)
    rules = [
        TlsJob(server_name="other.test", verify=False),
        TlsJob(server_name="other.test", verify=True),
        TlsJob(server_name="127.0.0.1", verify=True),
    ]
    one = loop(*(target(server, name, tls=tls) for name, tls in zip("abc", rules, strict=True)))
    flights = [one.begin(which) for which in range(3)]
    one.until(lambda: len(one.ends) == 3)
    assert [one.ends[flight][0] for flight in flights] == [COMPLETE, WireEnd.TLS, COMPLETE]


def test_a_tunnel_leads_to_its_target_only(serve, loop):
    tunnel = b"CONNECT b:1 HTTP/1.1\r\nHost: b:1\r\n\r\n"

    def proxy(peer):
        said = b""
        while not said.endswith(b"\r\n\r\n"):
            said += peer.sock.recv(1)
        assert said == tunnel
        peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
        peer.serve(OK)

    a, b = serve(serving), serve(proxy)
    one = loop(target(a, "a"), target(b, "b", tunnel=tunnel))
    for which in (0, 1, 0, 1):
        one.fly(which)
    assert (hosts(a), hosts(b), a.connections, b.connections) == ({"a:1"}, {"b:1"}, 1, 1)


@pytest.mark.parametrize(("location", "followed"), [("http://b:1/new", True), ("http://a:1/new", False)])
def test_a_redirect_is_followed_to_its_own_target_only(two, location, followed):
    def moved(peer):
        peer.request()
        peer.send(f"HTTP/1.1 307 Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())
        peer.serve(OK)

    one, a, b = two(serving, moved)
    flight = one.fly(1)
    assert (flight.status, flight.redirects) == ((200, 1) if followed else (307, 0))
    paths = [request.split(b" ")[1] for request in b.requests]
    assert paths == ([b"/v1", b"/new"] if followed else [b"/v1"])
    assert (a.connections, b.connections) == (0, 1)


# ---- conversations ------------------------------------------------------------------------------------


def until_closed(ended):
    """A script that answers everything, and notes when the client has closed."""

    def script(peer):
        try:
            peer.serve(OK)
        except (EOFError, ConnectionResetError) as error:
            ended.append(type(error))

    return script


def test_three_turns_are_one_connection_that_is_closed_behind_the_last(two):
    ended = []
    one, a, b = two(until_closed(ended), serving, reuse="sticky-user-sessions")
    for turn in range(3):
        one.fly(0, conversation=7, turn=turn, final=int(turn == 2))
        one.fly(0, conversation=8, turn=turn, final=0)
        one.fly(1, conversation=9, turn=turn, final=0)
    one.until(lambda: ended == [EOFError])
    assert (a.connections, b.connections, one.open) == (2, 1, 2)


def test_a_conversation_of_another_phase_is_another_one(two):
    one, a, _ = two(reuse="sticky-user-sessions")
    one.fly(0, conversation=1, final=0, phase=0)
    one.fly(0, conversation=1, final=0, phase=1)
    one.fly(0, conversation=1, turn=1, phase=0)
    assert (a.connections, one.open) == (2, 1)


def test_a_conversation_that_is_given_up_leaves_no_connection(two):
    ended = []
    one, a, _ = two(until_closed(ended), serving, reuse="sticky-user-sessions")
    flight = one.fly(0, conversation=1, final=0)
    other = one.fly(0, conversation=2, final=0)
    one.links.forget(flight.row)
    one.links.forget(flight.row)
    one.until(lambda: ended == [EOFError])
    assert one.open == 1
    one.fly(0, conversation=2, turn=1, final=0)
    assert (a.connections, other.retries) == (2, 0)


def test_a_connection_for_everybody_is_nobodys_to_give_up(two):
    one, *_ = two()
    one.links.forget(one.fly(0, final=0).row)
    assert one.open == 1


# ---- what the client has too little of ------------------------------------------------------------------


def test_without_a_descriptor_the_connection_that_was_idle_for_longest_makes_room(serve, loop, descriptors):
    servers = [serve(serving) for _ in range(3)]
    one = loop(*(target(server, name) for server, name in zip(servers, "abc", strict=True)))
    descriptors(one, 2)
    for which in (0, 1, 0, 2):
        one.fly(which)
    one.fly(0)
    assert [server.connections for server in servers] == [1, 1, 1]
    one.fly(1)
    assert [server.connections for server in servers] == [1, 2, 1]
    assert (one.open, one.links.opening.waits) == (2, 0)


def test_a_conversation_whose_connection_made_room_gets_another(two, descriptors):
    ended = []
    one, a, _ = two(until_closed(ended), serving, reuse="sticky-user-sessions")
    descriptors(one, 1)
    for turn in range(2):
        for conversation in (1, 2):
            one.fly(0, conversation=conversation, turn=turn, final=0)
    one.until(lambda: ended == [EOFError] * 3)
    assert (a.connections, one.open, one.links.opening.waits) == (4, 1, 0)


def test_without_a_port_only_a_connection_to_the_same_address_makes_room_and_leaves_no_rest(two, descriptors):
    ended = []
    one, a, b = two(until_closed(ended), serving, reuse="sticky-user-sessions")
    one.fly(1, conversation=1, final=0)
    one.fly(0, conversation=2, final=0)
    descriptors(one, 2, errno.EADDRNOTAVAIL)
    one.fly(0, conversation=3, final=0)
    one.until(lambda: ended == [ConnectionResetError])
    one.fly(1, conversation=1, turn=1, final=0)
    assert (a.connections, b.connections, one.open) == (2, 1, 2)


def test_what_no_idle_connection_can_give_is_waited_for(two, descriptors):
    def slow(peer):
        peer.request()
        time.sleep(0.03)
        peer.send(OK)
        peer.serve(OK)

    one, a, b = two(slow, serving)
    descriptors(one, 1)
    first, second, third = one.begin(0), one.begin(1), one.begin(0)
    one.until(lambda: len(one.ends) == 3)
    assert one.sent == [first, second, third], "in the order in which they came, whatever their target"
    assert (second.waited, third.waited, one.links.opening.waits) == (True, True, 2)
    assert (a.connections, b.connections) == (2, 1)


def test_room_is_made_once_for_an_attempt(two, monkeypatch):
    one, _, _ = two()
    one.fly(0)
    one.fly(1)
    attempts = []

    def start_connect(*_):
        attempts.append(one.open)
        raise OSError(errno.ENFILE, "none left")

    monkeypatch.setattr(sockets, "start_connect", start_connect)
    one.begin(0)  # on the idle connection
    waiting = one.begin(0)
    assert attempts == [2, 1]
    assert list(one.links.opening.postponed) == [waiting]


# ---- those that wait ----------------------------------------------------------------------------------


@pytest.fixture
def nowhere():
    """An address that connections are never made to: the queue of its listener is full."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listener,
        socket.create_connection(listener.getsockname()),
    ):
        yield listener


def test_a_target_that_cannot_be_reached_does_not_hold_idle_connections_to_another(
    serve, loop, nowhere, monkeypatch
):
    monkeypatch.setattr(opening, "MOST_CONNECTING", 1)
    server = serve(serving)
    lost = target(server, "a", address=nowhere.getsockname())
    one = loop(lost, target(server, "b"))
    one.fly(1)
    connecting, waiting = one.begin(0), one.begin(0)
    for _ in range(3):
        one.fly(1)
    assert list(one.links.opening.postponed) == [waiting]
    assert (server.connections, len(server.requests), one.ends.keys() & {connecting, waiting}) == (
        1,
        4,
        set(),
    )


def test_who_waits_for_a_target_comes_before_who_begins(serve, loop, nowhere, monkeypatch):
    def held(peer):
        peer.request()
        time.sleep(0.03)
        peer.send(OK)
        peer.serve(OK)

    monkeypatch.setattr(opening, "MOST_CONNECTING", 1)
    server = serve(held)
    one = loop(target(server, "a", address=nowhere.getsockname()), target(server, "b"))
    first = one.begin(1)
    one.until(lambda: one.sent == [first])
    one.begin(0)
    one.begin(0)
    waiting = one.begin(1)
    assert waiting in one.links.opening.postponed
    begun = []
    ended = one.links._ended

    def and_another(flight, *words):
        ended(flight, *words)
        if flight is first:
            begun.append(one.begin(1))

    one.links._ended = and_another
    one.until(lambda: len(one.ends) == 3)
    assert one.sent == [first, waiting, *begun]
    assert server.connections == 1


def test_a_conversation_does_not_wait_for_its_own_connection(serve, loop, nowhere, monkeypatch):
    monkeypatch.setattr(opening, "MOST_CONNECTING", 1)
    server = serve(serving)
    one = loop(
        target(server, "a", address=nowhere.getsockname()), target(server, "b"), reuse="sticky-user-sessions"
    )
    one.fly(1, conversation=1, final=0)
    one.begin(0, conversation=2)
    other = one.begin(1, conversation=3)
    one.fly(1, conversation=1, turn=1)
    assert list(one.links.opening.postponed) == [other]
    assert server.connections == 1
