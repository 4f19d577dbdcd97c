"""How much memory a run takes, that it does not grow with the requests, and what the report adds."""

from __future__ import annotations

from typing import NamedTuple

from bench.client import Run, profile
from bench.ground import Ground
from bench.table import Item
from bench.tokens import TokenServer

REPEATS = 1
MB = 1e6
STREAMS, TOKENS = 100, 128
STEP_US = 2_000
"""Five times as fast as the other stream runs, for the sake of time; memory goes by requests and streams."""


class Size(NamedTuple):
    """Memory of one run: while it loads (until the last answer), and afterwards."""

    load_mb: float
    report_mb: float
    tokens: int


def measure(ground: Ground) -> list[Item]:
    few, many = (_size(ground, requests) for requests in ((200, 400) if ground.short else (2_000, 20_000)))
    marginal = (many.report_mb - few.report_mb) * MB / (many.tokens - few.tokens)
    return [
        Item(f"memory (PSS) at {STREAMS} streams, peak", "MB", [max(few.load_mb, few.report_mb)], 400),
        Item("memory: ten times the requests, while loading", "MB", [many.load_mb - few.load_mb], 40),
        Item("memory: the report of the smaller run", "MB", [few.report_mb]),
        Item("memory: the report of the larger run", "MB", [many.report_mb]),
        Item("memory: what the report takes for each token more", "bytes", [marginal], 24),
    ]


def _size(ground: Ground, requests: int) -> Size:
    with TokenServer(STEP_US, 0, TOKENS, None) as server:
        run = profile(
            ground.path(f"memory-{requests}"), server.port, "--concurrency", str(STREAMS),
            "--request-count", str(requests), "--isl", "128", "--osl", str(TOKENS),
            memory=True,
        )  # fmt: skip
    return _split(run)


def _split(run: Run) -> Size:
    requests = run.requests()
    last_ns = max(requests["done_ns"].drop_nulls().to_list())
    loading = [sample.pss_bytes for sample in run.samples if sample.at_ns <= last_ns]
    reporting = [sample.pss_bytes for sample in run.samples if sample.at_ns > last_ns]
    tokens = sum(requests["output_tokens"].drop_nulls().to_list())
    return Size(max(loading, default=0) / MB, max(reporting, default=0) / MB, tokens)
