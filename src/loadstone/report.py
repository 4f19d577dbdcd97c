"""The report: what a run found, as one versioned tree, the only thing exporters see.

Times in metrics are milliseconds, everything else in the unit named beside it. A number that is not
known is null with a reason, never 0.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA_VERSION = "1.1"


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of the report."""


class MetricResult(_Part, frozen=True, kw_only=True):
    """One metric's numbers over the measured phase.

    `count` is the number of samples behind the statistics (for ITL: gaps between tokens). A metric that is
    one number (a rate, a share) has it in `mean` alone. `thin` lists the percentiles that
    too few samples support. When nothing could be computed each of these is null and `reason` says why.

    `with_censored` has the same percentiles with the requests taken into account that we cut off, with the run or at a
    time limit (Kaplan-Meier); null where no such request could have had this metric. `cut_off` are those requests;
    `censored` of them had not come to the metric's end. A percentile that is null there is at least
    `with_censored_least`. Where no request succeeded it is all that is known, and `thin` speaks of it.
    """

    unit: str
    better: Literal["lower", "higher", "neither"]
    count: int = 0
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    std: float | None = None
    p1: float | None = None
    p5: float | None = None
    p10: float | None = None
    p25: float | None = None
    p50: float | None = None
    p75: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None
    thin: tuple[str, ...] = ()
    reason: str | None = None
    note: str | None = None
    cut_off: int = 0
    censored: int = 0
    with_censored: dict[str, float | None] | None = None
    with_censored_least: float | None = None


class Check(_Part, frozen=True, kw_only=True):
    """One question about the measurement itself."""

    name: str
    verdict: Literal["VALID", "DEGRADED", "INVALID", "NOTE"]
    value: float | None
    unit: str
    finding: str
    """What was seen, in one sentence."""
    advice: str
    """What to do about it; empty when all is well."""


class Certificate(_Part, frozen=True, kw_only=True):
    """Whether the run can be believed: the worst verdict of its checks, and those that led to it."""

    verdict: Literal["VALID", "DEGRADED", "INVALID"]
    headline: str
    checks: tuple[Check, ...]


class Outcomes(_Part, frozen=True, kw_only=True):
    """How the planned requests of the measured phase ended; the counts add up to `planned`."""

    planned: int
    counts: dict[str, int]
    faults: tuple[dict[str, Any], ...] = ()
    """The most frequent faults: {outcome, message, count, sample} (sample: a file in faults/)."""
    fault_kinds: int = 0
    """How many kinds of faults there were, also where not all are listed."""
    not_sent: tuple[dict[str, Any], ...] = ()
    """Why requests were never sent, the most frequent reasons first: {reason, count}."""
    warmup: dict[str, int] = {}
    retries: int = 0


class Series(_Part, frozen=True, kw_only=True):
    """Counts and levels over the measured phase, in bins of `step_s` from `start`."""

    step_s: float
    offered: tuple[int, ...]
    sent: tuple[int, ...]
    completed: tuple[int, ...]
    in_flight: tuple[float, ...]
    """Time-weighted mean number of requests in flight in each bin."""


class Failing(_Part, frozen=True, kw_only=True):
    """The stretch of failures that ended a run."""

    since_s: float
    """Its first failure, in seconds after the measured phase began."""
    outcome: str
    """How most of them ended."""
    of_outcome: int
    """How many of them ended so."""
    failed: int
    ended: int
    """Requests that the server answered or failed from then on."""


class RunFacts(_Part, frozen=True, kw_only=True):
    """What ran, when, and how it ended."""

    id: str
    command: str
    started: str
    """RFC 3339, UTC."""
    duration_s: float | None
    """From the first send of the measured phase until none of its requests was under way any more."""
    end: Literal["complete", "interrupted", "aborted"]
    stopped_by: Literal["user", "failures", "trouble", "workers"] | None = None
    """What ended the load before its time: Ctrl-C or a signal, the error rate, something the run depends on, or the
    death of every load-generating process."""
    stopped_why: str | None = None
    """The same as one sentence."""
    failing: Failing | None = None
    """Where the failures ended the load: since when."""
    seed: int
    saturated: bool
    notices: tuple[str, ...]
    """What a reader has to know to read the numbers right: reuse of prompts, estimated counts, ..."""
    limits: dict[str, float | None] = {}
    """Limits as they applied, by their key in the configuration; null: not known."""
    files: dict[str, str]
    """Output files by role, relative to the run folder."""


class Report(_Part, frozen=True, kw_only=True):
    """A run's result."""

    schema_version: str = SCHEMA_VERSION
    loadstone_version: str
    run: RunFacts
    certificate: Certificate
    metrics: dict[str, MetricResult]
    outcomes: Outcomes
    series: Series
    config: dict[str, Any]
    """The resolved config tree, secrets masked."""
    environment: dict[str, Any]
    """host, cpu, versions, server, dataset: facts needed to repeat or compare the run."""
