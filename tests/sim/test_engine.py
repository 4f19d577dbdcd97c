"""The engine on a virtual clock: exact times, no sockets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.sim.worlds import Priced, World, fitting, play, real, worlds

from loadstone.sim import engine as module
from loadstone.sim.blocks import KvBlocks
from loadstone.sim.cost import Linear
from loadstone.sim.engine import Engine, Limits, TooLong
from loadstone.sim.sequence import Sequence

MS = 1_000_000
TEN_MS = Linear(10 * MS, 0, 0)
NEVER_NS = 1 << 62


def engine(cost=TEN_MS, **limits) -> Engine[Sequence]:
    return Engine(cost, Limits(**limits))


def run(one: Engine[Sequence], *arrivals: tuple[int, Sequence], jumps: bool = True) -> None:
    """Plays arrivals, as (at_ns, sequence) in order, to the end."""
    pending = list(arrivals)
    end_ns = None
    while pending or end_ns is not None:
        moments = [at_ns for at_ns in (end_ns, pending[0][0] if pending else None) if at_ns is not None]
        now_ns = min(moments)
        if end_ns == now_ns:
            one.finish()
            end_ns = None
        while pending and pending[0][0] == now_ns:
            one.add(pending.pop(0)[1])
        if end_ns is None:
            end_ns = one.begin(now_ns, (pending[0][0] if pending else NEVER_NS) if jumps else None)


def step(one: Engine[Sequence], at_ns: int = 0) -> None:
    assert one.begin(at_ns) is not None
    one.finish()


def ms(sequence: Sequence) -> list[float]:
    return [at_ns / MS for at_ns in sequence.times()]


# ---- tokens and steps -----------------------------------------------------------------------------------------


def test_one_sequence_gets_a_token_a_step() -> None:
    one = Sequence(prompt_tokens=5, output_tokens=3)
    run(engine(), (0, one))
    assert ms(one) == [10, 20, 30]
    assert one.ended


def test_a_late_sequence_joins_at_the_next_step() -> None:
    first, late = Sequence(1, 3), Sequence(1, 1)
    run(engine(), (0, first), (4 * MS, late))
    assert ms(late) == [20]
    assert late.scheduled_ns == 10 * MS


def test_who_comes_as_a_step_begins_is_in_it() -> None:
    first, second = Sequence(1, 3), Sequence(1, 1)
    run(engine(), (0, first), (10 * MS, second))
    assert ms(second) == [20]


def test_prompt_and_batch_lengthen_the_step() -> None:
    a, b = Sequence(1000, 2), Sequence(2000, 1)
    run(engine(Linear(10 * MS, MS, 100)), (0, a), (0, b))
    first_ns = 10 * MS + 2 * MS + 3000 * 100
    assert list(b.times()) == [first_ns]
    assert list(a.times()) == [first_ns, first_ns + 11 * MS]


def test_no_more_than_max_num_seqs_run_and_the_rest_come_in_order() -> None:
    a, b, c = Sequence(1, 2), Sequence(1, 1), Sequence(1, 1)
    run(engine(max_num_seqs=1), (0, a), (0, b), (0, c))
    assert [ms(one) for one in (a, b, c)] == [[10, 20], [30], [40]]


def test_an_idle_engine_has_no_step() -> None:
    one = engine()
    assert one.begin(0) is None
    assert one.step_end_ns is None
    assert not one.busy


def test_what_a_step_brought_is_told_once() -> None:
    one, short, long = engine(), Sequence(1, 1), Sequence(1, 2)
    one.add(short)
    one.add(long)
    step(one)
    assert (one.began, one.ended) == ([short, long], [short])
    assert list(one.decoding) == [long]
    step(one)
    assert (one.began, one.ended) == ([], [long])


def test_many_steps_are_taken_as_one_up_to_the_moment_given() -> None:
    one, sequence = engine(), Sequence(1, 100)
    one.add(sequence)
    step(one)
    assert one.begin(10 * MS, until_ns=51 * MS) == 60 * MS
    one.finish()
    assert one.step == 6
    assert one.begin(60 * MS, until_ns=60 * MS) == 70 * MS, "one step in any case"
    one.finish()
    assert one.begin(70 * MS, until_ns=NEVER_NS) == 1000 * MS
    one.finish()
    assert (one.step, one.ended) == (100, [sequence])


def test_more_steps_than_are_asked_for_at_once() -> None:
    sequence = Sequence(1, 3 * module.AT_ONCE_STEPS)
    run(engine(Priced()), (0, sequence))
    plain = Sequence(1, 3 * module.AT_ONCE_STEPS)
    run(engine(Priced()), (0, plain), jumps=False)
    assert sequence.times() == plain.times()


def test_times_outlive_those_that_are_forgotten(monkeypatch) -> None:
    monkeypatch.setattr(module, "TRIM_STEPS", 8)
    long, short = Sequence(1, 50), [Sequence(1, 3) for _ in range(30)]
    one = engine(max_num_seqs=3)
    run(one, (0, long), *((index * 30 * MS, each) for index, each in enumerate(short)))
    assert ms(long) == [10 * (index + 1) for index in range(50)]
    assert [ms(each) for each in short] == [
        [30 * index + 10, 30 * index + 20, 30 * index + 30] for index in range(30)
    ]
    assert len(one._ends) < 30


# ---- prompts --------------------------------------------------------------------------------------------------


def test_a_prompt_is_taken_in_by_as_many_steps_as_its_tokens_need() -> None:
    one = Sequence(25, 1)
    run(engine(max_num_batched_tokens=10), (0, one))
    assert ms(one) == [30]


def test_decodes_come_first_and_a_prompt_gets_the_rest_of_the_tokens() -> None:
    decoding, prompt = Sequence(1, 9), Sequence(18, 1)
    run(engine(max_num_batched_tokens=10), (0, decoding), (10 * MS, prompt))
    assert ms(prompt) == [30]
    assert ms(decoding)[:3] == [10, 20, 30]


def test_chunks_are_no_longer_than_the_threshold() -> None:
    one = engine(long_prefill_token_threshold=4)
    sequence = Sequence(10, 1)
    one.add(sequence)
    chunks = []
    while one.begin(0) is not None:
        chunks.append(one.last_work.prefill_tokens)
        one.finish()
    assert chunks == [4, 4, 2]


def test_without_chunked_prefill_a_prompt_waits_for_a_step_that_takes_it_whole() -> None:
    a, b = Sequence(6, 2), Sequence(6, 2)
    run(engine(max_num_batched_tokens=10, chunked=False), (0, a), (0, b))
    assert (ms(a), ms(b)) == ([10, 20], [20, 30])


def test_work_is_that_of_all_sequences() -> None:
    one = engine(Priced(window=4), max_num_batched_tokens=8)
    decoding, prompt = Sequence(5, 9), Sequence(20, 1)
    one.add(decoding)
    step(one)
    one.add(prompt)
    step(one)
    one.begin(0)
    work = one.last_work
    assert (work.sequences, work.new_tokens, work.prefill_tokens) == (2, 8, 7)
    assert work.kv_tokens == 7 + 14
    assert work.pairs == 7 + sum(range(8, 15))
    assert (work.prefill_kv_tokens, work.prefill_pairs) == (14, sum(range(8, 15)))
    assert (work.window_kv_tokens, work.window_pairs) == (4 + 3 + 7, 4 + 7 * 4)


@pytest.mark.parametrize(
    ("limits", "prompt", "output", "message"),
    [
        ({"max_model_len": 100}, 60, 41, "101 tokens, and max_model_len is 100"),
        ({"blocks": 4, "block_size": 16}, 60, 5, "65 tokens, and the KV cache holds 64"),
        ({"blocks": 4, "block_size": 16, "draft_rates": (0.5,)}, 60, 4, "64 tokens, .* holds 63"),
        ({"max_num_batched_tokens": 50, "chunked": False}, 50, 1, "51 tokens, .* a step takes 50"),
    ],
)
def test_what_could_never_be_served_is_refused(limits, prompt: int, output: int, message: str) -> None:
    one = engine(**limits)
    with pytest.raises(TooLong, match=message):
        one.add(Sequence(prompt, output))
    one.add(Sequence(prompt - 2, output - 1 or 1))
    assert len(one.waiting) == 1


# ---- prefix cache ---------------------------------------------------------------------------------------------


def test_an_equal_beginning_is_computed_once_but_for_the_last_token() -> None:
    one = engine(Linear(MS, 0, 1000), block_size=4)
    first, same, shorter = (Sequence(tokens, 1, keys=(1, 2)) for tokens in (8, 8, 6))
    run(one, (0, first), (10 * MS, same), (20 * MS, shorter))
    assert [each.cached_tokens for each in (first, same, shorter)] == [0, 4, 4]
    assert list(same.times()) == [10 * MS + MS + 4000]
    assert (one.prefix_queries, one.prefix_hits) == (22, 8)


def test_blocks_are_shared_within_the_step_that_computes_them() -> None:
    one = engine(block_size=4)
    a, b = Sequence(9, 2, keys=(1, 2)), Sequence(9, 2, keys=(1, 2))
    one.add(a)
    one.add(b)
    one.begin(0)
    assert (one.last_work.prefill_tokens, b.cached_tokens) == (9 + 1, 8)
    assert one.blocks.total - one.blocks.free == 3 + 1


def test_an_answer_is_found_by_the_next_turn() -> None:
    one = engine(block_size=4)
    turn, following = Sequence(6, 7, keys=(1, 2, 3)), Sequence(20, 1, keys=(1, 2, 3, 4, 5))
    run(one, (0, turn), (100 * MS, following))
    assert following.cached_tokens == 12, "13 tokens, the last of which was never taken in"


def test_nothing_is_found_without_a_cache() -> None:
    one = engine(block_size=4, caching=False)
    a, b = Sequence(9, 1, keys=(1, 2)), Sequence(9, 1, keys=(1, 2))
    run(one, (0, a), (20 * MS, b))
    assert (b.cached_tokens, one.prefix_queries, one.prefix_hits) == (0, 0, 0)


def test_a_prompt_that_its_client_leaves_in_mid_step_leaves_whole_blocks_behind() -> None:
    one = engine(block_size=4, blocks=8)
    gone, other, later = (Sequence(9, 2, keys=(1, 2)) for _ in range(3))
    one.add(gone)
    one.add(other)
    one.begin(0)
    one.drop(gone)
    assert one.blocks.free == 8 - 3, "the other one holds the shared blocks still"
    one.finish()
    one.drop(other)
    assert one.blocks.free == 8
    one.add(later)
    one.begin(0)
    assert later.cached_tokens == 8


# ---- blocks run out -------------------------------------------------------------------------------------------


def test_the_last_of_the_batch_gives_way_and_comes_back_first() -> None:
    one = engine(block_size=4, blocks=5)
    first, last, waits = Sequence(8, 6), Sequence(8, 4), Sequence(1, 1)
    for each in (first, last, waits):
        one.add(each)
    step(one)
    step(one, 10 * MS)  # `waits` has gone and the fifth block serves the first; the last gives way
    assert (list(one.running), list(one.waiting)) == ([first], [last])
    assert (last.preemptions, one.preemptions, last.produced(one.step)) == (1, 1, 1)


def test_who_gave_way_is_computed_again_and_keeps_the_times_of_its_tokens() -> None:
    one = engine(block_size=4, blocks=5)
    first, last = Sequence(8, 6), Sequence(8, 4)
    run(one, (0, first), (0, last))
    assert ms(first) == [10, 20, 30, 40, 50, 60]
    assert ms(last) == [10, 70, 80, 90]
    assert last.ended


def test_the_first_token_after_it_is_told_apart() -> None:
    one = engine(block_size=4, blocks=5)
    first, last = Sequence(8, 2), Sequence(8, 4)
    one.add(first)
    one.add(last)
    step(one)
    step(one)
    assert one.ended == [first]
    step(one)
    assert (one.began, one.resumed) == ([], [last])


def test_by_priority_the_least_urgent_gives_way() -> None:
    one = engine(block_size=4, blocks=5, by_priority=True)
    humble, urgent = Sequence(8, 4, priority=5), Sequence(8, 4, priority=1)
    one.add(humble)
    step(one)
    one.add(urgent)
    for at_ns in range(3):
        step(one, at_ns)
    assert (humble.preemptions, urgent.preemptions) == (1, 0)


def test_by_priority_the_most_urgent_is_next() -> None:
    one = engine(max_num_seqs=1, by_priority=True)
    busy, later, sooner = Sequence(1, 2), Sequence(1, 1, priority=2), Sequence(1, 1, priority=-1)
    run(one, (0, busy), (MS, later), (2 * MS, sooner))
    assert (ms(sooner), ms(later)) == ([30], [40])


def test_a_chunk_that_was_never_computed_is_not_found() -> None:
    """By priority one may give way in the very step that was to compute a chunk of it."""
    one = engine(block_size=2, blocks=5, max_num_batched_tokens=6, by_priority=True, reserve_full_isl=False,
                 long_prefill_token_threshold=2)  # fmt: skip
    humble, urgent = Sequence(8, 1, keys=(1, 2, 3, 4), priority=5), Sequence(8, 1, priority=1)
    one.add(humble)
    step(one)
    one.add(urgent)
    while not humble.preemptions:
        step(one)
    known = [key for key in (1, 2, 3, 4) if one.blocks.match([key], 1)]
    assert known == list(range(1, len(known) + 1))
    while one.begin(0) is not None:
        one.finish()
    assert one.blocks.free == 5


# ---- clients that leave -----------------------------------------------------------------------------------------


def test_a_dropped_sequence_gets_nothing_more() -> None:
    one = engine(max_num_seqs=1)
    gone, waits, stays = Sequence(1, 9), Sequence(1, 9), Sequence(1, 1)
    for sequence in (gone, waits, stays):
        one.add(sequence)
    one.begin(0)
    one.drop(gone)
    one.drop(waits)
    one.finish()
    assert one.began == one.ended == []
    step(one, 10 * MS)
    assert one.ended == [stays]
    assert (len(gone.times()), len(waits.times())) == (0, 0)


def test_who_leaves_keeps_the_tokens_of_the_steps_that_were_over() -> None:
    one, sequence = engine(), Sequence(1, 100)
    one.add(sequence)
    step(one)
    one.begin(10 * MS, until_ns=44 * MS)
    one.drop(sequence)
    assert ms(sequence) == [10, 20, 30, 40]
    assert one.step_end_ns == 50 * MS
    one.finish()
    assert not one.busy


def test_old_times_are_looked_for_again_only_when_they_are_twice_as_many(monkeypatch) -> None:
    monkeypatch.setattr(module, "TRIM_STEPS", 4)
    trims: list[int] = []
    trim = Engine._trim
    monkeypatch.setattr(Engine, "_trim", lambda one: (trims.append(one.step), trim(one))[1])
    one, old = engine(), Sequence(1, 1001)
    run(one, (0, old), jumps=False)
    assert trims == [4, 8, 16, 32, 64, 128, 256, 512]
    assert ms(old) == [10 * step for step in range(1, 1002)]
    young = [Sequence(1, 3) for _ in range(300)]
    run(one, *((10**12 + number * 100 * MS, each) for number, each in enumerate(young)))
    assert len(one._ends) < 3000
    assert all(len(each.times()) == 3 for each in young)


def test_one_that_does_not_fit_is_looked_for_again_only_when_something_has_changed(monkeypatch) -> None:
    looked: list[int] = []
    match = KvBlocks.match
    monkeypatch.setattr(
        KvBlocks, "match", lambda blocks, keys, most: (looked.append(most), match(blocks, keys, most))[1]
    )
    one = engine(blocks=8, block_size=4)
    first, second = Sequence(20, 8, keys=tuple(range(7))), Sequence(28, 4, keys=(0, 1, 2, *range(9, 14)))
    run(one, (0, first), (1, second), jumps=False)
    assert first.times()[-1] == 80 * MS
    assert (second.times()[0], second.cached_tokens) == (90 * MS, 12)
    assert looked == [4, 6, 6], "when the first came in, when the second did not, and when the first had gone"


def test_the_tokens_left_of_a_step_are_carried_from_prompt_to_prompt(monkeypatch) -> None:
    asked: list[int] = []
    budget = Engine._budget
    monkeypatch.setattr(Engine, "_budget", lambda one: (asked.append(one.step), budget(one))[1])
    one = engine(long_prefill_token_threshold=4, max_num_batched_tokens=1000)
    run(one, *((0, Sequence(12, 1)) for _ in range(50)), jumps=False)
    assert one.step == 3
    assert len(asked) <= 2 * one.step


# ---- speculation ------------------------------------------------------------------------------------------------


def test_tokens_of_one_step_have_one_time() -> None:
    one, sequence = engine(draft_rates=(1.0, 1.0)), Sequence(1, 8)
    run(one, (0, sequence))
    assert ms(sequence) == [10, 20, 20, 20, 30, 30, 30, 40]
    assert one.drafts == (6, 6)


@pytest.mark.parametrize("drafts", [1, 3])
def test_with_speculation_a_step_brings_one_and_a_and_a_squared(drafts: int) -> None:
    one, sequences = engine(draft_rates=(0.6,) * drafts), [Sequence(1, 2001) for _ in range(20)]
    run(one, *((0, each) for each in sequences))
    steps = sum(len(set(each.times())) - 1 for each in sequences)
    assert 20 * 2000 / steps == pytest.approx(sum(0.6**power for power in range(drafts + 1)), rel=0.01)


def test_drafts_lengthen_a_step_by_their_share_of_a_plain_one() -> None:
    sequence = Sequence(1, 2)
    run(engine(draft_rates=(0.0, 0.0), draft_share=0.25), (0, sequence))
    assert ms(sequence) == [10, 10 + 10 + 2 * 0.25 * 10]


def test_a_draft_beside_a_window_costs_its_share_of_a_step_that_reads_no_more_than_it() -> None:
    sequence = Sequence(20, 2)
    run(engine(Priced(window=4), draft_rates=(0.0, 0.0), draft_share=0.5), (0, sequence))
    counts = {"new_tokens": 1, "prefill_tokens": 0, "sequences": 1, "kv_tokens": 21, "pairs": 21}
    plain = Priced(4).of({**counts, "window_kv_tokens": 4, "window_pairs": 4})
    drafted = Priced(4).of(
        {
            "new_tokens": 3, "prefill_tokens": 0, "sequences": 1, "kv_tokens": 23, "pairs": 21 + 22 + 23,
            "window_kv_tokens": 6, "window_pairs": 12,
        }
    )  # fmt: skip
    assert sequence.times()[1] - sequence.times()[0] == drafted + plain


def test_without_speculation_nothing_is_drafted() -> None:
    assert engine().drafts == (0, 0)


# ---- always -----------------------------------------------------------------------------------------------------


@given(worlds(drops=False))
@settings(max_examples=200)
def test_every_sequence_gets_all_its_tokens_in_order_and_gives_everything_back(world: World) -> None:
    world = fitting(world)
    one, sequences = real(world)
    play(world, one, sequences, True)
    for asked, sequence in zip(world.requests, sequences, strict=True):
        times = list(sequence.times())
        assert len(times) == asked.output
        assert times == sorted(times)
        assert times[0] > (sequence.scheduled_ns or 0) >= asked.at_ns
        assert sequence.ended
        if not world.rules.rates:
            assert len(set(times)) == asked.output
    assert (one.blocks.free, one.blocks.usage, one.busy) == (world.rules.blocks, 0, False)
    assert one.last_work.sequences <= world.rules.seqs


@given(worlds())
@settings(max_examples=200)
def test_no_step_takes_more_than_it_may(world: World) -> None:
    world = fitting(world)
    one, sequences = real(world)

    def look(moment) -> None:
        assert one.last_work.new_tokens <= world.rules.budget
        assert one.last_work.sequences <= world.rules.seqs
        assert len(one.running) <= world.rules.seqs
        assert 0 <= one.blocks.free <= one.blocks.total

    play(world, one, sequences, False, look)
