"""The tallies of a deployment's engines: who got tokens from a step, and what that adds to the counts. Told the time.

Two clocks, as in vLLM: what happens inside the engine (scheduled, tokens) is dated on its time line; arrival, first and
last token of a request as seen from outside are those of the truth file.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from loadstone.sim.deployment import Deployment
from loadstone.sim.engine import Engine
from loadstone.sim.exposition import State
from loadstone.sim.options import SimOptions
from loadstone.sim.tally import Tally
from loadstone.sim.truth import TruthRow
from loadstone.sim.turn import Part, Turn

_PLACE = attrgetter("place")


class Served(NamedTuple):
    """What one engine's step brought."""

    engine: int
    parts: list[tuple[Part, int]]
    """Who got tokens, and how many."""
    prefilled: set[Part]
    """Those of them whose token came with the end of their prompt and not from decoding."""
    handed_tokens: int
    """Tokens of prompts that it took in for another engine."""


class Batch:
    """The counts of one step while its tokens are sent."""

    def __init__(self, tally: Tally, served: Served, at_ns: int) -> None:
        self._tally = tally
        self._prefilled = served.prefilled
        self._drafts = tally.draft_tokens > 0
        self._at_ns = at_ns
        self._gaps_ns: dict[int, int] = {}
        self._prompt_tokens = served.handed_tokens
        self._tokens = 0

    def out(self, part: Part, tokens: int, now_ns: int) -> None:
        """Tokens of a part, given out at `now_ns`. What generates nothing has one as well, by which it is over."""
        if part.owner.generates:
            self._tokens += tokens
        last_ns, part.token_ns = part.token_ns, self._at_ns
        if last_ns:
            gap_ns = self._at_ns - last_ns
            self._gaps_ns[gap_ns] = self._gaps_ns.get(gap_ns, 0) + 1
        else:
            self._first(part, now_ns)
        if self._drafts and part not in self._prefilled:
            self._tally.drafted(tokens - 1 + (part.surplus if part.over else 0))
        if part.over:
            self._done(part, now_ns)

    def _first(self, part: Part, now_ns: int) -> None:
        part.first_ns = self._at_ns
        note(part)
        self._prompt_tokens += part.prompt_tokens
        self._tally.taken_in(part.prompt_tokens, part.cached_tokens)
        if part.owner.generates:
            self._tally.first_token.observe(now_ns - part.owner.truth.received_ns)

    def _done(self, part: Part, now_ns: int) -> None:
        note(part)
        scheduled_ns = part.scheduled_ns
        assert scheduled_ns is not None, "it had tokens"
        received_ns = part.owner.truth.received_ns
        self._tally.done(
            part.reason,
            latency_ns=now_ns - received_ns,
            queue_ns=max(scheduled_ns - received_ns, 0),  # read while a step that was due had not begun
            prefill_ns=part.first_ns - scheduled_ns,
            decode_ns=part.token_ns - part.first_ns,
            prompt_tokens=part.prompt_tokens,
            cached_tokens=part.cached_tokens,
            tokens=part.out if part.owner.generates else None,
            limit_tokens=part.owner.limit_tokens,
        )
        self._answered(part.owner)

    def _answered(self, turn: Turn) -> None:
        """Counts an answer when the last of its choices is done; every text without an answer counts by itself."""
        if not turn.generates:
            self._tally.answered(1, 0)
        elif turn.over:
            self._tally.answered(len(turn.parts), max(part.out for part in turn.parts))

    def close(self) -> None:
        """All tokens of the step are out."""
        self._tally.stepped(self._prompt_tokens, self._tokens, self._gaps_ns)


