"""A case against its batch: how long a decode step takes, what comes of it, and where its limits are.

The context is the mean over a request's life, so a step is that of a server in its steady state between prefills. Pure;
knows no terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

import msgspec

from loadstone.errors import UsageError
from loadstone.roofline.case import Case
from loadstone.roofline.cost import Bound, Roofline
from loadstone.roofline.limits import last_true, limits
from loadstone.roofline.memory import UTILIZATION, Flags, Memory, default_flags, memory
from loadstone.roofline.setup import Efficiency
from loadstone.roofline.work import decodes, prompt

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
    """The batch from which on products with weights take longer than streaming them."""
    b_sat_at: float | None
    """The same with the KV cache of this context in the memory's time; None: never."""
    s_crit: float | None
    """The context beyond which decode is never bound by compute; None: it is at any that the batch allows."""
    most_tokens_s: float
    """Tokens/s that no batch exceeds at this context."""
    floor_s: float
    """A decode step of one sequence at the datasheet: what no tuning gets below."""
    prefill_s: float
    """Of a prompt that comes alone."""
    prefill_tokens_s: float
    memory: Memory
    weight_bytes: int
    """Of one device."""
    kv_tokens: int
    """That fit, of one engine."""
    kv_batch: int
    """Sequences of this context whose KV cache fits."""
    max_num_seqs: int
    devices: int
    replicas: int
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
    default = default_flags(case.gpu, case.parallel.tensor * case.parallel.pipeline)
    flags = Flags(default.max_num_batched_tokens, max_num_seqs or default.max_num_seqs)
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
    prefill_s = roofline.parts(prompt(prompt_tokens, 0, roofline.window)).total
    ends = limits(roofline, mean, room)
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
        b_sat_at=ends.b_sat_at if isfinite(ends.b_sat_at) else None,
        s_crit=ends.s_crit if isfinite(ends.s_crit) else None,
        most_tokens_s=ends.tokens_s * case.replicas / case.parallel.data,
        floor_s=limits(case.roofline(), mean).floor_s,
        prefill_s=prefill_s,
        prefill_tokens_s=prompt_tokens / prefill_s,
        memory=room,
        weight_bytes=room.weight_bytes,
        kv_tokens=room.kv_tokens,
        kv_batch=kv_batch,
        max_num_seqs=flags.max_num_seqs,
        devices=case.parallel.devices,
        replicas=case.replicas,
        objectives=tuple(
            objective(name, limit, roofline, mean, largest, case.replicas, prefill_s)
            for name, limit in (slo or {}).items()
        ),
    )


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


def objective(
    name: str, limit_s: float, roofline: Roofline, context: int, largest: int, replicas: int, prefill_s: float
) -> Objective:
    """The largest batch that keeps an objective; steps only get longer with the batch, so it is searched by halves.

    For ttft: a prompt that comes alone while the others decode waits for half a step that is under way, and its prefill
    goes together with a decode step of theirs.
    """

    def taken_s(batch: int) -> float:
        step_s = row(roofline, batch, context, largest).step_s
        return step_s if name == TPOT else prefill_s + 1.5 * step_s

    kept = last_true(lambda batch: taken_s(batch) <= limit_s, largest)
    if not kept:
        why = f"one sequence alone takes {1e3 * taken_s(1):.3g} ms"
        return Objective(name=name, limit_s=limit_s, largest=None, why=why, row=None)
    why = "the most that can run" if kept == largest else "a larger one takes longer"
    best = row(roofline, kept, context, largest, replicas)
    return Objective(name=name, limit_s=limit_s, largest=kept, why=why, row=best)
