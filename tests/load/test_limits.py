from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadstone.load.limits import Limit


def test_a_thing_expires_when_its_span_is_over():
    limit = Limit(10)
    limit.start("a", 100)
    assert list(limit.expired(109)) == []
    assert list(limit.expired(110)) == ["a"]
    assert list(limit.expired(999)) == []


def test_what_was_stopped_does_not_expire():
    limit = Limit(10)
    limit.start("a", 0)
    limit.start("b", 1)
    limit.stop("a")
    limit.stop("nobody")
    assert ("a" in limit, "b" in limit, len(limit), list(limit)) == (False, True, 1, ["b"])
    assert list(limit.expired(50)) == ["b"]


def test_starting_again_gives_the_full_span_again():
    limit = Limit(10)
    limit.start("a", 0)
    limit.start("b", 2)
    limit.start("a", 5)
    assert list(limit.expired(14)) == ["b"]
    assert list(limit.expired(15)) == ["a"]


def test_things_may_be_stopped_and_started_while_the_expired_are_given():
    limit = Limit(10)
    for name in "abc":
        limit.start(name, 0)
    given_out = []
    for name in limit.expired(10):
        given_out.append(name)
        limit.stop("b")
        limit.start("d", 10)
    assert given_out == ["a", "c"]
    assert list(limit) == ["d"]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.booleans())))
def test_the_expired_are_those_a_plain_look_at_all_would_find(steps):
    limit, until, now = Limit(7), {}, 0
    for thing, later, stop in steps:
        now += later
        if stop:
            limit.stop(thing)
            until.pop(thing, None)
        else:
            limit.start(thing, now)
            until[thing] = now + 7
        gone = {thing for thing, at in until.items() if at <= now}
        assert set(limit.expired(now)) == gone
        until = {thing: at for thing, at in until.items() if thing not in gone}
        assert set(limit) == set(until)
