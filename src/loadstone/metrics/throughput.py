"""Throughput: what the server got done.

Rates are over the window, from the first send to the last event of the measured phases, ramp and drain
included. Only the tokens of successes count; those of failed requests stand beside them. What was done while the
load lasted, whatever became of the requests, is output_token_throughput_under_load.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.figures import brief, counted
from loadstone.metrics import Each, Missing, Number, Result, Tables, metric
from loadstone.metrics._pace import paced
from loadstone.metrics.latency import mean_gap_ms, time_to_first_token
from loadstone.stats import Floats

ORDER = 20

_UNKNOWN = "the number of tokens is not known for any answer."


@metric("request_throughput", unit="requests/s", better="higher", needs=("success", "window"))
def request_throughput(tables: Tables) -> Result:
    """Successful requests / window."""
    succeeded = tables.succeeded.astype(float)
    return Number(float(succeeded.sum() / tables.window_s), rate=paced(tables, succeeded))


@metric("output_token_throughput", unit="tokens/s", better="higher", needs=("success", "window"))
def output_token_throughput(tables: Tables) -> Result:
    """Output tokens of all channels of successful requests / window."""
    return _rate(tables, "output_tokens")


@metric("output_token_throughput_under_load", unit="tokens/s", better="higher", needs=("attempt", "window"))
def output_token_throughput_under_load(tables: Tables) -> Result:
    """Output tokens that arrived while requests were being sent / that time, whatever became of their requests.

    From the first send to the last one, so the drain is left out, in which the load grows less. Tokens count by the
    moment of their arrival, those of failed answers and of those cut off too. An answer's tokens are taken to be spread evenly
    over its events; one that came whole brought them at its end. Where nothing came because that time is shorter than
    any request took to bring output (all were sent at once), nothing can be said.
    """
    sent = [(stretch, span) for stretch in tables.stretches if (span := _sending_ns(stretch))]
    if not sent:
        return Missing("requests were not sent over a stretch of time.")
    lasted_ns = sum(last - first for _, (first, last) in sent)
    arrived = np.concatenate(
        [np.where(stretch.brought, _share_arrived(stretch, last), 0.0) for stretch, (_, last) in sent]
    )
    if not arrived.any() and lasted_ns < _quickest_ns(tables):
        return Missing(
            f"all requests were sent within {brief(lasted_ns / 1e6)} ms, before output could come."
        )
    tokens = np.concatenate([stretch.number("output_tokens") for stretch, _ in sent])
    known, unknown = (arrived > 0) & np.isfinite(tokens), (arrived > 0) & np.isnan(tokens)
    if unknown.any() and not known.any():
        return Missing(_UNKNOWN)
    return Number(float((tokens * arrived)[known].sum() * 1e9 / lasted_ns), left_out(unknown))


@metric(
    "output_token_throughput_per_user", unit="tokens/s/user", better="higher", needs=("streaming", "success")
)
def output_token_throughput_per_user(tables: Tables) -> Each:
    """The speed at which one user sees tokens come: 1 / the request's mean gap, one value a request.

    The mean gap is time_per_output_token_corrected. The mean of this is not 1 / the mean latency. As in
    AIPerf.
    """
    gap_ms = mean_gap_ms(tables)
    return Each(1000 / np.where(gap_ms > 0, gap_ms, np.nan), "every answer came in one piece.")


@metric("e2e_output_token_throughput", unit="tokens/s/user", better="higher", needs=("success",))
def e2e_output_token_throughput(tables: Tables) -> Each:
    """The speed of one whole answer, the wait for its first token included: output tokens / request_latency.

    One value a request, 1000 / normalized_latency; its mean is not 1000 / the mean of that. Needs no stream. As in AIPerf.
    """
    latency_s = tables.until_complete_ms("sent_ns") / 1e3
    return Each(tables.number("output_tokens") / np.where(latency_s > 0, latency_s, np.nan), _UNKNOWN)


@metric("prefill_throughput_per_user", unit="tokens/s/user", better="higher", needs=("streaming", "success"))
def prefill_throughput_per_user(tables: Tables) -> Each:
    """The speed at which one user's prompt was taken in: input tokens / time_to_first_token, one value a request.

    Waiting at the server and the way there and back are in that time, so it is a lower bound of the speed of the prefill; tokens
    found in a prefix cache count as taken in, so with a cache it is more. As in AIPerf.
    """
    ttft_s = time_to_first_token(tables).values / 1e3
    per_second = tables.number("input_tokens") / np.where(ttft_s > 0, ttft_s, np.nan)
    return Each(per_second, "no answer has both a first token and a prompt whose length is known.")


@metric("input_token_throughput", unit="tokens/s", better="higher", needs=("success", "window"))
def input_token_throughput(tables: Tables) -> Result:
    """Prompt tokens of successful requests / window.

    The server's count (chat template included) where it tells, else the length asked for. Tokens that the
    server took from its prefix cache count as well.
    """
    return _rate(tables, "input_tokens")


@metric("total_token_throughput", unit="tokens/s", better="higher", needs=("success", "window"))
def total_token_throughput(tables: Tables) -> Result:
    """(Prompt + output tokens of successful requests) / window."""
    return _rate(tables, "input_tokens", "output_tokens")


@metric("failed_output_tokens", unit="tokens", better="lower", needs=("attempt",))
def failed_output_tokens(tables: Tables) -> Result:
    """Output tokens that came for requests which did not succeed: work the server did that no rate counts.

    Failed answers seldom bring a usage total, so this is mostly the tokenizer's count of the text that came. Where
    nobody counted it, the note has the number of answers.
    """
    lost = tables.number("output_tokens")
    came = tables.brought & ~tables.succeeded
    known, unknown = came & np.isfinite(lost), came & np.isnan(lost)
    if unknown.any() and not known.any():
        return Missing(
            f"output came for {counted(int(unknown.sum()), 'failed request')}, and nobody counted it."
        )
    return Number(float(lost[known].sum()), left_out(unknown))


def left_out(unknown: NDArray[np.bool_]) -> str | None:
    """How many answers do not count, since nobody knows their tokens."""
    count = int(unknown.sum())
    return f"{counted(count, 'answer')} whose tokens are not known left out." if count else None


def _rate(tables: Tables, *columns: str) -> Number | Missing:
    totals = np.stack([tables.number(name) for name in columns]).sum(axis=0)
    known, unknown = tables.succeeded & np.isfinite(totals), tables.succeeded & np.isnan(totals)
    if not known.any():
        return Missing(_UNKNOWN)
    tokens = np.where(known, totals, 0.0)
    return Number(float(tokens.sum() / tables.window_s), left_out(unknown), paced(tables, tokens))


def _sending_ns(tables: Tables) -> tuple[int, int] | None:
    """The first and the last send; None when there is no time between them."""
    sent = tables.requests["sent_ns"]
    first, last = sent.min(), sent.max()
    return (first, last) if isinstance(first, int) and isinstance(last, int) and last > first else None


def _quickest_ns(tables: Tables) -> float:
    """The shortest time that a request took to its first output; where none brought any, to its end."""
    output = tables.requests.select(pl.coalesce("first_ns", "done_ns") - pl.col("sent_ns")).to_series()
    took = output.filter(pl.Series(tables.brought)).drop_nulls()
    shortest = (output if took.is_empty() else took).min()
    return shortest if isinstance(shortest, int) else float("inf")


def _share_arrived(tables: Tables, by_ns: int) -> Floats:
    """For every request, which share of its output events had arrived by a moment."""
    ends = tables.requests.select(pl.coalesce("last_ns", "done_ns")).to_series()
    share = (ends <= by_ns).fill_null(False).to_numpy().astype(float)
    begun = (tables.requests["first_ns"] <= by_ns).fill_null(False).to_numpy() & (share < 1)
    if begun.any():
        for position, frame in tables.parts("arrival_ns"):
            rows = position + np.flatnonzero(begun[position : position + len(frame)])
            early = pl.col("arrival_ns").list.eval(pl.element() <= by_ns).list.mean()
            share[rows] = frame[rows - position].select(early).to_series().fill_null(0.0).to_numpy()
    return share
