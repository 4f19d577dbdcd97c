"""How fast prompts of an exact length are made: 10,000 of 512 tokens."""

from __future__ import annotations

import time

from bench.ground import Ground
from bench.table import Item
from loadstone import tokens
from loadstone.tokens.prompts import Prompts

REPEATS = 3
LENGTH_TOKENS = 512


def measure(ground: Ground) -> list[Item]:
    count = 100 if ground.short else 10_000
    prompts = Prompts(tokens.load("builtin").words, seed=1)
    begun_s = time.process_time()
    for index in range(count):
        prompts.text(index, LENGTH_TOKENS)
    return [
        Item(f"{count:,} prompts of {LENGTH_TOKENS} tokens: CPU", "s", [time.process_time() - begun_s], 2.0)
    ]
