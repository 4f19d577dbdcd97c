"""How many Python functions the hot path calls: counted, not timed.

The loop runs over real sockets, but its poller lets the server make its next move only when nothing else is left to do,
so that every wake-up brings exactly one read. That is the dearest case: a wake-up's calls are not shared by several.
Counted are calls of Python functions (`sys.setprofile`, event `call`), whoever owns them; calls of C functions are
not, nor is what `_tick` does 50 times a second whatever the load.
"""

from __future__ import annotations

import select
import sys
from collections import Counter
from threading import Semaphore

import pytest

from loadstone.load import worker as worker_module
from loadstone.load.worker import Worker

A_READ = 2
"""All of them for the wake-up that brought it: in mid-stream the bytes themselves cost no Python call."""
A_WAKE_UP = 1
A_REQUEST = 70
"""Beside its wake-ups. Some twenty find out which request goes next, and when to look again. Five of them keep a spoilt connection from carrying a request: one look whether it is quiet, one
whether the answer was the last thing said, and three at the pool."""

pytestmark = [
    pytest.mark.timeout(30),
    pytest.mark.skipif(not hasattr(select, "epoll"), reason="counts the loop as it is on Linux"),
]


class Moves:
    """An epoll that asks the server for one move when there is nothing to report."""

    def __init__(self, moves):
        self._epoll = select.epoll()
        self.register, self.modify = self._epoll.register, self._epoll.modify
        self.unregister = self._epoll.unregister
        self._left = moves
        self.ask, self.made = Semaphore(0), Semaphore(0)

    def poll(self, timeout_s, events):
        if ready := self._epoll.poll(0, events):
            return ready
        if self._left:
            self._left -= 1
            self.ask.release()
            assert self.made.acquire(timeout=5)
        return self._epoll.poll(timeout_s, events)

    def script(self, tokens):
        def play(peer):
            while True:
                peer.request()
                for piece in (peer.HEAD, *[peer.TOKEN] * tokens, peer.DONE + peer.LAST):
                    self.ask.acquire()
                    peer.send(piece)
                    self.made.release()

        return play


class Count:
    """Counts by name, outside of the poller and of the housekeeping."""

    def __init__(self):
        self.by_name = Counter()
        self._outside = {Moves.poll.__code__, Worker._tick.__code__}
        self._depth = 0

    def __call__(self, frame, event, argument):
        if frame.f_code in self._outside:
            self._depth += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self._depth:
            self.by_name[frame.f_code.co_qualname] += 1


@pytest.fixture
def calls(fly, monkeypatch):
    """The calls of a closed loop with one slot that gets `tokens` tokens a request."""

    def run(requests, tokens):
        moves, count, loop = Moves(requests * (tokens + 2)), Count(), Worker.run

        def watched(worker):
            sys.setprofile(count)
            try:
                loop(worker)
            finally:
                sys.setprofile(None)

        with monkeypatch.context() as patch:
            patch.setattr(worker_module, "poller", lambda portable: moves)
            patch.setattr(Worker, "run", watched)
            flew = fly(moves.script(tokens), requests=requests)
        assert [len(flown.reads) for flown in flew.flights] == [tokens + 2] * requests
        return count.by_name

    run(1, 1)  # what is done once in a process (msgspec reads type hints) is not what is counted
    return run


def test_calls_a_read(calls):
    few, many = calls(3, 10), calls(3, 50)
    assert few["Worker.run"] == many["Worker.run"] == 1
    assert round((many.total() - few.total()) / (3 * 40)) <= A_READ


def test_calls_a_request(calls):
    tokens = 2
    few, many = calls(5, tokens), calls(45, tokens)
    a_request = (many.total() - few.total()) / 40 - (tokens + 2) * A_WAKE_UP
    assert 0 < round(a_request) <= A_REQUEST


def test_the_predicate_of_the_first_output_is_asked_until_it_is_true(calls):
    few, many = calls(3, 2), calls(3, 30)
    assert few["begun"] == many["begun"] == 3
    assert few["ended"] == many["ended"] == 3 * 2  # with the first output, and with the read that ends it
