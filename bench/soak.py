"""A long run through everything that goes wrong: faults of all kinds mixed in, and two workers killed on the way.

The sums have to be exact all the same, memory flat, and no descriptor left open.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import polars as pl
import psutil

from bench.client import BenchFailed, pss_bytes
from bench.ground import Ground
from bench.table import Item
from loadstone import folder as layout
from loadstone.board import WORDS, Board, Field
from loadstone.errors import Exit
from loadstone.read.outcome import CLIENT_FAULT, SUCCESSES

REPEATS = 1
REQUESTS, SHORT_REQUESTS = 200_000, 4_000
STREAMS, WORKERS, TOKENS = 64, 4, 8
FAULTY = 0.02
STALL_S = 1
"""Time limits: stalled answers hold their slots for so long."""
KILLS = (1 / 3, 2 / 3)
"""When workers are killed, in shares of the requests."""
SETTLED = 0.25
"""Growth is counted from here on: by then every process has what it needs."""
SAMPLE_S, SHORT_SAMPLE_S = 0.5, 0.05
MB = 1e6


class Sample(NamedTuple):
    """The run at one moment."""

    ended: int
    """Requests that had come to their end."""
    sizes: dict[int, int]
    """PSS by process, bytes."""
    descriptors: dict[int, int]
    """Open descriptors by process."""


def measure(ground: Ground) -> list[Item]:
    requests = SHORT_REQUESTS if ground.short else REQUESTS
    home = ground.path("soak")
    with _server() as url:
        code, samples = _run(home, url, requests)
    report = msgspec.json.decode((home / "report.json").read_bytes())
    table = pl.read_parquet(home / "requests.parquet", columns=["request", "outcome", "retries"])
    counts = report["outcomes"]["counts"]
    good = sum(counts.get(name, 0) for name in SUCCESSES)
    lost = counts.get(CLIENT_FAULT, 0)
    survivors = set(samples[-1].sizes)
    end = samples[-1]
    start = next((sample for sample in samples if sample.ended >= SETTLED * requests), end)
    return [
        Item("soak: exit code beside the one for dead workers", "", [abs(code - Exit.INVALID)], 0, exact=True),
        Item("soak: requests missing or counted twice", "requests", [_astray(table, requests, counts)], 0, exact=True),
        Item("soak: kinds of outcomes", "", [len(counts)]),
        Item("soak: good answers of those not lost", "%", [100 * good / (requests - lost)], 95, "at least", exact=True),
        Item("soak: requests lost with the killed workers", "requests", [lost]),
        Item("soak: memory (PSS), growth", "MB", [_growth(start.sizes, end.sizes, survivors) / MB], 40),
        Item("soak: memory (PSS), peak", "MB", [max(sum(sample.sizes.values()) for sample in samples) / MB]),
        Item(
            "soak: descriptors, growth", "", [_growth(start.descriptors, end.descriptors, survivors)], STREAMS, exact=True
        ),
        Item("soak: requests a second", "1/s", [requests / report["run"]["duration_s"]]),
    ]  # fmt: skip


def _astray(table: pl.DataFrame, requests: int, counts: dict[str, int]) -> int:
    """By how much the rows, the different rows, or the outcomes differ from what was asked for."""
    return max(
        abs(len(table) - requests),
        abs(table["request"].n_unique() - requests),
        abs(sum(counts.values()) - requests),
    )


def _growth(before: dict[int, int], after: dict[int, int], processes: set[int]) -> int:
    return sum(after[pid] - before.get(pid, 0) for pid in processes if pid in before)


@contextmanager
def _server() -> Iterator[str]:
    """The built-in engine with faults of all kinds; its address."""
    command = [
        sys.executable, "-m", "loadstone", "simulate", "--port", "0", "--null", "--fault", f"all:{FAULTY}",
    ]  # fmt: skip
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        announced = re.match(r"http://(\S+) model", server.stdout.readline())
        if announced is None:
            raise BenchFailed("the engine did not start")
        yield announced[1]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def _run(home: Path, url: str, requests: int) -> tuple[int, list[Sample]]:
    """Runs the client to its end; its exit code, and how it was on the way."""
    command = [
        sys.executable, "-m", "loadstone", "profile", "--url", url, "--streaming", "--isl", "16", "--osl", str(TOKENS),
        "--extra-inputs", "ignore_eos:true", "--concurrency", str(STREAMS), "--request-count", str(requests),
        "--workers", str(WORKERS), "--request-timeout-seconds", str(2 * STALL_S),
        "--first-token-timeout-seconds", str(STALL_S), "--idle-timeout-seconds", str(STALL_S),
        "--max-response-bytes", str(8 << 20), "--no-inputs-json", "--artifact-dir", str(home), "--ui", "none",
    ]  # fmt: skip
    with home.with_suffix(".out").open("w+") as out:
        client = subprocess.Popen(command, stdout=out, stderr=out)
        samples = list(_watch(home, client, requests))
        if not samples:
            raise BenchFailed("the run was over before it was looked at")
        if not (home / layout.REPORT).exists():
            out.seek(0)
            raise BenchFailed(f"no report:\n{out.read()}")
    return client.returncode, samples


def _watch(home: Path, client: subprocess.Popen[bytes], requests: int) -> Iterator[Sample]:
    """Samples of the run while it loads; kills a worker whenever one is to be."""
    kills = [share * requests for share in KILLS]
    path = home / layout.RECORDING / layout.BOARD
    while client.poll() is None:
        time.sleep(SAMPLE_S if requests == REQUESTS else SHORT_SAMPLE_S)
        try:
            ended = _ended(path)
            workers = _tree(client.pid, "loadstone.load.worker")
            processes = [client.pid, *workers, *_tree(client.pid, "loadstone.read.follow")]
            sizes = {pid: pss_bytes(pid) for pid in processes}
            descriptors = {pid: psutil.Process(pid).num_fds() for pid in processes}
        except (OSError, psutil.Error, ValueError):
            continue  # it is not there yet, or not any more
        if kills and ended >= kills[0]:
            kills.pop(0)
            psutil.Process(workers[-1]).kill()
        if ended and 0 not in sizes.values():
            yield Sample(ended, sizes, descriptors)


def _ended(path: Path) -> int:
    board = Board(path, path.stat().st_size // (WORDS * 8))
    ended = board.live().fields[Field.ENDED]
    board.close()
    return ended


def _tree(pid: int, module: str) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children() if module in child.cmdline()]
