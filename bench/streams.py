"""The common run of the stream measurements: 100 streams of 128 tokens at 10 ms a step, and wrk on the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from bench import wrk
from bench.client import Run, profile
from bench.ground import Ground
from bench.tokens import Row, TokenServer

STEP_US = 10_000
TTFT_US = 50_000


class Shape(NamedTuple):
    """How much is run."""

    streams: int
    tokens: int
    few: int
    """Requests of the small run; its cost is taken off the large one's, which leaves what tokens cost."""
    many: int
    wrk_s: int

    @property
    def possible_per_s(self) -> float:
        """Requests a second between the first and the last completion, when every stream is used all the time.

        The large run is many/streams waves of answers; the first completion comes after the first of them.
        """
        wave_s = (TTFT_US + (self.tokens - 1) * STEP_US) / 1e6
        return (self.many - 1) / ((self.many / self.streams - 1) * wave_s)


FULL = Shape(streams=100, tokens=128, few=500, many=2000, wrk_s=10)
SHORT = Shape(streams=10, tokens=16, few=20, many=60, wrk_s=1)


class Streams(NamedTuple):
    """One repeat."""

    shape: Shape
    few: Run
    many: Run
    few_log: Sequence[Row]
    many_log: Sequence[Row]
    others_cores: float
    """Other work on the machine during the large run."""
    wrk_us: float
    """wrk's CPU for each token the server sent it."""

    @property
    def client_us(self) -> float:
        """The client's marginal CPU for each token."""
        tokens = _tokens(self.many_log) - _tokens(self.few_log)
        return (self.many.cpu_s - self.few.cpu_s) / tokens * 1e6


@cache
def streams(ground: Ground) -> Streams:
    """Runs the client twice and wrk once, one after the other."""
    shape = SHORT if ground.short else FULL
    few, few_log, _ = _client(ground, shape, shape.few)
    wrk_us = _wrk(ground, shape, few.bodies())
    many, many_log, others_cores = _client(ground, shape, shape.many)
    return Streams(shape, few, many, few_log, many_log, others_cores, wrk_us)


def _client(ground: Ground, shape: Shape, requests: int) -> tuple[Run, list[Row], float]:
    """The run, the server's log, and how many cores others kept busy."""
    folder = ground.path(f"streams-{requests}")
    server = TokenServer(STEP_US, TTFT_US, shape.tokens, folder.with_suffix(".log"))
    with server:
        run = profile(
            folder, server.port, "--concurrency", str(shape.streams), "--request-count", str(requests),
            "--isl", "128", "--osl", str(shape.tokens), "--extra-inputs", "ignore_eos:true", "--random-seed", "1",
        )  # fmt: skip
        others_cores = run.others_cores(server.cpu_s())
    return run, server.rows(), others_cores


def _wrk(ground: Ground, shape: Shape, bodies: Sequence[bytes]) -> float:
    server = TokenServer(STEP_US, TTFT_US, shape.tokens, ground.path("wrk").with_suffix(".log"))
    with server:
        cpu_s = wrk.cpu_s(server.port, bodies, shape.streams, shape.wrk_s, ground.folder)
    return cpu_s / _tokens(server.rows()) * 1e6


def _tokens(rows: Sequence[Row]) -> int:
    return sum(row.tokens for row in rows)
