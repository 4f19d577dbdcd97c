"""Whether every time that is reported of a request is the one that the server has in its own log.

The built-in engine over real sockets, a few streams and many. What the client says of a request is held against the
same difference of the server's own instants: `received` (the kernel's stamp of the request) and the sends of its tokens.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bench.client import Run, profile
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
    said, true = _times(run), _truth(read_truth(log), run)
    wrong = {name: np.abs(said[name] - true[name]) for name in said}
    return [
        Item(
            f"truth, {streams} streams: requests compared",
            "",
            [len(true["TTFT"])],
            requests,
            "at least",
            True,
        ),
        *(
            Item(f"truth, {streams} streams: {name}, error p99", "ms", [float(np.quantile(ms, 0.99))], BAR_MS)
            for name, ms in wrong.items()
        ),
        Item(f"truth, {streams} streams: other work on the machine", "cores", [others_cores]),
    ]


def _times(run: Run) -> dict[str, np.ndarray]:
    """What the client says, request by request in the order of their ids; gaps one after the other."""
    rows = run.requests().sort("request_id")
    return _figures(
        zip(rows["sent_ns"].to_list(), rows["arrival_ns"].to_list(), strict=True),
    )


def _truth(log: list[TruthRow], run: Run) -> dict[str, np.ndarray]:
    """The same by the server's log."""
    by_id = {row.request_id: row for row in log}
    rows = [by_id[name] for name in run.requests().sort("request_id")["request_id"].to_list()]
    return _figures((row.received_ns, row.sent_ns or []) for row in rows)


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
