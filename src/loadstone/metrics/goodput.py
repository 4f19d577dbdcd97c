"""Goodput: what counts when objectives have to be met.

A request meets the objectives when it succeeded and every metric named by `--goodput` is within its limit: at
most the limit where lower is better, at least where higher is. A metric that the request does not have counts
as not met. Where a first token came in one read with all the others, its time is at most that of this read, and is
held against the limit as such.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loadstone.figures import counted
from loadstone.metrics import Missing, Number, Result, Tables, all_metrics, metric, per_request
from loadstone.metrics._pace import paced
from loadstone.metrics.throughput import left_out
from loadstone.stats import Floats

ORDER = 30


@metric("goodput", unit="requests/s", better="higher", needs=("objectives", "attempt", "window"))
def goodput(tables: Tables) -> Result:
    """Requests that met every objective / window (request goodput, as in DistServe and vLLM)."""
    good = met(tables).astype(float)
    return Number(float(good.sum() / tables.window_s), None, paced(tables, good), *_hits(tables))


@metric("good_request_count", unit="requests", better="higher", needs=("objectives", "attempt"))
def good_request_count(tables: Tables) -> Result:
    """Requests that met every objective."""
    return float(met(tables).sum())


@metric("token_goodput", unit="tokens/s", better="higher", needs=("objectives", "attempt", "window"))
def token_goodput(tables: Tables) -> Result:
    """Output tokens of the requests that met every objective / window."""
    tokens, good = tables.number("output_tokens"), met(tables)
    known, unknown = good & np.isfinite(tokens), good & np.isnan(tokens)
    if unknown.any() and not known.any():
        return Missing("the number of tokens is not known for any answer that met them.")
    brought = np.where(known, tokens, 0.0)
    return Number(float(brought.sum() / tables.window_s), left_out(unknown), paced(tables, brought))


@metric("goodput_attainment", unit="%", better="higher", needs=("objectives", "attempt"))
def goodput_attainment(tables: Tables) -> Result:
    """Share of all requests sent that met every objective: 100 good / sent; failed and cut ones did not.

    Those that were cancelled because the plan said so are left out: they could not.
    """
    asked = int(tables.cancelled.sum())
    sent = int(tables.attempted.sum()) - asked
    if not sent:
        return Missing("every request was cancelled as asked.")
    left_out = f"{counted(asked, 'request')} cancelled as asked left out." if asked else ""
    note = " ".join(filter(None, (left_out, _without_value(tables)))) or None
    return Number(float(100 * met(tables).sum() / sent), note, None, *_hits(tables))


def _without_value(tables: Tables) -> str:
    """How many whole answers missed for no other reason than that they have no such metric: one token, or all in one read."""
    values = {
        name: per_request(name, tables, bounded=all_metrics()[name].better == "lower")
        for name in tables.goodput
    }
    missed, kept = tables.succeeded & ~met(tables), np.ones(len(tables.requests), np.bool_)
    for name, limit in tables.goodput.items():
        higher = all_metrics()[name].better == "higher"
        kept &= np.isnan(values[name]) | (values[name] >= limit if higher else values[name] <= limit)
    only = missed & kept
    if not only.any():
        return ""
    names = [name.replace("_", " ") for name in values if np.isnan(values[name][only]).any()]
    return (
        f"{int(only.sum())} of {counted(int(missed.sum()), 'answer')} that missed have no {' or '.join(names)} (one token, or all"
        " in one read) and kept every other limit."
    )


def _hits(tables: Tables) -> tuple[NDArray[np.bool_], Floats]:
    """Of all requests sent, in that order, whether each met the objectives, and how much of its limits it used."""
    judged = tables.attempted & ~tables.cancelled
    order = tables.sending_order[judged[tables.sending_order]]
    return met(tables)[order], _used(tables)[order]


def _used(tables: Tables) -> Floats:
    """For every request, how much of its limits it used: the largest share of one, 1 being just met; 2 where it has no value."""
    used = np.zeros(len(tables.requests))
    for name, limit in tables.goodput.items():
        values = per_request(name, tables)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = limit / values if all_metrics()[name].better == "higher" else values / limit
        used = np.maximum(used, np.where(np.isfinite(share), share, 2.0))
    return used


def met(tables: Tables) -> NDArray[np.bool_]:
    """For every request, whether it met every objective. Raises `UsageError` for a name that cannot be one."""
    good = tables.succeeded.copy()
    for name, limit in tables.goodput.items():
        higher = all_metrics()[name].better == "higher"
        values = per_request(name, tables, bounded=not higher)
        good &= values >= limit if higher else values <= limit
    return good
