"""Whether the client's times are true: against the server's own log, request by request."""

from __future__ import annotations

import polars as pl

from bench.ground import Ground
from bench.streams import streams
from bench.table import Item

REPEATS = 3
MS = 1e6


def measure(ground: Ground) -> list[Item]:
    found = streams(ground)
    joined = found.many.with_log(found.many_log)
    late = (joined["first_ns"] - joined["server_first_ns"]) / MS
    read_late = (joined["server_read_ns"] - joined["server_received_ns"]) / MS
    said = (joined["first_ns"] - joined["sent_ns"]) / MS
    true = (joined["server_first_ns"] - joined["sent_ns"]) / MS
    client_rate, server_rate = per_s(joined["done_ns"]), per_s(joined["server_last_ns"])
    return [
        Item("requests found in the server's log", "", [joined.height], found.shape.many, "at least", True),
        Item("first token: client's stamp - server's, p50", "ms", [quantile(late, 0.5)], 0.05),
        Item("first token: client's stamp - server's, p99", "ms", [quantile(late, 0.99)], 0.3),
        Item("TTFT p50, true", "ms", [quantile(true, 0.5)]),
        Item("TTFT p99, true", "ms", [quantile(true, 0.99)]),
        Item("TTFT p50, error", "%", [error_percent(said, true, 0.5)], 0.5),
        Item("TTFT p99, error", "%", [error_percent(said, true, 0.99)], 0.5),
        Item("request: server's read - kernel's stamp, p50", "ms", [quantile(read_late, 0.5)]),
        Item("request: server's read - kernel's stamp, p99", "ms", [quantile(read_late, 0.99)]),
        Item("stream runs: other work on the machine", "cores", [found.others_cores]),
        Item("completed rate / the server's", "", [client_rate / server_rate], 0.99, "at least"),
        Item("completed rate / the possible", "", [client_rate / found.shape.possible_per_s]),
    ]


def quantile(values: pl.Series, share: float) -> float:
    found = values.quantile(share, "linear")
    return float("nan") if found is None else float(found)


def error_percent(said: pl.Series, true: pl.Series, share: float) -> float:
    """How far a percentile that the client says is from the true one."""
    return abs(quantile(said, share) / quantile(true, share) - 1) * 100


def per_s(moments_ns: pl.Series) -> float:
    """Events a second between the first and the last."""
    moments = moments_ns.drop_nulls().to_list()
    return float((len(moments) - 1) / ((max(moments) - min(moments)) / 1e9))
