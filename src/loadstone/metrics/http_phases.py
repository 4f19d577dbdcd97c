"""HTTP phases: where the time of a request went, from the moment it was due to the end of its response.

due -> (blocked) -> connect -> (connecting) -> TCP stands -> (TLS) -> sent -> (sending) -> written -> (waiting) -> first bytes
of the response -> (receiving) -> done. Every nanosecond is in one phase: for each request blocked + DNS + connecting + TLS +
sending + waiting + receiving = total, exactly. A phase that a request did not go through took it 0: connecting and TLS on a
kept-alive connection, TLS without one; in which phase a request was given up, that one has the rest. Over successes, so that the means
add up as well.

The names are those of k6 and of AIPerf. AIPerf stamps the start of sending before a connection exists, so that waiting for
one, DNS and connecting are in its `http_req_sending` and `http_req_duration`, and twice in its `http_req_total`; it also has TCP and
TLS together. Here `sent` is stamped when the connection stands.

Three things that do not fit into one line from left to right:

- A server may answer before the request is written whole (a refusal by its head). Then sending ends with the first bytes of the
  answer, waiting took 0, and what was still written counts as receiving.
- Through a proxy, TCP stands when its tunnel does: the exchange of CONNECT is in connecting.
- A request that went out again, as a kept-alive connection had broken, is sent when it went out the second time: what was lost is
  in blocked. One that was redirected is sent when it went out first: the detour is in waiting.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.figures import counted
from loadstone.metrics import Each, Missing, Number, Tables, metric
from loadstone.stats import Floats

ORDER = 45

_MOMENTS = ("connect_ns", "tcp_ns", "connected_ns", "sent_ns", "written_ns", "answered_ns", "done_ns")
_DUE = pl.col("due_ns")
_AT = {
    name: pl.max_horizontal(_DUE, pl.min_horizontal(*_MOMENTS[place:])) for place, name in enumerate(_MOMENTS)
}
"""The moments without gaps: one that never came is that of the next one that did, and none is later than the one after it. So
phases are never below 0, and add up whatever the moments are."""
_SPENT = {
    "blocked": (_AT["connect_ns"] - _DUE) + (_AT["sent_ns"] - _AT["connected_ns"]),
    "dns_lookup": _DUE * 0,
    "connecting": _AT["tcp_ns"] - _AT["connect_ns"],
    "tls_handshaking": _AT["connected_ns"] - _AT["tcp_ns"],
    "sending": _AT["written_ns"] - _AT["sent_ns"],
    "waiting": _AT["answered_ns"] - _AT["written_ns"],
    "receiving": _AT["done_ns"] - _AT["answered_ns"],
}
PHASES = tuple(_SPENT)
"""In the order of time, but that blocked has the moment between the connection and the send as well."""
_NONE = "no request was due and came to an end."
_OLDER = "the run is of a version that did not note when {}."


def phases_ns(tables: Tables, *names: str) -> pl.DataFrame:
    """For every request the nanoseconds in each of these `PHASES` (all); null without a due time or an end."""
    over = _DUE.is_not_null() & pl.col("done_ns").is_not_null()
    return tables.requests.select(pl.when(over).then(_SPENT[name]).alias(name) for name in names or PHASES)


def residual_ns(tables: Tables) -> NDArray[np.int64]:
    """For every request by how much its moments are out of order, so that its phases add up but are not what they are called.

    The sum, over the moments, of how much later each is than the earliest of those after it; 0 for every request of a sound
    run. Writing may go on when the answer comes. Left out are requests that never came to an end or were not tried, and those
    that were given up between a lost try and the next.
    """
    moments = ("due_ns", *_MOMENTS)
    written = pl.min_horizontal("written_ns", "answered_ns").alias("written_ns")
    at = tables.requests.select(*moments, "retries").with_columns(written)
    late = sum(
        (pl.col(name) - pl.min_horizontal(*moments[place:])).clip(lower_bound=0).fill_null(0)
        for place, name in enumerate(moments[:-1], 1)
    )
    lost_a_try = (at["retries"] > 0).fill_null(False).to_numpy() & ~tables.succeeded
    looked_at = at["done_ns"].is_not_null().to_numpy() & tables.attempted & ~lost_a_try
    return np.where(looked_at, at.select(late=late).to_series().to_numpy(), 0)


@metric("http_req_blocked", unit="ms", better="lower", needs=("success",))
def http_req_blocked(tables: Tables) -> Each:
    """How long a request waited at the client: (connect - due) + (sent - connected), or sent - due on a kept-alive
    connection.

    The wait for a slot, for its turn to connect and for the client itself, and the moment between the connection standing
    and the send. In a closed loop it is due when its slot frees, so there this is the client's own time. k6 and AIPerf begin
    when the request is started, so a queue before that is not in theirs.
    """
    return Each(_ms(tables, "blocked"), _NONE)


@metric("http_req_dns_lookup", unit="ms", better="lower", needs=("connections", "success"))
def http_req_dns_lookup(tables: Tables) -> Each:
    """Time to look up the server's name = 0 for every request, by construction.

    Names are resolved once, before the run, and requests go to the address; how long that took is not in any number here.
    AIPerf resolves for each new connection, from a cache.
    """
    return Each(_ms(tables, "dns_lookup"), _NONE)


@metric("http_req_connecting", unit="ms", better="lower", needs=("connections", "success"))
def http_req_connecting(tables: Tables) -> Each:
    """Time to open a TCP connection, and a proxy's tunnel: 0 on a kept-alive one.

    tcp - connect. connect_time has it together with TLS, over those that opened a connection only. AIPerf's has TLS in it.
    """
    values = np.where(_unsplit(tables), np.nan, _ms(tables, "connecting"))
    return Each(values, _OLDER.format("TCP stood and TLS began"))


@metric("http_req_tls_handshaking", unit="ms", better="lower", needs=("connections", "success"))
def http_req_tls_handshaking(tables: Tables) -> Each:
    """Time to shake hands for TLS: 0 on a kept-alive connection, and without TLS.

    connected - tcp. As in k6; AIPerf has it in connecting.
    """
    values = np.where(_unsplit(tables), np.nan, _ms(tables, "tls_handshaking"))
    return Each(values, _OLDER.format("TCP stood and TLS began"))


@metric("http_req_sending", unit="ms", better="lower", needs=("success",))
def http_req_sending(tables: Tables) -> Each:
    """Time to send the request: from its first byte given to the kernel until its last one was.

    written - sent; until the first bytes of the answer where those came earlier. The kernel may hold the bytes still.
    """
    unknown = _undated(tables) & tables.requests["written_ns"].is_null().to_numpy()
    return Each(np.where(unknown, np.nan, _ms(tables, "sending")), _OLDER.format("answers began"))


@metric("http_req_waiting", unit="ms", better="lower", needs=("success",))
def http_req_waiting(tables: Tables) -> Each:
    """Time to the first bytes of the response, whatever they are: answered - written, the kernel's stamp of the first read.

    A server that sends its head at once makes this short and says nothing of its work by it; time_to_first_token counts from
    `sent` to the first output. k6's is the same, as is AIPerf's but for the body, of which it takes the first byte.
    """
    written, answered = pl.col("written_ns"), pl.col("answered_ns")
    early = answered.is_not_null() & (written.is_null() | (written > answered))
    note = None
    if count := int(tables.requests.select(early).to_series().filter(pl.Series(tables.succeeded)).sum()):
        note = f"{counted(count, 'request')} had an answer before being written whole: nothing was waited."
    return Each(
        np.where(_undated(tables), np.nan, _ms(tables, "waiting")), _OLDER.format("answers began"), note
    )


@metric("http_req_receiving", unit="ms", better="lower", needs=("success",))
def http_req_receiving(tables: Tables) -> Each:
    """Time to receive the response: from its first bytes to its end. done - answered.

    Of a stream it is most of the answer, usage and end mark included.
    """
    return Each(np.where(_undated(tables), np.nan, _ms(tables, "receiving")), _OLDER.format("answers began"))


@metric("http_req_duration", unit="ms", better="lower", needs=("success",))
def http_req_duration(tables: Tables) -> Each:
    """The exchange itself: sending + waiting + receiving, which is done - sent, as in k6.

    request_latency ends with the last token, and this with the end of the response.
    """
    exchange = phases_ns(tables, "sending", "waiting", "receiving").sum_horizontal(ignore_nulls=False)
    return Each((exchange / 1e6).fill_null(float("nan")).to_numpy(), _NONE)


@metric("http_req_total", unit="ms", better="lower", needs=("success",))
def http_req_total(tables: Tables) -> Each:
    """From when a request was due to the end of its response: done - due, the sum of all phases."""
    return Each(tables.ms("due_ns", "done_ns"), _NONE)


@metric("http_req_connection_reused", unit="%", better="neither", needs=("connections", "attempt"))
def http_req_connection_reused(tables: Tables) -> Number | Missing:
    """Share of the requests sent that went on a kept-alive connection: 100 such requests / requests sent.

    Of one that was sent twice, since the kept-alive connection had broken, the second connection counts.
    """
    went = tables.requests.select("sent_ns", "connect_ns").drop_nulls("sent_ns")
    if went.is_empty():
        return Missing("no request was sent.")
    reused = went.sort("sent_ns")["connect_ns"].is_null().to_numpy()
    return Number(100 * float(reused.mean()), hits=reused)


def _ms(tables: Tables, phase: str) -> Floats:
    return (phases_ns(tables, phase)[phase] / 1e6).fill_null(float("nan")).to_numpy()


def _unsplit(tables: Tables) -> NDArray[np.bool_]:
    """For every request, whether it is not known when TCP stood, though its connection came to stand."""
    unsplit = pl.col("connected_ns").is_not_null() & pl.col("tcp_ns").is_null()
    return tables.requests.select(unsplit).to_series().to_numpy()


def _undated(tables: Tables) -> NDArray[np.bool_]:
    """For every request, whether it is not known when its answer began, though one came."""
    return tables.requests["answered_ns"].is_null().to_numpy() & tables.brought
