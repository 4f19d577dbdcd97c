"""Whether an open loop keeps its times: 500 requests/s of 1-token answers for 20 s."""

from __future__ import annotations

import polars as pl

from bench.client import profile
from bench.ground import Ground
from bench.stamps import MS, quantile
from bench.table import Item
from bench.tokens import TokenServer

REPEATS = 3


def _off_percent(joined: pl.DataFrame) -> float:
    """By how much the rate of the sends differs from that of the due times."""
    due, sent = (joined[name].max() - joined[name].min() for name in ("due_ns", "sent_ns"))
    return 100 * abs(due / sent - 1)


def measure(ground: Ground) -> list[Item]:
    rate, requests = (100, 100) if ground.short else (500, 10_000)
    folder = ground.path("open-loop")
    with TokenServer(0, 0, 1, folder.with_suffix(".log")) as server:
        run = profile(
            folder, server.port, "--request-rate", str(rate), "--arrival-pattern", "constant",
            "--request-count", str(requests), "--isl", "128", "--osl", "1",
        )  # fmt: skip
        server_cpu_s = server.cpu_s()
    joined = run.with_log(server.rows())
    lag = (joined["sent_ns"] - joined["due_ns"]) / MS
    tenth = requests // 10
    drift = abs(quantile(lag.tail(tenth), 0.5) - quantile(lag.head(tenth), 0.5))
    return [
        Item(
            f"open loop {rate}/s: requests the server answered",
            "",
            [joined.height],
            requests,
            "at least",
            True,
        ),
        Item(f"open loop {rate}/s: send lag p50", "ms", [quantile(lag, 0.5)]),
        Item(f"open loop {rate}/s: send lag p99", "ms", [quantile(lag, 0.99)], 1.0),
        Item(f"open loop {rate}/s: other work on the machine", "cores", [run.others_cores(server_cpu_s)]),
        Item(f"open loop {rate}/s: recorded rate off the planned", "%", [_off_percent(joined)], 0.1),
        Item(f"open loop {rate}/s: drift (median lag, last tenth - first)", "ms", [drift], 0.1),
    ]
