"""Over time: how much was going on at every moment of the window, idle time, ramp and drain included.

Three stages are told apart as a client sees them: *prefill* from `sent` to the first token (in the server's queue or in its
prefill; a request that brought no token is there until it ended), *decode* from the first token to the last, and *in
flight* from `sent` to `done`. `effective_...` is over the whole window, `active_...` over the time in which its stage had a
request (the names are AIPerf's). Everything is weighted by time: the mean is the area under the curve / the time that
counts, percentile q the level not exceeded for that share of it. `count` is the number of stretches or steps.

Concurrency, and the throughput of prefills, are exact sweeps over requests coming and going. Everything with tokens in it
is in *steps* of 10 ms (of 20, 50, 100, ... in windows longer than 43 minutes): the sums of steps are
exact, so the means are, and a level is the mean over one step. AIPerf takes the level of every moment, so one chunk
that comes a microsecond after another one makes a maximum of a million tokens per second; here that is one token in
10 ms.

Requests in flight count whatever became of them, tokens of successes alone. A request that AIPerf leaves out because it
failed is in flight here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.clock import SECOND_NS
from loadstone.metrics import Missing, Number, Result, Samples, Tables, metric
from loadstone.metrics._flow import Flow
from loadstone.metrics._sweep import Levels, levels
from loadstone.metrics.throughput import left_out
from loadstone.stats import Floats, Weighted, weighted

ORDER = 55

Bools = NDArray[np.bool_]

_IDLE = "no request was ever in this stage."
_NO_STREAM = "no answer came as a stream of tokens."
_UNKNOWN = "the length of no prompt is known."


@metric("active_concurrency", unit="requests", better="neither", needs=("attempt", "window"))
def active_concurrency(tables: Tables) -> Samples | Missing:
    """Requests in flight while there was at least one: concurrency without the idle time."""
    return _numbers(tables, "left_ns", active=True)


@metric("peak_concurrency", unit="requests", better="neither", needs=("attempt", "window"))
def peak_concurrency(tables: Tables) -> Result:
    """The greatest number of requests in flight at one moment.

    Exact: one that ends as another one is sent is one of the two. vLLM's max_concurrent_requests counts all
    requests that touch a second of the clock, and so more than ever were in flight together.
    """
    return float(max(stage.number.max(initial=0.0) for stage in _stage(tables, "left_ns")))


@metric(
    "effective_prefill_concurrency",
    unit="requests",
    better="neither",
    needs=("streaming", "attempt", "window"),
)
def effective_prefill_concurrency(tables: Tables) -> Samples | Missing:
    """Requests sent whose first token had not come: queued in the server, or in its prefill."""
    return _numbers(tables, "began_ns")


@metric(
    "active_prefill_concurrency", unit="requests", better="neither", needs=("streaming", "attempt", "window")
)
def active_prefill_concurrency(tables: Tables) -> Samples | Missing:
    """effective_prefill_concurrency over the time in which at least one request waited for its first token."""
    return _numbers(tables, "began_ns", active=True)


@metric(
    "effective_decode_concurrency",
    unit="requests",
    better="neither",
    needs=("streaming", "attempt", "window"),
)
def effective_decode_concurrency(tables: Tables) -> Samples | Missing:
    """Answers between their first token and their last: what a server's decode batch holds, as a client sees it."""
    return _numbers(tables, "last_ns", "first_ns")


@metric(
    "active_decode_concurrency", unit="requests", better="neither", needs=("streaming", "attempt", "window")
)
def active_decode_concurrency(tables: Tables) -> Samples | Missing:
    """effective_decode_concurrency over the time in which at least one answer was between its first token and its last."""
    return _numbers(tables, "last_ns", "first_ns", active=True)


@metric(
    "effective_prefill_throughput", unit="tokens/s", better="higher", needs=("streaming", "success", "window")
)
def effective_prefill_throughput(tables: Tables) -> Samples | Missing:
    """Prompt tokens taken in per second: every request adds ISL / TTFT from `sent` to its first token.

    Over successes, by an exact sweep; the mean is the sum of their ISL / window. Time in the server's queue is in
    the TTFT, so where requests wait there this is no speed of a prefill.
    """
    return _prefill(tables, lambda stage: (stage.rate, stage.lasted_ns > 0))


