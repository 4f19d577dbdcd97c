"""What a reader has to know about the server's side: it need not be fast, but the report has to say so."""

from __future__ import annotations

import polars as pl

from loadstone.checks.advice import advice_for
from loadstone.checks.evidence import Evidence, Verdict, answer
from loadstone.figures import brief, counted
from loadstone.metrics import Tables
from loadstone.read.outcome import CENSORED, NOT_SENT, SUCCESSES
from loadstone.report import Check

SATURATED_COMPLETED = 0.95
"""A server that completes less than this share of the offered rate does not keep up ..."""
SATURATED_GROWTH = 0.05
"""... if its latencies also grow: this many seconds for every second of the run. Both together, because in a
short run the last answers alone stretch the time between the completions."""
SATURATED_UNANSWERED = 0.10
"""... or if it left this share of the requests longer than any that it answered, until the run's end stopped them:
where most were stopped, what was answered shows no trend."""
SATURATED_REQUESTS = 20
"""Fewer requests do not show a trend."""
FEW_REQUESTS = 30
ERRORS_PERCENT = 1.0
ERRORS_GRAVE_PERCENT = 10.0
"""From here on the latencies of the successes say little about those of all."""
COLD = 3.0
"""A first answer this many times slower than the median, without warm-up, looks like a cold server."""


def succeeded(evidence: Evidence) -> Check:
    """There is something to measure."""
    count = int(evidence.tables.succeeded.sum())
    if count:
        return answer("succeeded", "VALID", count, "requests", f"{counted(count, 'request')} succeeded.")
    sent = bool(evidence.tables.attempted.any())
    finding = "no request succeeded." if sent else "no request was sent."
    stopped = bool((evidence.tables.censored | ~evidence.tables.attempted).all())
    advice = advice_for(evidence) or "See the faults and loadstone.log."
    if not sent or stopped:
        advice = ""
    if sent and stopped:
        finding = "the run was stopped before any answer had ended."
        if evidence.tables.run.stopped_by is None:
            advice = "Give it more time (--benchmark-duration, --benchmark-grace-period)."
    return answer("succeeded", "INVALID", 0, "requests", finding, advice)


def saturation(evidence: Evidence) -> Check:
    """Whether the server kept up with the rate offered. It need not: a saturated server is a result."""
    offered, completed = evidence.metrics["offered_rate"].mean, evidence.metrics["completed_rate"].mean
    if offered is None or completed is None:
        why = evidence.metrics["offered_rate"].reason or evidence.metrics["completed_rate"].reason
        return answer("saturation", "VALID", None, "%", f"not judged: {why}")
    share = 100 * completed / offered
    if not saturated(evidence):
        return answer("saturation", "VALID", share, "%", "the server kept up with the rate offered.")
    if evidence.tables.has_cap:
        slots = evidence.tables.config.load.concurrency
        finding = (
            f"with at most {slots} in flight, {brief(completed)} of the {brief(offered)} requests/s offered were completed;"
            " the others waited for a slot, longer and longer (see queue_wait)."
        )
        advice = "Raise --concurrency to see the server's own limit, or lower --request-rate."
        return answer("saturation", "VALID", share, "%", finding, advice)
    finding = f"the server completed {brief(completed)} of the {brief(offered)} requests/s offered; latencies grow with time."
    advice = f"Its capacity is near {brief(completed)} requests/s: lower --request-rate below it to measure latency."
    return answer("saturation", "VALID", share, "%", finding, advice)


def saturated(evidence: Evidence) -> bool:
    """Whether the server completed clearly less than it was offered while latencies from the due time grew."""
    offered, completed = evidence.metrics["offered_rate"].mean, evidence.metrics["completed_rate"].mean
    if offered is None or completed is None or completed >= SATURATED_COMPLETED * offered:
        return False
    judged = _judged(_waits(evidence.tables))
    if len(judged) < SATURATED_REQUESTS:
        return False
    return _growth(judged) > SATURATED_GROWTH or _unanswered(judged) >= SATURATED_UNANSWERED


