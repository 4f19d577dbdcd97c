"""What a server's own page says of a stretch of time, in the terms that all engines share. Pure.

Several engines behind one page (data parallel) are added up, or averaged where it is a share.
"""

from __future__ import annotations

from typing import Any

import msgspec

from loadstone.folder import ScrapeLog
from loadstone.report import ServerFacts
from loadstone.telemetry.engines import ENGINES, Names, engine_of, of_all_priorities
from loadstone.telemetry.pages import Increase, Pages, Track, greatest, increase, mean_over_time

NO_PAGE = "no page was read"
NO_METRIC = "the page has no such metric"
UNKNOWN_ENGINE = "the page has no metrics of vLLM, SGLang or llama.cpp"
FEW = "the page was not read before and after it"
LEAST_READS = 5
"""Within a stretch, for a gauge to be told: between two reads anything may have been."""
GAUGES = ("running", "waiting", "kv_cache_usage")
COUNTERS = ("preemptions", "prompt_tokens", "generation_tokens")


def facts(log: ScrapeLog, pages: Pages | None, from_ns: int, to_ns: int) -> ServerFacts:
    """What is known of one page's server from `from_ns` to `to_ns`; every null has its reason."""
    known = ServerFacts(page=log.page, serves=log.serves, failed=log.failed)
    if pages is None:
        why = f"{NO_PAGE}: {log.faults[0].fault}" if log.faults else NO_PAGE
        return msgspec.structs.replace(known, reasons={"scrapes": why})
    known = msgspec.structs.replace(known, scrapes=len(pages.moments[0]), engine=engine_of(pages.names))
    if known.engine is None:
        return msgspec.structs.replace(known, reasons={"engine": UNKNOWN_ENGINE})
    numbers: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    names = ENGINES[known.engine]
    sent_ns, at_ns = pages.moments
    inside = at_ns[(sent_ns >= from_ns) & (at_ns <= to_ns)]
    for gauge in GAUGES:
        if len(inside) >= LEAST_READS:
            _gauge(pages, names, gauge, int(inside[0]), to_ns, numbers, reasons)
        else:
            why = _seldom(len(inside)) if _tracks(pages, getattr(names, gauge)) else NO_METRIC
            reasons |= {f"{gauge}_mean": why, f"{gauge}_max": why}
    resets = 0
    for counter in COUNTERS:
        more = counted(pages, getattr(names, counter), from_ns, to_ns)
        resets = max(resets, more.resets if more else 0)
        _note(counter, more.value if more else None, pages, getattr(names, counter), numbers, reasons)
    found, looked_up = (counted(pages, one, from_ns, to_ns) for one in (names.found, names.looked_up))
    share = found.value / looked_up.value if found and looked_up and looked_up.value > 0 else None
    _note("prefix_cache_hit_rate", share, pages, names.found, numbers, reasons)
    return msgspec.structs.replace(known, resets=resets, reasons=reasons, **numbers)


def _seldom(reads: int) -> str:
    """Why nothing is told of what was read so seldom."""
    times = (
        "was not read"
        if not reads
        else "was read only once"
        if reads == 1
        else f"was read only {reads} times"
    )
    return f"the page {times} while the load was measured; --server-metrics-interval reads it more often"


def counted(pages: Pages, samples: tuple[str, ...], from_ns: int, to_ns: int) -> Increase | None:
    """By how much the first of these counters that the page has grew, all its series together; None where it has none."""
    found = [
        more for track in _tracks(pages, samples) if (more := increase(track, from_ns, to_ns)) is not None
    ]
    if not found:
        return None
    return found[0]._replace(
        value=sum(more.value for more in found), resets=max(more.resets for more in found)
    )


def _tracks(pages: Pages, samples: tuple[str, ...]) -> list[Track]:
    name = next((name for name in samples if name in pages.names), None)
    return [] if name is None else list(pages.tracks(name, of_all_priorities))


def _gauge(
    pages: Pages,
    names: Names,
    gauge: str,
    from_ns: int,
    to_ns: int,
    numbers: dict[str, Any],
    reasons: dict[str, str],
) -> None:
    """Its mean from a first read on and its greatest value, of all engines behind the page."""
    samples = getattr(names, gauge)
    tracks = _tracks(pages, samples)
    means = [mean_over_time(track, from_ns, to_ns) for track in tracks]
    whole = [mean for mean in means if mean is not None]
    mean = sum(whole) if whole and len(whole) == len(means) else None
    if gauge == "kv_cache_usage":
        mean = None if mean is None else mean / len(whole)
        most = max(
            (top for track in tracks if (top := greatest(track, from_ns, to_ns)) is not None), default=None
        )
    else:
        most = greatest(_together(tracks), from_ns, to_ns) if tracks else None
    _note(f"{gauge}_mean", mean, pages, samples, numbers, reasons)
    _note(f"{gauge}_max", most, pages, samples, numbers, reasons)


def _together(tracks: list[Track]) -> Track:
    """The sum of several gauges; NaN where one is not known."""
    values = tracks[0].values.copy()
    for track in tracks[1:]:
        values += track.values
    return tracks[0]._replace(labels={}, values=values)


def _note(
    name: str,
    value: float | None,
    pages: Pages,
    samples: tuple[str, ...],
    numbers: dict[str, Any],
    reasons: dict[str, str],
) -> None:
    if value is not None:
        numbers[name] = value
    elif not any(sample in pages.names for sample in samples):
        reasons[name] = NO_METRIC
    else:
        reasons[name] = "nothing was looked up" if name == "prefix_cache_hit_rate" else FEW
