"""A worker through phases: what overlaps, who holds a place, what is cancelled as planned."""

from __future__ import annotations

import time

import pytest

from loadstone.load.job import BeginOrder, StopOrder
from loadstone.plan.store import Draft
from loadstone.recording import WireEnd

MS = 1_000_000
COMPLETE, CANCELLED, CUT = WireEnd.COMPLETE, WireEnd.CANCELLED, WireEnd.CUT
PLANNED = WireEnd.CANCELLED_AS_PLANNED

pytestmark = pytest.mark.timeout(20)


@pytest.fixture(autouse=True)
def _form(fly):
    fly.portable = False


def answering(peer):
    peer.serve()


def slow(peer):
    """Answers after 20 ms, as one that thinks before its first token."""
    while True:
        peer.request()
        time.sleep(0.02)
        peer.send(peer.ANSWER)


def talker(peer):
    """Begins at once, and takes 20 ms to the end."""
    while True:
        peer.request()
        peer.send(peer.HEAD + peer.TOKEN)
        time.sleep(0.02)
        peer.send(peer.DONE + peer.LAST)


def stuck(peer):
    peer.request()
    peer.send(peer.HEAD + peer.TOKEN)
    peer.hold()


def most_at_once(spans):
    """The greatest number of spans that have a moment in common; one that ends when another begins is over."""
    moves = sorted(move for begin, end in spans for move in ((begin, 1), (end, -1)))
    level = most = 0
    for _, step in moves:
        level += step
        most = max(most, level)
    return most


def flights_in(flew):
    return [(flown.sends[0], flown.at_ns) for flown in flew.flights]


def before_first_token(flew):
    return [(flown.sends[0], flown.facts.begun_ns) for flown in flew.flights]


def by_phase(flew, number):
    return [flown for flown in flew.flights if flown.facts.phase == number]


def talk(conversation, *due_times, follows=1):
    """The rows of a conversation: when its first turn is due, and its think times (or due times)."""
    last = len(due_times) - 1
    return [
        Draft(
            due,
            b"{}",
            -1,
            -1,
            conversation,
            i,
            0,
            int(i == last),
            follows=int(follows and i > 0),
            opens=int(not i),
        )
        for i, due in enumerate(due_times)
    ]


# ---- limits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("due", [[-1] * 12, [0] * 12])
def test_no_more_than_so_many_are_before_their_first_token(fly, due):
    flew = fly(slow, due=due, orders=[fly.phase(12, slots=8, prefill=2)])
    assert flew.ends == [COMPLETE] * 12
    assert most_at_once(before_first_token(flew)) == 2


def test_a_prefill_place_is_free_when_the_output_begins(fly):
    flew = fly(talker, requests=8, orders=[fly.phase(8, slots=8, prefill=1)])
    assert most_at_once(before_first_token(flew)) == 1
    assert most_at_once(flights_in(flew)) > 1


def test_a_prefill_limit_alone_makes_an_open_loop_wait(fly):
    flew = fly(slow, due=[0] * 6, orders=[fly.phase(6, slots=None, prefill=2)])
    assert most_at_once(flights_in(flew)) == 2
    assert flew.flights[-1].sends[0] - flew.flights[-1].due_ns > 30 * MS


def test_a_failed_request_gives_its_prefill_place_back(fly):
    flew = fly(lambda peer: peer.reset(), answering, requests=5, orders=[fly.phase(5, slots=2, prefill=1)])
    assert len(flew.ends) == 5
    assert flew.ends.count(COMPLETE) >= 3


def test_slots_follow_their_steps(fly):
    steps = ((0, 1), (100 * MS, 4))
    order = fly.phase(None, slots=steps, duration_ns=300 * MS, grace_ns=5_000 * MS)
    flew = fly(slow, requests=200, orders=[order])
    start_ns = flew.done[0].start_ns
    early = [
        (sent, min(end, start_ns + 100 * MS)) for sent, end in flights_in(flew) if sent < start_ns + 100 * MS
    ]
    assert most_at_once(early) == 1
    assert most_at_once(flights_in(flew)) == 4


# ---- conversations ------------------------------------------------------------------------------------


def test_turns_follow_each_other_after_their_think_times(fly):
    rows = [*talk(0, -1, 30 * MS, 0), *talk(1, -1, 10 * MS)]
    flew = fly(answering, due=rows, orders=[fly.phase(5, slots=1)])
    assert flew.ends == [COMPLETE] * 5
    gaps = [
        later.due_ns - earlier.at_ns for earlier, later in zip(flew.flights, flew.flights[1:], strict=False)
    ]
    assert gaps == [30 * MS, 0, 0, 10 * MS]
    assert all(flown.sends[0] >= flown.due_ns for flown in flew.flights)


