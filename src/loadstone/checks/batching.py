"""Whether tokens came one by one, or several at a time: held together by the server, or by something on the way."""

from __future__ import annotations

import numpy as np

from loadstone.checks.evidence import Evidence, answer
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.report import Check
from loadstone.stats import Floats

NAME = "batched_tokens"
BATCHED = 1.5
"""Tokens an arrival, of those after the first one, from which on gaps are those of batches. A word that takes two tokens, or
two events that one read takes, make it 1.0 to 1.2."""
REGULAR = 0.2
"""Half of the gaps lie within this share of their median: a timer, or a count of steps. Drafts that are accepted now and then
change the tokens of an arrival, and not its gap."""
LOOKED_AT = 2_000
"""Requests whose gaps are looked at."""


def batched_tokens(evidence: Evidence) -> Check:
    """Tokens came one at a time; where several came at once, how many and how often.

    By the tokens and the arrivals after each first one, over all successes. A NOTE from 1.5 tokens an arrival on:
    inter_token_latency is then the gap of arrivals spread evenly over their tokens, a pause before every batch is not in it,
    and the first token may have waited for others. Where a late client merged them, `client_lag` and `first_tokens` say so.
    """
    tables = evidence.tables
    shape = tables.shape if tables.streaming else None
    arrivals = 0 if shape is None else int((shape.instants - shape.streams).sum())
    if shape is None or not arrivals:
        return answer(NAME, "VALID", None, "tokens", "not seen: no answer came in more than one piece.")
    size = float((shape.tokens - shape.first_tokens).sum() / arrivals)
    if size < BATCHED:
        return answer(NAME, "VALID", size, "tokens", f"{brief(size)} tokens came at a time.")
    gaps_ms = _gaps_ms(tables)
    middle = float(np.median(gaps_ms)) if len(gaps_ms) else None
    when = "" if middle is None else f" every {brief(middle)} ms{' exactly' if _regular(gaps_ms) else ''}"
    held = int(shape.shared.sum()) / max(1, int(shape.instants.sum()))
    how = (
        "as several events together, so something on the way, such as a proxy, holds them back"
        if held >= 0.5
        else "in one event, so the server sends them so"
    )
    finding = (
        f"tokens came {brief(size)} at a time{when}, {how}: gaps between tokens are those gaps spread evenly."
    )
    advice = (
        "Turn response buffering off in the proxy (nginx: proxy_buffering off), or measure past it."
        if held >= 0.5
        else "See the server's stream interval (vLLM: --stream-interval) and its speculative decoding."
    )
    return answer(NAME, "NOTE", size, "tokens", finding, advice)


def _regular(gaps_ms: Floats) -> bool:
    """Whether half of the gaps are nearly the same."""
    if not len(gaps_ms):
        return False
    low, middle, high = np.quantile(gaps_ms, (0.25, 0.5, 0.75))
    return bool(middle > 0 and (high - low) <= REGULAR * middle)


def _gaps_ms(tables: Tables) -> Floats:
    """Gaps between the arrivals of the first requests that have some."""
    found: list[Floats] = []
    for first, part in tables.parts("arrival_ns"):
        arrivals = part["arrival_ns"].drop_nulls()
        found.extend(np.diff(np.unique(moments.to_numpy())) / 1e6 for moments in arrivals)
        if first + len(part) >= LOOKED_AT:
            break
    return np.concatenate(found) if found else np.empty(0)
