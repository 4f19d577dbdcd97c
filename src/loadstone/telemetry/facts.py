"""What a server's own page says of a stretch of time, in the terms that all engines share. Pure.

Several engines behind one page (data parallel) are added up, or averaged where it is a share. One rule: what the pages do
not cover is null, and every null has its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from loadstone.folder import ScrapeLog
from loadstone.report import ServerFacts, ServerLatency, ServerSpeculation
from loadstone.telemetry import speculation
from loadstone.telemetry.engines import ENGINES, Names, engine_of
from loadstone.telemetry.pages import Ints, Pages, Track, greatest, mean_over_time
from loadstone.telemetry.series import counted, counts, tracks

NO_PAGE = "no page was read"
NO_TABLE = "the table of the pages (server_metrics.parquet) is missing, or has none of this page"
NOT_TOLD = "the run was cut off before the reader of the pages had told it"
NO_METRIC = "the page has no such metric"
NO_COUNTER = "the page had it below zero, or as no number: it counts nothing"
UNKNOWN_ENGINE = "the page has no metrics of vLLM, SGLang or llama.cpp"
FEW = "the page was not read both before and after the load that was measured"
NOT_ALL_THE_TIME = "it was not on the page all the time"
NO_DRAFT = "nothing was drafted"
LEAST_READS = 5
"""Within a stretch, for a gauge to be told: between two reads anything may have been."""
LATE = 2
"""So many times the longest time between two reads the last one may lie before the end."""
GAUGES = ("running", "waiting", "kv_cache_usage")
COUNTERS = ("preemptions", "prompt_tokens", "generation_tokens")
LATENCIES = ("time_to_first_token", "inter_token_latency")


def facts(
    log: ScrapeLog, pages: Pages | None, from_ns: int, to_ns: int, fault: str | None = None
) -> ServerFacts:
    """What is known of one page's server from `from_ns` to `to_ns`.

    `fault`: why the reading ended before the run did; None: it did not.
    """
    if pages is None:
        return unknown(log, fault or _why_none(log))
    engine = engine_of(pages.names)
    scrapes = len(pages.moments[0]) if log.scrapes is None else log.scrapes
    known = ServerFacts(page=log.page, serves=log.serves, scrapes=scrapes, failed=log.failed, engine=engine)
    told = _Told(pages, from_ns, to_ns, f": {fault}" if fault else "")
    if log.failed is None:
        told.reasons["failed"] = fault or NOT_TOLD
    if engine is None:
        return explained(msgspec.structs.replace(known, reasons=told.reasons), UNKNOWN_ENGINE)
    names = ENGINES[engine]
    for gauge in GAUGES:
        told.gauge(gauge, getattr(names, gauge))
    for counter in COUNTERS:
        told.counter(counter, getattr(names, counter))
    for latency in LATENCIES:
        told.latency(latency, getattr(names, latency))
    told.hit_rate(names)
    told.speculation(names)
    return msgspec.structs.replace(known, reasons=told.reasons, resets=told.resets, **told.numbers)


def unknown(log: ScrapeLog, why: str) -> ServerFacts:
    """What there is to say of a page without what was read of it."""
    known = ServerFacts(page=log.page, serves=log.serves, scrapes=log.scrapes, failed=log.failed)
    return explained(known, why)


def explained(known: ServerFacts, why: str) -> ServerFacts:
    """The same with a reason for every null that has none."""
    nulls = [name for name in known.__struct_fields__ if getattr(known, name) is None]
    return msgspec.structs.replace(known, reasons={**dict.fromkeys(nulls, why), **known.reasons})


def _why_none(log: ScrapeLog) -> str:
    """Why there are no rows of a page, where the reading itself did not fail."""
    if log.scrapes is None:
        return NOT_TOLD
    if log.scrapes:
        return NO_TABLE
    return f"{NO_PAGE}: {log.faults[0].fault}" if log.faults else NO_PAGE


class _Told:
    """The numbers and reasons of one stretch, as they are found."""

    def __init__(self, pages: Pages, from_ns: int, to_ns: int, fault: str) -> None:
        self._pages, self._from_ns, self._to_ns, self._fault = pages, from_ns, to_ns, fault
        self._few = FEW + fault
        sent_ns, at_ns = pages.moments
        self._inside_ns: Ints = at_ns[(sent_ns >= from_ns) & (at_ns <= to_ns)]
        self.numbers: dict[str, Any] = {}
        self.reasons: dict[str, str] = {}
        self.resets = 0

    def counter(self, name: str, samples: tuple[str, ...]) -> None:
        """What was added to it."""
        self._note(name, self._added(samples), samples, self._why(samples))

    def latency(self, name: str, families: tuple[str, ...]) -> None:
        """The mean of a histogram in seconds, exact, and of how many it is."""
        numbers, sums = (tuple(f"{family}_{end}" for family in families) for end in ("count", "sum"))
        count, total = self._added(numbers), self._added(sums)
        found = None
        if count and total is not None:
            found = ServerLatency(server_ms=1e3 * total / count, server_count=count)
        why = "it observed none" if count == 0 else self._why(numbers, sums)
        self._note(name, found, numbers, why)

    def hit_rate(self, names: Names) -> None:
        """The share of the tokens looked up that were found."""
        found, looked_up = self._added(names.found), self._added(names.looked_up)
        share = found / looked_up if found is not None and looked_up else None
        why = "nothing was looked up" if looked_up == 0 else self._why(names.found, names.looked_up)
        self._note("prefix_cache_hit_rate", share, names.found, why)

    def gauge(self, name: str, samples: tuple[str, ...]) -> None:
        """Its mean from the first read on and its greatest value, of all engines behind the page."""
        found = tracks(self._pages, samples)
        why, mean, most = self._seldom(), None, None
        if found and why is None:
            first_ns = int(self._inside_ns[0])
            means = self._means(found)
            if name == "kv_cache_usage":
                mean = sum(means) / len(means) if means else None
                tops = [greatest(track, first_ns, self._to_ns) for track in found]
                most = max((top for top in tops if top is not None), default=None)
            else:
                mean = sum(means) if means else None
                most = greatest(_together(found), first_ns, self._to_ns)
        why = why + self._fault if why else NOT_ALL_THE_TIME
        self._note(f"{name}_mean", mean, samples, why)
        self._note(f"{name}_max", most, samples, why)

    def speculation(self, names: Names) -> None:
        """What drafts came to: by counters; where the page has none, as a gauge says, the mean of all engines."""
        if any(name in self._pages.names for name in names.drafts):
            found = speculation.by_counters(self._pages, names, self._from_ns, self._to_ns)
            why = self._why(names.drafts, names.draft_tokens, names.draft_accepted)
            if found is not None and not found.drafts:
                found, why = None, NO_DRAFT
            self._note("speculation", found, names.drafts, why)
            return
        seldom = self._seldom()
        means = [] if seldom else self._means(tracks(self._pages, names.accept_length))
        length = sum(means) / len(means) if means else 0
        found = ServerSpeculation(acceptance_length=length) if length else None
        why = seldom + self._fault if seldom else NO_DRAFT if means else NOT_ALL_THE_TIME
        self._note("speculation", found, names.accept_length, why)

    def _means(self, found: list[Track]) -> list[float]:
        """The means of gauges over the stretch from the first read in it on; none where one is not known in all of it."""
        means = [mean_over_time(track, int(self._inside_ns[0]), self._to_ns) for track in found]
        whole = [mean for mean in means if mean is not None]
        return whole if len(whole) == len(means) else []

    def _added(self, samples: tuple[str, ...]) -> float | None:
        """What was added to a counter; None where the pages do not cover the stretch."""
        more = counted(self._pages, samples, self._from_ns, self._to_ns)
        self.resets = max(self.resets, more.resets if more else 0)
        return more.value if more and more.covers else None

    def _why(self, *counters: tuple[str, ...]) -> str:
        """Why nothing is known of what was added to these."""
        return self._few if all(counts(self._pages, samples) for samples in counters) else NO_COUNTER

    def _seldom(self) -> str | None:
        """Why a gauge is not told; None: it is."""
        reads = len(self._inside_ns)
        if reads < LEAST_READS:
            times = (
                "not read" if not reads else "read only once" if reads == 1 else f"read only {reads} times"
            )
            return f"the page was {times} while the load was measured; --server-metrics-interval reads it more often"
        late_ns = self._to_ns - int(self._inside_ns[-1])
        if late_ns > LATE * int(np.diff(self._inside_ns).max()):
            return (
                f"the page was last read {late_ns / 1e9:.3g} s before the end of the load that was measured"
            )
        return None

    def _note(self, name: str, value: Any, samples: tuple[str, ...], why: str) -> None:
        if value is not None:
            self.numbers[name] = value
        elif not any(sample in self._pages.names for sample in samples):
            self.reasons[name] = NO_METRIC
        else:
            self.reasons[name] = why


def _together(tracks: list[Track]) -> Track:
    """The sum of several gauges; NaN where one is not known."""
    labels: Mapping[str, str] = {}
    return tracks[0]._replace(labels=labels, values=np.sum([track.values for track in tracks], axis=0))
