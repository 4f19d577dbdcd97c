"""The fallback says what epoll says."""

from __future__ import annotations

import select
import socket

import pytest

from loadstone.load.poller import READ, WRITE, Selectors, poller

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="no epoll to compare with")


@pytest.fixture
def pair():
    near, far = socket.socketpair()
    near.setblocking(False)
    with near, far:
        yield near, far


@pytest.fixture
def both():
    epoll, fallback = poller(), poller(portable=True)
    assert isinstance(epoll, select.epoll)
    assert isinstance(fallback, Selectors)
    yield epoll, fallback
    epoll.close()
    fallback._selector.close()


def ready(one, fd):
    """What a poller says of a descriptor, in terms of the two masks the loop knows."""
    return [(found, mask & (READ | WRITE)) for found, mask in one.poll(0, 16) if found == fd]


def agree(both, fd):
    epoll, fallback = (ready(one, fd) for one in both)
    assert epoll == fallback
    return epoll


def test_both_see_the_same(both, pair):
    near, far = pair
    fd = near.fileno()
    for one in both:
        one.register(fd, READ)
    assert agree(both, fd) == []
    far.send(b"x")
    assert agree(both, fd) == [(fd, READ)]
    for one in both:
        one.modify(fd, READ | WRITE)
    assert agree(both, fd) == [(fd, READ | WRITE)]
    for one in both:
        one.modify(fd, WRITE)
    assert agree(both, fd) == [(fd, WRITE)]
    for one in both:
        one.unregister(fd)
    assert agree(both, fd) == []


def test_a_hang_up_is_worth_a_read(both, pair):
    near, far = pair
    for one in both:
        one.register(near.fileno(), READ)
    far.close()
    assert agree(both, near.fileno()) == [(near.fileno(), READ)]


def test_no_more_events_are_given_than_asked_for(both):
    pairs = [socket.socketpair() for _ in range(3)]
    for near, far in pairs:
        far.send(b"x")
        for one in both:
            one.register(near.fileno(), READ)
    assert [len(one.poll(0, 2)) for one in both] == [2, 2]
    for near, far in pairs:
        near.close()
        far.close()


def test_waiting_ends_with_its_time(both):
    assert [one.poll(0.001, 1) for one in both] == [[], []]
