"""A case against its batch: how long a decode step takes, what comes of it, and where its limits are.

The context is the mean over a request's life, so a step is that of a server in its steady state between prefills. Pure;
knows no terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import NamedTuple

import msgspec

from loadstone.errors import UsageError
from loadstone.roofline.case import Case
from loadstone.roofline.cost import Bound, Roofline
from loadstone.roofline.limits import last_true, limits
from loadstone.roofline.memory import UTILIZATION, Flags, Memory, default_flags, memory
from loadstone.roofline.setup import Efficiency
from loadstone.roofline.work import Work, decodes, prompt, together

MOST_DRAWN = 4096
"""The greatest batch that is drawn, unless a larger one fits."""
TPOT, TTFT = "time_per_output_token", "time_to_first_token"
"""What can be an objective."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Decode at one batch."""

    batch: int
    """Sequences of one engine."""
    step_s: float
    """Of a decode step, which is the inter-token latency."""
    tokens_s_sequence: float
    tokens_s: float
    """Of all sequences of all engines."""
    bound: Bound
    """What most of the step is spent on."""
    fits: bool
    """Whether the KV cache of so many sequences fits, and so many may run."""


class Objective(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of latency, and the largest batch that keeps it."""

    name: str
    limit_s: float
    largest: int | None
    """None: no batch keeps it, or for ttft a prompt that comes alone is too slow."""
    why: str
    """What ends it: the objective, or how many sequences can run."""
    row: Row | None


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """All that a roofline says of a case."""

    gpu: str
    model: str
    words: str
    efficiency: Efficiency
    context: int
    """Mean tokens of a running sequence."""
    prompt_tokens: int
    output_tokens: int | None
    rows: tuple[Row, ...]
    drawn: tuple[Row, ...]
    """More batches, for a line."""
    b_sat: float
    """The batch at which products with weights take as long as streaming them; the rest of a step is not in it."""
    compute_from: int | None
    """The batch from which on most of a step is products, as `Row.bound` says; None: none is."""
    s_crit: float | None
    """The context beyond which most of no step is products; None: there is none."""
    attention_computes: bool
    """Attention to the KV cache is itself bound by compute, which is why there is no `s_crit`."""
    most_tokens_s: float
    """Tokens/s that no batch exceeds at this context."""
    floor_s: float
    """A decode step of one sequence at the datasheet, other replicas idle: what no tuning gets below."""
    prefill_s: float
    """Of a prompt that comes alone, in as many steps as the token budget makes of it."""
    prefill_steps: int
    prefill_tokens_s: float
    """Of that prompt. With pipeline stages others can be behind it, so that a server takes in more."""
    memory: Memory
    weight_bytes: int
    """Of one device."""
    kv_tokens: int
    """That fit, of one engine; where layers have a window, in sequences of this context."""
    kv_batch: int
    """Sequences of this context whose KV cache fits."""
    max_num_seqs: int
    max_num_batched_tokens: int
    """Of one step: longer prompts are taken in by several."""
    devices: int
    replicas: int
    expert_replicas: int
    """Of these, those that share the experts; all are taken to have the same batch."""
    experts: int
    """Routed experts of a layer; 0: a dense model."""
    objectives: tuple[Objective, ...] = ()

    @property
    def largest(self) -> int:
        """The largest batch that can run."""
        return max(1, min(self.kv_batch, self.max_num_seqs))


def curve(
    case: Case,
    efficiency: Efficiency,
    *,
    prompt_tokens: int,
    output_tokens: int | None,
    context: int | None = None,
    batches: Sequence[int] = (),
    utilization: float = UTILIZATION,
    max_num_seqs: int | None = None,
    max_num_batched_tokens: int | None = None,
    slo: Mapping[str, float] | None = None,
) -> Curve:
    """The curve of a case. `context` counts in place of prompt + output / 2.

    UsageError: a prompt that is longer than the model can, or no batch fits (`OutOfMemory`).
    """
    mean = context or prompt_tokens + (output_tokens or 0) // 2
    longest = max(mean, prompt_tokens + (output_tokens or 0))
    if longest > case.shape.max_model_len:
        raise UsageError(
            f"{longest:,} tokens: {case.shape.name} goes to {case.shape.max_model_len:,}; ask for a shorter context."
        )
    roofline = case.roofline(efficiency)
    flags = settled(case, max_num_batched_tokens, max_num_seqs)
    room = memory(
        case.shape,
        case.gpu,
        case.precision,
        case.parallel,
        utilization=utilization,
        flags=flags,
        max_model_len=longest,
    )
    kv_batch = room.largest_batch(mean)
    largest = max(1, min(kv_batch, flags.max_num_seqs))
    rows = [row(roofline, batch, mean, largest, case.replicas) for batch in batches or doubling(largest)]
    alone = chunks(prompt_tokens, flags.max_num_batched_tokens, roofline.window)
    prefill_s = sum(roofline.parts(chunk).total for chunk in alone)
    ends = limits(roofline, mean)
    prompts = Prompts(prompt_tokens, flags.max_num_batched_tokens)
    return Curve(
        gpu=case.gpu.name,
        model=case.shape.name,
        words=case.words,
        efficiency=efficiency,
        context=mean,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        rows=tuple(rows),
        drawn=tuple(
            row(roofline, batch, mean, largest, case.replicas)
            for batch in closely(max(largest, min(round(4 * ends.b_sat), MOST_DRAWN)))
        ),
        b_sat=ends.b_sat,
        compute_from=ends.compute_from,
        s_crit=ends.s_crit if isfinite(ends.s_crit) else None,
        attention_computes=roofline.rates.pairs > 1,
        most_tokens_s=ends.tokens_s * case.replicas / case.parallel.data,
        floor_s=limits(case.roofline(), mean).floor_s,
        prefill_s=prefill_s,
        prefill_steps=len(alone),
        prefill_tokens_s=prompt_tokens / prefill_s,
        memory=room,
        weight_bytes=room.weight_bytes,
        kv_tokens=room.kv_tokens if room.window is None else kv_batch * mean,
        kv_batch=kv_batch,
        max_num_seqs=flags.max_num_seqs,
        max_num_batched_tokens=flags.max_num_batched_tokens,
        devices=case.parallel.devices,
        replicas=case.replicas,
        expert_replicas=case.parallel.data,
        experts=case.shape.experts,
        objectives=tuple(
            objective(name, limit, roofline, mean, largest, case.replicas, prompts)
            for name, limit in (slo or {}).items()
        ),
    )


def settled(case: Case, tokens: int | None, sequences: int | None) -> Flags:
    """The limits of a step: as asked, else vLLM's; no more sequences than tokens. UsageError: more are asked for."""
    default = default_flags(case.gpu, case.parallel.tensor * case.parallel.pipeline)
    budget = tokens or default.max_num_batched_tokens
    if sequences is not None and sequences > budget:
        raise UsageError(
            f"--max-num-seqs {sequences}: a step has {budget} tokens, one for each; use a higher --max-num-batched-tokens."
        )
    return Flags(budget, sequences or min(default.max_num_seqs, budget))


def row(roofline: Roofline, batch: int, context: int, largest: int, replicas: int = 1) -> Row:
    """Decode at one batch."""
    parts = roofline.parts(decodes(batch, context, roofline.window))
    return Row(
        batch=batch,
        step_s=parts.total,
        tokens_s_sequence=1 / parts.total,
        tokens_s=replicas * batch / parts.total,
        bound=parts.bound,
        fits=batch <= largest,
    )


def doubling(largest: int) -> list[int]:
    """1, 2, 4, ... and the largest batch itself."""
    found = [1 << power for power in range(largest.bit_length())]
    return found if found[-1] == largest else [*found, largest]


def closely(largest: int) -> list[int]:
    """Batches whose logarithms lie close enough for a line, to the largest."""
    steps = 96
    return sorted({max(1, round(largest ** (step / steps))) for step in range(steps + 1)})


class Prompts(NamedTuple):
    """How prompts come in."""

    tokens: int
    """Of each."""
    budget: int
    """Tokens of a step, those of decodes included."""


def chunks(tokens: int, budget: int, window: int | None) -> list[Work]:
    """A prompt as the steps that take it in, `budget` tokens at a time."""
    starts = range(0, tokens, budget)
    return [prompt(min(budget, tokens - before), before, window) for before in starts]


def first_token_s(roofline: Roofline, batch: int, context: int, prompts: Prompts) -> float:
    """Seconds to the first token of a prompt that comes alone while the others decode.

    It waits for half a step that is under way, and its chunks share their steps with a token of each of the others.
    Infinite: these leave no tokens of a step.
    """
    others = decodes(batch, context, roofline.window)
    left = prompts.budget - batch
    if left < 1:
        return inf
    shared = [together(others, chunk) for chunk in chunks(prompts.tokens, left, roofline.window)]
    return roofline.parts(others).total / 2 + sum(roofline.parts(step).total for step in shared)


def objective(
    name: str,
    limit_s: float,
    roofline: Roofline,
    context: int,
    largest: int,
    replicas: int,
    prompts: Prompts,
) -> Objective:
    """The largest batch that keeps an objective; steps only get longer with the batch, so it is searched by halves."""

    def taken_s(batch: int) -> float:
        if name == TPOT:
            return row(roofline, batch, context, largest).step_s
        return first_token_s(roofline, batch, context, prompts)

    kept = last_true(lambda batch: taken_s(batch) <= limit_s, largest)
    if not kept:
        why = f"one sequence alone takes {1e3 * taken_s(1):.3g} ms"
        return Objective(name=name, limit_s=limit_s, largest=None, why=why, row=None)
    why = "the most that can run" if kept == largest else "a larger one takes longer"
    best = row(roofline, kept, context, largest, replicas)
    return Objective(name=name, limit_s=limit_s, largest=kept, why=why, row=best)
