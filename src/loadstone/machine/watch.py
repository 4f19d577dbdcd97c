"""Follows the machine through the phases of a run: one span a second, fewer in a long run.

Main asks for a look several times a second; one is taken at the ends of phases and a second after the one before. What is
kept are spans, the differences between two looks. When there are more than `MOST_SPANS`, those that follow each other in one
phase are merged until they are twice as long, so that `run.json` stays small, and sums and extremes stay exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import psutil

from loadstone.folder import MachineLog, MachineSpan
from loadstone.machine.readings import LACKS, NULLABLE, Readings, readings

SPAN_NS = 1_000_000_000
MOST_SPANS = 120
STEAL_LEAST_NS = 500_000_000
"""Over less time a share says nothing: the kernel counts in hundredths of a second."""


class Machine:
    """The machine while a run lasts. `processes` tells the ids of the run's processes by their names."""

    def __init__(
        self,
        processes: Callable[[], Mapping[str, int]] = dict,
        read: Callable[[], Readings] = readings,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._processes = processes
        self._read = read
        self._now_ns = now_ns
        self._spans: list[MachineSpan] = []
        self._least_ns = SPAN_NS // 2
        """Spans that are shorter are merged with what follows them in their phase."""
        self._phase: str | None = None
        """Of which the present span is; None: of none."""
        self._last: Readings | None = None
        self._last_ns = 0
        self._used: dict[str, dict[int, int]] = {}
        """CPU time of our processes when they were looked at last, by name and id; one that died may have been replaced."""
        self._before: dict[int, int] = {}
        """The same when they were looked at first."""

    def look(self, phase: str | None) -> None:
        """To be told now and then which phase is on (None: none), and whenever that changes."""
        now = self._now_ns()
        if phase == self._phase and (phase is None or now - self._last_ns < SPAN_NS):
            return
        found, used = self._read(), self._cpu_ns()
        if self._phase is not None and self._last is not None and now > self._last_ns:
            span = _span(self._phase, (self._last_ns, now), self._last, found, used)
            self._spans = [*self._spans[:-1], *longer([*self._spans[-1:], span], self._least_ns)]
            if len(self._spans) > MOST_SPANS:
                self._least_ns *= 2
                self._spans = longer(self._spans, self._least_ns)
        self._phase, self._last, self._last_ns = phase, found, now

    def log(self) -> MachineLog:
        """What was seen."""
        lacking = [] if self._last is None else [name for name in LACKS if getattr(self._last, name) is None]
        ours = {
            name: sum(ns - self._before[pid] for pid, ns in used.items()) for name, used in self._used.items()
        }
        return MachineLog(
            spans=self._spans, processes_ns=ours, reasons={name: LACKS[name] for name in lacking}
        )

    def _cpu_ns(self) -> int:
        """CPU time that our processes have used since the last look."""
        used_ns = 0
        for name, pid in self._processes().items():
            try:
                times = psutil.Process(pid).cpu_times()
            except psutil.Error:
                continue  # it has ended
            ns = round((times.user + times.system) * 1e9)
            self._before.setdefault(pid, ns)
            seen = self._used.setdefault(name, {})
            used_ns += ns - seen.get(pid, ns)
            seen[pid] = ns
        return used_ns


def _span(
    phase: str, between_ns: tuple[int, int], before: Readings, after: Readings, ours_ns: int
) -> MachineSpan:
    """What lies between two looks."""
    grown = {name: _grown(getattr(before, name), getattr(after, name)) for name in NULLABLE}
    cpu_ns, steal_ns = max(0, after.cpu_ns - before.cpu_ns), grown["steal_ns"]
    known = steal_ns is not None and cpu_ns >= STEAL_LEAST_NS
    return MachineSpan(
        phase=phase,
        start_ns=between_ns[0],
        end_ns=between_ns[1],
        cpu_ns=cpu_ns,
        busy_ns=max(0, after.busy_ns - before.busy_ns),
        ours_ns=ours_ns,
        most_stolen=(steal_ns or 0) / cpu_ns if known else None,
        mhz_min=after.mhz,
        mhz_max=after.mhz,
        least_available_bytes=after.available_bytes,
        **grown,
    )


def _grown(before: int | None, after: int | None) -> int | None:
    """By how much a counter grew; one that went back was set anew, and is not known."""
    return None if before is None or after is None or after < before else after - before


def longer(spans: list[MachineSpan], least_ns: int) -> list[MachineSpan]:
    """The same in fewer spans: one that is shorter is merged with what follows it in its phase."""
    merged: list[MachineSpan] = []
    for span in spans:
        if merged and merged[-1].phase == span.phase and merged[-1].end_ns - merged[-1].start_ns < least_ns:
            merged[-1] = merge(merged[-1], span)
        else:
            merged.append(span)
    return merged


def merge(one: MachineSpan, other: MachineSpan) -> MachineSpan:
    """Two spans as one: counters add up, extremes stay; what is not known of one is not known of both."""
    return MachineSpan(
        phase=one.phase,
        start_ns=min(one.start_ns, other.start_ns),
        end_ns=max(one.end_ns, other.end_ns),
        ours_ns=one.ours_ns + other.ours_ns,
        most_stolen=_most(one.most_stolen, other.most_stolen),
        mhz_min=_least(one.mhz_min, other.mhz_min),
        mhz_max=_most(one.mhz_max, other.mhz_max),
        least_available_bytes=min(one.least_available_bytes, other.least_available_bytes),
        cpu_ns=one.cpu_ns + other.cpu_ns,
        busy_ns=one.busy_ns + other.busy_ns,
        **{name: _sum(getattr(one, name), getattr(other, name)) for name in NULLABLE},
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _least(one: float | None, other: float | None) -> float | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _most(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)
