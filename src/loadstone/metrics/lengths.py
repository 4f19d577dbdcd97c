"""Lengths: how many tokens went in and came out.

Over successes. Counts are the server's usage where it tells; else prompts count as planned and answers as the
tokenizer counts their text, which the notices of the report say.
"""

from __future__ import annotations

import numpy as np

from loadstone.figures import counted
from loadstone.metrics import Each, Missing, Number, Result, Tables, metric
from loadstone.metrics.throughput import left_out
from loadstone.stats import Floats

ORDER = 40

_UNKNOWN = "the number of tokens is not known for any answer."
_NOT_TOLD = "the server does not tell how many tokens were reasoning."
_MORE_THAN_ALL = "the server counts more reasoning tokens than tokens in all."


@metric("input_sequence_length", unit="tokens", better="neither", needs=("success",))
def input_sequence_length(tables: Tables) -> Each:
    """Tokens of one prompt (ISL): by the server's usage, chat template included, else the content length planned."""
    return Each(tables.number("input_tokens"), "the length of no prompt is known.")


@metric("output_sequence_length", unit="tokens", better="neither", needs=("success",))
def output_sequence_length(tables: Tables) -> Each:
    """Tokens of one answer (OSL), all channels, reasoning included."""
    return Each(tables.number("output_tokens"), _UNKNOWN)


@metric("output_token_count", unit="tokens", better="neither", needs=("success",))
def output_token_count(tables: Tables) -> Each:
    """Tokens of one answer without its reasoning, where the server tells the latter: OSL - reasoning tokens.

    Where a server counts more reasoning tokens than tokens in all it is not known, and the note counts the answers.
    """
    rest = tables.number("output_tokens") - tables.number("usage_reasoning_tokens")
    wrong = int(((rest < 0) & tables.succeeded).sum())
    if not wrong:
        return Each(rest, _NOT_TOLD)
    note = f"{counted(wrong, 'answer')} with more reasoning tokens than tokens in all, by usage, left out."
    return Each(np.where(rest < 0, np.nan, rest), _MORE_THAN_ALL, note)


@metric("reasoning_token_count", unit="tokens", better="neither", needs=("success",))
def reasoning_token_count(tables: Tables) -> Each:
    """Reasoning tokens of one answer, where the server tells (its usage; AIPerf's `usage_reasoning_tokens`)."""
    return Each(tables.number("usage_reasoning_tokens"), _NOT_TOLD)


@metric("total_input_tokens", unit="tokens", better="neither", needs=("success",))
def total_input_tokens(tables: Tables) -> Result:
    """Tokens of all prompts that were answered: the sum of input_sequence_length."""
    return _total(tables, "input_tokens", "the length of no prompt is known.")


@metric("total_output_tokens", unit="tokens", better="neither", needs=("success",))
def total_output_tokens(tables: Tables) -> Result:
    """Tokens of all answers, all channels: the sum of output_sequence_length; those of failed requests are not in it."""
    return _total(tables, "output_tokens", _UNKNOWN)


@metric("total_reasoning_tokens", unit="tokens", better="neither", needs=("success",))
def total_reasoning_tokens(tables: Tables) -> Result:
    """Reasoning tokens of all answers, where the server tells: the sum of reasoning_token_count."""
    return _total(tables, "usage_reasoning_tokens", _NOT_TOLD)


@metric("output_length_mismatch", unit="%", better="neither", needs=("success",))
def output_length_mismatch(tables: Tables) -> Each:
    """How far an answer is from the length asked for: 100 (OSL - asked) / asked, negative when shorter.

    Servers stop early unless told not to (`--extra-inputs ignore_eos:true`).
    """
    asked = tables.number("planned_output_tokens")
    asked = np.where(asked > 0, asked, np.nan)
    return Each(100 * (tables.number("output_tokens") - asked) / asked, "no output length was asked for.")


@metric("output_length_mismatch_count", unit="requests", better="lower", needs=("success",))
def output_length_mismatch_count(tables: Tables) -> Result:
    """Answers that are off the length asked for by more than 5 % of it, or by more than 50 tokens. As in AIPerf."""
    asked, came = tables.number("planned_output_tokens"), tables.number("output_tokens")
    known = tables.succeeded & np.isfinite(came) & (asked > 0)
    if not known.any():
        return Missing("no output length was asked for.")
    return Number(float((np.abs(came - asked)[known] > np.minimum(0.05 * asked[known], 50)).sum()))


@metric("input_length_mismatch", unit="%", better="neither", needs=("success",))
def input_length_mismatch(tables: Tables) -> Each:
    """How far the server's count of a prompt is from the length asked for: 100 (usage - template - asked) / asked.

    The template is what the server counted beyond the content of the request before the run, so this is the tokenizer's share
    alone: 0 where ours is the model's own. Of the first turns of conversations; how long the template of later ones is, is not
    known. AIPerf's `usage_prompt_tokens_diff_pct` has the template in it, and no sign.
    """
    asked, told = tables.number("planned_input_tokens"), tables.number("usage_prompt_tokens")
    asked = np.where((asked > 0) & tables.opens, asked, np.nan)
    apart = 100 * (told - _template_tokens(tables) - asked) / asked
    return Each(apart, "the server's count of a prompt, its template or the length asked for is not known.")


def _template_tokens(tables: Tables) -> Floats:
    """For every request the tokens that its server adds to one message, by the requests before the run.

    NaN where it did not tell, and where several models of one server add different ones.
    """
    added: dict[int, set[float]] = {}
    for log in tables.run.preflights or filter(None, [tables.run.preflight]):
        more = np.nan if log.prompt_tokens is None else max(0, log.prompt_tokens - log.content_tokens)
        added.setdefault(log.target, set()).add(more)
    one = {target: more.pop() for target, more in added.items() if len(more) == 1}
    targets = tables.requests["target"].fill_null(0).to_list()
    return np.array([one.get(target, np.nan) for target in targets], dtype=float)


@metric("usage_token_mismatch", unit="%", better="neither", needs=("success",))
def usage_token_mismatch(tables: Tables) -> Result:
    """How far the server's count of output tokens is from our tokenizer's: 100 (usage - counted) / counted.

    Over the answers that were counted whole (`--check-tokens`: a sample, all, none) and came with usage, summed. The
    note has the size of the sample and both sums; `usage_completion_tokens` and `checked_output_tokens` have both for
    every request. A tokenizer that is not the model's own counts otherwise, by a third and more; and a
    server may count a token an answer that is no text, the one that ends it.
    """
    answers, told, counted = checked(tables)
    if not counted:
        return Missing("no answer that came with usage was counted by our tokenizer (--check-tokens).")
    note = f"{answers} answers counted: {told:,} tokens by the server's usage, {counted:,} by our tokenizer."
    return Number(100 * (told - counted) / counted, note)


def _total(tables: Tables, column: str, none: str) -> Number | Missing:
    """The sum of a column over the successes of which it is known."""
    counts = tables.number(column)[tables.succeeded]
    unknown = np.isnan(counts)
    if unknown.all():
        return Missing(none)
    return Number(float(counts[~unknown].sum()), left_out(unknown))


def checked(tables: Tables) -> tuple[int, int, int]:
    """The sample that was counted twice: how many answers, their tokens by usage and by our tokenizer."""
    told, counted = tables.number("usage_completion_tokens"), tables.number("checked_output_tokens")
    both = np.isfinite(told) & np.isfinite(counted) & tables.succeeded
    return int(both.sum()), int(told[both].sum()), int(counted[both].sum())
