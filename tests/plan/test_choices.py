"""Which server and model a conversation goes to, and which requests are cancelled."""

from __future__ import annotations

from itertools import islice

import pytest

from loadstone.plan.choices import Choice, canceller, chooser
from loadstone.plan.schedule import Phase
from loadstone.plan.store import ANY_TARGET

N = 10_000


def counts(choice, seed=7):
    choose = chooser(choice, seed)
    chosen = [choose(number) for number in range(N)]
    return [chosen.count(position) for position in range(choice.among)]


def cancelled(share, kind="measured", seed=7, n=N):
    phase = Phase(name="p", kind=kind, pattern="closed", cancelled_share=share)
    return list(islice(map(canceller(phase, seed), range(n)), n))


def four_sigma(share):
    return 4 * (share * (1 - share) * N) ** 0.5


def test_by_default_the_turn_of_each_comes_round():
    choose = chooser(Choice(among=3), 7)
    assert [choose(number) for number in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert counts(Choice(among=4, strategy="round-robin")) == [N / 4] * 4


def test_round_robin_is_what_was_asked_for_even_when_there_are_weights():
    assert counts(Choice(among=2, strategy="round-robin", weights=(9, 1))) == [N / 2] * 2


@pytest.mark.parametrize(
    ("choice", "shares"),
    [
        (Choice(among=4, strategy="random"), [0.25] * 4),
        (Choice(among=2, strategy="random", weights=(9, 1)), [0.5] * 2),
        (Choice(among=3, strategy="weighted", weights=(3, 1, 4)), [0.375, 0.125, 0.5]),
        (Choice(among=3, weights=(0.3, 0.1, 0.4)), [0.375, 0.125, 0.5]),
        (Choice(among=2, strategy="weighted"), [0.5] * 2),
    ],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_chance_gives_everyone_their_share(choice, shares, seed):
    found = counts(choice, seed)
    assert sum(found) == N
    assert [abs(n - share * N) < four_sigma(share) for n, share in zip(found, shares, strict=True)] == [
        True
    ] * len(shares)


def test_weights_beyond_all_measure_still_choose():
    assert counts(Choice(among=3, weights=(1e300, 5e-324, 1e300)))[1] == 0
    assert sum(counts(Choice(among=2, weights=(5e-324, 5e-324)))) == N


@pytest.mark.parametrize("choice", [Choice(among=5, strategy="random"), Choice(among=2, weights=(2, 1))])
def test_a_choice_depends_on_seed_and_number_only(choice):
    one, again, other = chooser(choice, 1), chooser(choice, 1), chooser(choice, 2)
    backwards = [again(number) for number in reversed(range(200))]
    assert [one(number) for number in range(200)] == backwards[::-1]
    assert [one(number) for number in range(200)] != [other(number) for number in range(200)]


def test_the_least_busy_server_is_known_only_when_the_request_is_sent():
    choose = chooser(Choice(among=3, strategy="least-in-flight"), 7)
    assert {choose(number) for number in range(9)} == {ANY_TARGET}


@pytest.mark.parametrize("strategy", [None, "random", "least-in-flight"])
@pytest.mark.parametrize("among", [0, 1])
def test_where_there_is_one_there_is_no_choice(strategy, among):
    choose = chooser(Choice(among=among, strategy=strategy), 7)
    assert {choose(number) for number in range(9)} == {0}


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.99])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_share_that_is_cancelled(share, seed):
    assert abs(sum(cancelled(share, seed=seed)) - share * N) < four_sigma(share)


def test_none_or_all_are_cancelled_exactly():
    assert sum(cancelled(0.0)) == 0
    assert sum(cancelled(1.0)) == N


def test_in_a_warmup_nothing_is_cancelled_and_in_a_cooldown_as_before():
    assert sum(cancelled(1.0, "warmup")) == 0
    assert cancelled(0.3, "cooldown") == cancelled(0.3)


def test_more_requests_leave_the_first_ones_as_they_were():
    assert cancelled(0.3, n=100) == cancelled(0.3, n=1_000)[:100]


def test_whoever_is_cancelled_at_a_lower_share_is_at_a_higher_one():
    assert all(high for low, high in zip(cancelled(0.1), cancelled(0.3), strict=True) if low)
