"""Engines behind one address, on a virtual clock."""

from __future__ import annotations

import heapq
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.worlds import Priced, keys

from loadstone.sim.cost import Linear
from loadstone.sim.deployment import Deployment
from loadstone.sim.engine import Engine, Limits, TooLong
from loadstone.sim.router import Policy
from loadstone.sim.sequence import Sequence

MS = 1_000_000
NEVER_NS = 1 << 62
TEN_MS = Linear(10 * MS, 0, 0)
PROMPTS_COST = Linear(10 * MS, 0, 1000)


def engines(number: int, cost=TEN_MS, **limits) -> list[Engine[Sequence]]:
    return [Engine(cost, Limits(**limits)) for _ in range(number)]


def serve(deployment, coming, jumps: bool, caused=lambda sequence, now_ns: ()) -> dict[Sequence, int]:
    """Plays what comes and goes, as (at_ns, what, sequence) with what "add" or "drop"; where each sequence went.

    `caused` says what else comes when a sequence has ended, in the same form.
    """
    order = count()
    events = [(at_ns, next(order), what, sequence) for at_ns, what, sequence in coming]
    heapq.heapify(events)
    went = {}
    while events or deployment.next_ns is not None:
        now_ns = min(events[0][0] if events else NEVER_NS, deployment.next_ns or NEVER_NS)
        deployment.finish(now_ns)
        for ended in deployment.ended:
            for at_ns, what, sequence in caused(ended, now_ns):
                heapq.heappush(events, (at_ns, next(order), what, sequence))
        while events and events[0][0] == now_ns:
            _, _, what, sequence = heapq.heappop(events)
            if what == "drop":
                deployment.drop(sequence)
            else:
                deployment.add(sequence)
                went[sequence] = deployment.engine_of(sequence)
        deployment.begin(now_ns, (events[0][0] if events else NEVER_NS) if jumps else None)
    return went


def adds(*timed: tuple[int, Sequence]) -> list[tuple[int, str, Sequence]]:
    return [(at_ns, "add", sequence) for at_ns, sequence in timed]


# ---- replicas -----------------------------------------------------------------------------------------------


def test_replicas_serve_side_by_side() -> None:
    a, b, c = Sequence(1, 2), Sequence(1, 2), Sequence(1, 2)
    serve(Deployment(engines(2, max_num_seqs=1)), adds((0, a), (4 * MS, b), (5 * MS, c)), jumps=True)
    assert list(a.times()) == [10 * MS, 20 * MS]
    assert list(b.times()) == [14 * MS, 24 * MS]
    assert list(c.times()) == [30 * MS, 40 * MS]


def test_steps_that_end_together_are_all_told_together() -> None:
    deployment = Deployment(engines(2))
    a, b = Sequence(1, 1), Sequence(1, 2)
    deployment.add(a)
    deployment.add(b)
    deployment.begin(0)
    assert (deployment.next_ns, deployment.running(), deployment.waiting()) == (10 * MS, 2, 0)
    deployment.finish(10 * MS)
    assert deployment.began == [a, b]
    assert deployment.ended == [a]
    assert list(deployment.decoding()) == [b]
    assert deployment.busy


def test_an_idle_deployment_has_no_next_moment() -> None:
    deployment = Deployment(engines(2))
    deployment.begin(0)
    assert deployment.next_ns is None
    assert not deployment.busy


def test_the_caches_of_all_are_emptied_that_can_be() -> None:
    deployment = Deployment(engines(2, block_size=4))
    seqs = [Sequence(8, 1, keys=(1, 2)), Sequence(8, 1, keys=(1, 2))]
    serve(deployment, adds((0, seqs[0]), (0, seqs[1])), jumps=True)
    busy = Sequence(8, 1, keys=(1, 2))
    deployment.add(busy)
    deployment.begin(50 * MS)
    assert not deployment.reset_prefix_cache()
    assert [engine.blocks.match((1, 2), 2) for engine in deployment.engines] == [2, 0]
    deployment.finish(60 * MS)
    assert deployment.reset_prefix_cache()
    assert [engine.blocks.match((1, 2), 2) for engine in deployment.engines] == [0, 0]


@st.composite
def chains(draw):
    """Conversations: (at_ns, think time, turns, each with prompt, output, priority and when its client leaves)."""
    found = []
    at_ns = 0
    for number in range(draw(st.integers(1, 10))):
        at_ns += draw(st.sampled_from([0, 0, 700, 3000, 9000]))
        turns = []
        for _ in range(draw(st.integers(1, 3))):
            prompt, output = draw(st.integers(1, 20)), draw(st.integers(1, 15))
            known = keys(draw(st.integers(1, 2)), draw(st.integers(0, 16)), number, prompt + output, 2)
            leaves = draw(st.none() | st.none() | st.integers(0, 20_000))
            turns.append((prompt, output, known, draw(st.integers(0, 2)), leaves))
        found.append((at_ns, draw(st.sampled_from([0, 500, 4000])), turns))
    return found


