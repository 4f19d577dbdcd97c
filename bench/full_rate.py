"""Whether one worker keeps its times at 4,000 requests/s for 30 s, and says so itself when it is asked for too much."""

from __future__ import annotations

import re

from bench.client import Run, profile
from bench.ground import Ground
from bench.stamps import MS, per_s, quantile
from bench.table import Item
from bench.tokens import TokenServer

REPEATS = 3
BEYOND = 50_000
"""Requests/s that no worker reaches: three times what it can do on the machine this was written on."""
LOAD = ("--arrival-pattern", "constant", "--workers", "1", "--osl", "1", "--no-inputs-json")
SHORT_PROMPTS = "16"
"""Where the worker is to be the bound: prompts must not be slower to compose than to send."""
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def measure(ground: Ground) -> list[Item]:
    rate, seconds, beyond_s = (400, 2, 2) if ground.short else (4_000, 30, 10)
    return [*_kept(ground, rate, rate * seconds), *_beyond(ground, beyond_s)]


def _kept(ground: Ground, rate: int, requests: int) -> list[Item]:
    """The rate that has to be kept."""
    folder = ground.path("full-rate")
    with TokenServer(0, 0, 1, folder.with_suffix(".log")) as server:
        run = profile(
            folder, server.port, "--request-rate", str(rate), "--request-count", str(requests), "--isl", "128", *LOAD,
        )  # fmt: skip
        others_cores = run.others_cores(server.cpu_s())
    joined = run.with_log(server.rows())
    lag = (joined["sent_ns"] - joined["due_ns"]) / MS
    name = f"full rate {rate:,}/s, 1 worker"
    return [
        Item(f"{name}: requests the server answered", "", [joined.height], requests, "at least", True),
        Item(f"{name}: certificate is VALID", "", [verdict(run) == "VALID"], 1, "at least"),
        Item(f"{name}: send lag p50", "ms", [quantile(lag, 0.5)]),
        Item(f"{name}: send lag p99", "ms", [quantile(lag, 0.99)], 2.0),
        Item(f"{name}: other work on the machine", "cores", [others_cores]),
    ]


def _beyond(ground: Ground, seconds: int) -> list[Item]:
    """Far more than a worker can do: the run has to say so, and how far it got."""
    folder = ground.path("beyond")
    with TokenServer(0, 0, 1, None) as server:
        run = profile(
            folder, server.port, "--request-rate", str(BEYOND), "--benchmark-duration", str(seconds),
            "--isl", SHORT_PROMPTS, *LOAD,
        )  # fmt: skip
    reached = per_s(run.requests()["sent_ns"])
    told = nearest_number(run.report()["certificate"]["headline"], reached)
    name = f"asked for {BEYOND:,}/s, 1 worker"
    return [
        Item(f"{name}: reached", "requests/s", [reached]),
        Item(f"{name}: certificate is INVALID", "", [verdict(run) == "INVALID"], 1, "at least", True),
        Item(
            f"{name}: ceiling named by the headline, off by",
            "%",
            [abs(told / reached - 1) * 100],
            5,
            "at most",
            True,
        ),
    ]


def verdict(run: Run) -> str:
    return str(run.report()["certificate"]["verdict"])


def nearest_number(text: str, to: float) -> float:
    """The number in a text that comes nearest; 0 when it has none."""
    found = [float(number.replace(",", "")) for number in NUMBER.findall(text)]
    return min(found, key=lambda number: abs(number - to), default=0.0)
