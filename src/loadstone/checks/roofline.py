"""Whether the numbers are possible at all on the hardware that was named.

One rule: there is a verdict only where the hardware is known, by a datasheet or by a calibration. Against figures that are
assumed, more than 100 % says that they are too low.
"""

from __future__ import annotations

from typing import Literal

from loadstone.checks.evidence import Evidence, answer
from loadstone.figures import brief
from loadstone.metrics import Tables
from loadstone.metrics.roofline import case_of
from loadstone.report import Check
from loadstone.roofline.case import Case

NAME = "percent_of_roofline"
TOLERANCE_PERCENT = 0.5
"""Above 100: rounding of datasheets, and stamps that lie some microseconds off."""
DECODES = {
    "inter_token_latency_of_roofline": "tokens followed each other",
    "output_token_throughput_of_roofline": "tokens came",
}


def percent_of_roofline(evidence: Evidence) -> Check:
    """Nothing is faster than the datasheet of what was named allows; what seems so is counted or named wrongly.

    Where the hardware's figures are assumptions it is a NOTE.
    """
    placed = case_of(evidence.tables)
    shares = {name: evidence.metrics[name].mean for name in DECODES}
    known = {name: share for name, share in shares.items() if share is not None}
    first = evidence.metrics["time_to_first_token_of_roofline"].p90
    if placed is None or not (known or first is not None):
        return answer(NAME, "VALID", None, "%", "no roofline was named, or nothing can be compared with it.")
    most = 100 + TOLERANCE_PERCENT
    guess = assumed(placed)
    verdict: Literal["NOTE", "DEGRADED"] = "NOTE" if guess else "DEGRADED"
    name = max(known, key=known.__getitem__, default=None)
    if name and known[name] > most:
        began = (
            f"{DECODES[name]} faster than {placed.words} can decode ({brief(known[name])} % of its roofline)"
        )
        if guess:
            return answer(NAME, verdict, known[name], "%", f"{began}, {guess}.", _CALIBRATE)
        finding = f"{began}: tokens are counted wrongly, or something else runs."
        return answer(NAME, verdict, known[name], "%", finding, _advice(placed))
    if first is not None and first > most:
        finding = _too_soon(evidence.tables, placed.words, first, guess)
        return answer(NAME, verdict, first, "%", finding, _CALIBRATE if guess else _ADVICE)
    value = known.get("inter_token_latency_of_roofline", first)
    finding = f"nothing is faster than the roofline of {placed.words}."
    return answer(NAME, "VALID", value, "%", finding)


_ADVICE = (
    "Send prompts that were not sent before (unique ones, --reset-kv-cache), or have the server tell what it had (vLLM:"
    " --enable-prompt-tokens-details)."
)


_CALIBRATE = "Fit it to runs (loadstone roofline --fit), and name the calibration: --roofline FILE."
NEEDED = ("bandwidth", "flops")
"""Of a device's figures, those that every step depends on."""


def assumed(placed: Case) -> str:
    """That figures of the hardware are assumed, and which; empty: they come from a datasheet, or were measured."""
    gpu, split = placed.gpu, placed.parallel
    between = split.tensor * split.pipeline * split.data
    links = (
        ("network_bandwidth",) if between > gpu.node_devices else ("link_bandwidth",) if between > 1 else ()
    )
    guessed = [name for name in (*NEEDED, *links) if gpu.sources.get(name, "").startswith("assumed")]
    return f"whose figures are assumed ({', '.join(guessed)})" if guessed else ""


def _advice(placed: Case) -> str:
    """Where to look when tokens come too fast."""
    draft = "" if placed.draft_tokens else " (num_speculative_tokens)"
    return (
        "Compare the server's count with ours (output_tokens_source, --check-tokens); see whether model, precision,"
        f" speculation{draft} and devices are those of --roofline. What may also be faster: prompts that begin alike, whose"
        " KV cache is read once for all (cascade attention), and answers that come from a cache."
    )


def _too_soon(tables: Tables, words: str, share: float, guess: str) -> str:
    """Why first tokens came before their prompts can have been computed."""
    told = tables.requests["usage_cached_tokens"].drop_nulls()
    began = f"a tenth of the first tokens came before {words} can compute the prompt ({brief(share)} % of its roofline)"
    if guess:
        return f"{began}, {guess}."
    if told.is_empty():
        return f"{began}: most likely prefix-cache hits, of which the server tells nothing."
    return (
        f"{began}, though the {told.sum():,} tokens that the server found in its prefix cache are left out: it counts"
        " them wrongly, or something else runs."
    )
