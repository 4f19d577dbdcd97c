"""Whether the client was fast enough: what it did late, or lost."""

from __future__ import annotations

import numpy as np

from loadstone.checks.evidence import Evidence, Verdict, all_at_once, answer, uncapped
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.metrics.instrument import late_ms
from loadstone.metrics.load import LATE_MS
from loadstone.read.outcome import CLIENT_FAULT
from loadstone.report import Check
from loadstone.stats import Floats

CPU_HIGH = 0.80
"""A worker is one thread, a queue with one server: at load r an event waits r / (2 (1 - r)) of its own
service time before it, two of them at 80 %, ten at 95 %."""
CPU_FULL = 0.95
"""No room left: unless the lags show that nothing came late, the client was the bottleneck."""
CPU_LEAST_NS = 100_000_000
"""Over less time a share says nothing: what a worker does before its phase and after it is a few milliseconds."""
CLIENT_LAG_MS = 1.0
"""A scheduler on a shared machine delays reads by this much; below it the lag is never held against a run."""
BLURRED_PERCENT = 10.0
"""Tokens dated by a later one, from which share on a late client blurs more than the odd gap."""
BLURRED_MOST_PERCENT = 50.0
"""From here on the median itself is blurred."""
STANDSTILL_MS = 1_000.0
"""A client process that reads nothing for so long sends nothing either: the load was not the one asked for."""
SEND_LAG_SHARE = 0.10
"""Beyond what is late at all, a late send matters from this share of the median latency on."""
SEND_LAG_GRAVE_MS = 50.0
"""A client later than this, and later than a whole answer takes, did not offer the load that was asked."""
LOST_SHARE = 0.01
"""Requests that the client failed to send or lost: above 1 % they shift a p99."""
PROCESSES = {
    "worker": (", which sends the load,", "; what it had under way is lost"),
    "decoder": (", which reads the recorded answers,", "; what it had not read was decoded afterwards"),
    "the composer": (", which writes the prompts,", ""),
}
"""What a process of the run is there for, and what its death costs."""


SENDERS = ("worker", "the composer")
"""Processes without which less is sent."""
ENGINE = "the built-in engine"
"""A server, though a process of ours."""


def died(evidence: Evidence, *processes: str) -> str | None:
    """How the first of these processes died that did, such as `worker 1 died (killed by signal 9)`."""
    found = (death for death in evidence.tables.run.deaths if death.process.startswith(processes))
    return next((f"{death.process} died ({death.fault})" for death in found), None)


def processes(evidence: Evidence) -> Check:
    """Every process of the run lived to its end.

    What a worker had under way is lost with it; what a decoder had not read is decoded afterwards, but nobody knows
    what else went wrong: INVALID.
    """
    deaths = evidence.tables.run.deaths
    if not deaths:
        return answer("processes", "VALID", 0, "processes", "every process of the run lived to its end.")
    first = deaths[0]
    does, then = next((what for name, what in PROCESSES.items() if first.process.startswith(name)), ("", ""))
    finding = f"{first.process}{does} died ({first.fault}){then}"
    more = f" (and {len(deaths) - 1} more)" if len(deaths) > 1 else ""
    advice = "Look for the reason in loadstone.log and in the system's log (out of memory?), and run again."
    return answer("processes", "INVALID", len(deaths), "processes", f"{finding}{more}.", advice)


def lost_requests(evidence: Evidence) -> Check:
    """No request failed through the client's own fault: a lost worker, no descriptors, a defect.

    DEGRADED when one did, INVALID above 1 %, where they shift a p99.
    """
    lost = evidence.outcomes(CLIENT_FAULT)
    if not lost:
        return answer("lost_requests", "VALID", 0, "requests", "no request was lost by the client.")
    verdict: Verdict = "INVALID" if lost > LOST_SHARE * evidence.planned else "DEGRADED"
    finding = f"the client itself lost {lost} of {evidence.planned} requests."
    return answer("lost_requests", verdict, lost, "requests", finding, "See the faults and loadstone.log.")


def client_cpu(evidence: Evidence) -> Check:
    """The busiest worker had room; the share of a core it used in the measured phase.

    DEGRADED from 80 % on. INVALID from 95 % on, unless the lags were seen and are small: a worker that spins
    through its work in time is only close to its limit.
    """
    logs = [log for log in evidence.tables.run.workers if log.wall_ns >= CPU_LEAST_NS]
    share = max((log.cpu_ns / log.wall_ns for log in logs), default=None)
    if share is None:
        return answer(
            "client_cpu", "VALID", None, "%", "no worker ran long enough for its share to be known."
        )
    finding = f"the busiest worker used {100 * share:.3g} % of a core."
    if share < CPU_HIGH:
        return answer("client_cpu", "VALID", 100 * share, "%", finding)
    advice = "Give the client more room: more --workers, other cores or another host than the server's."
    verdict: Verdict = "DEGRADED" if share < CPU_FULL or _on_time(evidence) else "INVALID"
    return answer("client_cpu", verdict, 100 * share, "%", finding, advice)


