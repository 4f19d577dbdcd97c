"""Where decoding changes its nature: closed formulas, and the largest batch that keeps an objective on a real cost.

The formulas are those of one device at the datasheet, linear in everything; `Roofline` has the groups, the links and the
overhead that they leave out. Symbols: N parameters a token is multiplied with, W bytes of weights streamed, P peak FLOP/s,
BW bytes/s of memory, B sequences, S tokens of context, k bytes of KV cache a token.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from loadstone.roofline.cost import Roofline
from loadstone.roofline.memory import Memory
from loadstone.roofline.work import StepCost, decodes

LARGEST_BATCH = 1 << 20
"""Beyond it no batch is looked for."""


def b_sat(peak: float, bandwidth: float, weight_bytes: float = 2.0) -> float:
    """The batch from which on products with weights take longer than streaming them: P x b / (2 x BW).

    b is the bytes of one parameter: W = b x N cancels N. Linear layers of a dense model only. The number of devices that
    share the weights does not matter.
    """
    return peak * weight_bytes / (2 * bandwidth)


def moe_b_sat(peak: float, bandwidth: float, total: float, active: float, weight_bytes: float = 2.0) -> float:
    """The same for a model with experts once a batch needs all of them: (total / active parameters) x b_sat."""
    return total / active * b_sat(peak, bandwidth, weight_bytes)


def s_crit(parameters: float, peak: float, bandwidth: float, kv_bytes: float) -> float:
    """The context from which on decoding is never bound by compute: 2 x N x BW / (P x k) tokens.

    There reading a sequence's KV cache takes as long as the products of its token.
    """
    return 2 * parameters * bandwidth / (peak * kv_bytes)


def b_sat_at(
    context: float,
    *,
    streamed_bytes: float,
    parameters: float,
    peak: float,
    bandwidth: float,
    kv_bytes: float,
) -> float:
    """`b_sat` with the KV cache in the memory's time: (W / BW) / (2N / P - S x k / BW); infinite from `s_crit` on."""
    gain = 2 * parameters / peak - context * kv_bytes / bandwidth
    return streamed_bytes / bandwidth / gain if gain > 0 else math.inf


def floor_s(streamed_bytes: float, bandwidth: float) -> float:
    """The least time of a step, and so of a token at batch 1: W / BW seconds, once through the weights."""
    return streamed_bytes / bandwidth


def kv_limited_batch(kv_bytes_left: float, context: float, kv_bytes: float) -> int:
    """Sequences whose KV cache fits: what memory has left / (S x k). `Memory.largest_batch` counts whole blocks."""
    return int(kv_bytes_left / (context * kv_bytes))


def tpot_batch(
    tpot_s: float, context: float, *, streamed_bytes: float, bandwidth: float, kv_bytes: float
) -> int:
    """The largest batch whose steps are not longer than `tpot_s`, bound by memory: (TPOT x BW - W) / (S x k); 0: none."""
    return max(int((tpot_s * bandwidth - streamed_bytes) / (context * kv_bytes)), 0)


def prefill_s(tokens: int, *, parameters: float, pair_flops: float, peak: float) -> float:
    """The least time of taking in a prompt: (2 x N x S + pair_flops x S x (S + 1) / 2) / P seconds.

    `pair_flops` are those of a query and a key in all layers (4 x layers x heads x head_dim without latent attention). A
    token sees itself and those before it, so there are half as many pairs as in the square of section 8.2's formula.
    """
    return (2 * parameters * tokens + pair_flops * tokens * (tokens + 1) / 2) / peak


def throughput_ceiling(
    context: float, *, parameters: float, peak: float, bandwidth: float, kv_bytes: float
) -> float:
    """Tokens/s that no batch exceeds: the lesser of P / (2N) and BW / (S x k)."""
    return min(peak / (2 * parameters), bandwidth / (context * kv_bytes))


def largest_batch(cost: StepCost, tpot_s: float, context: int, at_most: int = LARGEST_BATCH) -> int:
    """The largest batch of decodes with this context whose step is not longer than `tpot_s`; 0: not even one sequence.

    By bisection: a larger batch is never faster.
    """

    def keeps(batch: int) -> bool:
        return cost.step_ns(decodes(batch, context, cost.window)) <= tpot_s * 1e9

    return last_true(keeps, at_most)


def saturation(cost: Roofline, context: int, at_most: int = LARGEST_BATCH) -> int | None:
    """The least batch from which on products with weights take longer than streaming them, in this cost; None: none does.

    Where there are experts this is where it happens for all matrices together, so it may lie beyond that of the others.
    """

    def streaming(batch: int) -> bool:
        parts = cost.parts(decodes(batch, context, cost.window))
        return parts.linear_compute < parts.linear_memory

    last = last_true(streaming, at_most)
    return None if last == at_most else last + 1


def last_true(holds: Callable[[int], bool], at_most: int) -> int:
    """The last of 1, 2, ... `at_most` for which a condition holds that, once it fails, goes on failing; 0: it never does."""
    low, high = 0, 1
    while high <= at_most and holds(high):
        low, high = high, 2 * high
    high = min(high, at_most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class Limits(NamedTuple):
    """The limits of decoding for one model on its devices, at one context."""

    context: int
    floor_s: float
    """A step of one sequence: the least time of a token."""
    b_sat: float
    """From this batch on products with weights take longer than streaming them; with experts, than streaming all of them."""
    b_sat_at: float
    """The same with the KV cache of this context in the memory's time; infinite from `s_crit` on."""
    s_crit: float
    """The context from which on decoding is never bound by compute; infinite where every layer has a window it fits in."""
    kv_batch: int | None
    """Sequences of this context whose KV cache fits; None: memory was not given."""
    tokens_s: float
    """Output tokens/s that no batch exceeds at this context, for all devices of the model together."""


def limits(cost: Roofline, context: int, memory: Memory | None = None) -> Limits:
    """The limits by the closed formulas, in this cost's number types, split and efficiency (`FLOOR`: the datasheet's)."""
    rates = cost.rates
    kv_s = rates.kv_s(context)
    gain = rates.token_s - kv_s
    return Limits(
        context=context,
        floor_s=cost.parts(decodes(1, context, cost.window)).total,
        b_sat=rates.weights_s / rates.token_s,
        b_sat_at=rates.weights_s / gain if gain > 0 else math.inf,
        s_crit=rates.s_crit(),
        kv_batch=None if memory is None else memory.largest_batch(context),
        tokens_s=cost.parallel.data / max(rates.token_s, kv_s),
    )
