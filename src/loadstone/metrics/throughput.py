"""Throughput: what the server got done.

Rates are over the window, from the first send to the last event of the measured phase, ramp and drain
included. Only the tokens of successes count; those of failed requests stand beside them.
"""

from __future__ import annotations

import numpy as np

from loadstone.metrics import Each, Missing, Number, Result, Tables, metric
from loadstone.metrics.latency import mean_gap_ms

ORDER = 20


@metric("request_throughput", unit="requests/s", better="higher", needs=("success", "window"))
def request_throughput(tables: Tables) -> Result:
    """Successful requests / window."""
    return float(tables.succeeded.sum() / tables.window_s)


@metric("output_token_throughput", unit="tokens/s", better="higher", needs=("success", "window"))
def output_token_throughput(tables: Tables) -> Result:
    """Output tokens of all channels of successful requests / window."""
    return _rate(tables, "output_tokens")


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

    Failed answers seldom bring a usage total, so this is mostly the tokenizer's count of the text that came.
    """
    lost = tables.number("output_tokens")[~tables.succeeded]
    return float(np.nansum(lost))


def _rate(tables: Tables, *columns: str) -> Number | Missing:
    counts = np.stack([tables.number(name)[tables.succeeded] for name in columns])
    known = np.isfinite(counts).all(axis=0)
    if not known.any():
        return Missing("the number of tokens is not known for any answer.")
    unknown = int((~known).sum())
    note = f"{unknown} answers whose tokens are not known are left out." if unknown else None
    return Number(float(counts[:, known].sum() / tables.window_s), note)
