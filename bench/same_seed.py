"""Whether the same seed sends the same: bodies as the server received them, moments as they were planned.

The open loop is the dynamic walk-through as it is written; its second run has another number of workers.
"""

from __future__ import annotations

import statistics

import polars as pl

from bench.client import profile
from bench.ground import Ground
from bench.table import Item
from bench.tokens import TokenServer

REPEATS = 1
SEED = "42"
DYNAMIC = (
    "--arrival-pattern", "poisson", "--random-seed", SEED,
    "--synthetic-input-tokens-mean", "512", "--synthetic-input-tokens-stddev", "128",
    "--output-tokens-mean", "128", "--output-tokens-stddev", "32",
)  # fmt: skip
CLOSED = ("--concurrency", "8", "--isl", "128", "--isl-stddev", "32", "--osl", "4", "--random-seed", SEED)


def measure(ground: Ground) -> list[Item]:
    rate, requests = ("100", "40") if ground.short else ("10", "200")
    count = ("--request-count", requests)
    open_one, open_three = (_sent(ground, n, *DYNAMIC, "--request-rate", rate, *count) for n in (1, 3))
    closed_one, closed_three = (_sent(ground, n, *CLOSED, *count) for n in (1, 3))
    isl = statistics.fmean(open_one["planned_input_tokens"].to_list())
    osl = statistics.fmean(open_one["planned_output_tokens"].to_list())
    return [
        Item("same seed, 1 and 3 workers: requests compared", "", [_common(open_one, open_three)], float(requests), "at least", True),
        Item("same seed, 1 and 3 workers: bodies that differ, open loop", "", [_differ(open_one, open_three, "server_body_hash")], 0, exact=True),
        Item("same seed, 1 and 3 workers: due times that differ", "", [_differ(open_one, open_three, "due_after_ns")], 0, exact=True),
        Item("same seed, 1 and 3 workers: bodies that differ, closed loop", "", [_differ(closed_one, closed_three, "server_body_hash")], 0, exact=True),
        Item("seed 42, dynamic: mean ISL away from 512", "tokens", [abs(isl - 512)], 28),
        Item("seed 42, dynamic: mean OSL away from 128", "tokens", [abs(osl - 128)], 20),
    ]  # fmt: skip


def _sent(ground: Ground, workers: int, *arguments: str) -> pl.DataFrame:
    """What one run sent, with due times counted from its first."""
    folder = ground.path(f"seed-{'open' if '--request-rate' in arguments else 'closed'}-{workers}")
    with TokenServer(1_000, 0, 1_000, folder.with_suffix(".log")) as server:
        run = profile(folder, server.port, *arguments, "--workers", str(workers))
    joined = run.with_log(server.rows()).sort("request")
    return joined.with_columns(due_after_ns=pl.col("due_ns") - pl.col("due_ns").min())


def _common(one: pl.DataFrame, other: pl.DataFrame) -> int:
    return one.join(other, on="request").height


def _differ(one: pl.DataFrame, other: pl.DataFrame, column: str) -> int:
    """Requests whose value is not the same in both."""
    both = one.select("request", column).join(other.select("request", column), on="request", suffix="_other")
    return both.filter(pl.col(column).ne_missing(pl.col(f"{column}_other"))).height
