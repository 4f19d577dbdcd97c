"""Requests that were due and whose rows the composer did not come to: behind a limit it stays only so far ahead.

They were offered all the same. Where due times are drawn they are drawn again, so that the table knows when each was due.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from loadstone.config import Config
from loadstone.folder import PhaseLog, RunLog
from loadstone.plan import schedule
from loadstone.plan.store import ANY_TARGET, UNKNOWN, Row


class Uncomposed:
    """The rows of one phase that the plan does not hold; asked for range by range, in their order."""

    def __init__(self, log: RunLog, phase: PhaseLog) -> None:
        self._at = self._first = phase.first_row
        self._due_times = _due_times(log, phase)

    def rows(self, first: int, stop: int) -> list[Row]:
        """The rows from `first` up to `stop`; none where nobody knows when they were due."""
        due_times = islice(self._due_times, first - self._at, stop - self._at)
        self._at = stop
        return [
            Row(request, due_ns, 0, 0, UNKNOWN, UNKNOWN, request - self._first, 0, 0, target=ANY_TARGET)
            for request, due_ns in enumerate(due_times, first)
        ]


def _due_times(log: RunLog, phase: PhaseLog) -> Iterator[int]:
    """When the requests of a phase are due, from its start; nothing where that is not drawn beforehand."""
    config = msgspec.convert(log.config, Config)
    asked = (one for one in schedule.phases(config.load, config.input) if one.name == phase.name)
    load = next(asked, None)
    return schedule.due_times(load, log.seed) if load is not None and schedule.arrives(load) else iter(())
