"""What kept the load from being higher: the client, the server, a limit of ours, or the load that was asked for."""

from __future__ import annotations

from typing import Literal, NamedTuple

from loadstone.checks.arrivals import arrival_fidelity, offered_load
from loadstone.checks.client import ENGINE, SENDERS, client_cpu, died, send_lag
from loadstone.checks.evidence import Evidence
from loadstone.checks.load import resource_waits
from loadstone.checks.saturation import COMPLETED, Course, courses, limits
from loadstone.figures import brief
from loadstone.metrics import Tables, capped
from loadstone.read.outcome import CLIENT_FAULT

BAD = ("INVALID", "DEGRADED")


class Bound(NamedTuple):
    """What bounded a run, and how that is known, in one sentence."""

    by: Literal["client", "server", "cap", "load"]
    why: str


def bound(evidence: Evidence) -> Bound | None:
    """What bounded a run; None when nothing was sent.

    `client`: it did not send what was due, by its own checks. `server`: without a limit of ours it did not keep up, turns
    waited for its answers, or everything was due at once. `cap`: requests waited for a slot of ours, or still did when the
    load ended; so they do in any closed loop. `load`: nothing held up what was offered; what became of it is said.
    """
    tables = evidence.tables
    if not tables.attempted.any():
        return None
    if held_up := _by_client(evidence):
        return Bound("client", held_up)
    engine = died(evidence, ENGINE)
    if engine and not (tables.succeeded | tables.cancelled).all():
        return Bound("server", f"{engine}.")
    found = courses(evidence)
    behind = [course for course in found if course.saturated]
    if behind:
        worst = min(behind, key=lambda course: course.share)
        done = f"{brief(worst.completed)} of {brief(worst.offered)} requests/s"
        if capped(worst.load):
            return Bound("cap", f"at most {limits(worst.load)}: {done} offered went through.")
        return Bound("server", f"the server completed {done} offered, and its latencies grew.")
    return _by_queue(tables) or _by_turns(found) or _by_shape(tables)


def _by_queue(tables: Tables) -> Bound | None:
    """Where more than the odd request was left waiting, in a load that does not show that anybody fell behind.

    Without a limit of ours requests wait for nothing but the answer to the turn before.
    """
    for load in tables.loads:
        own = tables.of_phases(load.name)
        due, left = int((~own.never_due).sum()), int(own.unsent.sum())
        if load.timed and left > (1 - COMPLETED) * due:
            waited = f"{left} of {due} requests still waited at the end"
            if capped(load):
                return Bound("cap", f"at most {limits(load)}: {waited}.")
            return Bound("server", f"{waited}, for the answer to the turn before them.")
    return None


def _by_turns(found: list[Course]) -> Bound | None:
    """Where the turns of conversations had to wait for the answers before them."""
    held_up = next((course.held_up for course in found if course.held_up), None)
    return Bound("server", f"{held_up}.") if held_up else None


def _by_client(evidence: Evidence) -> str | None:
    """What the client's own checks say that held the load up."""
    if sender := died(evidence, *SENDERS):
        return f"{sender}, and what it was to send is missing."
    found = (offered_load(evidence), arrival_fidelity(evidence), resource_waits(evidence))
    grave = (send_lag(evidence), client_cpu(evidence))
    wrong = [check for check in found if check.verdict in BAD]
    wrong += [check for check in grave if check.verdict == "INVALID"]
    return wrong[0].finding if wrong else None


def _by_shape(tables: Tables) -> Bound:
    """What bounds a load in which nobody fell behind."""
    loads = tables.loads
    closed = [load for load in loads if not load.timed]
    at_once = [load for load in loads if load.pattern == "burst"]
    if closed and len(closed) == len(loads):
        slots = " or ".join(dict.fromkeys(str(load.slots or 1) for load in closed))
        return Bound("cap", f"a closed loop: with {slots} in flight the next request waits for an answer.")
    if at_once and len(at_once) == len(loads):
        held = next(filter(capped, at_once), None)
        if held:
            return Bound("cap", f"everything was due at once, with at most {limits(held)}.")
        return Bound("server", "everything was due at once; how long it took was up to the server.")
    served = _served(tables.of_phases(*(load.name for load in loads if load.timed)))
    loops = ", ".join(load.name for load in closed)
    return Bound(
        "load", f"{served}; {loops} offers no rate, but waits for answers." if loops else f"{served}."
    )


def _served(tables: Tables) -> str:
    """What became of the requests that were due, in words without an end."""
    came_to = {
        "served": tables.succeeded,
        "cancelled as asked": tables.cancelled,
        "failed": tables.failed,
        "cut off": tables.censored & ~tables.cancelled,
        "never sent": tables.unsent,
        "lost by the client": (tables.requests["outcome"] == CLIENT_FAULT).to_numpy(),
    }
    counts = {words: int(chosen.sum()) for words, chosen in came_to.items() if chosen.any()}
    if set(counts) <= {"served", "cancelled as asked"}:
        return f"all that was offered was {' or '.join(counts)}"
    of = ", ".join(f"{count} {words}" for words, count in counts.items())
    return f"nothing held up what was offered; of {sum(counts.values())} requests {of}"
