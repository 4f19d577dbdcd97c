"""Whether the numbers are possible at all on the hardware that was named."""

from __future__ import annotations

from loadstone.checks.evidence import Evidence, answer
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.metrics.roofline import case_of
from loadstone.report import Check

NAME = "percent_of_roofline"
TOLERANCE_PERCENT = 0.5
"""Above 100: rounding of datasheets, and stamps that lie some microseconds off."""
DECODES = {
    "inter_token_latency_of_roofline": "tokens followed each other",
    "output_token_throughput_of_roofline": "tokens came",
}


def percent_of_roofline(evidence: Evidence) -> Check:
    """Nothing is faster than the datasheet of what was named allows; what seems so is counted or named wrongly."""
    placed = case_of(evidence.tables)
    shares = {name: evidence.metrics[name].mean for name in DECODES}
    known = {name: share for name, share in shares.items() if share is not None}
    first = evidence.metrics["time_to_first_token_of_roofline"].p90
    if placed is None or not (known or first is not None):
        return answer(NAME, "VALID", None, "%", "no roofline was named, or nothing can be compared with it.")
    most = 100 + TOLERANCE_PERCENT
    name = max(known, key=known.__getitem__, default=None)
    if name and known[name] > most:
        finding = (
            f"{DECODES[name]} faster than {placed.words} can decode ({brief(known[name])} % of its roofline): tokens are counted"
            " wrongly, or something else runs."
        )
        advice = (
            "Compare the server's count with ours (output_tokens_source, --check-tokens); see whether model, precision,"
            " speculation and devices are those of --roofline."
        )
        return answer(NAME, "DEGRADED", known[name], "%", finding, advice)
    if first is not None and first > most:
        return answer(NAME, "DEGRADED", first, "%", _too_soon(evidence.tables, placed.words, first), _ADVICE)
    value = known.get("inter_token_latency_of_roofline", first)
    finding = f"nothing is faster than the roofline of {placed.words}."
    return answer(NAME, "VALID", value, "%", finding)


_ADVICE = (
    "Send prompts that were not sent before (unique ones, --reset-kv-cache), or have the server tell what it had (vLLM:"
    " --enable-prompt-tokens-details)."
)


def _too_soon(tables: Tables, words: str, share: float) -> str:
    """Why first tokens came before their prompts can have been computed."""
    told = tables.requests["usage_cached_tokens"].drop_nulls()
    began = f"a tenth of the first tokens came before {words} can compute the prompt ({brief(share)} % of its roofline)"
    if told.is_empty():
        return f"{began}: most likely prefix-cache hits, of which the server tells nothing."
    return (
        f"{began}, though the {told.sum():,} tokens that the server found in its prefix cache are left out: it counts"
        " them wrongly, or something else runs."
    )