def client_lag(evidence: Evidence) -> Check:
    """Tokens were read soon after they arrived: the lag at p99, against the pace of the server.

    The kernel dates arrivals, so a late read makes no latency longer; but what waits in the socket until the
    next token comes is merged with it and dated by it. So the pace is the median inter_token_latency
    (time_to_first_token where answers have one token). DEGRADED when the lag's p99 exceeds it and a tenth of
    the tokens are dated by a later one, INVALID when the median lag exceeds it; below 1 ms neither. DEGRADED also
    when one token waited for a second: a worker stood still.
    """
    lag = evidence.metrics["client_lag"]
    pace = evidence.p50("inter_token_latency", "time_to_first_token")
    if lag.p50 is None or lag.p99 is None or pace is None:
        return answer("client_lag", "VALID", None, "ms", f"not seen: {lag.reason or 'no token came.'}")
    finding = f"tokens were read {brief(lag.p99)} ms after they arrived (p99)"
    limit = max(pace, CLIENT_LAG_MS)
    undated = evidence.metrics["undated_events"].mean or 0.0
    if lag.p99 <= limit or (undated < BLURRED_PERCENT and lag.p50 <= limit):
        if (longest := lag.max or 0.0) >= STANDSTILL_MS:
            finding = f"a worker stood still: tokens were read up to {brief(longest)} ms after they arrived."
            advice = "Something stopped or starved a client process; run again on a quieter machine."
            return answer("client_lag", "DEGRADED", longest, "ms", finding, advice)
        return answer("client_lag", "VALID", lag.p99, "ms", f"{finding}.")
    finding += f", later than the next token came (median {brief(pace)} ms), so gaps are blurred."
    advice = "Lower the load, or give the client more --workers and cores of its own."
    return answer("client_lag", "INVALID" if lag.p50 > limit else "DEGRADED", lag.p99, "ms", finding, advice)


def first_tokens(evidence: Evidence) -> Check:
    """First tokens bear stamps of their own, or were read in time: time_to_first_token is as exact as it looks.

    A server may send the first token together with others, and then it came when they did. But a client that reads them late finds later tokens behind them, and all bear the last one's stamp. DEGRADED when
    that befell a tenth of the answers and a tenth of the lags is above 1 ms, INVALID when half of the answers.
    """
    undated = evidence.metrics["undated_first_tokens"].mean
    lag = evidence.metrics["first_token_client_lag"].p90
    if undated is None or lag is None:
        return answer("first_tokens", "VALID", None, "%", "not seen: no first token with a stamp came.")
    if undated < BLURRED_PERCENT or lag <= CLIENT_LAG_MS:
        told = "first tokens bear stamps of their own."
        if undated:
            told = f"{undated:.3g} % of the first tokens came together with others; the rest bear stamps of their own."
        if undated == 100:
            told = "every first token came together with others, which date it."
        return answer("first_tokens", "VALID", undated, "%", told)
    finding = (
        f"{undated:.3g} % of the first tokens were read together with later ones, {brief(lag)} ms late (p90), and are"
        " dated by these: time to first token is too long."
    )
    advice = "Lower the load, or give the client more --workers and cores of its own."
    verdict: Verdict = "INVALID" if undated >= BLURRED_MOST_PERCENT else "DEGRADED"
    return answer("first_tokens", verdict, undated, "%", finding, advice)


def send_lag(evidence: Evidence) -> Check:
    """Requests were sent when they were due: the lag at p99, without the time it took to connect.

    A turn whose turn before ended later than it was due is late from that end on. What was due all at once is left out:
    nobody can send it so. Against the median request_latency: a
    lag that is small beside it shifts no arrival that matters. DEGRADED above both 5 ms and 10 % of it, INVALID above
    both 50 ms and all of it.
    """
    tables = uncapped(evidence.tables, timed=False)
    if tables is None:
        return answer(
            "send_lag", "VALID", None, "ms", "a limit makes requests wait; lag cannot be told from that."
        )
    lags_ms = send_lags_ms(tables)
    if not len(lags_ms):
        none = "all requests were due at once: arrival_fidelity tells how long it took to send them."
        at_once = all_at_once(tables).any()
        return answer("send_lag", "VALID", None, "ms", none if at_once else "no request was sent.")
    p99, latency = float(np.quantile(lags_ms, 0.99)), evidence.p50("request_latency")
    finding = f"requests were sent {brief(p99)} ms late (p99)"
    if latency is None or p99 <= max(LATE_MS, SEND_LAG_SHARE * latency):
        return answer("send_lag", "VALID", p99, "ms", f"{finding}.")
    verdict: Verdict = "INVALID" if p99 > max(SEND_LAG_GRAVE_MS, latency) else "DEGRADED"
    finding += f", against a median latency of {brief(latency)} ms."
    return answer(
        "send_lag", verdict, p99, "ms", finding, "Give the client more --workers or cores of its own."
    )


def send_lags_ms(tables: Tables) -> Floats:
    """How late the client sent each request, the time it took to connect and what was due all at once left out."""
    lags_ms = late_ms(tables)
    return lags_ms[np.isfinite(lags_ms) & ~all_at_once(tables)]


def _on_time(evidence: Evidence) -> bool:
    """Whether the client's lags, where late reads would show, were seen and are small."""
    read, send = client_lag(evidence), send_lag(evidence)
    return read.value is not None and read.verdict == send.verdict == "VALID"