def test_in_an_open_loop_conversations_begin_while_others_think(fly):
    rows = [*talk(0, 0, 100 * MS), *talk(1, 10 * MS, 0)]
    flew = fly(answering, due=rows, orders=[fly.phase(4, slots=None)])
    sent = [flown.facts.request for flown in sorted(flew.flights, key=lambda flown: flown.sends[0])]
    assert sent == [0, 2, 3, 1]


def test_a_turn_that_was_refused_ends_its_conversation(fly):
    refusal = b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"
    rows = [*talk(0, -1, 0, 0), *talk(1, -1)]
    flew = fly(lambda peer: peer.serve(refusal), due=rows, orders=[fly.phase(4, slots=1)])
    assert [flown.facts.request for flown in flew.flights] == [0, 3]


def test_turns_due_after_the_end_are_not_sent(fly):
    rows = [*talk(0, -1, 1_000 * MS)]
    order = fly.phase(None, slots=1, duration_ns=100 * MS, grace_ns=100 * MS)
    flew = fly(answering, due=rows, orders=[order])
    assert [flown.facts.request for flown in flew.flights] == [0]


# ---- cancellation as planned --------------------------------------------------------------------------


def test_what_is_to_be_cancelled_is_cancelled_so_long_after_it_was_sent(fly):
    rows = [Draft(-1, b"{}", -1, -1, i, 0, 0, cancelled=i % 2) for i in range(4)]
    order = fly.phase(4, slots=4, cancel_after_ns=50 * MS, duration_ns=150 * MS, grace_ns=0)
    flew = fly(stuck, due=rows, orders=[order])
    assert flew.ends == [CUT, PLANNED, CUT, PLANNED]
    for flown in flew.flights[1::2]:
        assert flown.at_ns - flown.sends[0] >= 50 * MS


def test_what_ends_before_it_is_cancelled_is_a_success(fly):
    rows = [Draft(-1, b"{}", -1, -1, i, 0, 0, cancelled=1) for i in range(10)]
    flew = fly(answering, due=rows, orders=[fly.phase(10, slots=2, cancel_after_ns=5_000 * MS)])
    assert flew.ends == [COMPLETE] * 10


# ---- phases without a pause ---------------------------------------------------------------------------


def seamless(fly, count, first_row, number, **changes):
    return fly.phase(count, first_row=first_row, number=number, start_ns=None, **changes)


def test_the_next_phase_begins_while_the_last_answers_of_the_one_before_come(fly):
    orders = [fly.phase(6, slots=3), seamless(fly, 9, 6, 1, slots=3)]
    flew = fly(slow, requests=15, orders=orders)
    assert flew.ends == [COMPLETE] * 15
    first, second = by_phase(flew, 0), by_phase(flew, 1)
    assert (len(first), len(second)) == (6, 9)
    assert min(flown.sends[0] for flown in second) < max(flown.at_ns for flown in first)
    assert most_at_once(flights_in(flew)) == 3
    assert [done.flights for done in flew.done] == [6, 9]


def test_a_phase_with_fewer_slots_waits_until_those_before_it_have_freed_theirs(fly):
    orders = [fly.phase(4, slots=4), seamless(fly, 4, 4, 1, slots=1)]
    flew = fly(slow, requests=8, orders=orders)
    second = by_phase(flew, 1)
    assert most_at_once([(flown.sends[0], flown.at_ns) for flown in second]) == 1
    assert min(flown.sends[0] for flown in second) >= sorted(flown.at_ns for flown in by_phase(flew, 0))[-2]


def test_a_duration_hands_over_at_its_end(fly):
    orders = [
        fly.phase(None, slots=2, duration_ns=100 * MS),
        seamless(fly, None, 500, 1, slots=2, duration_ns=100 * MS, grace_ns=1_000 * MS),
    ]
    flew = fly(slow, requests=800, orders=orders)
    first, second = flew.done
    assert second.start_ns >= first.start_ns + 100 * MS
    assert all(flown.sends[0] < second.start_ns for flown in by_phase(flew, 0))
    assert all(second.start_ns <= flown.sends[0] for flown in by_phase(flew, 1))
    assert most_at_once(flights_in(flew)) == 2


def test_requests_sent_without_a_cap_hold_places_of_a_capped_phase_that_follows(fly):
    orders = [fly.phase(3, slots=None), seamless(fly, 4, 3, 1, slots=2)]
    flew = fly(slow, due=[0, 0, 0, -1, -1, -1, -1], orders=orders)
    assert flew.ends == [COMPLETE] * 7
    ends = sorted(flown.at_ns for flown in by_phase(flew, 0))
    sends = sorted(flown.sends[0] for flown in by_phase(flew, 1))
    assert sends[0] >= ends[1]
    assert sends[1] >= ends[2]


