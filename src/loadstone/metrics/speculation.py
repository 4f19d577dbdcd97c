"""Speculative decoding, where the server tells of it in the answer itself.

vLLM does with `--per-request-spec-decode-metrics`; llama.cpp's server tells drafted and accepted tokens, and no steps. Over
successes. What servers tell for all requests together on their own Prometheus page (vLLM's counters, SGLang's gauge) is no
fact of a request, and stands in the report's `server`, field `speculation`, with the share accepted at each position.

A mean over requests gives every request the same weight. The pooled numbers weigh by steps and by tokens, as the
server's own page does.
"""

from __future__ import annotations

import numpy as np

from loadstone.metrics import Each, Missing, Result, Tables, metric
from loadstone.stats import Floats

ORDER = 43

_NO_STEPS = "no answer tells how many drafts were checked for it."
_NO_DRAFTS = "no answer tells of tokens that were drafted for it."


@metric("acceptance_length", unit="tokens/step", better="higher", needs=("success",))
def acceptance_length(tables: Tables) -> Each:
    """Tokens that a step of speculative decoding brought, one value a request: 1 + accepted / steps.

    The one is the token that the model itself makes in each step. Steps without a draft are not in it.
    """
    accepted, steps = tables.number("draft_accepted_tokens"), tables.number("draft_steps")
    return Each(1 + accepted / np.where(steps > 0, steps, np.nan), _NO_STEPS)


@metric("acceptance_length_pooled", unit="tokens/step", better="higher", needs=("success",))
def acceptance_length_pooled(tables: Tables) -> Result:
    """The same over all steps of all requests: 1 + sum(accepted) / sum(steps)."""
    share = _pooled(tables, "draft_steps")
    return Missing(_NO_STEPS) if share is None else 1 + share


@metric("draft_acceptance_rate", unit="%", better="higher", needs=("success",))
def draft_acceptance_rate(tables: Tables) -> Each:
    """Share of the drafted tokens that were accepted, one value a request: 100 accepted / drafted."""
    return Each(100 * _accepted(tables), _NO_DRAFTS)


@metric("draft_acceptance_rate_pooled", unit="%", better="higher", needs=("success",))
def draft_acceptance_rate_pooled(tables: Tables) -> Result:
    """The same over all tokens drafted for all requests: 100 sum(accepted) / sum(drafted)."""
    share = _pooled(tables, "draft_tokens")
    return Missing(_NO_DRAFTS) if share is None else 100 * share


def _accepted(tables: Tables) -> Floats:
    accepted, drafted = tables.number("draft_accepted_tokens"), tables.number("draft_tokens")
    return accepted / np.where((drafted > 0) & (accepted <= drafted), drafted, np.nan)


def _pooled(tables: Tables, of: str) -> float | None:
    """Accepted tokens of all answers over the sum of another column; None where no answer tells both."""
    accepted, whole = tables.number("draft_accepted_tokens"), tables.number(of)
    known = tables.succeeded & np.isfinite(accepted) & (whole > 0)
    return float(accepted[known].sum() / whole[known].sum()) if known.any() else None
