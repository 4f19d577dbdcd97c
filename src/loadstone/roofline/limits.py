"""Where decoding changes its nature, from the same cost that the steps are of.

Symbols: N parameters a token is multiplied with, W bytes of weights, P peak FLOP/s, BW bytes/s of memory, B sequences,
S tokens of context, k bytes of KV cache a token; P and BW as far as they are reached. A step is the sum of its parts:

    W / BW or 2 x N x B / P, whichever is longer  +  B x S x k / BW  +  links and overhead

so there is no one batch at which all of it turns; `limits` says where each part does. Knows no objectives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from loadstone.roofline.cost import Roofline
from loadstone.roofline.work import decodes

LARGEST_BATCH = 1 << 20
"""Beyond it no batch is looked for."""


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

    floor_s: float
    """A step of one sequence: W / BW and what comes on top."""
    b_sat: float
    """The batch at which products with weights take as long as streaming them all: (W / BW) / (2 x N / P).

    P x b / (2 x BW) with b bytes a parameter; with experts, all of which are streamed for the products of a few, total /
    active parameters times that. KV cache, links and overhead have no part in it.
    """
    s_crit: float
    """The context whose KV cache takes as long to read as the products of its token: 2 x N x BW / (P x k).

    Beyond it most of no step is products. Infinite where every layer has a window it fits in, and where attention itself
    is bound by compute (latent attention on some hardware).
    """
    compute_from: int | None
    """The batch from which on most of a step is products (`Parts.bound`); None: none up to 2^20 is."""
    tokens_s: float
    """Output tokens/s that no batch exceeds at this context, for all replicas of the model together.

    1 / (2 x N / P + S x k / BW + what else a sequence adds): the parts of a step follow each other, so all of them count.
    """


def limits(cost: Roofline, context: int) -> Limits:
    """The limits in this cost's number types, split and efficiency (`FLOOR`: the datasheet's)."""
    rates = cost.rates
    below = last_true(
        lambda batch: cost.parts(decodes(batch, context, cost.window)).bound != "compute", LARGEST_BATCH
    )
    return Limits(
        floor_s=cost.parts(decodes(1, context, cost.window)).total,
        b_sat=rates.weights_s / rates.token_s,
        s_crit=rates.s_crit(),
        compute_from=None if below == LARGEST_BATCH else below + 1,
        tokens_s=cost.parallel.data * rates.most_tokens_s(context),
    )