def test_a_place_is_held_by_a_conversation_and_given_once_whatever_limits_follow(fly):
    """Capped, then without a cap, then capped again: conversations of all three are under way at the end."""
    rows = [
        *talk(0, -1, 40 * MS, 0), *talk(1, -1, 40 * MS, 0),
        *[Draft(0, b"{}", -1, -1, i, 0, 1) for i in range(3)],
        *[Draft(-1, b"{}", -1, -1, i, 0, 2) for i in range(8)],
    ]  # fmt: skip
    orders = [
        fly.phase(6, slots=2),
        seamless(fly, 3, 6, 1, slots=None),
        seamless(fly, 8, 9, 2, slots=3),
    ]
    flew = fly(slow, due=rows, orders=orders)
    assert flew.ends == [COMPLETE] * 17
    third = by_phase(flew, 2)
    begun_ns = min(flown.sends[0] for flown in third)
    held = [  # from its first send to its last end a conversation holds its place
        (first.sends[0], last.at_ns)
        for first, last in ((flew.flights[0], flew.flights[2]), (flew.flights[3], flew.flights[5]))
    ]
    spans = [*held, *[(flown.sends[0], flown.at_ns) for flown in (*by_phase(flew, 1), *third)]]
    assert most_at_once([(max(begin, begun_ns), end) for begin, end in spans if end > begun_ns]) == 3


def test_a_phase_may_begin_at_a_moment_whatever_the_one_before_it_does(fly):
    orders = [fly.phase(1, slots=None), fly.phase(2, slots=None, first_row=1, number=1, start_ns=50 * MS)]
    flew = fly(stuck, answering, due=[0, 0, 10 * MS], orders=orders, timeout_ns=300 * MS)
    second, first = flew.done
    assert (first.number, second.number) == (0, 1)
    assert [flown.due_ns - second.start_ns for flown in by_phase(flew, 1)] == [0, 10 * MS]
    assert second.start_ns - first.start_ns == 50 * MS


def test_a_stop_ends_the_phases_under_way_and_those_that_were_to_follow(fly):
    def stopping(peer):
        peer.request()
        now = time.monotonic_ns()
        fly.worker.tell(StopOrder(stop_ns=now, cut_ns=now + 50 * MS, given_up=True))
        peer.hold()

    orders = [fly.phase(5, slots=1), seamless(fly, 5, 5, 1, slots=1)]
    flew = fly(stopping, requests=10, orders=orders)
    assert flew.ends == [CANCELLED]
    first, second = sorted(flew.done, key=lambda done: done.number)
    assert (first.begun, first.flights) == (True, 1)
    assert (second.begun, second.flights) == (False, 0)


def test_prefill_places_held_by_the_phase_before_count(fly):
    orders = [fly.phase(2, slots=4, prefill=2), seamless(fly, 4, 2, 1, slots=4, prefill=2)]
    flew = fly(slow, requests=6, orders=orders)
    assert flew.ends == [COMPLETE] * 6
    assert most_at_once(before_first_token(flew)) == 2


def test_turns_of_a_phase_without_a_prefill_limit_do_not_wait_for_that_of_the_next(fly):
    rows = [*talk(0, 0, 30 * MS), *[Draft(10 * MS, b"{}", -1, -1, i, 0, 1) for i in range(3)]]
    orders = [
        fly.phase(2, slots=None),
        seamless(fly, 3, 2, 1, slots=None, prefill=1),
    ]
    flew = fly(slow, due=rows, orders=orders)
    assert flew.ends == [COMPLETE] * 5
    assert most_at_once(before_first_token(flew)) == 2
    assert most_at_once([(flown.sends[0], flown.facts.begun_ns) for flown in by_phase(flew, 1)]) == 1


def test_a_phase_that_awaits_its_moment_begins_when_it_is_told(fly):
    def telling(peer):
        peer.request()
        fly.worker.tell(BeginOrder(number=1, start_ns=time.monotonic_ns() + 50 * MS))
        peer.send(peer.ANSWER)
        peer.serve()

    orders = [fly.phase(1, slots=1), seamless(fly, 2, 1, 1, slots=None, awaits=True)]
    flew = fly(telling, due=[-1, 0, 5 * MS], orders=orders)
    first, second = flew.done
    assert second.start_ns - first.start_ns >= 50 * MS
    assert [flown.due_ns - second.start_ns for flown in by_phase(flew, 1)] == [0, 5 * MS]
