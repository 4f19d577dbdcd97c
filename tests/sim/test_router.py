"""Which engine a request goes to."""

from __future__ import annotations

from loadstone.sim.cost import Linear
from loadstone.sim.engine import Engine, Limits
from loadstone.sim.router import router
from loadstone.sim.sequence import Sequence

COST = Linear(1000, 0, 0)


def engines(*loads: tuple[int, int]) -> list[Engine[Sequence]]:
    """Engines with so many (running, waiting)."""
    made = []
    for running, waiting in loads:
        engine: Engine[Sequence] = Engine(COST, Limits(max_num_seqs=max(running, 1), block_size=4))
        for _ in range(running):
            engine.add(Sequence(1, 100))
        engine.begin(0)
        engine.finish()
        for _ in range(waiting):
            engine.add(Sequence(1, 100))
        made.append(engine)
    return made


def remember(engine: Engine[Sequence], keys: tuple[int, ...]) -> None:
    """Has these blocks in the prefix cache of an idle engine."""
    engine.add(Sequence(4 * len(keys), 1, keys=keys))
    engine.begin(0)
    engine.finish()


ANY = Sequence(10, 1)


def test_a_single_engine_gets_all() -> None:
    for policy in ("round-robin", "least-loaded", "prefix-affine"):
        choose = router(policy, engines((5, 5)))
        assert [choose(ANY) for _ in range(3)] == [0, 0, 0]


def test_round_robin_asks_nobody_how_loaded_he_is() -> None:
    choose = router("round-robin", engines((9, 9), (0, 0), (1, 0)))
    assert [choose(ANY) for _ in range(5)] == [0, 1, 2, 0, 1]


def test_least_loaded_counts_one_that_waits_as_four_that_run() -> None:
    assert router("least-loaded", engines((6, 0), (1, 1)))(ANY) == 1
    assert router("least-loaded", engines((4, 0), (1, 1)))(ANY) == 0


def test_among_equals_the_first_is_taken() -> None:
    assert router("least-loaded", engines((3, 0), (3, 0), (3, 0)))(ANY) == 0


def test_prefix_affine_goes_where_the_longest_beginning_is() -> None:
    three = engines((0, 0), (0, 0), (0, 0))
    remember(three[1], (1,))
    remember(three[2], (1, 2))
    choose = router("prefix-affine", three)
    assert choose(Sequence(20, 1, keys=(1, 2, 3))) == 2
    assert choose(Sequence(20, 1, keys=(1, 9))) == 1, "both have one block: the first of the least loaded"
    assert choose(Sequence(20, 1, keys=(7, 2))) == 0, "nobody has anything: the least loaded"


def loaded_cache(requests: int) -> list[Engine[Sequence]]:
    """One engine that knows a beginning and has so many requests running, and an idle one."""
    busy: Engine[Sequence] = Engine(COST, Limits(max_num_seqs=200, block_size=4))
    remember(busy, (1,))
    for _ in range(requests):
        busy.add(Sequence(1, 100))
    busy.begin(0)
    busy.finish()
    return [busy, *engines((0, 0))]


def test_a_prefix_is_given_up_for_an_engine_that_is_far_less_loaded() -> None:
    request = Sequence(20, 1, keys=(1,))
    assert router("prefix-affine", loaded_cache(32))(request) == 0
    assert router("prefix-affine", loaded_cache(33))(request) == 1