def sample_size(evidence: Evidence) -> Check:
    """There are enough requests to speak of a distribution."""
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
    """Latencies are those of the survivors; where many failed, they may look better than the server is."""
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
    finding = f"{share:.3g} % of the requests failed; latencies are those of the rest."
    verdict: Verdict = "DEGRADED" if share >= ERRORS_GRAVE_PERCENT else "NOTE"
    return answer("failures", verdict, share, "%", finding, "" if verdict == "NOTE" else advice_for(evidence))


def retries(evidence: Evidence) -> Check:
    """Requests sent again on a new connection, because the server had closed a kept-alive one."""
    count = int(evidence.tables.requests["retries"].sum())
    if not count:
        return answer("retries", "VALID", 0, "retries", "no request had to be sent again.")
    finding = (
        f"{counted(count, 'request')} went out again because the server had closed the kept-alive connection."
    )
    return answer("retries", "NOTE", count, "retries", finding)


def cold_start(evidence: Evidence) -> Check:
    """Whether the first answer was much slower than the rest, without a warm-up."""
    name = "time_to_first_token" if evidence.tables.streaming else "request_latency"
    median, first = evidence.p50(name), _first_answer_ms(evidence.tables)
    warmed = any(phase.name == "warmup" for phase in evidence.tables.run.phases)
    if warmed or median is None or first is None or first <= COLD * median:
        return answer("cold_start", "VALID", first, "ms", "the first answer was no slower than others.")
    finding = (
        f"the first answer took {brief(first)} ms against a median of {brief(median)} ms: a cold server."
    )
    return answer("cold_start", "NOTE", first, "ms", finding, "Warm it up with --warmup-request-count.")


def _growth(judged: pl.DataFrame) -> float:
    """Seconds by which the latency from the due time grew for every second of the run.

    The median of the last quarter of the requests less that of the first, over the time between them.
    """
    waits = judged.sort("due_ns")
    quarter = len(waits) // 4
    first, last = (
        part.select("due_ns", "wait_ns").median().row(0)
        for part in (waits.head(quarter), waits.tail(quarter))
    )
    return float((last[1] - first[1]) / (last[0] - first[0])) if last[0] > first[0] else 0.0


def _unanswered(judged: pl.DataFrame) -> float:
    """The share of the requests that were stopped, beside some that were answered; 0 when none was."""
    stopped = judged["stopped"]
    return 0.0 if stopped.all() else int(stopped.sum()) / len(stopped)


def _waits(tables: Tables) -> pl.DataFrame:
    """When every request was due, how long it waited from then on, and whether the run's end stopped it."""
    run_end = pl.lit(tables.phase.end_ns if tables.phase else None, pl.Int64)
    end = pl.coalesce(pl.Series("left_ns", tables.left_ns), run_end)
    stopped = pl.col("outcome").is_in([*CENSORED, NOT_SENT])
    return tables.requests.select("due_ns", wait_ns=end - pl.col("due_ns"), stopped=stopped).drop_nulls()


def _judged(waits: pl.DataFrame) -> pl.DataFrame:
    """Those requests that had time enough for the longest wait seen before the end of the run stopped the
    first one.

    Of later ones only the quick are answered, so a growing wait would look as if it shrank.
    """
    stopped = waits.filter("stopped")
    answered = waits.filter(~pl.col("stopped"))
    if stopped.is_empty() or answered.is_empty():
        return waits
    first_stop = stopped.select((pl.col("due_ns") + pl.col("wait_ns")).min()).item()
    return waits.filter(pl.col("due_ns") <= first_stop - answered["wait_ns"].max())


def _first_answer_ms(tables: Tables) -> float | None:
    """How long the request sent first took to its first token, or without streaming to its end."""
    end = "first_ns" if tables.streaming else "done_ns"
    good = tables.requests.filter(pl.col("outcome").is_in(list(SUCCESSES)) & pl.col(end).is_not_null())
    if good.is_empty():
        return None
    sent_ns, end_ns = good.sort("sent_ns").select("sent_ns", end).row(0)
    return float((end_ns - sent_ns) / 1e6)