def converse(world, deployment: Deployment[Sequence], jumps: bool):
    """Plays conversations, in which a turn follows when the one before has ended; what became of every turn."""
    everyone: list[Sequence] = []
    after: dict[Sequence, tuple[int, list]] = {}

    def turn(at_ns: int, think_ns: int, turns: list):
        prompt, output, known, priority, leaves = turns[0]
        sequence = Sequence(prompt, output, keys=known, priority=priority)
        everyone.append(sequence)
        after[sequence] = (think_ns, turns[1:])
        yield at_ns, "add", sequence
        if leaves is not None:
            yield at_ns + leaves, "drop", sequence

    def caused(ended: Sequence, now_ns: int):
        think_ns, rest = after[ended]
        return list(turn(now_ns + think_ns, think_ns, rest)) if rest else ()

    coming = [event for at_ns, think_ns, turns in world for event in turn(at_ns, think_ns, turns)]
    went = serve(deployment, coming, jumps, caused)
    for engine in deployment.all:
        assert engine.blocks.free == engine.blocks.total
    assert not deployment.busy
    return [
        (one.prompt_tokens, went[one], list(one.times()), one.cached_tokens, one.preemptions, one.ended)
        for one in everyone
    ]


@given(
    chains(),
    st.integers(1, 3),
    st.integers(0, 2),
    st.sampled_from(["round-robin", "least-loaded", "prefix-affine"]),
    st.booleans(),
    st.sampled_from([0, 300]),
    st.sampled_from([(), (0.5,)]),
)
@settings(max_examples=300)
def test_no_engine_is_ahead_of_what_another_one_causes(
    world, replicas: int, prefills: int, policy: Policy, by_priority: bool, token_ns: int, rates
) -> None:
    limits = Limits(
        max_num_seqs=3, max_num_batched_tokens=16, blocks=24, block_size=2, by_priority=by_priority,
        draft_rates=rates,
    )  # fmt: skip

    def made() -> Deployment[Sequence]:
        return Deployment(
            [Engine(Priced(), limits) for _ in range(replicas)],
            policy,
            [Engine(Priced(), limits._replace(prefill_only=True)) for _ in range(prefills)],
            lambda tokens: tokens * token_ns,
        )

    assert converse(world, made(), jumps=True) == converse(world, made(), jumps=False)


# ---- prompts here, answers there ------------------------------------------------------------------------------


def split(transfer_ns, prefills: int = 1, **limits) -> Deployment[Sequence]:
    return Deployment(
        engines(1, PROMPTS_COST, **limits),
        "round-robin",
        engines(prefills, PROMPTS_COST, prefill_only=True, **limits),
        transfer_ns,
    )


def test_the_first_token_comes_after_the_prefill_the_transfer_and_one_step() -> None:
    one = Sequence(1000, 3)
    serve(split(lambda tokens: 7 * tokens), adds((5, one)), jumps=True)
    first_ns = 5 + (10 * MS + 1000 * 1000) + 7 * 1000 + (10 * MS + 1000)
    assert list(one.times()) == [first_ns, first_ns + 10 * MS, first_ns + 20 * MS]


def test_the_prefill_engine_is_free_for_the_next_prompt_while_the_first_one_is_answered() -> None:
    one, other = Sequence(1000, 100), Sequence(1000, 1)
    deployment = split(lambda tokens: 0, max_num_seqs=2)
    serve(deployment, adds((0, one), (1, other)), jumps=True)
    # It is in at 22 ms, in the midst of the second of the steps of 10 ms that the first one takes from 11 ms on.
    assert other.times()[0] == 11 * MS + (10 * MS + 1000) + 10 * MS + (10 * MS + 1000)
    assert [engine.blocks.usage for engine in deployment.all] == [0, 0]


def test_what_is_on_its_way_waits_and_may_be_dropped_there() -> None:
    deployment = split(lambda tokens: 50 * MS)
    gone, stays = Sequence(10, 1), Sequence(10, 1)
    deployment.add(gone)
    deployment.add(stays)
    deployment.begin(0)
    assert deployment.next_ns == 10 * MS + 20_000
    deployment.finish(10 * MS + 20_000)
    assert (deployment.next_ns, deployment.waiting(), deployment.running()) == (60 * MS + 20_000, 2, 0)
    deployment.drop(gone)
    deployment.finish(60 * MS + 20_000)
    deployment.begin(60 * MS + 20_000)
    deployment.finish(70 * MS + 21_000)
    assert deployment.ended == [stays]
    assert not gone.times()


