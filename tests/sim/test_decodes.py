"""Sequences that decode, as sums: against the same counted one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim.decodes import NEVER, Decodes, Speculative, windowed_pairs
from loadstone.sim.sequence import Sequence


def joining(target: int, left: int, order: int = 1) -> Sequence:
    """One whose first token has just come; so many are to come still."""
    made = Sequence(target, left + 1, draw=order)
    made.base = 1
    return made


def test_a_sequence_ends_with_its_last_token() -> None:
    decodes: Decodes[Sequence] = Decodes(4, None)
    one = joining(10, 3)
    decodes.join(one, 5)
    for step in (6, 7):
        decodes.advance(step, 1)
        assert list(decodes.ending(step)) == []
    decodes.advance(8, 1)
    assert list(decodes.ending(8)) == [one]
    assert decodes.kv_tokens == 13
    assert decodes.leave(one, 8) == 13
    assert (decodes.kv_tokens, list(decodes.sequences)) == (0, [])


def test_a_block_is_needed_by_the_first_token_in_it() -> None:
    decodes: Decodes[Sequence] = Decodes(4, None)
    decodes.join(joining(10, 50), 0)
    assert [decodes.needs(step) for step in range(1, 9)] == [0, 0, 1, 0, 0, 0, 1, 0]
    assert decodes.take(1, 8) == 2
    assert decodes.take(3, 1) == 1


def test_steps_are_taken_as_one_up_to_the_next_change() -> None:
    decodes: Decodes[Sequence] = Decodes(4, 16)
    decodes.join(joining(10, 9), 0)
    assert decodes.constant(0, free=100) == 6, "then its window is full"
    decodes.advance(6, 6)
    assert decodes.constant(6, free=100) == 3, "then its last token is out"


def test_steps_are_taken_as_one_while_there_are_blocks_for_all() -> None:
    decodes: Decodes[Sequence] = Decodes(4, None)
    for order in range(3):
        decodes.join(joining(10, 1000, order), 0)
    assert decodes.constant(0, free=2) == 1, "the blocks of the first step have been taken"
    assert decodes.constant(0, free=3) == 5
    assert decodes.constant(0, free=8) == 9
    assert decodes.constant(0, free=NEVER) == 1000


@given(st.integers(0, 50), st.integers(1, 50), st.integers(1, 60))
def test_windowed_pairs_are_those_of_each_token(computed: int, chunk: int, window: int) -> None:
    assert windowed_pairs(computed, chunk, window) == sum(
        min(computed + i, window) for i in range(1, chunk + 1)
    )


crowds = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 20), st.integers(0, 15), st.none() | st.integers(1, 10)),
    min_size=1,
    max_size=12,
)


@given(crowds, st.integers(1, 5), st.none() | st.integers(1, 25), st.sampled_from([(), (0.5,), (1.0, 0.3)]))
def test_sums_are_those_of_the_sequences(crowd, size: int, window: int | None, rates) -> None:
    decodes: Decodes[Sequence] = Speculative(size, window, rates, seed=3) if rates else Decodes(size, window)
    each = 1 + len(rates)
    pending = [
        (joins, leaves, joining(target, left, order))
        for order, (target, left, joins, leaves) in enumerate(crowd)
    ]
    for step in range(60):
        for _, _, one in [entry for entry in pending if entry[0] == step]:
            decodes.join(one, step)
        for joins, leaves, one in pending:
            if leaves is not None and joins + leaves == step and one in decodes.sequences:
                assert decodes.leave(one, step) == one.target + one.produced(step) - 1
        stored = {one: one.target + one.produced(step) - 1 for one in decodes.sequences}
        blocks = {one: decodes.blocks(one, step) for one in stored}
        assert decodes.kv_tokens == sum(stored.values())
        if window is not None:
            assert decodes.windowed(step + 1) == (
                sum(min(tokens, window - 1) + each for tokens in stored.values()),
                sum(min(tokens + i, window) for tokens in stored.values() for i in range(1, each + 1)),
            )
        assert decodes.needs(step + 1) == sum(decodes.blocks(one, step + 1) - blocks[one] for one in stored)
        for one, tokens in stored.items():
            assert decodes.blocks(one, step + 1) == -(-(tokens + each) // size)
        decodes.advance(step + 1, 1)
        ending = list(decodes.ending(step + 1))
        assert set(ending) == {one for one in stored if one.produced(step + 1) == one.output_tokens}
        for one in ending:
            decodes.leave(one, step + 1)
    assert decodes.kv_tokens == 0
    assert window is None or decodes.windowed(60) == (0, 0)


@pytest.mark.parametrize(
    ("rates", "mean"), [((0.7,) * 3, 1 + 0.7 + 0.49 + 0.343), ((0.9, 0.4), 1 + 0.9 + 0.36)]
)
def test_a_step_brings_one_token_and_the_drafts_before_the_first_that_is_refused(rates, mean: float) -> None:
    decodes: Speculative[Sequence] = Speculative(16, None, rates, seed=1)
    one = joining(10, 100_000)
    decodes.join(one, 0)
    assert 100_000 / one.last_step == pytest.approx(mean, rel=0.01)
    assert [one.produced(0), one.produced(one.last_step)] == [1, 100_001]


def test_drafts_are_all_accepted_or_none() -> None:
    always: Speculative[Sequence] = Speculative(16, None, (1.0, 1.0), seed=1)
    never: Speculative[Sequence] = Speculative(16, None, (0.0, 0.0), seed=1)
    fast, slow = joining(10, 7), joining(10, 7)
    always.join(fast, 0)
    never.join(slow, 0)
    assert (list(fast.pace), fast.last_step) == ([0, 3, 6, 7], 3)
    assert (list(slow.pace), slow.last_step) == ([0, 1, 2, 3, 4, 5, 6, 7], 7)


def test_drafts_are_counted_by_steps_and_past_the_end_of_an_answer_but_not_for_who_has_left() -> None:
    decodes: Speculative[Sequence] = Speculative(16, None, (1.0, 1.0), seed=1)
    stays, leaves = joining(10, 4), joining(10, 30)
    decodes.join(stays, 0)
    decodes.join(leaves, 0)
    assert (decodes.drafted, decodes.accepted) == (0, 0)
    decodes.advance(1, 1)
    assert (decodes.drafted, decodes.accepted) == (4, 4)
    decodes.leave(leaves, 1)
    decodes.advance(2, 1)
    assert (decodes.drafted, decodes.accepted) == (6, 6), (
        "its fourth token was the last, and two came behind it"
    )
    assert stays.surplus == 2


def test_a_plain_step_of_all_that_draft_reads_one_token_of_each_within_the_window() -> None:
    decodes: Speculative[Sequence] = Speculative(16, 12, (0.0, 0.0), seed=1)
    for target in (5, 40):
        decodes.join(joining(target, 30), 0)
    assert decodes.plain(1) == 6 + 12
    decodes.advance(1, 1)
    assert decodes.plain(2) == 7 + 12


def test_how_drafts_fare_depends_on_the_seed_and_what_was_asked_alone() -> None:
    def pace(seed: int, draw: int, at: int) -> list[int]:
        decodes: Speculative[Sequence] = Speculative(16, None, (0.5,), seed)
        one = joining(10, 60, draw)
        one.order = at
        decodes.join(one, at)
        return list(one.pace)

    assert pace(1, 1, at=0) == pace(1, 1, at=99)
    assert pace(1, 1, at=0) != pace(1, 2, at=0)
    assert pace(1, 1, at=0) != pace(2, 1, at=0)
