"""What every check looks at, and the form in which it answers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.config.phases import phase_loads
from loadstone.metrics import Tables, limited
from loadstone.plan.schedule import Phase
from loadstone.report import Check, MetricResult, ServerFacts

Verdict = Literal["VALID", "DEGRADED", "INVALID", "NOTE"]
SEVERITY: tuple[Literal["INVALID", "DEGRADED", "VALID"], ...] = ("INVALID", "DEGRADED", "VALID")

SLOWER = {
    "users": "Lower --user-centric-rate",
    "fixed": "Spread the given times",
    "burst": "Send fewer requests at once",
    "by-index": "Lower --ramp-up-end-rps",
}
"""How to offer less, by pattern; of the others, at a lower rate."""


class Evidence(NamedTuple):
    """What the checks look at: the tables, and the metrics made from them."""

    tables: Tables
    metrics: Mapping[str, MetricResult]
    server: tuple[ServerFacts, ...] = ()
    """What the servers say of themselves."""

    def p50(self, *names: str) -> float | None:
        """The median of the first of these metrics that has one."""
        return next((value for name in names if (value := self.metrics[name].p50) is not None), None)

    @property
    def planned(self) -> int:
        """Requests planned for the measured phases."""
        return len(self.tables.requests)

    def outcomes(self, name: str) -> int:
        """Requests that ended in this outcome."""
        return int((self.tables.requests["outcome"] == name).sum())


def uncapped(tables: Tables, *, timed: bool) -> Tables | None:
    """The phases in which a request that was due had to wait for nobody but the client; None when there is none.

    With `timed` those alone in which requests have due times of their own, else closed loops as well: there a request is due
    when a slot frees, and waits for nobody unless the prefill has a limit.
    """
    names = [load.name for load in tables.loads if not limited(load) and (load.timed or not timed)]
    return tables.of_phases(*names) if names else None


def all_at_once(tables: Tables) -> NDArray[np.bool_]:
    """For every request, whether it opened one of several conversations that were all due at the same moment of a phase.

    So they are in a burst, and may be where times are given.
    """
    found = [load.name for load in tables.loads if load.pattern in ("burst", "fixed")]
    due = pl.when("opens").then("due_ns")
    at_once = (due.min() == due.max()) & (due.count() > 1)
    chosen = pl.col("opens") & at_once.over("phase") & pl.col("phase").cast(pl.String).is_in(found)
    return tables.requests.select(chosen.fill_null(False)).to_series().to_numpy()


def even(load: Phase) -> bool:
    """Whether the load of a phase is the same from its beginning to its end."""
    if load.index_ramp is not None or len(load.slot_steps) > 1 or len(load.prefill_steps) > 1:
        return False
    if not load.timed:
        return True
    changes = any(segment.rate != segment.end_rate for segment in load.curve)
    changes |= any(one.end_rate != other.rate for one, other in pairwise(load.curve))
    return bool(load.curve) and not changes


def slower(tables: Tables) -> str:
    """How to offer less than the first phase with due times did, with the option that it was given."""
    load = next(load for load in tables.loads if load.timed)
    asked = next(asked.load for asked in phase_loads(tables.config.load) if asked.name == load.name)
    if asked.request_rate_series:
        return "Lower the rates of --request-rate-series"
    return SLOWER.get(load.pattern, "Lower --request-rate")


def answer(
    name: str, verdict: Verdict, value: float | None, unit: str, finding: str, advice: str = ""
) -> Check:
    """The answer of one check: verdict, the number behind it, what was seen and what to do about it."""
    exact = None if value is None else float(value)
    return Check(name=name, verdict=verdict, value=exact, unit=unit, finding=finding, advice=advice)
