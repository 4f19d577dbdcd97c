"""Whether a closed loop keeps its slots full, refills them at once, and waits without being busy."""

from __future__ import annotations

import msgspec
import polars as pl

from bench.client import Run, profile
from bench.ground import Ground
from bench.stamps import MS, quantile
from bench.table import Item
from bench.tokens import TokenServer

REPEATS = 3
SLOTS = 200
ANSWER_US = 100_000
STEP_US = 1_000
"""An answer comes with the first step after its time."""
SETTLED_S = 2
S = 1e9


def measure(ground: Ground) -> list[Item]:
    return [*_full(ground, 3 if ground.short else 10), *_waiting(ground, 1 if ground.short else 5)]


def _full(ground: Ground, seconds: int) -> list[Item]:
    """200 slots at an answer of 100 ms."""
    folder = ground.path("closed-loop")
    with TokenServer(STEP_US, ANSWER_US, 1, None) as server:
        run = profile(
            folder, server.port, "--concurrency", str(SLOTS), "--benchmark-duration", str(seconds),
            "--workers", "1", "--isl", "128", "--osl", "1",
        )  # fmt: skip
        others_cores = run.others_cores(server.cpu_s())
    requests = run.requests().drop_nulls("sent_ns")
    gaps = refill_gaps(requests, SLOTS) / MS
    name = f"closed loop of {SLOTS}"
    return [
        Item(f"{name}: mean in flight after {SETTLED_S} s", "", [mean_in_flight(requests)], 197, "at least"),
        Item(f"{name}: refill gap p50", "ms", [quantile(gaps, 0.5)], 0.5),
        Item(f"{name}: refill gap p99", "ms", [quantile(gaps, 0.99)], 5.0),
        Item(f"{name}: other work on the machine", "cores", [others_cores]),
    ]


def mean_in_flight(requests: pl.DataFrame) -> float:
    """The area under the requests in flight, from `SETTLED_S` after the first send until the last one."""
    sent = requests["sent_ns"].to_list()
    start, stop = min(sent) + SETTLED_S * S, max(sent)
    inside = pl.col("done_ns").clip(start, stop) - pl.col("sent_ns").clip(start, stop)
    area = requests.select(inside.cast(pl.Float64).sum()).item()
    return float(area / (stop - start))


def refill_gaps(requests: pl.DataFrame, slots: int) -> pl.Series:
    """From the kernel's stamp of an answer's end to the send that took its place, ns.

    Slots have no names, so the k-th end is taken together with the k-th send after those that filled the slots.
    """
    refills = requests["sent_ns"].sort()[slots:]
    return refills - requests["done_ns"].sort()[: len(refills)]


def _waiting(ground: Ground, seconds: int) -> list[Item]:
    """One request in flight that takes long: what the client uses meanwhile."""
    short, long = _one(ground, 0.1), _one(ground, 0.1 + seconds)
    log = msgspec.json.decode((long.folder / "run.json").read_bytes())
    busy = sum(worker["cpu_ns"] / worker["wall_ns"] for worker in log["workers"])
    return [
        Item("one slow request in flight: the worker's CPU", "% of a core", [busy * 100], 5.0),
        Item(
            "one slow request in flight: CPU of all processes",
            "% of a core",
            [(long.cpu_s - short.cpu_s) / seconds * 100],
            5.0,
        ),
    ]


def _one(ground: Ground, answer_s: float) -> Run:
    """One request with an answer that takes so long."""
    with TokenServer(STEP_US, round(answer_s * 1e6), 1, None) as server:
        return profile(
            ground.path(f"one-{answer_s:g}"), server.port, "--concurrency", "1", "--request-count", "1",
            "--isl", "128", "--osl", "1",
        )  # fmt: skip
