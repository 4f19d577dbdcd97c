"""What other tools call our metrics, how they compute them, and why their numbers are others. Facts, in a file a tool.

Read in their sources and results at the versions named in each file, not in their documentation. Knows names alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from loadstone.metrics._namesakes import aiperf, aiperf_server, genai_perf, guidellm, others, sglang, vllm
from loadstone.metrics._namesakes._form import Namesake
from loadstone.metrics._namesakes._screens import SCREENS
from loadstone.slo import SHORT_NAMES

__all__ = ["SHORT", "Namesake", "namesakes", "ours", "words"]

ALL: tuple[Namesake, ...] = (
    *aiperf.NAMESAKES,
    *aiperf_server.NAMESAKES,
    *genai_perf.NAMESAKES,
    *vllm.NAMESAKES,
    *sglang.NAMESAKES,
    *guidellm.NAMESAKES,
    *others.NAMESAKES,
)

SHORT = {
    **SHORT_NAMES,
    "isl": "input_sequence_length",
    "osl": "output_sequence_length",
    "ntpot": "normalized_latency",
    "tps": "output_token_throughput",
    "rps": "request_throughput",
    "rebuffering": "rebuffering_time",
}
"""What people say for short."""

_STAT = re.compile(r"^(?:mean|median|avg|average|min|max|std|p\d+(?:[._]\d+)?)_|_(?:ms|s)$")
"""Around a name as results files have it: `mean_ttft_ms`, `p99_itl_ms`, `inter_token_latency_s`."""
_UNIT = re.compile(r"\([^)]*\)|:\s*$")
"""Behind a name as screens have it: `P99 ITL (ms):`."""


def namesakes(metric: str) -> tuple[Namesake, ...]:
    """Of one of our metrics, tool by tool."""
    return tuple(one for one in ALL if one.ours == metric)


def ours(word: str, known: Collection[str]) -> str | None:
    """The one of our metrics (`known`) that a word means: its own name, a short one, or another tool's, as in its files or on
    its screen; None: none.
    """
    name = "_".join(_UNIT.sub("", word).lower().replace("-", " ").split())
    for tried in (name, _STAT.sub("", name)):
        found = tried if tried in known else SHORT.get(tried) or _foreign().get(tried) or SCREENS.get(tried)
        if found in known:
            return found
    return None


def words(known: Collection[str]) -> tuple[str, ...]:
    """All words that mean one of our metrics."""
    return tuple(dict.fromkeys((*known, *SHORT, *_foreign())))


@cache
def _foreign() -> dict[str, str]:
    """Other tools' names and the metric of ours each means first."""
    found: dict[str, str] = {}
    for one in ALL:
        for name in one.names:
            found.setdefault(name.lower(), one.ours)
    return found
