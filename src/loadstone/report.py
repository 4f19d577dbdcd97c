"""The report: what a run found, as one versioned tree, the only thing exporters see.

Times in metrics are milliseconds, everything else in the unit named beside it. A number that is not
known is null with a reason, never 0.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA_VERSION = "1.2"


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of the report."""


class Interval(_Part, frozen=True, kw_only=True):
    """Where the true value of a statistic lies with the probability `level`, in the metric's unit; see docs/statistics.md.

    `low` and `high` are null, and `reason` says why, where too little is known to give one. `high` alone is null where all
    that is known is that the true value is at least `low`; `reason` says that too.
    """

    low: float | None
    high: float | None
    level: float = 0.95
    method: str = ""
    """How it was found, in a few words: `order statistics`, `batch means`, `Clopper-Pearson`, `Student t over runs`."""
    effective: float | None = None
    """Independent samples that would tell as much; fewer than there are where requests depend on each other."""
    reason: str | None = None
    needs: int | None = None
    """Samples that an interval would take, where there are too few."""


class MetricResult(_Part, frozen=True, kw_only=True):
    """One metric's numbers over the measured phases.

    `count` is the number of samples behind the statistics (for ITL: gaps between tokens). A metric that is
    one number (a rate, a share) has it in `mean` alone. `thin` lists the percentiles that
    too few samples support. When nothing could be computed each of these is null and `reason` says why.

    `with_censored` has the same percentiles with the requests taken into account that we cut off, with the run or at a
    time limit (Kaplan-Meier); null where no such request could have had this metric. `cut_off` are those requests;
    `censored` of them had not come to the metric's end. A percentile that is null there is at least
    `with_censored_least`. With `with_censored_at_least` all of them are lower bounds, since waits were growing when the
    requests were cut off: those would have waited longer than any before. Where no request succeeded it is all that is known, and `thin` speaks of it.
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
    infinite: tuple[str, ...] = ()
    """Statistics that are infinite, since requests failed that count as endless; null above, as JSON has no such number."""
    intervals: dict[str, Interval] = {}
    """By statistic; of those that have one, the others are not told apart from chance."""
    reason: str | None = None
    note: str | None = None
    cut_off: int = 0
    censored: int = 0
    with_censored: dict[str, float | None] | None = None
    with_censored_least: float | None = None
    with_censored_at_least: bool = False


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


class SloVerdict(_Part, frozen=True, kw_only=True):
    """Whether an objective of the whole run (`--slo`) is met; see docs/slo.md for the rule.

    PASS: all values that the true one may well have are on the good side of the limit; FAIL: all are on the bad side;
    UNDECIDED: some are on either, or it is not known which they are.
    """

    objective: str
    """In full: `time_to_first_token.p99<500ms`."""
    metric: str
    stat: str | None
    """Null: the metric is one number."""
    limit: float
    better: Literal["lower", "higher"]
    """On which side of the limit it is met."""
    unit: str
    """Of the limit, the value and the interval: that of the metric."""
    value: float | None
    """What was measured; null where it was not, or is infinite. Where requests were cut off the worse of two estimates."""
    infinite: bool = False
    """The value is infinite, since requests failed that count as endless."""
    interval: Interval | None
    """Of the value; null where it has none."""
    verdict: Literal["PASS", "FAIL", "UNDECIDED"]
    finding: str
    """What decided it, in one sentence."""
    more_requests: int | None = None
    """About as many requests more would decide it, if what is seen went on; null where that cannot be told."""


class Outcomes(_Part, frozen=True, kw_only=True):
    """How the planned requests of the measured phases ended; the counts add up to `planned`."""

    planned: int
    counts: dict[str, int]
    faults: tuple[dict[str, Any], ...] = ()
    """The most frequent faults: {outcome, message, count, sample} (sample: a file in faults/)."""
    fault_kinds: int = 0
    """How many kinds of faults there were, also where not all are listed."""
    not_sent: tuple[dict[str, Any], ...] = ()
    """Why requests were never sent, the most frequent reasons first: {reason, count}."""
    warmup: dict[str, int] = {}
    """The same of all warm-up phases."""
    cooldown: dict[str, int] = {}
    retries: int = 0


class Stretch(_Part, frozen=True, kw_only=True):
    """From when to when a phase sent, in seconds after the measurement began."""

    name: str
    start_s: float
    stop_s: float


class Series(_Part, frozen=True, kw_only=True):
    """Counts and levels over the measured phases, in bins of `step_s` from the start of the first."""

    step_s: float
    offered: tuple[int, ...]
    """Requests that were due."""
    sent: tuple[int, ...]
    completed: tuple[int, ...]
    in_flight: tuple[float, ...]
    """Time-weighted mean number of requests in flight in each bin."""
    queued: tuple[float, ...] | None = None
    """Time-weighted mean number of requests that were due and not yet sent; null without due times."""
    latency_from_due_p50: tuple[float | None, ...] | None = None
    """Median of request_latency_from_due over the requests due in the bin, ms, those cut off or never sent taken into
    account (Kaplan-Meier); null where these are half of them or more, where it is not known, whole without due times."""
    ttft_from_due_p50: tuple[float | None, ...] | None = None
    """The same of time_to_first_token_from_due."""
    phases: tuple[Stretch, ...] = ()
    """The measured phases."""


class Arrivals(_Part, frozen=True, kw_only=True):
    """When the requests of a phase were to be sent: its arrival process and its limits, as they were planned.

    Steps and curve count seconds from the start of the phase.
    """

    phase: str
    """Name of the phase."""
    words: str
    """All of it in a few words: `poisson 10 requests/s, unconditioned, at most 64 in flight`."""
    pattern: str
    """closed, constant, poisson, gamma, burst, fixed, users or by-index."""
    rate: float | None = None
    """Requests (of conversations of several turns: conversations) per second that it comes to in the end; null where there
    is no such number."""
    curve: tuple[dict[str, Any], ...] = ()
    """The rate over time: {start_s, rate, end_rate, span_s, course}, each until the next one begins."""
    index_ramp: dict[str, Any] | None = None
    """Rates at the first and at the last arrival, where they change with the number: {start, end, course}."""
    smoothness: float | None = None
    """Shape of gamma gaps; null for other patterns."""
    conditioned: bool | None = None
    """Whether the last of N arrivals was forced to N / rate; null where nothing is drawn."""
    users: int | None = None
    slots: int | None = None
    """Requests in flight at most; null: no limit."""
    slot_steps: tuple[tuple[float, int], ...] = ()
    """A limit that changed: (s, slots)."""
    prefill: int | None = None
    """Requests before their first token at most."""
    prefill_steps: tuple[tuple[float, int], ...] = ()
    cancelled_share: float = 0.0
    """Share of the requests that was to be cancelled, `cancel_after_s` after they were sent."""
    cancel_after_s: float = 0.0


class Growth(_Part, frozen=True, kw_only=True):
    """How the wait grew while the load lasted: medians of request_latency_from_due over the answers, by due time."""

    first_ms: float
    """Of the quarter that was due first."""
    last_ms: float
    """Of the quarter that was due last."""


class LoadFacts(_Part, frozen=True, kw_only=True):
    """The load that was asked for, offered and sent. Rates are requests per second."""

    arrivals: tuple[Arrivals, ...]
    """One for each measured phase that the configuration tells of."""
    timed: bool
    """Whether requests had due times of their own: not in a closed loop."""
    offered: int
    """Requests that were due: `sent` + `not_sent` + `lost`."""
    sent: int
    """Requests that were sent, or for which that was tried."""
    not_sent: int
    """Requests that were due and never sent, though the client had not lost them."""
    lost: int
    """Requests that the client itself lost before it sent them, as with a worker that died."""
    never_due: int
    """Planned requests that never became due: turns of which the one before had not ended, rows that no slot took."""
    late: int | None
    """Requests that the client sent late, by more than a server could notice; null where they also wait for a slot."""
    queued_at_end: int | None
    """Requests that still waited at the client when their phase stopped; null where not all have due times."""
    queued_most: int | None
    """The greatest number of requests that were due and not yet sent at once; null without due times."""
    queue_growing: bool | None
    """Whether more requests waited in the last quarter of the load than in the quarter before; null without due times."""
    growth: Growth | None
    """Null without due times, and with fewer than 8 answers."""
    cancelled_as_planned: int
    asked_rate: float | None
    """The mean rate that was asked for, until the last request was due; null where none was, and where it is one of
    conversations of several turns."""
    offered_rate: float | None
    """The rate at which requests were due: what the arrivals that were drawn came to; null without due times."""
    sent_rate: float | None
    completed_rate: float | None
    send_lag_p50_ms: float | None
    """How late the client itself was, connecting left out, as the check send_lag judges it; null where that cannot be told
    from the wait for a slot. Where all was due at once: how long it took to send it."""
    send_lag_p99_ms: float | None
    send_lag_max_ms: float | None
    bound_by: Literal["client", "server", "cap", "load"] | None
    """What kept the load from being higher: the client, the server, a limit of ours, or that no more was offered; null
    when nothing was sent."""
    bound_why: str | None
    """The same as one sentence."""


class Group(_Part, frozen=True, kw_only=True):
    """A part of the requests, and its own numbers."""

    name: str
    planned: int
    counts: dict[str, int]
    """Outcomes; they add up to `planned`."""
    metrics: dict[str, MetricResult]


class Trend(_Part, frozen=True, kw_only=True):
    """Whether something went on rising or falling within the steady state: Mann and Kendall's test on means in time order."""

    of: str
    """Of what: a metric's name."""
    found: bool | None
    """Whether it drifted: told from chance (p below 0.01) and by more than 5 %; null where too little is known."""
    change_percent: float | None = None
    """By how much it changed from the first of the means to the last, of their median (slope of Theil and Sen)."""
    p: float | None = None
    """The probability of so clear an order without a trend."""
    reason: str | None = None
    """Why it cannot be told."""


