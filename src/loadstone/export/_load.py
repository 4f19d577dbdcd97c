"""What the summary says of the load: offered against sent in a line, and how a queue grew in another.

A closed loop offers what it sends, so there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from loadstone.export._tables import waited
from loadstone.figures import brief
from loadstone.report import Arrivals, LoadFacts, Report
from loadstone.terminal import wrap

USUAL = ", unconditioned"
"""What is said of drawn arrivals that were not stretched; not to people."""
NOBODY = (None, "load")
"""What bound a load that came out as it was asked for."""


def load_shape(arrivals: tuple[Arrivals, ...]) -> str:
    """The load in a few words; of several phases how many there are, since each has a row of its own."""
    if len(arrivals) > 1:
        return f"{len(arrivals)} measured phases"
    return arrivals[0].words.replace(USUAL, "") if arrivals else ""


def load(report: Report, width: int) -> list[str]:
    """Offered against sent, and the growth of a queue; no line where requests have no due times."""
    facts = report.load
    if not facts.timed:
        return []
    lines = _packed(_account(facts, waited(report.metrics)), width)
    if report.run.saturated or facts.not_sent or facts.queued_at_end:
        lines += wrap(_growth(facts), width, "  ") if _growth(facts) else []
    return lines


def _packed(parts: Sequence[str], width: int) -> list[str]:
    """The parts beside each other, one that has no room left in a line of its own; only a wider one is broken."""
    first, *rest = parts
    lines = [first]
    for part in rest:
        joined = f"{lines[-1]} · {part}"
        lines = [*lines[:-1], joined] if cell_len(joined) <= width else [*lines, f"  {part}"]
    return [row for line in lines for row in wrap(line, width, "  ", line[: len(line) - len(line.lstrip())])]


def _account(facts: LoadFacts, queue: bool) -> list[str]:
    """Every request that was due; with how long a `queue` got, where one stood."""
    unsent = f"not sent {facts.not_sent:,}{' (queue still growing)' if facts.queue_growing else ''}"
    lag = facts.send_lag_p99_ms
    return [
        f"offered {facts.offered:,}",
        f"sent {facts.sent:,}",
        *([unsent] if facts.not_sent else []),
        *([f"lost {facts.lost:,}"] if facts.lost else []),
        *([f"queue up to {facts.queued_most:,}"] if queue and facts.queued_most else []),
        *([f"send lag p99 {brief(lag)} ms"] if lag is not None else []),
        *([f"bound by the {facts.bound_by}"] if facts.bound_by not in NOBODY else []),
    ]


def _growth(facts: LoadFacts) -> str:
    """How the wait grew; empty when it did not."""
    growth = facts.growth
    if growth is None or growth.last_ms <= growth.first_ms:
        return ""
    return (
        f"latency from due, median: {brief(growth.first_ms)} ms in the first quarter of the answers,"
        f" {brief(growth.last_ms)} ms in the last"
    )
