"""Lengths: how many tokens went in and came out.

Over successes. Counts are the server's usage where it tells; else prompts count as planned and answers as the
tokenizer counts their text, which the notices of the report say.
"""

from __future__ import annotations

import numpy as np

from loadstone.metrics import Each, Tables, metric

ORDER = 40

_UNKNOWN = "the number of tokens is not known for any answer."
_NOT_TOLD = "the server does not tell how many tokens were reasoning."


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
    """Tokens of one answer without its reasoning, where the server tells the latter: OSL - reasoning tokens."""
    return Each(tables.number("output_tokens") - tables.number("usage_reasoning_tokens"), _NOT_TOLD)


@metric("reasoning_token_count", unit="tokens", better="neither", needs=("success",))
def reasoning_token_count(tables: Tables) -> Each:
    """Reasoning tokens of one answer, where the server tells."""
    return Each(tables.number("usage_reasoning_tokens"), _NOT_TOLD)


@metric("output_length_mismatch", unit="%", better="neither", needs=("success",))
def output_length_mismatch(tables: Tables) -> Each:
    """How far an answer is from the length asked for: 100 (OSL - asked) / asked, negative when shorter.

    Servers stop early unless told not to (`--extra-inputs ignore_eos:true`).
    """
    asked = tables.number("planned_output_tokens")
    asked = np.where(asked > 0, asked, np.nan)
    return Each(100 * (tables.number("output_tokens") - asked) / asked, "no output length was asked for.")
