"""Instrument: the client's own share in the numbers.

The certificate is made from these. They are over all requests, successful or not, unless said otherwise.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from loadstone.metrics import Each, Missing, Result, Samples, Tables, metric
from loadstone.metrics._pools import lags
from loadstone.stats import Floats

ORDER = 60

SENT_FIRST = pl.when(pl.col("retries") == 0).then("sent_ns")
"""When the client sent a request; null where it was not sent, and where `sent_ns` is when it went out once more because a
kept-alive connection had broken: that was the server's moment, and not the client's."""

_NO_STAMPS = "no kernel stamps: arrival is the moment of reading, so the lag cannot be seen."


@metric("send_lag", unit="ms", better="lower", needs=("no cap", "attempt"))
def send_lag(tables: Tables) -> Each:
    """How late the client sent: sent - due; in a closed loop sent - the moment the slot freed.

    Of a turn that was due before the turn before it had ended: sent - that end. A request that went out again on a new
    connection is left out: when it went out first is not known.
    """
    lag = tables.requests.select((SENT_FIRST - tables.ready_ns) / 1e6).to_series()
    return Each(lag.fill_null(float("nan")).to_numpy(), "no request was sent.", failed_too=True)


@metric("client_lag", unit="ms", better="lower", needs=("streaming", "success"))
def client_lag(tables: Tables) -> Samples | Missing:
    """How late our process read tokens that had arrived: read - arrival, one sample a read, over successes.

    The kernel dated the arrival, so latencies are not longer by this. But bytes that wait in the socket are
    merged and bear the last one's stamp, so a lag beyond the gap between tokens blurs the gaps.
    """
    pool = lags(tables)
    return Missing(_NO_STAMPS) if pool is None else Samples(pool)


@metric("first_token_client_lag", unit="ms", better="lower", needs=("streaming", "success"))
def first_token_client_lag(tables: Tables) -> Each:
    """How late our process read the first token: first_read - first, where the kernel dated it; over successes."""
    stamped = tables.requests["kernel_stamps"].fill_null(False).to_numpy()
    return Each(np.where(stamped, tables.ms("first_ns", "first_read_ns"), np.nan), _NO_STAMPS)


@metric("shared_reads", unit="%", better="lower", needs=("streaming", "success"))
def shared_reads(tables: Tables) -> Result:
    """Share of reads that completed several token events, over successes: 100 such reads / reads with one at least.

    Such a read dates only its last event exactly; the earlier ones arrived between the previous stamp and
    this one. It is the honest limit of the instrument.
    """
    shape = tables.shape
    instants = int(shape.instants.sum())
    return 100 * int(shape.shared.sum()) / instants if instants else Missing("no answer brought a token.")


@metric("undated_events", unit="%", better="lower", needs=("streaming", "success"))
def undated_events(tables: Tables) -> Result:
    """Share of token events that are dated by a later one, over successes: (events - reads) / events.

    They were read together with later ones, because the server sent them together or because the client came
    late. One long read hides many events, so this says more of a starved client than the share of reads.
    """
    shape = tables.shape
    events = int(shape.events.sum())
    undated = events - int(shape.instants.sum())
    return 100 * undated / events if events else Missing("no answer brought a token.")


@metric("undated_first_tokens", unit="%", better="lower", needs=("streaming", "success"))
def undated_first_tokens(tables: Tables) -> Result:
    """Share of streams whose first token is dated by a later one that was read together with it: 100 such / streams.

    Over successes.
    """
    shape = tables.shape
    streams = int((shape.events > 0).sum())
    undated = int((shape.first_events > 1).sum())
    return 100 * undated / streams if streams else Missing("no answer brought a token.")


@metric("connect_time", unit="ms", better="lower", needs=("attempt",))
def connect_time(tables: Tables) -> Each:
    """Time to open a connection, TCP and TLS together: connected - connect, for requests that had to open one.

    It is over before `sent` and is in no latency.
    """
    none = "no connection was opened: all requests used kept-alive ones."
    return Each(tables.ms("connect_ns", "connected_ns"), none, failed_too=True)


def late_ms(tables: Tables) -> Floats:
    """How late every request was sent, less the part of it that was spent connecting; NaN where it was not sent, or went out again.

    From when it was due, or, where that was later, from the end of the turn before it.
    """
    waited = tables.requests.select("sent_ns", "retries", "connect_ns", "connected_ns", tables.ready_ns)
    begun = pl.max_horizontal("ready_ns", "connect_ns")
    connecting = (pl.col("connected_ns") - begun).clip(lower_bound=0).fill_null(0)
    late = waited.select(SENT_FIRST - pl.col("ready_ns") - connecting).to_series()
    return (late / 1e6).fill_null(float("nan")).to_numpy()
