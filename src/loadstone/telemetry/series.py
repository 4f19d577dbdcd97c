"""The series of a metric by any of its names, as a page has them: every request once. Pure."""

from __future__ import annotations

from loadstone.telemetry.engines import told_once
from loadstone.telemetry.pages import Increase, Pages, Track, increase


def counted(pages: Pages, samples: tuple[str, ...], from_ns: int, to_ns: int) -> Increase | None:
    """By how much the first of these counters that the page has grew, all its series together.

    None where it has none, or what it has cannot be one.
    """
    return together(increases(pages, samples, from_ns, to_ns)) if counts(pages, samples) else None


def increases(
    pages: Pages, samples: tuple[str, ...], from_ns: int, to_ns: int
) -> list[tuple[Track, Increase]]:
    """By how much each series of the first of these counters grew."""
    found = ((track, increase(track, from_ns, to_ns)) for track in tracks(pages, samples))
    return [(track, more) for track, more in found if more is not None]


def together(found: list[tuple[Track, Increase]]) -> Increase | None:
    """The sum of several; None for none."""
    if not found:
        return None
    each = [more for _, more in found]
    return each[0]._replace(value=sum(more.value for more in each), resets=max(more.resets for more in each))


def counts(pages: Pages, samples: tuple[str, ...]) -> bool:
    """Whether the first of these samples that the page has can be a counter; also where it has none."""
    name = _first(pages, samples)
    return name is None or pages.counts(name)


def tracks(pages: Pages, samples: tuple[str, ...]) -> list[Track]:
    """The series of the first of these samples that the page has."""
    name = _first(pages, samples)
    if name is None:
        return []
    found = list(pages.tracks(name))
    return [found[place] for place in told_once(track.labels for track in found)]


def _first(pages: Pages, samples: tuple[str, ...]) -> str | None:
    return next((name for name in samples if name in pages.names), None)
