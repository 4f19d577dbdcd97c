"""What the report of a million requests of 500 chunks each takes: peak memory and CPU of a process that makes it all.

The table is lazy. What is written is one Parquet file of all scalar columns, in row groups of the size that a run
writes, with the token times as offsets from `sent_ns` of a few patterns, which Parquet keeps as a dictionary (some hundred MB
instead of 10 GB). `arrival_ns` and `read_ns` are the sum of the two, computed for the rows that are asked for, so every request
has times of its own. Everything `loadstone report` computes is computed from it: metrics, checks, series, phases.

How near the percentiles of histograms come to exact ones is measured on a size where both fit.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from bench.client import BenchFailed
from bench.ground import Ground
from bench.table import Item
from loadstone import folder as run_folder
from loadstone import summary
from loadstone.config import Config, EndpointConfig, LoadConfig, SloConfig
from loadstone.folder import ClockLog, DatasetLog, PhaseLog, RunLog, WorkerLog, write_run
from loadstone.metrics import Tables, _pools, all_metrics
from loadstone.read.outcome import HTTP_SERVER_ERROR, OK_LENGTH
from loadstone.read.schema import REQUESTS
from loadstone.read.tables import RANGE_ENTRIES
from loadstone.stats import PERCENTILES

REPEATS = 1
MB = 1e6
T0_NS = 10**15
EVERY_NS = 5_000_000
"""From one send to the next, so that about 2,000 streams are under way."""
GAP_NS, SPREAD = 20e6, 0.5
"""Median of the gaps between chunks, and their spread in natural logarithms."""
PATTERNS = 16
FAILED = 0.01
SEED = 1
EXACT_REQUESTS, EXACT_CHUNKS = 15_000, 100
"""1.5 million gaps: they fit."""


def measure(ground: Ground) -> list[Item]:
    requests, chunks = (20_000, 50) if ground.short else (1_000_000, 500)
    folder = _written(ground.path("million"), requests, chunks)
    found = _child("report", folder)
    size = f"{requests:,} requests x {chunks} chunks"
    succeeded = requests - requests // round(1 / FAILED)
    return [
        Item(f"report of {size}: peak memory", "MB", [found["peak_mb"]], 1000.0),
        Item(f"report of {size}: memory before the table is read", "MB", [found["start_mb"]]),
        Item(f"report of {size}: CPU", "s", [found["cpu_s"]]),
        Item(
            f"report of {size}: gaps that are not counted",
            "gaps",
            [abs(succeeded * (chunks - 1) - found["gaps"])],
            0.0,
            exact=True,
        ),
        Item("percentiles from histograms: largest error", "%", [_error(ground)], 0.1, exact=True),
    ]


def _error(ground: Ground) -> float:
    """The largest relative error of any percentile of the pooled metrics against the exact one, in percent."""
    folder = _written(ground.path("exact"), 2_000 if ground.short else EXACT_REQUESTS, EXACT_CHUNKS)
    exact, binned = _child("exact", folder), _child("binned", folder)
    return max(100 * abs(binned[key] / exact[key] - 1) for key in exact if key.startswith(POOLED))


POOLED = ("inter_token_latency", "client_lag")


def _child(what: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.million", what, folder], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchFailed(f"the report of {folder} failed: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _written(folder: Path, requests: int, chunks: int) -> Path:
    """A run's folder with such a table."""
    folder.mkdir()
    rows = max(1, RANGE_ENTRIES // chunks)
    source = register_io_source(lambda *_: _frames(requests, chunks, rows), schema=_STORED)
    source.sink_parquet(
        folder / run_folder.REQUESTS, compression="zstd", compression_level=1, row_group_size=rows, maintain_order=True
    )  # fmt: skip
    write_run(folder, _log(requests))
    return folder


LISTS = ("arrival_ns", "read_ns")
OFFSETS = {"after_ns": pl.List(pl.Int64), "lag_ns": pl.List(pl.Int64)}
_STORED = {name: kind for name, kind in REQUESTS.items() if name not in LISTS} | OFFSETS


def _frames(requests: int, chunks: int, rows: int) -> Iterator[pl.DataFrame]:
    rng = np.random.default_rng(SEED)
    gaps = np.rint(rng.lognormal(np.log(GAP_NS), SPREAD, (PATTERNS, chunks)))
    gaps[:, 0] *= 10
    after = np.cumsum(gaps, axis=1).astype(np.int64)
    lag = rng.integers(20_000, 400_000, (PATTERNS, chunks))
    lists = pl.DataFrame(
        {
            "after_ns": [*after.tolist(), []],  # the last one is that of a failure
            "lag_ns": [*lag.tolist(), []],
            "chunk_tokens": [*[[1] * chunks] * PATTERNS, []],
        },
        schema={**OFFSETS, "chunk_tokens": REQUESTS["chunk_tokens"]},
    )
    for first in range(0, requests, rows):
        number = np.arange(first, min(first + rows, requests))
        which = rng.integers(0, PATTERNS, len(number))
        good = number % round(1 / FAILED) != 0
        jitter_ns = rng.integers(0, 1_000_000, len(number))
        scalars = _scalars(number, good, jitter_ns, after[which], lag[which])
        yield pl.concat([scalars, lists[np.where(good, which, PATTERNS)]], how="horizontal").select(
            pl.col(name).cast(kind) if name in scalars.columns or name in lists.columns else pl.lit(None, kind).alias(name)
            for name, kind in _STORED.items()
        )  # fmt: skip


def _scalars(number: Any, good: Any, jitter_ns: Any, after_ns: Any, lag_ns: Any) -> pl.DataFrame:
    """The columns of some requests; each has a value in it wherever a real run has one."""
    due_ns = T0_NS + number * EVERY_NS
    sent_ns = due_ns + jitter_ns
    tokens, chunks = np.where(good, after_ns.shape[1], 0), after_ns.shape[1]
    frame = pl.DataFrame(
        {
            "request": number,
            "request_id": [f"{n:032x}" for n in number],
            "phase": "measured",
            "worker": number % 4,
            "conversation": number,
            "turn": 0,
            "target": 0,
            "model": 0,
            "outcome": np.where(good, OK_LENGTH, HTTP_SERVER_ERROR),
            "fault": "the server answered 500.",
            "http_status": np.where(good, 200, 500),
            "finish_reason": "length",
            "retries": 0,
            "redirects": 0,
            "streamed": good,
            "coalesced": False,
            "unfinished_event": False,
            "choices": 1,
            "due_ns": due_ns,
            "connect_ns": sent_ns - 300_000,
            "tcp_ns": sent_ns - 100_000,
            "connected_ns": sent_ns - 100_000,
            "sent_ns": sent_ns,
            "written_ns": sent_ns + 20_000,
            "answered_ns": sent_ns + after_ns[:, 0] // 2,
            "first_ns": sent_ns + after_ns[:, 0],
            "first_answer_ns": sent_ns + after_ns[:, 0],
            "last_ns": sent_ns + after_ns[:, -1],
            "done_ns": sent_ns + after_ns[:, -1] + 100_000,
            "first_read_ns": sent_ns + after_ns[:, 0] + lag_ns[:, 0],
            "kernel_stamps": True,
            "input_tokens": 1_000 + number % 97,
            "input_tokens_source": "usage",
            "output_tokens": tokens,
            "output_tokens_source": "usage",
            "planned_input_tokens": 1_000,
            "planned_output_tokens": chunks,
            "usage_prompt_tokens": 1_000 + number % 97,
            "usage_completion_tokens": tokens,
            "usage_reasoning_tokens": 0,
            "usage_cached_tokens": number % 31,
            "draft_steps": tokens // 2,
            "draft_tokens": tokens,
            "draft_accepted_tokens": tokens // 2,
            "checked_output_tokens": tokens,
            "text_chars": 4 * tokens,
            "reasoning_chars": 0,
            "request_bytes": 5_000 + number % 89,
            "response_bytes": 250 * tokens + number % 83,
        },
        strict=False,
    )
    came = ("first_ns", "first_answer_ns", "last_ns", "first_read_ns", "finish_reason")
    whole = pl.lit(pl.Series(good))
    return frame.with_columns(
        *(pl.when(whole).then(name).alias(name) for name in came),
        pl.when(~whole).then("fault").alias("fault"),
    )


def _log(requests: int) -> RunLog:
    """The log of a run at a constant rate, with objectives."""
    load = LoadConfig(request_rate=1e9 / EVERY_NS, request_count=requests)
    slo = SloConfig(goodput={"time_to_first_token": 250.0, "inter_token_latency": 25.0})
    end_ns = T0_NS + (requests + 1) * EVERY_NS
    measured = PhaseLog(
        name="measured", kind="measured", first_row=0, planned=requests, start_ns=T0_NS, stop_ns=end_ns,
        end_ns=end_ns + 60_000_000_000,
    )  # fmt: skip
    return RunLog(
        id="million",
        command="bench million",
        loadstone_version="0",
        started="2026-01-01T00:00:00Z",
        end="complete",
        seed=SEED,
        config=msgspec.to_builtins(Config(endpoint=EndpointConfig(streaming=True), load=load, slo=slo)),
        phases=[measured],
        workers=[WorkerLog(worker=n, cpu_ns=1, wall_ns=10, flights=1, reads=1) for n in range(4)],
        clock=ClockLog(kernel_stamps=True, steps=0),
        dataset=DatasetLog(
            source="synthetic", tokenizer="builtin", lengths_exact=True, unique_prompts=True, reused=0, digest="0"
        ),
        preflight=None,
        server_local=False,
        host_busy_share=0.2,
        environment={},
        notices=[],
    )  # fmt: skip


def table(folder: Path) -> pl.LazyFrame:
    """The table of a folder, with the times that its offsets make."""
    stored = pl.scan_parquet(folder / run_folder.REQUESTS, glob=False)
    arrivals = stored.with_columns(arrival_ns=pl.col("sent_ns") + pl.col("after_ns"))
    return arrivals.with_columns(read_ns=pl.col("arrival_ns") + pl.col("lag_ns")).select(list(REQUESTS))


def peak_mb() -> float:
    """The most memory that this process has had in use; not by getrusage, which keeps what its parent had at the fork."""
    status = Path("/proc/self/status").read_text("ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")) / MB


def _report(folder: Path) -> dict[str, Any]:
    before = peak_mb()
    summary._table = table  # the one place where the table's source is chosen
    report = summary.summarise(folder)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "peak_mb": peak_mb(),
        "start_mb": before,
        "cpu_s": used.ru_utime + used.ru_stime,
        "gaps": report.metrics["inter_token_latency"].count,
    }


def _pooled(folder: Path, exact: int) -> dict[str, Any]:
    """The percentiles of the pooled metrics, with so many samples at most kept one by one."""
    _pools.EXACT = exact
    tables = Tables.read(table(folder), run_folder.read_run(folder))
    found = {name: summary.measure(all_metrics()[name], tables) for name in POOLED}
    return {f"{name}.{of}": getattr(one, of) for name, one in found.items() for of in PERCENTILES}


if __name__ == "__main__":
    what, path = sys.argv[1], Path(sys.argv[2])
    asked = {
        "report": lambda: _report(path),
        "exact": lambda: _pooled(path, 1 << 40),
        "binned": lambda: _pooled(path, 0),
    }
    print(json.dumps(asked[what]()))
