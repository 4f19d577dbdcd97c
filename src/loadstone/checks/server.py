"""What a reader has to know about the server's side: it need not be fast, but the report has to say so."""

from __future__ import annotations

import numpy as np
import polars as pl

from loadstone.checks.advice import advice_for
from loadstone.checks.evidence import Evidence, Verdict, answer
from loadstone.checks.targets import fails_most
from loadstone.figures import brief, counted
from loadstone.metrics import Tables
from loadstone.read.outcome import NOT_SENT
from loadstone.report import Check

FEW_REQUESTS = 30
ERRORS_PERCENT = 1.0
ERRORS_GRAVE_PERCENT = 10.0
"""From here on the latencies of the successes say little about those of all."""
COLD = 3.0
"""A first answer this many times slower than the median, without warm-up, looks like a cold server."""


def succeeded(evidence: Evidence) -> Check:
    """There is something to measure. INVALID when no request succeeded."""
    count = int(evidence.tables.succeeded.sum())
    if count:
        return answer("succeeded", "VALID", count, "requests", f"{counted(count, 'request')} succeeded.")
    if _stopped_before(evidence.tables):
        finding = "nothing was measured: the load was stopped in the warm-up."
        return answer("succeeded", "INVALID", 0, "requests", finding, advice_for(evidence))
    sent = bool(evidence.tables.attempted.any())
    finding = "no request succeeded." if sent else "no request was sent."
    if evidence.tables.run.simulated and evidence.tables.run.cut_off:
        finding = "nobody knows of any request that succeeded."
    stopped = bool((evidence.tables.censored | ~evidence.tables.attempted).all())
    advice = advice_for(evidence) or "See the faults and loadstone.log."
    if not sent or stopped:
        advice = ""
    if sent and stopped:
        finding = "the run was stopped before any answer had ended."
        if evidence.tables.cancelled[evidence.tables.attempted].all():
            finding = "every request was cancelled as asked before its answer had ended."
            advice = "Lower --request-cancellation-rate, or raise --request-cancellation-delay."
        elif evidence.tables.run.stopped_by is None:
            advice = "Give it more time (--benchmark-duration, --benchmark-grace-period)."
    return answer("succeeded", "INVALID", 0, "requests", finding, advice)


def _stopped_before(tables: Tables) -> bool:
    """Whether requests were sent, and the run came to none of the phases that were to be measured."""
    return not tables.phases and bool((tables.unmeasured["outcome"] != NOT_SENT).any())


def sample_size(evidence: Evidence) -> Check:
    """There are enough requests to speak of a distribution. A NOTE below 30 successes."""
    count = int(evidence.tables.succeeded.sum())
    if not 0 < count < FEW_REQUESTS:
        return answer("sample_size", "VALID", count, "requests", f"{count} answers.")
    finding = f"only {counted(count, 'request')} succeeded: the numbers are a first impression."
    return answer(
        "sample_size",
        "NOTE",
        count,
        "requests",
        finding,
        "Send more (--request-count, --benchmark-duration).",
    )


def failures(evidence: Evidence) -> Check:
    """Latencies are those of the survivors; where many failed, they may look better than the server is.

    A NOTE from 1 % of the requests on, DEGRADED from 10 % on.
    """
    share = evidence.metrics["error_rate"].mean
    if share is None:
        why = evidence.metrics["error_rate"].reason
        return answer(
            "failures", "VALID", None, "%", f"which share of the requests failed is not known: {why}"
        )
    if share < ERRORS_PERCENT:
        return answer("failures", "VALID", share, "%", "fewer than 1 % of the requests failed.")
    if not evidence.tables.succeeded.any():
        return answer("failures", "VALID", share, "%", "every request failed, which `succeeded` judges.")
    finding = (
        f"{share:.3g} % of the requests failed{_where(evidence.tables)}; latencies are those of the rest."
    )
    verdict: Verdict = "DEGRADED" if share >= ERRORS_GRAVE_PERCENT else "NOTE"
    return answer("failures", verdict, share, "%", finding, "" if verdict == "NOTE" else advice_for(evidence))


def _where(tables: Tables) -> str:
    """Which of several servers failed much more than the others, in words; empty where none did."""
    worst = fails_most(tables)
    if worst is None:
        return ""
    failed, asked = int(worst.asked.failed.sum()), len(worst.asked.requests)
    others = "all of them" if not worst.others.failed.any() else "most of them"
    return f", {others} at {worst.name} ({failed:,} of its {asked:,})"


def retries(evidence: Evidence) -> Check:
    """Requests sent again on a new connection, because the server had closed a kept-alive one. A NOTE when there were any."""
    count = int(evidence.tables.requests["retries"].sum())
    if not count:
        return answer("retries", "VALID", 0, "retries", "no request had to be sent again.")
    finding = (
        f"{counted(count, 'request')} went out again because the server had closed the kept-alive connection."
    )
    return answer("retries", "NOTE", count, "retries", finding)


def cold_start(evidence: Evidence) -> Check:
    """Whether the first answer was much slower than the rest, without a warm-up: a NOTE above three times the median.

    A load may open with many requests at once, of which each waits for the prompts of all: of n that were sent within a
    median of the first, every one may take n times as long as alone.
    """
    name = "time_to_first_token" if evidence.tables.streaming else "request_latency"
    median, first = evidence.p50(name), _first_answer_ms(evidence.tables)
    warmed = any(phase.kind == "warmup" for phase in evidence.tables.run.phases)
    if warmed or median is None or first is None or first <= COLD * median:
        return answer("cold_start", "VALID", first, "ms", "the first answer was no slower than others.")
    if first <= (together := _opened_together(evidence.tables, median)) * median:
        finding = f"the first answer was as slow as one of {together} that are asked for at once may be."
        return answer("cold_start", "VALID", first, "ms", finding)
    finding = (
        f"the first answer took {brief(first)} ms against a median of {brief(median)} ms: a cold server."
    )
    return answer("cold_start", "NOTE", first, "ms", finding, "Warm it up with --warmup-request-count.")


def _opened_together(tables: Tables, within_ms: float) -> int:
    """Requests that were sent so soon after the first one, itself included."""
    sent_ns = tables.number("sent_ns")
    return int((sent_ns <= np.nanmin(sent_ns) + within_ms * 1e6).sum())


def _first_answer_ms(tables: Tables) -> float | None:
    """How long the request sent first took to its first token, or without streaming to its end."""
    end = "first_ns" if tables.streaming else "done_ns"
    moments = tables.requests.select("sent_ns", end)
    good = moments.filter(pl.Series(tables.succeeded) & moments[end].is_not_null())
    if good.is_empty():
        return None
    sent_ns, end_ns = good.sort("sent_ns").row(0)
    return float((end_ns - sent_ns) / 1e6)
