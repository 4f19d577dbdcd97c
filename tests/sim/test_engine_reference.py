"""The real engine against the plain one: the same worlds give the same times, hits, preemptions, blocks and work."""

from __future__ import annotations

from hypothesis import example, given, settings
from tests.sim.reference_engine import Rules
from tests.sim.worlds import WORK, Request, World, fitting, play, real, reference, worlds

FIRST, SECOND = range(3000, 3009), range(2000, 2009)
LESS_FOUND_FITS = World(
    Rules(seqs=3, budget=16, blocks=14, size=3, threshold=2, reserves=False, window=8),
    [
        Request(45_100, 21, 8, tuple(FIRST[:6]), 0, None),
        Request(50_100, 19, 10, tuple(SECOND), 0, None),
        Request(51_600, 1, 19, tuple(FIRST[:7]), 0, None),
    ],
)
"""One that gave way finds less and less of itself, and with less found its next chunk takes fewer blocks that are free."""


def story(world: World, made, state) -> tuple[list, object, list]:
    engine, players = made
    moments: list = []
    play(world, engine, players, False, lambda moment: moments.append((moment, *state(engine, world))))
    return moments, engine, players


def all_keys(world: World) -> list[int]:
    return sorted({key for request in world.requests for key in request.keys})


def state_of_real(engine, world):
    work = engine.last_work
    return (
        {name: getattr(work, name) for name in WORK},
        engine.blocks.free,
        [key for key in all_keys(world) if engine.blocks.match([key], 1)],
        len(engine.waiting),
        len(engine.running),
        len(engine.decoding),
    )


def state_of_reference(engine, world):
    return (
        dict(engine.work),
        engine.pool.free(),
        [key for key in all_keys(world) if engine.pool.find(key)],
        len(engine.waiting),
        len(engine.running),
        len(engine.decoding),
    )


@given(worlds(lends=True))
@settings(max_examples=400)
def test_step_by_step_it_does_what_the_plain_engine_does(world: World) -> None:
    world = fitting(world)
    moments, engine, sequences = story(world, real(world), state_of_real)
    expected, plain, jobs = story(world, reference(world), state_of_reference)
    assert moments == expected
    assert [list(one.times()) for one in sequences] == [job.times for job in jobs]
    assert [one.cached_tokens for one in sequences] == [job.cached or 0 for job in jobs]
    assert [one.preemptions for one in sequences] == [job.preemptions for job in jobs]
    assert (engine.prefix_queries, engine.prefix_hits) == (plain.queries, plain.hits)
    assert engine.preemptions == sum(job.preemptions for job in jobs)
    assert engine.drafts == (plain.drafted, plain.accepted)


@given(worlds(lends=True))
@example(LESS_FOUND_FITS)
@settings(max_examples=400)
def test_many_steps_at_once_are_the_same_steps(world: World) -> None:
    world = fitting(world)
    engine, sequences = real(world)
    play(world, engine, sequences, True)
    plain, jobs = reference(world)
    play(world, plain, jobs, False)
    assert [list(one.times()) for one in sequences] == [job.times for job in jobs]
    assert [one.cached_tokens for one in sequences] == [job.cached or 0 for job in jobs]
    assert [one.preemptions for one in sequences] == [job.preemptions for job in jobs]
    assert engine.blocks.free == plain.pool.free() == world.rules.blocks
    assert engine.drafts == (plain.drafted, plain.accepted)
