"""The engine on a virtual clock: exact times, no sockets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim.cost import linear
from loadstone.sim.engine import Engine, Sequence

MS = 1_000_000
TEN_MS = linear(step_ns=10 * MS, sequence_ns=0, prefill_token_ns=0)


def run(engine: Engine[Sequence], arrivals: dict[int, list[Sequence]]) -> dict[Sequence, list[int]]:
    """Plays arrivals (by ns) against the engine; the moments of each sequence's tokens."""
    tokens: dict[Sequence, list[int]] = {s: [] for group in arrivals.values() for s in group}
    now_ns, pending = 0, sorted(arrivals.items())
    while pending or engine.waiting or engine.running:
        if not engine.waiting and not engine.running:
            now_ns = max(now_ns, pending[0][0])
        while pending and pending[0][0] <= now_ns:
            for sequence in pending.pop(0)[1]:
                engine.add(sequence)
        end_ns = engine.begin(now_ns)
        assert end_ns is not None
        now_ns = end_ns
        for sequence in engine.finish():
            tokens[sequence].append(now_ns)
    return tokens


def test_one_sequence_gets_a_token_a_step() -> None:
    one = Sequence(prompt_tokens=5, output_tokens=3)
    assert run(Engine(TEN_MS, 8), {0: [one]})[one] == [10 * MS, 20 * MS, 30 * MS]
    assert one.ended


def test_a_late_sequence_joins_at_the_next_step() -> None:
    first, late = Sequence(1, 3), Sequence(1, 1)
    tokens = run(Engine(TEN_MS, 8), {0: [first], 4 * MS: [late]})
    assert tokens[late] == [20 * MS]


def test_prompt_and_batch_lengthen_the_step() -> None:
    cost = linear(step_ns=10 * MS, sequence_ns=MS, prefill_token_ns=100)
    a, b = Sequence(1000, 2), Sequence(2000, 1)
    tokens = run(Engine(cost, 8), {0: [a, b]})
    first_ns = 10 * MS + 2 * MS + 3000 * 100
    assert tokens[b] == [first_ns]
    assert tokens[a] == [first_ns, first_ns + 11 * MS]


def test_no_more_than_max_num_seqs_run_and_the_rest_come_in_order() -> None:
    a, b, c = Sequence(1, 2), Sequence(1, 1), Sequence(1, 1)
    tokens = run(Engine(TEN_MS, 1), {0: [a, b, c]})
    assert [tokens[s] for s in (a, b, c)] == [[10 * MS, 20 * MS], [30 * MS], [40 * MS]]


def test_an_idle_engine_has_no_step() -> None:
    engine: Engine[Sequence] = Engine(TEN_MS, 1)
    assert engine.begin(0) is None
    assert engine.step_end_ns is None


def test_a_dropped_sequence_gets_nothing_more() -> None:
    engine: Engine[Sequence] = Engine(TEN_MS, 1)
    gone, waits, stays = Sequence(1, 9), Sequence(1, 9), Sequence(1, 1)
    for sequence in (gone, waits, stays):
        engine.add(sequence)
    engine.begin(0)
    engine.drop(gone)
    engine.drop(waits)
    assert engine.finish() == []
    engine.begin(10 * MS)
    assert engine.finish() == [stays]
    assert (gone.produced, waits.produced) == (0, 0)


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=30),
    st.integers(1, 8),
)
def test_every_sequence_gets_all_its_tokens_in_order(
    asked: list[tuple[int, int, int]], max_num_seqs: int
) -> None:
    arrivals: dict[int, list[Sequence]] = {}
    for at_ms, prompt_tokens, output_tokens in asked:
        arrivals.setdefault(at_ms * MS, []).append(Sequence(prompt_tokens, output_tokens))
    tokens = run(Engine(linear(MS, 1000, 1000), max_num_seqs), arrivals)
    for at_ns, group in arrivals.items():
        for sequence in group:
            moments = tokens[sequence]
            assert len(moments) == sequence.output_tokens
            assert moments == sorted(set(moments))
            assert moments[0] > at_ns
