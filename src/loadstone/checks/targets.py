"""Which of several servers fails, or says nothing, while the others answer: what is true of all is not true of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.checks.evidence import Evidence, Verdict, answer
from loadstone.figures import counted
from loadstone.metrics import Tables
from loadstone.report import Check

SILENT = 2.0
"""A server that says nothing for so many times the longest answer of all is not merely slow."""
SILENT_SHARE = 0.10
"""From this share of the requests on, what is known of the others says little of all."""
MUCH_MORE = 2.0
"""A server that fails so many times the share of the others is the one to look at."""


class Target(NamedTuple):
    """One of several servers."""

    name: str
    """Its address without secrets."""
    asked: Tables
    """The requests that it was sent ..."""
    others: Tables
    """... and those that the others were."""


def targets(tables: Tables) -> list[Target]:
    """Every server of which something was asked; none where there is one."""
    urls, number = tables.config.endpoint.urls, tables.requests["target"]
    if len(urls) < 2:
        return []
    own = [(number == at).fill_null(False).to_numpy() & tables.attempted for at in range(len(urls))]
    return [
        Target(url, tables.only(asked), tables.only(tables.attempted & ~asked))
        for url, asked in zip(urls, own, strict=True)
        if asked.any()
    ]


def silent_targets(evidence: Evidence) -> Check:
    """Every server went on answering: none left requests waiting while the others answered.

    A server is silent when nothing came from it for twice as long as the longest answer of all took, while requests waited.
    DEGRADED when those are a tenth of all, else a NOTE.
    """
    tables = evidence.tables
    found = silent(tables)
    if not found:
        return answer(
            "silent_targets", "VALID", 0, "requests", "no server fell silent while others answered."
        )
    waiting = sum(int(_waiting(one.asked).sum()) for one in found)
    verdict: Verdict = "DEGRADED" if waiting >= SILENT_SHARE * int(tables.attempted.sum()) else "NOTE"
    told = "; ".join(_told(one, tables.start_ns or 0) for one in found)
    advice = "See the log of that server, or leave it out; the latencies are those of the rest."
    return answer("silent_targets", verdict, waiting, "requests", f"{told}.", advice)


def silent(tables: Tables) -> list[Target]:
    """The servers that fell silent while others answered."""
    took_ns = (tables.left_ns - tables.requests["sent_ns"]).filter(pl.Series(tables.succeeded)).max()
    if not isinstance(took_ns, int):
        return []
    return [one for one in targets(tables) if _silence_ns(one.asked) > SILENT * took_ns]


def fails_most(tables: Tables) -> Target | None:
    """The server that failed a much greater share of its requests than the others; None where they are much alike."""
    worst = max(targets(tables), key=lambda one: _failed_share(one.asked), default=None)
    if worst is None or not len(worst.others.requests):
        return None
    share = _failed_share(worst.asked)
    return worst if share and share >= MUCH_MORE * _failed_share(worst.others) else None


def _failed_share(tables: Tables) -> float:
    return float(tables.failed.mean()) if len(tables.failed) else 0.0


def _waiting(tables: Tables) -> NDArray[np.bool_]:
    """For every request, whether it still waited for its answer when we ended it, though not because the plan said so."""
    return tables.cut_off & ~tables.cancelled


def _silence_ns(tables: Tables) -> int:
    """How long nothing had come while requests waited, when the last of them was ended; 0 where none waited."""
    waited = tables.requests.filter(pl.Series(_waiting(tables)))
    sent_ns, ended_ns, heard_ns = waited["sent_ns"].min(), waited["done_ns"].max(), tables.heard_ns.max()
    if not isinstance(sent_ns, int) or not isinstance(ended_ns, int):
        return 0
    return ended_ns - max(sent_ns, heard_ns if isinstance(heard_ns, int) else sent_ns)


def _told(target: Target, start_ns: int) -> str:
    asked, heard_ns = target.asked, target.asked.heard_ns.max()
    if not isinstance(heard_ns, int):
        return f"{target.name} answered none of its {counted(len(asked.requests), 'request')}"
    since_s = max(0, heard_ns - start_ns) / 1e9
    left = counted(int(_waiting(asked).sum()), "request")
    return (
        f"{target.name} said nothing more from {since_s:.2f} s into the measurement on, with {left} under way"
    )
