"""Speculative decoding by a server's own page: what its drafts came to, over all requests. Pure.

Formulas as vLLM documents them for its counters (docs/features/spec_decode): a step brings the tokens accepted and one that the model
itself makes; a position's share is of the drafts, so it falls from one position to the next. SGLang has no counters, and a gauge
of its latest log interval.
"""

from __future__ import annotations

from collections import defaultdict

from loadstone.report import ServerSpeculation
from loadstone.telemetry.engines import Names
from loadstone.telemetry.pages import Pages
from loadstone.telemetry.series import counted, increases


def by_counters(pages: Pages, names: Names, from_ns: int, to_ns: int) -> ServerSpeculation | None:
    """What the counters say of a stretch; None where the page has none of them, or does not cover it."""
    found = [
        counted(pages, samples, from_ns, to_ns)
        for samples in (names.drafts, names.draft_tokens, names.draft_accepted)
    ]
    drafts, drafted, accepted = (more.value if more and more.covers else None for more in found)
    if drafts is None or drafted is None or accepted is None:
        return None
    return ServerSpeculation(
        drafts=drafts,
        draft_tokens=drafted,
        accepted_tokens=accepted,
        acceptance_length=1 + accepted / drafts if drafts else None,
        draft_acceptance_rate=accepted / drafted if drafted else None,
        position_acceptance=_by_position(pages, names, from_ns, to_ns, drafts),
    )


def _by_position(pages: Pages, names: Names, from_ns: int, to_ns: int, drafts: float) -> tuple[float, ...]:
    """Of the drafts, the share whose token at each position was accepted; empty where that is not told."""
    accepted: defaultdict[int, float] = defaultdict(float)
    for track, more in increases(pages, names.accepted_at, from_ns, to_ns):
        position = track.labels.get("position", "")
        if position.isdecimal():
            accepted[int(position)] += more.value
    if not drafts or sorted(accepted) != list(range(len(accepted))):
        return ()
    return tuple(accepted[position] / drafts for position in range(len(accepted)))