class Window(Group, frozen=True, kw_only=True):
    """A stretch of time: the whole run, what was measured, the steady state in it, or a slice of it.

    Requests belong to it, with `planned`, `counts` and latencies, when they were sent in it. In the steady state and in slices
    throughputs are of what arrived in it, whenever it was asked for. Seconds count from the start of the measurement.
    """

    start_s: float | None
    end_s: float | None
    """Null, as `start_s`, where there is no such window: see `reason`."""
    share: float | None = None
    """Of the time from the first send to the last event of what was measured."""
    complete: bool = True
    """False for a last slice that is shorter than the others."""
    level: float | None = None
    """Requests in flight of which the steady state has 95 % or more: the limit, or the plateau to which they came."""
    level_is: Literal["cap", "plateau"] | None = None
    trends: tuple[Trend, ...] = ()
    """In the steady state: whether it was one."""
    reason: str | None = None
    """Why there is no such window."""


class PhaseFacts(Group, frozen=True, kw_only=True):
    """A phase as it went. Seconds count from the start of the measurement; before it they are negative."""

    kind: Literal["warmup", "measured", "cooldown"]
    handover: Literal["drained", "seamless"]
    """Whether it began when all answers of the phase before had ended, or while its last ones still came."""
    start_s: float
    stop_s: float
    """When it sent nothing more."""
    end_s: float
    """When all its requests had ended."""
    offered: int
    sent: int
    not_sent: int
    """These three as in `LoadFacts`."""
    offered_rate: float | None
    """Requests per second that were due; null without due times."""
    completed_rate: float | None
    queued_most: int | None
    """The greatest number of requests that were due and not yet sent at once; null without due times."""
    saturated: bool | None
    """Whether clearly less was completed than was offered, and waits grew; null without due times, of a warm-up or a
    cooldown, and where something else than the server's capacity decided (see the check saturation)."""
    arrivals: str | None
    """Its arrival process in words."""


