"""Whether the server kept up with the rate offered. It need not: a saturated server is a result.

Phase by phase, since each has a load of its own. Requests that we cancelled because the plan said so are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.checks.arrivals import offered_load
from loadstone.checks.evidence import Evidence, answer, slower
from loadstone.checks.server import ERRORS_GRAVE_PERCENT
from loadstone.checks.targets import silent
from loadstone.figures import brief
from loadstone.metrics import NEEDS, Missing, Tables, capped
from loadstone.metrics.load import completed_rate, offered_rate
from loadstone.plan.schedule import Phase
from loadstone.read.outcome import CENSORED, NOT_SENT
from loadstone.report import Check

COMPLETED = 0.95
"""A server that completes less than this share of the offered rate does not keep up ..."""
GROWTH = 0.05
"""... if its latencies also grow: this many seconds for every second of the run. Both together, because in a
short run the last answers alone stretch the time between the completions."""
UNANSWERED = 0.10
"""... or if it left this share of the requests longer than any that it answered, until the run's end stopped them:
where most were stopped, what was answered shows no trend."""
FOLLOWS = 0.50
"""Where more and more is offered, latencies grow with it and completions lag behind: a server that keeps up completes
more and more as well, at least by this share of what the offered rate gained."""
KEEPS_PACE = 0.85
"""... and of what was offered one latency before, at least this share: answers that come behind it by more take 0.18 s longer
for every second, and more and more are under way."""
QUEUED = 0.10
"""A limit that keeps back this share of the requests to the end, and more then than halfway, lets through less than is
offered, however few were answered."""
HELD = 0.05
"""Turns held up by the answer before them, from which share on the load is no longer the one that was asked for."""
LEAST_REQUESTS = 20
"""Fewer requests do not show a trend."""


class Course(NamedTuple):
    """How a phase with due times went. Rates are requests per second."""

    load: Phase
    offered: float
    completed: float
    saturated: bool
    due: int
    """Requests that were due ..."""
    held: int
    """... and those of them that were due before the answer to the turn before them had ended."""

    @property
    def share(self) -> float:
        """Completed of offered, in percent."""
        return 100 * self.completed / self.offered

    @property
    def held_up(self) -> str:
        """That turns had to wait for answers, in words; empty where it was no more than the odd one."""
        if self.held <= HELD * self.due:
            return ""
        return (
            f"{self.held} of {self.due} requests were due before the answer to the turn before them had ended"
        )


def saturation(evidence: Evidence) -> Check:
    """Whether the server kept up with the rate offered. It need not: a saturated server is a result, and lowers no verdict.

    It did not where it completed less than 95 % of the offered rate and latencies grew by 50 ms and more for every second.
    """
    found = courses(evidence)
    if not found:
        return answer("saturation", "VALID", None, "%", f"not judged: {_why_not(evidence)}")
    worst = min(found, key=lambda course: (not course.saturated, course.share))
    own = evidence.tables.of_phases(worst.load.name)
    held = next((course for course in found if course.held_up), None)
    if not worst.saturated and held:
        finding = f"{held.held_up}, and waited for it: the server did not keep up with its users."
        advice = f"{slower(evidence.tables.of_phases(held.load.name))}, or ask for shorter answers (--osl)."
        return answer("saturation", "VALID", held.share, "%", finding, advice)
    if not worst.saturated:
        return answer("saturation", "VALID", worst.share, "%", "the server kept up with the rate offered.")
    where = f"in phase {worst.load.name}, " if len(evidence.tables.phases) > 1 else ""
    offered, completed = brief(worst.offered), brief(worst.completed)
    if capped(worst.load):
        finding = (
            f"{where}with at most {limits(worst.load)}, {completed} of the {offered} requests/s offered were completed;"
            " the others waited for a slot, longer and longer (see queue_wait)."
        )
        advice = f"Raise {_flags(worst.load)} to see whether the server can do more. {slower(own)} to have no queue."
        return answer("saturation", "VALID", worst.share, "%", finding, advice)
    finding = f"{where}the server completed {completed} of the {offered} requests/s offered; latencies grow with time."
    advice = f"Its capacity is near {completed} requests/s. {slower(own)} to measure latency below it."
    if _changes(worst.load):
        advice = "It fell behind while the rate changed: offer it one rate at a time to find its capacity."
    return answer("saturation", "VALID", worst.share, "%", finding, advice)


def saturated(evidence: Evidence) -> bool:
    """Whether in any phase the server completed clearly less than it was offered while latencies from the due time grew."""
    return any(course.saturated for course in courses(evidence))


def courses(evidence: Evidence) -> list[Course]:
    """How every phase with due times went, as far as there are rates to compare.

    None where something else than its capacity kept a server from completing what was offered (`_unfit`).
    """
    if _unfit(evidence):
        return []
    found = []
    for load in evidence.tables.loads:
        phase = evidence.tables.of_phases(load.name)
        counted = phase.only(~phase.cancelled)
        offered, completed = offered_rate(counted), completed_rate(counted)
        if load.timed and not isinstance(offered, Missing) and not isinstance(completed, Missing):
            behind = completed < COMPLETED * offered and _falls_behind(counted, load)
            due, held = int((~phase.never_due).sum()), int(_held(phase).sum())
            found.append(Course(load, offered, completed, behind, due, held))
    return found


def limits(load: Phase) -> str:
    """What a phase has of slots, in words: `2 in flight and 1 before its first token`."""
    several = f"{load.prefill} before their first token" if load.prefill else ""
    held = "in flight" if load.one_turn else "conversations"
    return " and ".join(filter(None, [f"{load.slots} {held}" if load.slots else "", several]))


def _flags(load: Phase) -> str:
    flags = [("--concurrency", load.slots), ("--prefill-concurrency", load.prefill)]
    return " or ".join(flag for flag, limit in flags if limit)


def _why_not(evidence: Evidence) -> str:
    if not any(load.timed for load in evidence.tables.loads):
        return NEEDS["rate"].reason
    if unfit := _unfit(evidence):
        return unfit
    rates = (evidence.metrics[name].reason for name in ("offered_rate", "completed_rate"))
    return next(filter(None, rates), "no phase with due times has rates to compare.")


def _unfit(evidence: Evidence) -> str:
    """Why what was completed says nothing of the capacity of a server that is at work; empty where it does.

    What the client kept back is not the server's to complete; and one that is gone completes nothing. A request that a
    time limit ended is no such failure: it may have waited in a queue.
    """
    tables = evidence.tables
    if offered_load(evidence).verdict != "VALID":
        return "the client did not send what was offered (see offered_load)."
    if gone := silent(tables):
        return f"{gone[0].name} fell silent (see silent_targets)."
    refused = tables.failed & ~tables.cut_off
    if 100 * int(refused.sum()) >= ERRORS_GRAVE_PERCENT * int((tables.failed | tables.succeeded).sum()) > 0:
        return "too many requests failed (see failures)."
    return ""


def _falls_behind(tables: Tables, load: Phase) -> bool:
    """Whether the backlog of a phase grew; where its rate changes, also whether completions did not follow."""
    if len(tables.requests) >= LEAST_REQUESTS and _queue_grows(tables):
        return True
    judged = _judged(_waits(tables))
    if len(judged) < LEAST_REQUESTS or (_changes(load) and _follows(tables)):
        return False
    return _growth(judged) > GROWTH or _unanswered(judged) >= UNANSWERED


def _queue_grows(tables: Tables) -> bool:
    """Whether many still waited when the phase stopped, and clearly more than halfway."""
    (log,) = tables.phases
    due_ns, left_ns = tables.requests["due_ns"], tables.left_queue_ns
    halfway_ns = (log.start_ns + log.stop_ns) // 2
    halfway = int(((due_ns <= halfway_ns) & (left_ns > halfway_ns)).sum())
    left = int(tables.unsent.sum())
    return left > QUEUED * int((~tables.never_due).sum()) and left > (1 + QUEUED) * halfway


def _held(tables: Tables) -> NDArray[np.bool_]:
    """For every request, whether it was due, and the answer to the turn before it had not ended."""
    late = tables.requests["due_ns"] < tables.ready_ns
    waiting = pl.Series(~tables.opens) & tables.requests["due_ns"].is_not_null() & tables.ready_ns.is_null()
    return (late.fill_null(False) | waiting).to_numpy()


def _changes(load: Phase) -> bool:
    """Whether the rate offered is not the same all the time."""
    moving = any(segment.span_s and segment.rate != segment.end_rate for segment in load.curve)
    return (
        moving or len({segment.rate for segment in load.curve}) > 1 or load.pattern in ("fixed", "by-index")
    )


def _follows(tables: Tables) -> bool:
    """Whether more was completed in the last third of the load than in the second, as more was offered, and nearly all that
    had been offered one latency before.

    Thirds of the time between the first due request and the last; the latency is the mean of the answers that ended in the
    last one. False where no more was offered.
    """
    due_ns = tables.requests["due_ns"].drop_nulls().to_numpy()
    answers = tables.requests.select("due_ns", "done_ns").filter(pl.Series(tables.succeeded)).drop_nulls()
    done_ns = answers["done_ns"].to_numpy()
    edges_ns = np.linspace(0, int(np.ptp(due_ns)), 4) + due_ns.min()
    (_, offered, offered_last), (_, completed, completed_last) = (
        np.histogram(moments_ns, edges_ns)[0].tolist() for moments_ns in (due_ns, done_ns)
    )
    gained = offered_last / offered - 1 if offered else 0.0
    if gained <= 0 or not completed or completed_last / completed - 1 < FOLLOWS * gained:
        return False
    took_ns = (done_ns - answers["due_ns"].to_numpy())[(done_ns >= edges_ns[2]) & (done_ns <= edges_ns[3])]
    came = int(np.histogram(due_ns, edges_ns[2:] - took_ns.mean())[0][0])
    return bool(completed_last >= KEEPS_PACE * came)


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
    end = pl.coalesce(tables.left_ns.alias("left_ns"), tables.of_phase("end_ns"))
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