def test_prompts_need_room_on_both_sides_and_answers_where_they_are_given() -> None:
    small = Limits(blocks=2, block_size=16, draft_rates=(0.5,), prefill_only=True)
    deployment = Deployment(engines(1, blocks=8, block_size=16), prefills=[Engine(TEN_MS, small)])
    with pytest.raises(TooLong, match="33 tokens, and the KV cache holds 32"):
        deployment.add(Sequence(32, 1))
    assert not deployment.busy
    with pytest.raises(TooLong, match="129 tokens, and the KV cache holds 128"):
        deployment.add(Sequence(31, 98))
    one = Sequence(31, 97)
    serve(deployment, adds((0, one)), jumps=True)
    assert one.ended


def test_blocks_of_a_prompt_are_taken_until_all_of_it_is_there() -> None:
    deployment = Deployment(
        engines(1, blocks=8, block_size=16),
        prefills=[Engine(TEN_MS, Limits(blocks=4, block_size=16, prefill_only=True))],
        transfer_ns=lambda tokens: tokens * MS,
    )
    source = deployment.prefills[0]
    one, other = Sequence(40, 1, keys=(1, 2)), Sequence(40, 1, keys=(1, 3))
    for sequence in (one, other):
        deployment.add(sequence)
    deployment.begin(0)
    deployment.finish(10 * MS)
    deployment.begin(10 * MS)
    assert (len(source.waiting), len(source.running), source.blocks.usage) == (1, 0, 0.75)
    assert deployment.next_ns == 50 * MS, "no step begins that could do nothing"
    assert not deployment.reset_prefix_cache()
    deployment.finish(50 * MS)
    deployment.begin(50 * MS)
    assert (other.scheduled_ns, other.cached_tokens) == (50 * MS, 16)
    while (next_ns := deployment.next_ns) is not None:
        deployment.finish(next_ns)
        deployment.begin(next_ns)
    assert [list(each.times()) for each in (one, other)] == [[60 * MS], [110 * MS]]
    assert (source.step, source.blocks.usage) == (2, 0)
    answers = deployment.engines[0]
    assert (answers.external_queries, answers.external_hits, answers.prefix_queries) == (80, 80, 0)


def test_one_that_leaves_before_its_prompt_is_taken_in_lets_the_next_one_try() -> None:
    deployment = Deployment(
        engines(1, blocks=8, block_size=16),
        prefills=[Engine(TEN_MS, Limits(blocks=4, block_size=16, prefill_only=True))],
        transfer_ns=lambda tokens: 100 * MS,
    )
    first, long, short = Sequence(40, 1), Sequence(30, 1), Sequence(10, 1)
    for sequence in (first, long, short):
        deployment.add(sequence)
    deployment.begin(0)
    deployment.finish(10 * MS)
    deployment.begin(10 * MS)
    deployment.drop(long)
    deployment.begin(20 * MS)
    assert short.scheduled_ns == 20 * MS


def test_what_is_handed_on_waits_at_the_engine_that_gets_it() -> None:
    deployment = Deployment(engines(2), "least-loaded", engines(1, prefill_only=True), lambda tokens: 50 * MS)
    one, other = Sequence(10, 1), Sequence(10, 1)
    assert one.engine is None
    deployment.add(one)
    deployment.add(other)
    assert [deployment.engine_of(each) for each in (one, other)] == [2, 2]
    deployment.begin(0)
    deployment.finish(10 * MS)
    assert [deployment.engine_of(each) for each in (one, other)] == [0, 1], "each counts where it goes"
    assert [engine.queued for engine in deployment.all] == [1, 1, 0]
    deployment.drop(other)
    assert [engine.queued for engine in deployment.all] == [1, 0, 0]
    assert other.engine == 1
    deployment.finish(60 * MS)
    deployment.begin(60 * MS)
    assert ([engine.queued for engine in deployment.all], deployment.running()) == ([0, 0, 0], 1)


def test_prompts_of_one_priority_from_several_engines_come_in_turn() -> None:
    deployment = split(lambda tokens: 0, prefills=2, by_priority=True, max_num_seqs=1)
    seqs = [Sequence(10, 1) for _ in range(6)]
    serve(deployment, adds(*((0, one) for one in seqs)), jumps=True)
    assert all(one.ended for one in seqs)
    assert len({one.times()[0] for one in seqs}) == 6
