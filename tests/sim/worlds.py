"""Random small worlds for engines, played on the real one and on the reference: who comes when with what, and who leaves."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st
from tests.sim.reference_engine import Job, ReferenceEngine, Rules

from loadstone.sim.engine import Engine, Limits, TooLong
from loadstone.sim.sequence import Sequence

WORK = ("new_tokens", "prefill_tokens", "sequences", "kv_tokens", "pairs", "window_kv_tokens", "window_pairs")
PRICES = (101, 13, 7, 5, 3, 2, 1)
"""Of each of these, in ns: whoever counts one of them wrong has another time."""


class Priced:
    """A cost in which everything that a step does shows."""

    def __init__(self, window: int | None = None) -> None:
        self.window = window
        self.counted = WORK if window else WORK[:5]

    def step_ns(self, work) -> int:
        return self.of({name: getattr(work, name) for name in WORK})

    def of(self, work: dict[str, int]) -> int:
        return 1000 + sum(price * work[name] for price, name in zip(PRICES, self.counted, strict=False))

    def steps_ns(self, work, steps, growth, window_growth) -> list[int]:
        rise = growth * (PRICES[3] + PRICES[4]) + window_growth * (PRICES[5] + PRICES[6])
        return [self.step_ns(work) + step * rise for step in range(steps)]


class Request(NamedTuple):
    at_ns: int
    prompt: int
    output: int
    keys: tuple[int, ...]
    priority: int
    gone_ns: int | None
    draw: int | None = None


class World(NamedTuple):
    rules: Rules
    requests: list[Request]
    lent_ns: int = 0
    """How long a prompt that was handed on is read."""

    def limits(self) -> Limits:
        rules = self.rules
        return Limits(
            max_num_seqs=rules.seqs,
            max_num_batched_tokens=rules.budget,
            blocks=rules.blocks,
            block_size=rules.size,
            chunked=rules.chunked,
            long_prefill_token_threshold=rules.threshold,
            reserve_full_isl=rules.reserves,
            by_priority=rules.by_priority,
            draft_rates=rules.rates,
            draft_share=rules.share,
            prefill_only=rules.prefill_only,
            seed=rules.seed,
        )


def keys(draw_group: int, shared: int, own: int, tokens: int, size: int) -> tuple[int, ...]:
    """Keys of the full blocks of so many tokens, of which the first `shared` are those of a group."""
    return tuple(
        1000 * draw_group + block if (block + 1) * size <= shared else 10**6 * (own + 1) + block
        for block in range(tokens // size)
    )


@st.composite
def worlds(draw, drops: bool = True, lends: bool = False) -> World:
    """`lends`: some hand their prompts on."""
    drafts = draw(st.sampled_from([0, 0, 0, 1, 3]))
    seqs, size = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    rules = Rules(
        seqs=seqs,
        budget=draw(st.integers(seqs * (1 + drafts), seqs * (1 + drafts) + 20)),
        blocks=draw(st.integers(3, 14)),
        size=size,
        threshold=draw(st.sampled_from([0, 0, 2, 5])),
        chunked=draw(st.booleans()),
        reserves=draw(st.booleans()),
        by_priority=draw(st.booleans()),
        rates=tuple(draw(st.lists(st.sampled_from([0.0, 0.5, 0.9, 1.0]), min_size=drafts, max_size=drafts))),
        share=draw(st.sampled_from([0.0, 0.3])),
        seed=draw(st.integers(0, 3)),
        prefill_only=lends and draw(st.sampled_from([False, False, True])),
        window=draw(st.sampled_from([None, None, 1, 3, 8])),
    )
    cached = draw(st.booleans())
    requests = []
    at_ns = 0
    for number in range(draw(st.integers(1, 14))):
        at_ns += draw(st.sampled_from([0, 0, 100, 1500, 5000, 20_000]))
        prompt, output = draw(st.integers(1, 20)), draw(st.integers(1, 12))
        group, shared = draw(st.integers(1, 2)), draw(st.integers(0, 24))
        known = keys(group, shared, number, prompt + draw(st.sampled_from([0, output])), size)
        gone_ns = draw(st.none() | st.integers(0, 30_000)) if drops else None
        requests.append(
            Request(
                at_ns,
                prompt,
                output,
                known if cached else (),
                draw(st.integers(0, 2)) if rules.by_priority else 0,
                None if gone_ns is None else at_ns + gone_ns,
                draw(st.none() | st.integers(0, 2)) if drafts else None,
            )
        )
    return World(rules, requests, draw(st.sampled_from([0, 700, 40_000])))


def fitting(world: World) -> World:
    """Without the requests that the engine could never serve."""
    engine: Engine[Sequence] = Engine(Priced(), world.limits())
    fits = []
    for request in world.requests:
        try:
            engine.check(Sequence(request.prompt, request.output))
        except TooLong:
            continue
        fits.append(request)
    return world._replace(requests=fits)


def real(world: World):
    """The real engine and its sequences."""
    return (
        Engine(Priced(world.rules.window), world.limits()),
        [
            Sequence(one.prompt, one.output, keys=one.keys, priority=one.priority, draw=one.draw)
            for one in world.requests
        ],
    )


def reference(world: World):
    """The reference and its jobs."""
    return (
        ReferenceEngine(Priced(world.rules.window).of, world.rules),
        [Job(one.prompt, one.output, one.keys, one.priority, draw=one.draw) for one in world.requests],
    )


def play(world: World, engine, players, jumps: bool, look=lambda moment: None) -> None:
    """Plays a world to its end. `look` is called after each end of a step and each begin, by (what, now)."""
    events = [(one.at_ns, 0, number) for number, one in enumerate(world.requests)]
    events += [
        (one.gone_ns, 1, number) for number, one in enumerate(world.requests) if one.gone_ns is not None
    ]
    events.sort()
    end_ns = None
    while events or end_ns is not None:
        event_ns = events[0][0] if events else None
        now_ns = min(moment for moment in (end_ns, event_ns) if moment is not None)
        if end_ns == now_ns:
            engine.finish()
            end_ns = None
            look(("finished", now_ns))
            events += [(now_ns + world.lent_ns, 2, players.index(one)) for one in engine.handed]
            events.sort()
        while events and events[0][0] == now_ns:
            _, what, number = events.pop(0)
            (engine.add, engine.drop, engine.take_back)[what](players[number])
        if end_ns is None:
            end_ns = engine.begin(now_ns, (events[0][0] if events else 1 << 62) if jumps else None)
            if end_ns is not None:
                look(("begun", now_ns))
