"""Stop strings: where the passage ends for them, and what may be shown of it before. Pure.

The passage is known beforehand and repeats itself, so one round of it tells whether a stop string ever comes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
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
    looked = min(tokens, fewest + len(WORDS) + longest)  # a token is longer than one character
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
    return Cut(bisect_left(ends, end) + 1, at, stops[number])


def held(text: str, stops: Sequence[str]) -> int:
    """How many of the last characters of `text` may be the beginning of a stop string."""
    return max((_overlap(text, stop) for stop in stops), default=0)


def _overlap(text: str, stop: str) -> int:
    for size in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0


def shown(start: int, tokens: int, stops: Sequence[str]) -> int:
    """How many characters of `passage(start, tokens)` may be shown while it goes on."""
    longest = max(map(len, stops), default=0)
    tail = min(tokens, longest)
    return length(start, tokens) - held(passage(start + tokens - tail, tail), stops)
