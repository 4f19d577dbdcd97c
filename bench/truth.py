"""Whether every time that is reported of a request is the one that the server has in its own log.

The built-in engine over real sockets, a few streams and many. What the client says of a request is held against the
same difference of the server's own instants: `received` (the kernel's stamp of the request) and the sends of its tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from bench.client import BenchFailed, profile
from bench.ground import Ground
from bench.simulator import simulator
from bench.table import Item
from loadstone.sim.truth import TruthRow, read_truth

REPEATS = 3
STREAMS = (16, 100)
TOKENS = 64
WAVES, SHORT_WAVES = 12, 2
STEP_MS = 10
BAR_MS = 0.5
MS = 1e6


def measure(ground: Ground) -> list[Item]:
    return [item for streams in STREAMS for item in _items(ground, streams)]


def _items(ground: Ground, streams: int) -> list[Item]:
    requests = streams * (SHORT_WAVES if ground.short else WAVES)
    folder = ground.path(f"truth-{streams}")
    log = folder.with_suffix(".truth")
    with simulator({"truth": str(log), "step_ms": STEP_MS, "model": "tokens"}) as server:
        run = profile(
            folder, server.port, "--concurrency", str(streams), "--request-count", str(requests),
            "--isl", "128", "--osl", str(TOKENS), "--extra-inputs", "ignore_eos:true", "--random-seed", "1",
        )  # fmt: skip
        others_cores = run.others_cores(server.cpu_s())
    pairs = comparable(run.requests(), read_truth(log))
    if not pairs:
        raise BenchFailed(
            f"{folder}: no request has a time for each of its tokens, here and in the server's log"
        )
    said = _figures((row["sent_ns"], row["arrival_ns"]) for row, _ in pairs)
    true = _figures((row.received_ns, row.sent_ns or []) for _, row in pairs)
    wrong = {name: np.abs(said[name] - true[name]) for name in said}
    compared = f"truth, {streams} streams: requests compared"
    return [
        Item(compared, "", [len(pairs)], requests, "at least", True),
        *(
            Item(f"truth, {streams} streams: {name}, error p99", "ms", [float(np.quantile(ms, 0.99))], BAR_MS)
            for name, ms in wrong.items()
        ),
        Item(f"truth, {streams} streams: other work on the machine", "cores", [others_cores]),
    ]


def comparable(requests: pl.DataFrame, log: Iterable[TruthRow]) -> list[tuple[dict[str, Any], TruthRow]]:
    """Requests with the server's word on them, where both have a time for every token, and more than one.

    What failed, what the server has no row of, and what has other tokens here than there is left out: the count of those
    that are left is an item of its own.
    """
    by_id = {row.request_id: row for row in log}
    pairs = ((row, by_id.get(row["request_id"])) for row in requests.to_dicts())
    return [
        (row, true)
        for row, true in pairs
        if true is not None and len(row["arrival_ns"]) == len(true.sent_ns or ()) > 1
    ]


def _figures(requests: Iterable[tuple[int, list[int]]]) -> dict[str, np.ndarray]:
    """Per-request metrics in ms from when a request began and when each of its tokens came."""
    found: dict[str, list[float]] = {"TTFT": [], "ITL": [], "TPOT": [], "latency": []}
    for began_ns, tokens_ns in requests:
        times = np.array(tokens_ns, np.int64)
        found["TTFT"].append(times[0] - began_ns)
        found["latency"].append(times[-1] - began_ns)
        found["TPOT"].append((times[-1] - times[0]) / (len(times) - 1))
        found["ITL"].extend(np.diff(times).tolist())
    return {name: np.array(values) / MS for name, values in found.items()}
