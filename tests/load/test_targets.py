"""Which server a request goes to when any will do."""

from __future__ import annotations

from loadstone.load.targets import Homes
from loadstone.plan.store import ANY_TARGET, Row


def row(conversation=0, turn=0, final=1, target=ANY_TARGET, phase=0):
    return Row(0, 0, 0, 2, -1, -1, conversation, turn, phase, final, target, opens=int(not turn))


def test_a_planned_server_is_kept_to():
    homes = Homes(3)
    homes.in_flight[2] = 9
    assert homes.choose(row(target=2)) == 2


def test_the_one_with_the_fewest_requests_is_chosen():
    homes = Homes(3)
    homes.in_flight[:] = [2, 1, 3]
    assert homes.choose(row()) == 1


def test_of_equals_each_has_its_turn():
    assert [Homes.choose(homes, row(i)) for homes in [Homes(3)] for i in range(5)] == [0, 1, 2, 0, 1]


def test_workers_begin_with_different_ones():
    assert [Homes(2, first=worker).choose(row()) for worker in range(3)] == [0, 1, 0]


def test_a_conversation_stays_where_it_began():
    homes = Homes(2)
    assert homes.choose(row(7, 0, final=0)) == 0
    homes.in_flight[0] = 5
    assert [homes.choose(row(7, 1, final=0)), homes.choose(row(7, 2))] == [0, 0]
    assert homes.choose(row(7, phase=1)) == 1


def test_a_conversation_that_does_not_go_on_is_forgotten():
    homes = Homes(2)
    homes.choose(row(7, final=0))
    homes.forget(row(7))
    homes.forget(row(8))
    assert homes._homes == {}
