"""How fast the built-in engine is on the virtual clock: 180,000 requests of 250 tokens in and 200 out, an hour at 50/s.

Load is the offered rate as a share of the largest that this engine sustains: what it ends a second, over the middle three
fifths, when all requests wait from the start. A model of 8B in bf16 sustains less than 50 requests/s on one H100 with the
roofline's default efficiencies, so its rates are shares of what it does sustain; in fp8 it is at 50/s about where the hour was
meant to be.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from bench.client import BenchFailed
from bench.engine_hour import OSL
from bench.ground import Ground
from bench.table import Item

REPEATS = 3
RATE = 50
BF16 = {"gpu": "h100", "model": "llama-3.1-8b"}
FP8 = {**BF16, "quantization": "fp8"}


def measure(ground: Ground) -> list[Item]:
    count = 2_000 if ground.short else 180_000
    saturated = 2_000 if ground.short else 20_000
    largest_fp8, largest = (_run(options, 0, saturated)["rate"] for options in (FP8, BF16))
    hour = _run(FP8, RATE, count)
    quarter = _run(FP8, RATE, count // 4)
    name = f"{count:,} requests"
    return [
        Item("8B fp8 on H100 sustains", "requests/s", [largest_fp8]),
        Item("8B bf16 on H100 sustains", "requests/s", [largest]),
        *_items(f"{name}, fp8, {RATE}/s ({RATE / largest_fp8:.0%} load)", hour, 20),
        *_items(f"{name}, fp8, 90% load", _run(FP8, 0.9 * largest_fp8, count), 40),
        *_items(f"{name}, bf16, 70% load", _run(BF16, 0.7 * largest, count), 20),
        *_items(f"{name}, bf16, 90% load", _run(BF16, 0.9 * largest, count), 40),
        Item(
            "CPU a request against a quarter of them", "times", [hour["cpu_s"] / quarter["cpu_s"] / 4], 1.15
        ),
        Item("memory beyond that of a quarter", "MB", [hour["peak_mb"] - quarter["peak_mb"]], 5),
    ]


def _items(name: str, found: dict[str, Any], bar_s: float) -> list[Item]:
    return [
        Item(f"{name}: CPU", "s", [found["cpu_s"]], bar_s),
        Item(f"{name}: steps", "", [found["steps"]]),
        Item(f"{name}: peak memory", "MB", [found["peak_mb"]], 150),
    ]


def _run(options: dict[str, str], rate: float, count: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.engine_hour", json.dumps(options), str(rate), str(count)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise BenchFailed(f"the engine did not play {count} requests: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    if found["tokens"] != count * OSL:
        raise BenchFailed(f"{found['tokens']} of {count * OSL} tokens have a time")
    return found
