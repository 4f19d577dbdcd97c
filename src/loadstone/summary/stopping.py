"""Why a run ended before its time, and since when its requests had failed; and the limits it ran under."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.config import Config
from loadstone.metrics import Tables
from loadstone.plan.schedule import DEFAULT_GRACE_S
from loadstone.read.outcome import FAILURES, SUCCESSES
from loadstone.report import Failing


def failing(tables: Tables) -> Failing | None:
    """The stretch of failures at whose end the load was stopped; None unless it was for them, and the share of failures
    that was allowed is known (an older run does not tell).

    Of all stretches of ended requests up to the stop it is the one in which the failures exceed the share allowed by
    most: one success among many failures does not interrupt it, nor does one failure among many successes begin it (a
    change point estimated by cumulative sums, after Page, 1954). If all failed from some moment on, it begins there.
    Counted is all that ended from then on, also after the stop.
    """
    allowed = tables.config.load.failed_request_threshold
    if tables.run.stopped_by != "failures" or tables.start_ns is None or allowed is None:
        return None
    ended = _ended(tables)
    failed = ended["outcome"].is_in(list(FAILURES)).to_numpy()
    before = int((ended["done_ns"] <= max(log.stop_ns for log in tables.phases)).sum()) or len(ended)
    begin = _begin(failed[:before], allowed)
    if begin is None:
        return None
    outcomes = ended[begin:].filter(pl.Series(failed[begin:]))["outcome"]
    most = str(outcomes.mode().sort()[0])
    return Failing(
        kind=tables.phases[-1].kind,
        since_s=(ended["done_ns"][begin] - tables.start_ns) / 1e9,
        outcome=most,
        of_outcome=int((outcomes == most).sum()),
        failed=len(outcomes),
        ended=len(ended) - begin,
    )


def _begin(failed: NDArray[np.bool_], allowed: float) -> int | None:
    """Where the failures begin that exceed the share allowed by most; None when nothing failed from there on."""
    sums = np.concatenate(([0.0], np.cumsum(failed - allowed)))[:-1]
    begin = int(np.argmin(sums)) if len(sums) else 0
    return begin + int(np.argmax(failed[begin:])) if failed[begin:].any() else None


def _ended(tables: Tables) -> pl.DataFrame:
    """The requests that the server answered or failed, in the order in which they ended."""
    judged = pl.col("outcome").is_in([*SUCCESSES, *FAILURES])
    ended = tables.requests.select("outcome", "done_ns").filter(judged, pl.col("done_ns").is_not_null())
    return ended.sort("done_ns", maintain_order=True)


def limits(config: Config) -> dict[str, float | None]:
    """The limits of a run by their keys in the configuration, defaults filled in.

    The share of failures at which a run is given up was settled before it began (1: never); null: an older run does
    not tell.
    """
    endpoint, load = config.endpoint, config.load
    return {
        "endpoint.connect_timeout_s": endpoint.connect_timeout_s,
        "endpoint.first_token_timeout_s": endpoint.first_token_timeout_s,
        "endpoint.idle_timeout_s": endpoint.idle_timeout_s,
        "endpoint.timeout_s": endpoint.timeout_s,
        "endpoint.max_response_bytes": endpoint.max_response_bytes,
        "load.failed_request_threshold": load.failed_request_threshold,
        "load.grace_s": DEFAULT_GRACE_S if load.grace_s is None else load.grace_s,
    }
