"""Usage: what the server itself says that its answers took.

Over successes, and only where the server tells: here no estimate of ours stands in, as it does in the lengths. The server's
reasoning tokens are reasoning_token_count. What a server counts apart and belongs to prompt or completion (Anthropic's
cache, Gemini's reasoning) is added to them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from loadstone.figures import counted
from loadstone.metrics import Each, Missing, Number, Result, Tables, metric
from loadstone.metrics.lengths import input_length_mismatch
from loadstone.stats import Floats

ORDER = 42
DISCREPANCY_PERCENT = 10.0
"""From here on a server's count and ours are no two spellings of the same (AIPerf's limit)."""

_NO_USAGE = "the server sent no usage that counts."
_NO_CACHE = "the server does not tell how many prompt tokens it had in its cache."
_NO_PREDICTION = "the server tells of no predicted output."


@metric("usage_prompt_tokens", unit="tokens", better="neither", needs=("success",))
def usage_prompt_tokens(tables: Tables) -> Each:
    """Prompt tokens of one request by the server's usage, chat template included."""
    return Each(tables.number("usage_prompt_tokens"), _NO_USAGE)


@metric("usage_completion_tokens", unit="tokens", better="neither", needs=("success",))
def usage_completion_tokens(tables: Tables) -> Each:
    """Output tokens of one answer by the server's usage, reasoning included; of several choices all together."""
    return Each(tables.number("usage_completion_tokens"), _NO_USAGE)


@metric("usage_total_tokens", unit="tokens", better="neither", needs=("success",))
def usage_total_tokens(tables: Tables) -> Each:
    """Prompt and output tokens of one request by the server's usage, where it tells both: their sum.

    The server's own `total_tokens`, which AIPerf takes, is not read: servers count apart in it what is in neither.
    """
    return Each(tables.number("usage_prompt_tokens") + tables.number("usage_completion_tokens"), _NO_USAGE)


@metric("usage_prompt_cache_read_tokens", unit="tokens", better="neither", needs=("success",))
def usage_prompt_cache_read_tokens(tables: Tables) -> Each:
    """Prompt tokens of one request that the server took from its prefix cache, as it says."""
    return Each(tables.number("usage_cached_tokens"), _NO_CACHE)


@metric("usage_prompt_cache_read_share", unit="%", better="neither", needs=("success",))
def usage_prompt_cache_read_share(tables: Tables) -> Result:
    """Share of all prompt tokens that came from the prefix cache: 100 sum(read) / sum(prompt), pooled over requests.

    Over the answers that tell both, and no more of the one than of the other. AIPerf's
    `overall_usage_prompt_cache_read_pct` counts the prompts of which no cache was told as well.
    """
    read, prompt = tables.number("usage_cached_tokens"), tables.number("usage_prompt_tokens")
    known = tables.succeeded & (read <= prompt) & (prompt > 0)
    if not known.any():
        return Missing(_NO_CACHE)
    return Number(100 * float(read[known].sum() / prompt[known].sum()), _left_out(tables, known))


@metric("usage_accepted_prediction_tokens", unit="tokens", better="neither", needs=("success",))
def usage_accepted_prediction_tokens(tables: Tables) -> Each:
    """Tokens of a predicted output (OpenAI's `prediction`, sent with the request) that are in the answer.

    They are no draft of the server's: speculative decoding has metrics of its own.
    """
    return Each(tables.number("usage_accepted_prediction_tokens"), _NO_PREDICTION)


@metric("usage_rejected_prediction_tokens", unit="tokens", better="lower", needs=("success",))
def usage_rejected_prediction_tokens(tables: Tables) -> Each:
    """Tokens of a predicted output that are not in the answer, and are paid for all the same."""
    return Each(tables.number("usage_rejected_prediction_tokens"), _NO_PREDICTION)


@metric("reasoning_share", unit="%", better="neither", needs=("success",))
def reasoning_share(tables: Tables) -> Each:
    """Share of one answer that was reasoning: 100 reasoning tokens / output tokens, both by the server's usage.

    AIPerf's `thinking_efficiency`, which is a ratio. Where a server counts more reasoning than output it is not known.
    """
    reasoning, output = tables.number("usage_reasoning_tokens"), tables.number("usage_completion_tokens")
    known = (reasoning <= output) & (output > 0)
    share = 100 * reasoning / np.where(known, output, np.nan)
    return Each(share, "the server does not tell how many tokens were reasoning.")


@metric("usage_completion_tokens_diff_pct", unit="%", better="neither", needs=("success",))
def usage_completion_tokens_diff_pct(tables: Tables) -> Each:
    """How far the server's count of one answer is from our tokenizer's: 100 (usage - counted) / counted.

    Of the answers that were counted whole (`--check-tokens`); usage_token_mismatch is the same of their sums. Negative where
    the server counts fewer; AIPerf's has no sign. For prompts it is input_length_mismatch.
    """
    return Each(_completion_apart(tables), "no answer that came with usage was counted by our tokenizer.")


@metric("usage_discrepancy_count", unit="requests", better="lower", needs=("success",))
def usage_discrepancy_count(tables: Tables) -> Result:
    """Requests whose prompt or output the server counts otherwise than we do, by more than 10 %.

    By input_length_mismatch and usage_completion_tokens_diff_pct, over the requests that have either; the note tells how
    many those are. Below 10 tokens a single one is as much.
    """
    apart = np.stack([input_length_mismatch(tables).values, _completion_apart(tables)])
    compared = np.isfinite(apart).any(axis=0) & tables.succeeded
    if not compared.any():
        return Missing("for no answer there are two counts to compare.")
    beyond = (np.abs(apart) > DISCREPANCY_PERCENT).any(axis=0) & compared
    return Number(
        float(beyond.sum()), f"Of {counted(int(compared.sum()), 'request')} that were counted twice."
    )


def _completion_apart(tables: Tables) -> Floats:
    told, ours = tables.number("usage_completion_tokens"), tables.number("checked_output_tokens")
    ours = np.where(ours > 0, ours, np.nan)
    return 100 * (told - ours) / ours


def _left_out(tables: Tables, known: NDArray[np.bool_]) -> str | None:
    count = int((tables.succeeded & ~known).sum())
    return f"{counted(count, 'answer')} that did not tell both left out." if count else None