class Tallies:
    """One tally for each engine, by its number."""

    def __init__(self, deployment: Deployment[Part]) -> None:
        self._deployment = deployment
        self._numbers = {id(engine): number for number, engine in enumerate(deployment.all)}
        self.tallies: Sequence[Tally] = [
            Tally(
                max_model_tokens(engine),
                0 if engine.limits.prefill_only else len(engine.limits.draft_rates),
            )
            for engine in deployment.all
        ]
        self._played = 0
        """Answers under way that no engine has a part in."""

    def served(self) -> list[Served]:
        """What the steps brought that have just ended; to be asked before the next ones begin."""
        return [
            Served(
                self._numbers[id(engine)],
                _tokens(engine),
                {*engine.began, *engine.resumed},
                sum(part.prompt_tokens for part in engine.handed),
            )
            for engine in self._deployment.finished
        ]

    def batch(self, served: Served, at_ns: int) -> Batch:
        """The counts of a step that was over at `at_ns`."""
        return Batch(self.tallies[served.engine], served, at_ns)

    def at_once(self, turn: Turn) -> None:
        """An answer without an engine: it is counted, and has no times."""
        tally = self.tallies[0]
        for part in turn.parts:
            tally.prompt_tokens += part.prompt_tokens
            tally.generation_tokens += part.out if turn.generates else 0
            tally.end(part.reason)

    def plays(self) -> None:
        """An answer is begun that no engine has a part in: the first one's counts have it."""
        self._played += 1

    def sends(self, tokens: int) -> None:
        """Such an answer sends tokens."""
        self.tallies[0].generation_tokens += tokens

    def played(self, truth: TruthRow) -> None:
        """Such an answer is over; one without a token is in no count of requests."""
        self._played -= 1
        if truth.tokens:
            tally = self.tallies[0]
            tally.prompt_tokens += truth.prompt_tokens
            tally.end("abort" if truth.end == "closed" else "stop")

    def left(self, part: Part) -> None:
        """A client has left before it got all of a part; to be told before the deployment is.

        Of one that has ended nothing is lost: the step that brought its last tokens counts them.
        """
        note(part)
        if not part.ended:
            self.tallies[self._deployment.engine_of(part)].left()

    def states(self) -> list[State]:
        """Every engine as it is now."""
        return [
            State(
                running=len(engine.running) + (0 if number else self._played),
                waiting=engine.queued,
                kv_usage=engine.blocks.usage,
                prefix_queries=engine.prefix_queries,
                prefix_hits=engine.prefix_hits,
                external_queries=engine.external_queries,
                external_hits=engine.external_hits,
                preemptions=engine.preemptions,
            )
            for number, engine in enumerate(self._deployment.all)
        ]


def note(part: Part) -> None:
    """Puts what the engines did with a request into its truth, unless that is written; the first choice names the engine."""
    turn = part.owner
    truth, parts = turn.truth, turn.parts
    if not parts:
        return
    truth.engine = parts[0].engine
    truth.preemptions = sum(one.preemptions for one in parts)
    scheduled = [one.scheduled_ns for one in parts if one.scheduled_ns is not None]
    if scheduled:
        truth.scheduled_ns = min(scheduled)
        truth.cached_tokens = parts[0].cached_tokens


def _tokens(engine: Engine[Part]) -> list[tuple[Part, int]]:
    """Who got tokens from the last step, in the order of the batch."""
    step = engine.step
    batch = sorted(chain(engine.decoding, engine.ended), key=_PLACE)
    found = ((part, part.produced(step) - part.out) for part in batch)
    return [(part, tokens) for part, tokens in found if tokens > 0]


def max_model_tokens(engine: Engine[Part]) -> int:
    """The longest request that an engine takes: as it was told, else as its KV cache holds."""
    limits = engine.limits
    return limits.max_model_len or limits.blocks * limits.block_size


def cache_config(options: SimOptions, deployment: Deployment[Part]) -> dict[str, object]:
    """How the KV cache is set up, in vLLM's words."""
    limits = deployment.engines[0].limits
    return {
        "block_size": limits.block_size,
        "cache_dtype": options.kv_cache_dtype,
        "enable_prefix_caching": limits.caching,
        "gpu_memory_utilization": options.gpu_memory_utilization,
        "kv_cache_size_tokens": limits.blocks * limits.block_size,
        "num_gpu_blocks": limits.blocks,
    }
