"""Stop strings: where the passage ends for them, and what may be shown of it before. Pure.

The passage is known beforehand and repeats itself, so one round of it tells whether a stop string ever comes, and what is
held back depends on the place in the round alone. One rule: neither looks at more than a round and the longest stop string.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from loadstone.sim.words import WORDS, length, passage


class Cut(NamedTuple):
    """Where a text ends for a stop string."""

    tokens: int
    """Up to the one that completes it."""
    chars: int
    """Characters before it."""
    stop: str


def cut(start: int, tokens: int, stops: Sequence[str], fewest: int = 0) -> Cut | None:
    """Where `passage(start, tokens)` ends for the stop string that is complete first; None when none comes.

    Those that are complete within the first `fewest` tokens do not count.
    """
    longest = max(map(len, stops), default=0)
    first = max(min(fewest, tokens) - longest, 0)  # a token is longer than one character
    start, tokens, fewest, skipped = start + first, tokens - first, fewest - first, length(start, first)
    looked = min(tokens, fewest + len(WORDS) + longest)
    text = passage(start, looked)
    floor = length(start, min(fewest, looked))
    found = []
    for number, stop in enumerate(stops):
        at = text.find(stop, max(floor - len(stop) + 1, 0))
        if at >= 0:
            found.append((at + len(stop), number, at))
    if not found:
        return None
    end, number, at = min(found)
    ends = list(accumulate(len(WORDS[(start + i) % len(WORDS)]) for i in range(looked)))
    return Cut(first + bisect_left(ends, end) + 1, skipped + at, stops[number])


def held(text: str, stops: Sequence[str]) -> int:
    """How many of the last characters of `text` may be the beginning of a stop string."""
    return max((_overlap(text, stop) for stop in stops), default=0)


def _overlap(text: str, stop: str) -> int:
    at = text.find(stop[0], max(len(text) - len(stop) + 1, 0))
    while at >= 0:
        if stop.startswith(text[at:]):
            return len(text) - at
        at = text.find(stop[0], at + 1)
    return 0


def shown(start: int, tokens: int, stops: tuple[str, ...]) -> int:
    """How many characters of `passage(start, tokens)` may be shown while it goes on."""
    longest = max(map(len, stops), default=0)
    tail = min(tokens, longest)
    return length(start, tokens) - _held((start + tokens - tail) % len(WORDS), tail, stops)


@lru_cache(maxsize=1024)
def _held(start: int, tokens: int, stops: tuple[str, ...]) -> int:
    return held(passage(start, tokens), stops)
