"""What a server tells of speculative decoding in an answer itself, brought to one form.

vLLM with `--per-request-spec-decode-metrics` puts it into `metrics.speculative_decoding` (vLLM pull request 48915),
llama.cpp's server into `timings` (`draft_n`, `draft_n_accepted`; tools/server README), which has no steps. As with a usage, what
cannot be a count says nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from loadstone.endpoints import Usage
from loadstone.endpoints._usage import count


class Drafts(NamedTuple):
    """Counts of one answer, of all its choices together."""

    steps: int | None
    """Steps that checked a draft."""
    drafted: int | None
    """Tokens that were proposed in all of them,"""
    accepted: int | None
    """and those of them that are in the answer."""


def told(metrics: Any, timings: Any) -> Drafts | None:
    """The counts in these two objects of an event or a body; None where neither has any."""
    inner = metrics.get("speculative_decoding") if isinstance(metrics, dict) else None
    for found, names in (
        (inner, ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")),
        (timings, ("draft_rounds", "draft_n", "draft_n_accepted")),
    ):
        if isinstance(found, dict):
            drafts = Drafts(*(count(found.get(name)) for name in names))
            if drafts.drafted is not None and drafts.accepted is not None:
                return drafts
    return None


def beside(usage: Usage | None, drafts: Drafts | None) -> Usage | None:
    """A usage with these counts in it."""
    if drafts is None:
        return usage
    return msgspec.structs.replace(
        usage or Usage(),
        draft_steps=drafts.steps,
        draft_tokens=drafts.drafted,
        draft_accepted_tokens=drafts.accepted,
    )
