"""Where answers end when nothing makes them go on: the distributions that `--output-tokens` can name. Pure.

One rule: the length of an answer is a function of the seed and of what was asked, and of nothing before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

from loadstone.dist import normal_length, uniform
from loadstone.errors import UsageError

Draw = Callable[[int, int, int, int], int]
"""(seed, number of the request, fewest tokens, most tokens) -> tokens."""

MOST_TOKENS = 1_000_000
"""What an answer may be asked to have, and a distribution be told."""
MOST_SIGMA = 20.0
_FORMS = "even, N, normal:MEAN+STD, lognormal:MEDIAN+SIGMA or exponential:MEAN"


@lru_cache(maxsize=64)
def parse(text: str) -> Draw:
    """The distribution that `text` names. Raises `UsageError`.

    Every draw is at least the fewest and at least 1, and never above the most:

    - even: each length from the fewest up to below the most equally often; the most itself when there is none
    - N: always N
    - normal:MEAN+STD: normal, cut at 1 token
    - lognormal:MEDIAN+SIGMA: MEDIAN * exp(SIGMA * z), z standard normal
    - exponential:MEAN: -MEAN * ln(1 - u), u even between 0 and 1

    All but `even` are rounded to whole tokens, and what lies outside the bounds becomes the nearer one of them.
    """
    name, colon, values = text.strip().partition(":")
    if name == "even" and not colon:
        return even
    numbers = [_number(part) for part in (values if colon else name).split("+")]
    match name if colon else None, numbers:
        case None, [float(tokens)] if 1 <= tokens <= MOST_TOKENS and tokens.is_integer():
            return _within(lambda seed, draw: tokens)
        case "normal", [float(mean), float(std)] if 0 < mean <= MOST_TOKENS and std <= MOST_TOKENS:
            return _within(lambda seed, draw: normal_length(seed, draw, mean, std))
        case "lognormal", [float(median), float(sigma)] if 0 < median <= MOST_TOKENS and sigma <= MOST_SIGMA:
            bell = NormalDist()
            return _within(lambda seed, draw: median * math.exp(sigma * bell.inv_cdf(uniform(seed, draw))))
        case "exponential", [float(mean)] if 0 < mean <= MOST_TOKENS:
            return _within(lambda seed, draw: -mean * math.log(1 - uniform(seed, draw)))
    raise UsageError(
        f"output_tokens = {text}: must be {_FORMS}, such as normal:128+32; of at most {MOST_TOKENS:,} tokens."
    )


def even(seed: int, draw: int, fewest: int, most: int) -> int:
    """Evenly from the fewest (at least 1) up to below the most; the most if that is none."""
    fewest = max(fewest, 1)
    return most if fewest >= most else fewest + int(uniform(seed, draw) * (most - fewest))


def _within(length: Callable[[int, int], float]) -> Draw:
    def bounded(seed: int, draw: int, fewest: int, most: int) -> int:
        return min(max(round(length(seed, draw)), fewest, 1), most)

    return bounded


def _number(text: str) -> float | None:
    """A number that is not negative; None when it is none."""
    try:
        number = float(text) if text.isascii() else math.nan
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None
