"""One published load through our engine on the virtual clock, and the same figures from it.

The engine is the one of `loadstone simulate --gpu`; what a client, an API server and a network add is not in it.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.published.points import Load, Point, Points
from loadstone.roofline.memory import BLOCK_TOKENS
from loadstone.sim import build
from loadstone.sim.deployment import Deployment
from loadstone.sim.options import SimOptions
from loadstone.sim.sequence import Sequence

LONGEST_PROMPT = 1024
"""Tokens: vLLM's benchmarks leave longer prompts of ShareGPT out."""
NEVER_NS = 1 << 62
MS = 1e6


class Served(NamedTuple):
    """What one request met with, ns."""

    sent_ns: int
    times_ns: tuple[int, int]
    """Of the first and the last token."""
    tokens: int

    @property
    def ttft_ms(self) -> float:
        return (self.times_ns[0] - self.sent_ns) / MS

    @property
    def tpot_ms(self) -> float | None:
        """None: there is but one token."""
        first, last = self.times_ns
        return (last - first) / (self.tokens - 1) / MS if self.tokens > 1 else None


def options(point: Point, known: Points, folder: Path) -> SimOptions:
    """The engine that was measured. `folder` gets the `config.json` of a model that is in no table."""
    model = point.model
    if model in known.configs:
        path = folder / f"{model}.json"
        path.write_text(json.dumps(known.configs[model]))
        model = str(path)
    return SimOptions(
        gpu=point.gpu,
        hf_config_path=model,
        quantization=point.weights,
        tensor_parallel_size=point.tensor,
        **{**known.defaults[point.defaults], **point.flags},
    )


def figures(point: Point, known: Points) -> dict[str, float]:
    """What our engine makes of a point: the figures that were measured."""
    with TemporaryDirectory() as folder:
        deployment: Deployment[Sequence] = build.deployment(options(point, known, Path(folder)))
    load = point.load
    served = list(serve(deployment, requests(load), load.concurrency or load.requests))
    found = summary(served, load)
    return {name: found[name] for name in point.measured}


def summary(served: list[Served], load: Load) -> dict[str, float]:
    """Every figure that can have been measured."""
    duration_s = max(one.times_ns[1] for one in served) / 1e9
    tpots = [one.tpot_ms for one in served if one.tpot_ms is not None]
    output = sum(one.tokens for one in served)
    prompts = load.input_total or (load.input or 0) * load.requests
    return {
        "duration_s": duration_s,
        "requests_s": len(served) / duration_s,
        "output_tok_s": output / duration_s,
        "total_tok_s": (prompts + output) / duration_s,
        "tpot_ms": statistics.fmean(tpots),
        "tpot_p50_ms": statistics.median(tpots),
        "ttft_ms": statistics.fmean(one.ttft_ms for one in served),
    }


def serve(
    deployment: Deployment[Sequence], sequences: Iterable[Sequence], concurrency: int
) -> Iterator[Served]:
    """A closed loop from moment 0 on: as many at a time, the next one at the moment in which one ends."""
    coming = iter(sequences)
    sent_ns: dict[Sequence, int] = {}
    now_ns, places = 0, concurrency
    while True:
        for _ in range(places):
            if (sequence := next(coming, None)) is None:
                break
            sent_ns[sequence] = now_ns
            deployment.add(sequence)
        deployment.begin(now_ns, NEVER_NS)
        if deployment.next_ns is None:
            return
        now_ns = deployment.next_ns
        deployment.finish(now_ns)
        places = len(deployment.ended)
        for ended in deployment.ended:
            times = ended.times()
            yield Served(sent_ns.pop(ended), (times[0], times[-1]), len(times))


def requests(load: Load) -> Iterator[Sequence]:
    """The requests of a load. No two share a beginning, but one that gave way may find its own blocks again."""
    if load.input is not None and load.output is not None:
        inputs, outputs = [load.input] * load.requests, [load.output] * load.requests
    else:
        assert load.input_total is not None and load.output_total is not None, "a load has lengths or sums"
        inputs = lengths(load.requests, load.input_total, LONGEST_PROMPT, 1)
        outputs = lengths(load.requests, load.output_total, None, 12)
    begin = 0
    for prompt, answer in zip(inputs, outputs, strict=True):
        end = begin + (prompt + answer) // BLOCK_TOKENS
        yield Sequence(prompt, answer, keys=range(begin, end))
        begin = end


def lengths(count: int, total: int, longest: int | None, seed: int) -> list[int]:
    """So many lengths with this sum, in mixed order: quantiles of an exponential distribution, none above `longest`.

    They are scaled until the sum is right; the longest that are not cut get what rounding leaves.
    """
    shape = [-math.log(1.0 - (i + 0.5) / count) for i in range(count)]
    most = longest or total

    def at(scale: float) -> list[int]:
        return [min(max(int(scale * one), 1), most) for one in shape]

    low, high = 0.0, 2.0 * total
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle)) <= total else (low, middle)
    found = at(low)
    free = [i for i in range(count) if found[i] < most]
    for i in free[len(free) - (total - sum(found)) :]:
        found[i] += 1
    random.Random(seed).shuffle(found)
    return found
