"""How much of what this machine's client can do a load needed."""

from __future__ import annotations

import msgspec

from loadstone.ceiling import ROOM, Ceiling
from loadstone.checks.evidence import Evidence, answer
from loadstone.figures import brief
from loadstone.report import Check

NAME = "headroom"


def headroom(evidence: Evidence) -> Check:
    """How near the load came to the ceiling that `loadstone calibrate` measured on this machine.

    The share of a core that a worker needs for it by the measured costs of a request and of a token, in percent of the 80 %
    that it may use, on average over the measured phases. It is foreseen from the load, so it also tells how much more
    could be asked; what a worker really used is the check client_cpu, which decides. A NOTE from all of it on.
    """
    told = evidence.tables.run.environment.get("ceiling")
    ceiling = msgspec.convert(told, Ceiling) if told else None
    workers = [log for log in evidence.tables.run.workers if log.wall_ns]
    if ceiling is None or not ceiling.usable:
        none = "not known: `loadstone calibrate` measures once what this machine's client can do."
        return answer(NAME, "VALID", None, "%", none)
    if not workers:
        return answer(NAME, "VALID", None, "%", "no worker ran long enough.")
    flights, reads = sum(log.flights for log in workers), sum(log.reads for log in workers)
    wall_s = max(log.wall_ns for log in workers) / 1e9
    used = 100 * ceiling.share(flights, max(reads - flights, 0), wall_s, len(workers)) / ROOM
    finding = (
        f"the load took {used:.3g} % of what {len(workers)} of this machine's workers can do"
        f" ({brief(ceiling.requests_per_s * len(workers) / ceiling.workers)} requests/s, or"
        f" {brief(ceiling.tokens_per_s * len(workers) / ceiling.workers)} tokens/s)."
    )
    if used < 100:
        return answer(NAME, "VALID", used, "%", finding)
    advice = "Give the client more --workers and cores, or ask for less."
    return answer(NAME, "NOTE", used, "%", finding, advice)
