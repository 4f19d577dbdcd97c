"""Whether the built-in engine keeps its own time: 300 streams at 10 ms a step, on one core, read by wrk on the others.

By the server's own log of its steps (`--steps`). A step begins before the tokens of the one before are sent, so the burst of
sends, which takes some ms itself, is told beside it and not part of the jitter. Its page of metrics is scraped each second
meanwhile, as a run of `loadstone profile` does.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from bench import wrk
from bench.ground import Ground
from bench.simulator import simulator
from bench.stamps import quantile
from bench.table import Item
from loadstone.sim.step_log import read_steps

REPEATS = 3
STREAMS, SHORT_STREAMS = 300, 30
SECONDS, SHORT_SECONDS = 20, 2
STEP_MS = 10
PROMPT_WORDS = 128
TOKENS = (100, 300)
"""Answers are evenly between so long, so that they neither begin nor end all at once."""
FULL = 0.9
"""Steps count from so great a share of the streams on; the others are at the start and the end."""
SCRAPE_S = 1.0
MS = 1e6


def measure(ground: Ground) -> list[Item]:
    streams, seconds = (SHORT_STREAMS, SHORT_SECONDS) if ground.short else (STREAMS, SECONDS)
    log = ground.path("steps").with_suffix(".jsonl")
    core, *others = sorted(os.sched_getaffinity(0))
    with simulator(_options(log), {core}) as server:
        cpu_s, waited_s, began_s = server.cpu_s(), _waited_s(server.process.pid), time.monotonic()
        with _only_on(others or [core]), _scraped(server.port) as pages_s:
            wrk.cpu_s(server.port, _bodies(), streams, seconds, ground.folder)
        elapsed_s = time.monotonic() - began_s
        busy, waited = (
            (server.cpu_s() - cpu_s) / elapsed_s,
            (_waited_s(server.process.pid) - waited_s) / elapsed_s,
        )
    rows = [row for row in read_steps(log) if row.sequences >= FULL * streams]
    late = _ms(row.begun_ns - row.due_ns for row in rows)
    burst = _ms(row.sent_ns - row.begun_ns for row in rows)
    possible = seconds * 1000 / STEP_MS
    return [
        Item("simulator: steps with all streams / the possible", "", [len(rows) / possible]),
        Item("simulator: step's start - its time, p50", "ms", [quantile(late, 0.5)]),
        Item("simulator: step's start - its time, p99", "ms", [quantile(late, 0.99)], 2.0),
        Item("simulator: step's start - its time, max", "ms", [quantile(late, 1.0)]),
        Item("simulator: burst of sends, p50", "ms", [quantile(burst, 0.5)]),
        Item("simulator: burst of sends, p99", "ms", [quantile(burst, 0.99)]),
        Item("simulator: burst of sends, max", "ms", [quantile(burst, 1.0)]),
        Item(
            "simulator: pages of metrics meanwhile",
            "",
            [len(pages_s)],
            seconds / SCRAPE_S - 1,
            "at least",
            True,
        ),
        Item("simulator: a page, from request to its end, max", "ms", [max(pages_s) * 1000]),
        Item("simulator: its core busy", "", [busy]),
        Item("simulator: waited for its core, which others had", "", [waited]),
    ]


def _ms(times_ns: Iterator[int]) -> pl.Series:
    return pl.Series(list(times_ns), dtype=pl.Int64) / MS


def _bodies() -> list[bytes]:
    draw = Random(1)
    prompts = [" ".join(f"word{draw.randrange(10_000)}" for _ in range(PROMPT_WORDS)) for _ in range(1000)]
    return [_body(prompt, draw.randint(*TOKENS)) for prompt in prompts]


def _body(prompt: str, tokens: int) -> bytes:
    message = {"role": "user", "content": prompt}
    return json.dumps(
        {"model": "sim", "messages": [message], "stream": True, "ignore_eos": True, "max_tokens": tokens}
    ).encode()


def _options(log: Path) -> dict[str, Any]:
    return {
        "steps": str(log), "step_ms": STEP_MS, "step_us_per_sequence": 0, "prefill_us_per_token": 0,
        "max_num_seqs": 1024,
    }  # fmt: skip


def _waited_s(pid: int) -> float:
    """Time in which it could have run and others had its core: above a few per mille the machine is not its own."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


@contextmanager
def _scraped(port: int) -> Iterator[list[float]]:
    """Scrapes the page of metrics each second meanwhile; how long each took, in seconds."""
    found: list[float] = []
    over = threading.Event()

    def scrape() -> None:
        while True:
            began_s = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/metrics")
            connection.getresponse().read()
            connection.close()
            found.append(time.monotonic() - began_s)
            if over.wait(SCRAPE_S):
                return

    scraper = threading.Thread(target=scrape)
    scraper.start()
    try:
        yield found
    finally:
        over.set()
        scraper.join()


@contextmanager
def _only_on(cores: Sequence[int]) -> Iterator[None]:
    """What is started meanwhile runs on these cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