@metric(
    "active_prefill_throughput", unit="tokens/s", better="higher", needs=("streaming", "success", "window")
)
def active_prefill_throughput(tables: Tables) -> Samples | Missing:
    """effective_prefill_throughput over the time in which at least one success waited for its first token."""
    return _prefill(tables, lambda stage: (stage.rate, stage.number > 0))


@metric(
    "effective_prefill_throughput_per_user",
    unit="tokens/s/user",
    better="higher",
    needs=("streaming", "success", "window"),
)
def effective_prefill_throughput_per_user(tables: Tables) -> Samples | Missing:
    """effective_prefill_throughput at every moment / the successes that waited for their first token then.

    Undefined while there was none, so that time does not count; AIPerf counts it as 0.
    """
    return _prefill(tables, lambda stage: (stage.rate / np.maximum(stage.number, 1.0), stage.number > 0))


@metric(
    "effective_decode_throughput", unit="tokens/s", better="higher", needs=("streaming", "success", "window")
)
def effective_decode_throughput(tables: Tables) -> Samples | Missing:
    """Output tokens per second: the tokens of a first instant at that moment, all others spread evenly over the gap
    before them, in steps of 10 ms.

    The mean is all tokens that streams brought / window. How many a chunk brought: see inter_token_latency.
    """
    return _in_steps(tables, lambda step: (step.first + step.later, step.lasts_ns, step.lasts_ns > 0))


@metric(
    "active_decode_throughput", unit="tokens/s", better="higher", needs=("streaming", "success", "window")
)
def active_decode_throughput(tables: Tables) -> Samples | Missing:
    """effective_decode_throughput over the steps in which tokens came or were on their way (were in a gap)."""
    return _in_steps(
        tables, lambda step: (step.first + step.later, step.lasts_ns, step.first + step.later > 0)
    )


@metric(
    "effective_decode_throughput_per_user",
    unit="tokens/s/user",
    better="higher",
    needs=("streaming", "success", "window"),
)
def effective_decode_throughput_per_user(tables: Tables) -> Samples | Missing:
    """The speed at which the users that were decoding saw tokens come, over time: in every step the tokens after the first /
    the time that answers spent between their first token and their last.

    First tokens come in no time at all and are left out. Undefined while nobody decoded, so such steps do not count; AIPerf
    counts them as 0. Unlike output_token_throughput_per_user this weighs moments alike, and not requests.
    """
    return _in_steps(tables, lambda step: (step.later, step.decoding, step.decoding > 0))


@metric(
    "effective_total_throughput", unit="tokens/s", better="higher", needs=("streaming", "success", "window")
)
def effective_total_throughput(tables: Tables) -> Samples | Missing:
    """effective_prefill_throughput + effective_decode_throughput, in steps of 10 ms."""
    return _in_steps(
        tables,
        lambda step: (step.prompts + step.first + step.later, step.lasts_ns, step.lasts_ns > 0),
        prompts=True,
    )


@metric("active_total_throughput", unit="tokens/s", better="higher", needs=("streaming", "success", "window"))
def active_total_throughput(tables: Tables) -> Samples | Missing:
    """effective_total_throughput over the steps in which a prompt or an answer of a success was under way."""
    return _in_steps(
        tables,
        lambda step: (step.prompts + step.first + step.later, step.lasts_ns, step.present > 0),
        prompts=True,
    )


@metric(
    "effective_total_throughput_per_user",
    unit="tokens/s/user",
    better="higher",
    needs=("streaming", "success", "window"),
)
def effective_total_throughput_per_user(tables: Tables) -> Samples | Missing:
    """In every step the tokens of prompts and of answers, first ones left out, / the time that successes spent from `sent` to
    their last token.

    Undefined while there was none, so such steps do not count; AIPerf counts them as 0.
    """
    return _in_steps(
        tables, lambda step: (step.prompts + step.later, step.present, step.present > 0), prompts=True
    )


@metric("tokens_in_flight", unit="tokens", better="neither", needs=("streaming", "success", "window"))
def tokens_in_flight(tables: Tables) -> Samples | Missing:
    """Tokens of the contexts under way, in steps of 10 ms: a prompt from `sent` to the last token of its answer, every
    token of the answer from its arrival on.

    Over successes. It is what the server's KV cache holds for them at most: a prefix that requests share counts once for
    each, and a prompt that still waits in the server's queue counts as well.
    """
    return _in_steps(
        tables, lambda step: (step.held, step.lasts_ns, step.lasts_ns > 0), per_ns=1, prompts=True
    )