class Failing(_Part, frozen=True, kw_only=True):
    """The stretch of failures that ended a run."""

    kind: Literal["warmup", "measured", "cooldown"] = "measured"
    """In which kind of phase."""
    since_s: float
    """Its first failure, in seconds after that phase, or the first that was measured, began."""
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
    stopped_by: Literal["user", "failures", "trouble", "workers", "steady", "slo"] | None = None
    """What ended the load before its time: Ctrl-C or a signal, the error rate, something the run depends on, the
    death of every load-generating process, or, as asked, that a metric was known well enough, or that an objective was
    missed for certain."""
    stopped_why: str | None = None
    """The same as one sentence."""
    failing: Failing | None = None
    """Where the failures ended the load: since when."""
    seed: int
    simulated: bool = False
    """Whether it was computed on a virtual clock (--virtual): then nothing was measured."""
    saturated: bool
    notices: tuple[str, ...]
    """What a reader has to know to read the numbers right: reuse of prompts, estimated counts, ..."""
    limits: dict[str, float | None] = {}
    """Limits as they applied, by their key in the configuration; null: not known."""
    files: dict[str, str]
    """Output files by role, relative to the run folder."""


class ServerTokens(_Part, frozen=True, kw_only=True):
    """Output tokens of the whole load, warm-up and cooldown included, as the server and as we counted them."""

    server: float | None
    """By how much its counter grew from the last look before the load to the first one after its last answer."""
    ours: int | None
    """Those of the answers to our requests; null where it is not known which requests the page tells of."""
    uncounted: int = 0
    """Requests of which we do not know the tokens, while the server may: failed, cut off, or without a count."""
    reason: str | None = None
    """Why there is nothing to compare; null: there is."""


