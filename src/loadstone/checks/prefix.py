"""Whether prompts that were meant to be new to the server were found in its prefix cache."""

from __future__ import annotations

import numpy as np

from loadstone.checks.evidence import Evidence, Verdict, answer
from loadstone.figures import brief, counted
from loadstone.metrics import Tables
from loadstone.report import Check

NAME = "prefix_cache_leak"
BLOCK_TOKENS = 16
"""Prompts of words drawn at random may begin alike by chance, for a token or two; caches hold blocks of 16 and more."""
TEMPLATE_TOKENS = 64
"""Of a chat template whose length is not known; that of most models is shorter."""
LEAKED_PERCENT = 1.0
LEAKED_GRAVE_PERCENT = 5.0
"""Of the prompt tokens: the work before a first token, and so its time, is less by about as much."""


def prefix_cache_leak(evidence: Evidence) -> Check:
    """The server computed the prompts that were meant to be new to it, and did not find them in its prefix cache.

    Looked at are runs whose prompts are made up, each request with its own. What all of them begin with, the chat template,
    may be cached: its length by the preflight, and one block. By the server's usage, else by its Prometheus page; without
    either, by prompts that were sent twice. NOTE from 1 % of the prompt tokens on, DEGRADED from 5 % on: time to first token
    is too short by about that share of the prompt's work.
    """
    tables = evidence.tables
    if _shared(tables):
        return answer(NAME, "VALID", None, "%", "prompts are shared or repeated, as the input means it.")
    known = _leaked_percent(evidence)
    if known is None:
        reused = tables.run.dataset.reused
        if reused <= LEAKED_PERCENT / 100 * len(tables.requests):
            return answer(
                NAME, "VALID", None, "%", "not known: the server tells nothing of its prefix cache."
            )
        finding = f"{counted(reused, 'request')} repeated a prompt, and the server does not tell what it had cached."
        return answer(NAME, "NOTE", None, "%", finding, _advice(tables))
    if known < LEAKED_PERCENT:
        return answer(
            NAME, "VALID", known, "%", "no prompt was found in the prefix cache, but for the template."
        )
    finding = (
        f"{brief(known)} % of the prompt tokens came from the server's prefix cache, beyond the chat template, though every"
        " prompt was to be new: times to first token are too short."
    )
    verdict: Verdict = "DEGRADED" if known >= LEAKED_GRAVE_PERCENT else "NOTE"
    return answer(NAME, verdict, known, "%", finding, _advice(tables))


def _advice(tables: Tables) -> str:
    """What to change: the same seed asks the same prompts again."""
    if tables.run.config.get("input", {}).get("seed") is not None:
        return (
            "The server has seen this seed's prompts before: take another --random-seed, or --reset-kv-cache."
        )
    return "Ask for longer prompts (--isl), empty the cache before (--reset-kv-cache), or turn prefix caching off."


def _shared(tables: Tables) -> bool:
    """Whether the input itself shares or repeats prompts: given entries, or turns that have those before them in front."""
    asked = tables.config.input
    return asked.entries is not None or asked.file is not None or not tables.opens.all()


def _leaked_percent(evidence: Evidence) -> float | None:
    """Cached prompt tokens beyond the template, in percent of all; None where the server tells of none."""
    tables = evidence.tables
    allowed = _allowed(tables)
    cached, prompt = tables.number("usage_cached_tokens"), tables.number("usage_prompt_tokens")
    known = tables.succeeded & (cached <= prompt) & (prompt > 0)  # more than there was is no count
    if known.any():
        leaked = np.clip(cached[known] - allowed, 0, None)
        return 100 * float(leaked.sum() / prompt[known].sum())
    rates = [page.prefix_cache_hit_rate for page in evidence.server if page.prefix_cache_hit_rate is not None]
    length = tables.number("input_tokens")
    if not rates or not np.isfinite(length).any():
        return None
    return 100 * max(0.0, max(rates) - allowed / max(1.0, float(np.nanmean(length))))


def _allowed(tables: Tables) -> int:
    """Tokens that every prompt may begin with."""
    log = tables.run.preflight
    told = (
        None if log is None or log.prompt_tokens is None else max(0, log.prompt_tokens - log.content_tokens)
    )
    return BLOCK_TOKENS + (TEMPLATE_TOKENS if told is None else told)