@metric(
    "peak_output_token_throughput", unit="tokens/s", better="higher", needs=("streaming", "success", "window")
)
def peak_output_token_throughput(tables: Tables) -> Result:
    """The most output tokens that came within any one second, whenever it began.

    An instant's tokens count at its arrival. Exact for up to a million instants; beyond, tokens are counted in steps of 1 ms
    (2, 5, ... in windows longer than 34 minutes), and the note says what the peak is at most. vLLM counts chunks, not
    tokens, and only in seconds that begin a whole number of seconds after the first send.
    """
    peaks = [flow.peak for flow in tables.flows if flow.peak]
    if not peaks:
        short = all(flow.window_ns[1] - flow.window_ns[0] < SECOND_NS for flow in tables.flows)
        return Missing("the window is shorter than a second." if short else _NO_STREAM)
    most, at_most = max(peak.tokens for peak in peaks), max(peak.at_most for peak in peaks)
    step_ns = max(peak.step_ns for peak in peaks)
    note = f"counted in steps of {step_ns / 1e6:.0f} ms; it is {at_most:,.0f} at most." if step_ns else None
    return Number(most, note)


def _stage(tables: Tables, until: str, since: str = "sent_ns") -> Iterator[Levels]:
    """The requests in a stage over time, stretch by stretch."""
    for stretch in tables.stretches:
        if stretch.window_ns is None:
            continue
        began = pl.coalesce("first_ns", "left_ns").alias("began_ns")
        rows = stretch.requests.with_columns(left_ns=stretch.left_ns).with_columns(began)
        there = rows.select(since, until).drop_nulls()
        yield levels(there[since].to_numpy(), there[until].to_numpy(), stretch.window_ns)


def _numbers(
    tables: Tables, until: str, since: str = "sent_ns", *, active: bool = False
) -> Samples | Missing:
    """How many were in a stage, over time; `active`: while there was one."""
    found = []
    for stage in _stage(tables, until, since):
        counts = stage.number >= active
        found.append(weighted(stage.number[counts], stage.lasted_ns[counts]))
    return _pooled(found)


def _pooled(found: Sequence[Weighted], note: str | None = None) -> Samples | Missing:
    """Levels, weighted by nanoseconds, so that the one sample's width over which percentiles are averaged is nothing."""
    pool = np.concatenate(found)
    return Samples(pool, note, counted=len(pool)) if len(pool) else Missing(_IDLE)


def _prefill(tables: Tables, chosen: Callable[[Levels], tuple[Floats, Bools]]) -> Samples | Missing:
    """Levels of the prefills of successes, in tokens per second, and where they count; those of unknown prompts left out."""
    unknown = tables.succeeded & np.isnan(tables.number("input_tokens"))
    if unknown.sum() == tables.succeeded.sum():
        return Missing(_UNKNOWN)
    found = []
    for stretch in tables.stretches:
        rows = stretch.requests.select("sent_ns", "first_ns", "input_tokens")
        rows = rows.filter(pl.Series(stretch.succeeded)).drop_nulls()
        if stretch.window_ns is None:
            continue
        sent_ns, first_ns = rows["sent_ns"].to_numpy(), rows["first_ns"].to_numpy()
        rates = rows["input_tokens"].to_numpy() * SECOND_NS / np.maximum(first_ns - sent_ns, 1)
        stage = levels(sent_ns, first_ns, stretch.window_ns, rates)
        values, counts = chosen(stage)
        found.append(weighted(values[counts], stage.lasted_ns[counts]))
    return _pooled(found, left_out(unknown))


def _in_steps(
    tables: Tables,
    chosen: Callable[[Flow], tuple[Floats, Floats, Bools]],
    *,
    per_ns: int = SECOND_NS,
    prompts: bool = False,
) -> Samples | Missing:
    """Levels of steps: an amount / a time, and where it counts. With `prompts` their lengths have to be known."""
    unknown = tables.succeeded & np.isnan(tables.number("input_tokens"))
    if prompts and unknown.sum() == tables.succeeded.sum():
        return Missing(_UNKNOWN)
    if not tables.shape.instants.any():
        return Missing(_NO_STREAM)
    found = []
    for flow in tables.flows:
        amounts, over_ns, counts = chosen(flow)
        found.append(weighted(amounts[counts] * per_ns / over_ns[counts], flow.lasts_ns[counts]))
    return _pooled(found, left_out(unknown) if prompts else None)
