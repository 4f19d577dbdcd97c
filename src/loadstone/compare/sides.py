"""What is compared: sides, each of one run or several, whoever measured them.

A run has numbers by metric and statistic, and where they are known the requests they come from. Metrics bear our names where
they mean what ours do. One that is counted otherwise has a name of its own, so that it is never held against ours; where the
difference is small it has our name and a caveat, which is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from loadstone.estimate.rates import Paced

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

STATS = {"mean": None, "p50": 0.5, "p90": 0.9, "p99": 0.99}
"""The statistics of a distribution that are compared."""

LATENCIES = (
    "time_to_first_token",
    "inter_token_latency",
    "inter_chunk_latency",
    "time_per_output_token",
    "time_per_output_token_with_prefill",
    "request_latency",
    "request_latency_from_due",
)
RATES = ("request_throughput", "output_token_throughput", "total_token_throughput", "goodput")
SHARES = ("goodput_attainment", "error_rate")
BY_TOKENS = (
    "time_per_output_token",
    "time_per_output_token_with_prefill",
    "output_token_throughput",
    "total_token_throughput",
)
"""What says nothing of two servers where their output tokens are counted by different tokenizers."""
SERVER = "the server"
METRICS = (*LATENCIES, *RATES, *SHARES)
"""What is compared, in the order of display."""
UNITS = {
    "request_throughput": "requests/s",
    "output_token_throughput": "tokens/s",
    "total_token_throughput": "tokens/s",
    "goodput": "requests/s",
    "goodput_attainment": "%",
    "error_rate": "%",
}
"""The units of what is no latency; a latency is in ms."""


def better(metric: str) -> str:
    """Whether `lower` or `higher` is better."""
    return "higher" if metric in RATES or metric == "goodput_attainment" else "lower"


class Gaps(NamedTuple):
    """Times between tokens (or chunks), pooled over requests."""

    owners: Ints
    """Which request each is of, by its position."""
    values: Floats
    weights: Floats | None = None
    """How many tokens each stands for; None: one."""


class Requests(NamedTuple):
    """A run request by request, in the order of sending. Arrays have one entry a request; NaN: there is none."""

    sent_s: Floats
    """When they were sent, in seconds from the first."""
    succeeded: Bools
    failed: Bools
    """By the server; what we ended is neither."""
    latencies: Mapping[str, Floats]
    """One value a request, by metric, ms."""
    output_tokens: Floats
    input_tokens: Floats
    pooled: Mapping[str, Gaps] = {}
    """Metrics with many values a request, ms."""
    pooled_sums: Mapping[str, tuple[Floats, Floats]] = {}
    """For their means: the sum of a request's values, and how many they are."""
    good: Floats | None = None
    """1: it met every objective, 0: it did not, NaN: it is not judged. None where no objective was set."""
    keys: Ints | None = None
    """Which row of the plan each is, from the first measured one on; None where that is not known."""
    prompts: Ints | None = None
    """A hash of what each was sent: requests with equal keys and prompts are the same work; None where it is not known."""
    pace: Paced | None = None
    """What time each took up, in seconds, which is what rates are drawn from; None where that is not known."""


class Known(NamedTuple):
    """A number of a run, and its 95 % interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


class Run(NamedTuple):
    """One run of one tool."""

    path: str
    tool: str
    """Who measured it, with the version where that is known: `loadstone 0.1.0`."""
    asked: Mapping[str, Any]
    """What was asked of the server, by the names of `asked.FACTS`; what is missing is not known."""
    numbers: Mapping[tuple[str, str], Known]
    """By metric and statistic; a rate or a share has it in `mean`."""
    requests: Requests | None = None
    planned: int | None = None
    """How many requests `asked["dataset"]`, where it is a digest, was made of."""
    surroundings: Mapping[str, str] = {}
    """Where it ran; no part of the comparison."""
    verdict: str | None = None
    """VALID, DEGRADED or INVALID by its certificate; None: it has none."""
    headline: str = ""
    """Why."""
    caveats: Mapping[str, str] = {}
    """What is counted a little otherwise than by loadstone, by metric."""
    notes: tuple[str, ...] = ()
    counted_by: str = SERVER
    """Who counted the output tokens."""


class Side(NamedTuple):
    """One side of the comparison."""

    name: str
    runs: tuple[Run, ...]

    @property
    def run(self) -> Run:
        """The first, which speaks for all where they were asked the same."""
        return self.runs[0]