class ServerLatency(_Part, frozen=True, kw_only=True):
    """A latency by the server's own histogram over the measured phases, beside the metric of ours of the same name."""

    server_ms: float
    """The mean of what it observed: of every request, also of those that failed later or that others sent."""
    server_count: float
    ours_ms: float | None = None
    """The mean of ours, of the answers of those servers that succeeded."""
    ours_count: int | None = None
    apart_ms: float | None = None
    """Ours less the server's: what is on the way between the two."""
    reason: str | None = None
    """Why there is nothing to compare; null: there is."""


class ServerSpeculation(_Part, frozen=True, kw_only=True):
    """Speculative decoding by the server's own counters over the measured phases, all requests together.

    Where it has no counters but a gauge (SGLang), the gauge's mean over time and nothing else.
    """

    acceptance_length: float | None = None
    """Tokens that a step brought: 1 + accepted / drafts."""
    draft_acceptance_rate: float | None = None
    """Share of the drafted tokens that were accepted, 0 to 1."""
    position_acceptance: tuple[float, ...] = ()
    """Of the drafts, the share whose token at the first, second, ... position was accepted."""
    drafts: float | None = None
    draft_tokens: float | None = None
    accepted_tokens: float | None = None


class ServerFacts(_Part, frozen=True, kw_only=True):
    """One server by its own Prometheus page, while the measured phases lasted.

    Gauges are means from the first read in that time on, and the greatest value read (of 5 reads at least, up to its end);
    counters and histograms are what was added from the last read before it to the first one after it, null without both.
    What is null is in `reasons` by its name.
    """

    page: str
    """Its address without secrets."""
    serves: tuple[int, ...] = ()
    """Which of `endpoint.url` it tells of; empty: it was asked for by its own address (`--server-metrics`)."""
    scrapes: int | None = None
    """How often it was read,"""
    failed: int | None = None
    """and how often it was asked for in vain."""
    engine: Literal["vllm", "sglang", "llama.cpp"] | None = None
    """Whose names the metrics bear."""
    running_mean: float | None = None
    """Requests in execution."""
    running_max: float | None = None
    waiting_mean: float | None = None
    """Requests in the server's own queue."""
    waiting_max: float | None = None
    kv_cache_usage_mean: float | None = None
    """Share of the KV cache in use, 0 to 1; of several engines behind one page their mean, and the greatest of any."""
    kv_cache_usage_max: float | None = None
    prefix_cache_hit_rate: float | None = None
    """Share of the prompt tokens looked up that were found in the prefix cache, 0 to 1."""
    preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    time_to_first_token: ServerLatency | None = None
    inter_token_latency: ServerLatency | None = None
    speculation: ServerSpeculation | None = None
    resets: int | None = None
    """How often a counter began anew: the server was started again."""
    reasons: dict[str, str] = {}
    tokens: ServerTokens | None = None


class Report(_Part, frozen=True, kw_only=True):
    """A run's result."""

    schema_version: str = SCHEMA_VERSION
    loadstone_version: str
    run: RunFacts
    certificate: Certificate
    slo: tuple[SloVerdict, ...] = ()
    """The objectives of the whole run, in the order in which they were given; empty when there were none."""
    metrics: dict[str, MetricResult]
    outcomes: Outcomes
    load: LoadFacts
    series: Series
    phases: tuple[PhaseFacts, ...]
    """Every phase that began, in its order."""
    targets: tuple[Group, ...] = ()
    """The measured requests by server; empty when there was one."""
    models: tuple[Group, ...] = ()
    """The measured requests by model; empty when there was one."""
    turns: tuple[Group, ...] = ()
    """The measured requests by their place in a conversation; empty where none has a second turn."""
    lengths: tuple[Group, ...] = ()
    """The measured requests by the length of their prompt, in tokens; empty where all are about as long."""
    windows: tuple[Window, ...] = ()
    """`whole` (where other phases than measured ones ran), `measured`, `steady`."""
    timeslices: tuple[Window, ...] = ()
    """The measured time in slices of `output.slice_duration_s`; empty where none were asked for."""
    server: tuple[ServerFacts, ...] = ()
    """What the servers' own Prometheus pages say; empty where none was to be read."""
    config: dict[str, Any]
    """The resolved config tree, secrets masked."""
    environment: dict[str, Any]
    """host, cpu, versions, server, dataset: facts needed to repeat or compare the run."""
