"""A worker with several servers: where a request goes, what its conversation is told by, and what is recorded of it."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from loadstone.load.job import TargetJob
from loadstone.plan.store import ANY_TARGET, Draft
from loadstone.recording import WireEnd

COMPLETE = WireEnd.COMPLETE
STICKY = "sticky-user-sessions"

pytestmark = pytest.mark.timeout(20)


def answering(peer):
    peer.serve()


def draft(target=0, conversation=0, turn=0, final=1):
    """A row of a closed loop."""
    return Draft(-1, b"{}", -1, -1, conversation, turn, 0, final, target, opens=int(turn == 0))


def talk(conversation, turns, target=0):
    """All rows of a conversation."""
    return [draft(target, conversation, turn, int(turn == turns - 1)) for turn in range(turns)]


def targets(*servers):
    """The servers as a job has them, each with a key of its own in its head."""
    return [
        TargetJob(
            head=f"POST /v1 HTTP/1.1\r\nHost: {name}:1\r\nX-Request-ID: ".encode(),
            family=int(socket.AF_INET),
            address=server.address,
            authority=f"{name}:1",
        )
        for name, server in zip("abc", servers, strict=False)
    ]


@pytest.fixture
def fly_to(fly, serve):
    """Runs a worker against several servers: what it left behind, and they."""

    def run(*scripts, rows, **settings):
        servers = [serve(script) for script in scripts]
        return fly(due=rows, targets=targets(*servers), **settings), *servers

    return run


def lines(server, name):
    """The values that a header had in the requests of a server, in their order."""
    found = []
    for request in server.requests:
        head = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
        found += [line.partition(": ")[2] for line in head if line.startswith(f"{name}: ")]
    return found


@pytest.mark.parametrize("slots", [1, 3])
def test_a_request_goes_to_the_server_that_is_planned_for_it(fly_to, slots):
    plan = [0, 1, 1, 0, 2, 1, 0, 2, 2, 1]
    flew, *servers = fly_to(*[answering] * 3, rows=[draft(at, n) for n, at in enumerate(plan)], slots=slots)
    assert flew.ends == [COMPLETE] * 10
    assert [flown.facts.target for flown in flew.flights] == plan
    for number, (server, name) in enumerate(zip(servers, "abc", strict=True)):
        mine = [f"r-{request}" for request, at in enumerate(plan) if at == number]
        assert lines(server, "Host") == [f"{name}:1"] * len(mine)
        assert sorted(lines(server, "X-Request-ID")) == mine
        assert server.connections <= slots


def test_a_refused_connection_to_one_server_leaves_the_others_alone(fly, serve):
    server = serve(answering)
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()
    nobody = TargetJob(head=b"", family=int(socket.AF_INET), address=address, authority="b:1")
    rows = [draft(number % 2, number) for number in range(6)]
    flew = fly(due=rows, targets=[*targets(server), nobody], slots=2)
    assert flew.ends == [COMPLETE, WireEnd.REFUSED] * 3
    assert (server.connections, len(server.requests)) == (1, 3)


def test_where_any_server_will_do_it_is_the_one_with_the_fewest_in_flight(fly_to):
    others = threading.Event()

    def slow(peer):
        peer.request()
        assert others.wait(5)
        peer.send(peer.ANSWER)
        peer.serve()

    def quick(peer):
        for _ in range(8):
            peer.request()
            peer.send(peer.ANSWER)
        others.set()
        peer.serve()

    rows = [draft(ANY_TARGET, number) for number in range(9)]
    flew, a, b = fly_to(slow, quick, rows=rows, slots=2)
    assert [flown.facts.target for flown in flew.flights] == [0] + [1] * 8
    assert (len(a.requests), len(b.requests)) == (1, 8)


def test_a_conversation_stays_with_the_server_that_was_chosen_for_it(fly_to):
    rows = [row for number in range(4) for row in talk(number, 3, ANY_TARGET)]
    flew, *_ = fly_to(answering, answering, rows=rows, slots=2)
    chosen = [flown.facts.target for flown in flew.flights]
    assert flew.ends == [COMPLETE] * 12
    assert [len(set(chosen[at : at + 3])) for at in range(0, 12, 3)] == [1] * 4
    assert chosen[0] != chosen[3]


# ---- conversations ------------------------------------------------------------------------------------


def test_three_turns_of_a_conversation_share_a_connection_that_ends_with_them(fly_to):
    asked = {}

    def script(peer):
        count = 0
        with suppress(EOFError):
            while True:
                peer.request()
                count += 1
                peer.send(peer.ANSWER)
        asked[peer] = count

    rows = [row for number in range(4) for row in talk(number, 3, number % 2)]
    flew, a, b = fly_to(script, script, rows=rows, slots=2, reuse=STICKY)
    assert flew.ends == [COMPLETE] * 12
    assert list(asked.values()) == [3] * 4
    assert (a.connections, b.connections) == (2, 2)


def test_a_conversation_that_is_given_up_leaves_no_connection_behind(fly_to):
    closed = threading.Event()

    def failing(peer):
        peer.request()
        peer.send(b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}")
        with suppress(EOFError):
            peer.request()
        closed.set()

    def waiting(peer):
        peer.request()
        assert closed.wait(5), "the connection of the one given up is closed while the others go on"
        peer.send(peer.ANSWER)
        peer.serve()

    flew, a, b = fly_to(failing, waiting, rows=[*talk(0, 3, 0), *talk(1, 2, 1)], reuse=STICKY)
    assert [flown.facts.status for flown in flew.flights] == [500, 200, 200]
    assert (a.connections, b.connections) == (1, 1)


def test_every_turn_tells_its_conversation_and_the_last_one_that_it_is(fly_to):
    names = ["X-Session-ID", "X-Dynamo-Session-ID"]
    rows = [*talk(0, 2), *talk(1, 1)]
    flew, a = fly_to(answering, rows=rows, session_headers=names, session_end_header="X-Session-End: yes")
    assert flew.ends == [COMPLETE] * 3
    for name in names:
        assert lines(a, name) == ["r-c0-0", "r-c0-0", "r-c0-1"]
    assert [b"X-Session-End: yes\r\n" in request for request in a.requests] == [False, True, True]


def test_nothing_is_told_of_conversations_unless_it_is_asked_for(fly_to):
    _, a = fly_to(answering, rows=talk(0, 2))
    assert [b"ession" in request or b"c0-0" in request for request in a.requests] == [False, False]
