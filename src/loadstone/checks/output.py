"""Whether the answers are what was asked for, and such as a server would give to people."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.checks.evidence import Evidence, Verdict, answer
from loadstone.config import ENGINE
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.metrics.roofline import case_of
from loadstone.report import Check

SHORT = 0.95
"""An answer below this share of the length asked for is short."""
SHORT_PERCENT = 1.0
SHORT_GRAVE_PERCENT = 5.0
"""Of the answers: from here on the work that was measured is not the work that was asked."""
STUB_TOKENS = 1
"""An answer of so few tokens is none ..."""
STUB_ASKED_TOKENS = 16
"""... where more than so many were asked for: of few, models often say one."""
STUBS_PERCENT = 1.0
STUBS_GRAVE_PERCENT = 10.0
"""Of the answers: from here on the rest says little of all."""
LOOPED = 6.0
"""Bytes of text to packed bytes, over the last 4 kB: prose 2, code 3 to 4, a passage of 400 bytes that is repeated 10."""
LOOPED_PERCENT = 10.0
"""Of the sampled answers."""
LEAST_SAMPLED = 10


def output_sanity(evidence: Evidence) -> Check:
    """Answers are as long as was asked, and no model repeats itself without end in them.

    Short is an answer below 95 % of the length asked for: a NOTE from 1 % of the answers on, DEGRADED from 5 % on where
    `ignore_eos` or `min_tokens` was to prevent that. Of more than 16 tokens that were asked for one at most came: a NOTE from 1 %
    of the answers on, DEGRADED from 10 % on. Repetition is looked for in the text of a sample (--check-tokens): a NOTE when
    a tenth of it packs to a sixth.
    """
    tables = evidence.tables
    asked, given = tables.number("planned_output_tokens"), tables.number("output_tokens")
    known = tables.succeeded & np.isfinite(asked) & np.isfinite(given)
    short = _percent((given < SHORT * asked)[known])
    stubs = _percent((given <= STUB_TOKENS)[known & (asked > STUB_ASKED_TOKENS)])
    looped = _looped_percent(tables)
    if stubs is not None and stubs >= STUBS_PERCENT:
        finding = f"{brief(stubs)} % of the answers have one token at most, though more were asked for."
        verdict: Verdict = "DEGRADED" if stubs >= STUBS_GRAVE_PERCENT else "NOTE"
        advice = "Look at some answers: a wrong model, prompt or chat template ends them at once."
        return answer("output_sanity", verdict, stubs, "%", finding, advice)
    if short is not None and short >= SHORT_PERCENT:
        forced = [
            field for field in ("ignore_eos", "min_tokens") if tables.config.endpoint.extra_inputs.get(field)
        ]
        by_itself = _percent((tables.requests["outcome"] == "ok").to_numpy()[known])
        finding = f"{brief(short)} % of the answers are shorter than asked ({brief(by_itself or 0.0)} % ended by themselves)"
        if forced and short >= SHORT_GRAVE_PERCENT:
            finding += f", though {forced[0]} was to prevent that: the server does not heed it"
            advice = "Find the server's own way to force a length, or ask for lengths that its answers have (--osl)."
            return answer("output_sanity", "DEGRADED", short, "%", f"{finding}.", advice)
        advice = "--extra-inputs ignore_eos:true often prevents that."
        return answer("output_sanity", "NOTE", short, "%", f"{finding}.", advice)
    if looped is not None and looped >= LOOPED_PERCENT:
        finding = f"{brief(looped)} % of the answers looked at repeat themselves without end."
        advice = "Speculative decoding is faster on such text. Ask real prompts, or with a temperature (--extra-inputs)."
        return answer("output_sanity", "NOTE", looped, "%", finding, advice)
    told = (
        "answers have the lengths asked for."
        if short is not None
        else "no length was asked for, or none is known."
    )
    return answer("output_sanity", "VALID", short, "%", told)


def synthetic_text(evidence: Evidence) -> Check:
    """Made-up prompts do as well as real ones, as they do where a token costs the same whatever it is.

    A NOTE where it does not: speculative decoding accepts drafts by what the text is like, and a mixture of experts routes
    tokens by it. Speculation is known by the server's answers or by --roofline, experts by --roofline.
    """
    tables = evidence.tables
    case = case_of(tables)
    if all(url.startswith(ENGINE) for url in tables.config.endpoint.urls):
        return answer("synthetic_text", "VALID", None, "", "the built-in engine takes every token alike.")
    drafts = tables.column("draft_steps").fill_null(0).sum() > 0 or (
        case is not None and case.draft_tokens > 0
    )
    experts = case is not None and case.shape.experts > 0
    if not (drafts or experts):
        return answer("synthetic_text", "VALID", None, "", "nothing is known that would make text matter.")
    why = [
        *(["drafts are accepted by what the text is like"] if drafts else []),
        *(["experts are chosen by it"] if experts else []),
    ]
    finding = (
        f"prompts are made-up words, and {' and '.join(why)}: with real text it may be faster or slower."
    )
    advice = "Take these numbers for comparing settings on the same prompts, not for what users will see."
    return answer("synthetic_text", "NOTE", None, "", finding, advice)


def _percent(hits: NDArray[np.bool_]) -> float | None:
    return 100 * float(hits.mean()) if len(hits) else None


def _looped_percent(tables: Tables) -> float | None:
    """Of the sampled texts the share that repeats itself; None of too few, and of the built-in engine's, which always do."""
    ratios = tables.column("text_zlib_ratio").filter(pl.Series(tables.succeeded)).drop_nulls()
    if len(ratios) < LEAST_SAMPLED or any(url.startswith(ENGINE) for url in tables.config.endpoint.urls):
        return None
    return _percent((ratios >= LOOPED).to_numpy())
