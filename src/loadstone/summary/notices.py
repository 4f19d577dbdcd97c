"""Notices: what a reader has to know to read the numbers right, one sentence each, the gravest first.

A notice is about what the numbers mean. Whether the measurement can be believed is for the checks; why a
metric is missing or thin stands at the metric. Each fact is said in one place.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from loadstone.checks import Evidence
from loadstone.folder import RunLog
from loadstone.metrics import Tables

SHORT = 0.95
"""An answer below this share of the length asked for is short."""
SHORT_SHARE = 0.01
"""Short answers are worth a notice from this share of all on."""


def notices(evidence: Evidence) -> tuple[str, ...]:
    """All notices of a run: its own, then those that its tables give."""
    tables = evidence.tables
    found = (*_about_run(tables.run), *_about_tables(tables))
    return tuple(dict.fromkeys((*tables.run.notices, *found)))


def _about_run(run: RunLog) -> Iterator[str]:
    if run.end != "complete":
        yield f"The run was {run.end}: the numbers are those of what had happened until then."
    if run.dataset.reused:
        yield (
            f"{run.dataset.reused} requests repeated a prompt sent before in this run; a prefix cache may have"
            " answered them faster."
        )
    if not run.dataset.lengths_exact:
        yield "Prompt lengths are approximate: the tokenizer cannot build prompts of an exact length."
    warmup = sum(phase.planned for phase in run.phases if phase.name == "warmup")
    if warmup:
        yield f"{warmup} warm-up requests are in no number."


def _about_tables(tables: Tables) -> Iterator[str]:
    cut = int(tables.cut.sum())
    if cut:
        yield (
            f"{cut} requests were still under way when the run ended and are in no latency: the upper percentiles"
            " are too low rather than too high."
        )
    yield from _about_counts(tables)
    short = _short_share(tables)
    if short >= SHORT_SHARE:
        yield (
            f"{100 * short:.3g} % of the answers are shorter than asked (see output_length_mismatch);"
            " --extra-inputs ignore_eos:true keeps many servers from stopping early."
        )


def _about_counts(tables: Tables) -> Iterator[str]:
    """Where the output tokens come from, when it is not the server."""
    successes = int(tables.succeeded.sum())
    source = tables.requests["output_tokens_source"]
    unknown = int((np.isnan(tables.number("output_tokens")) & tables.succeeded).sum())
    estimated = int(((source == "tokenizer").fill_null(False).to_numpy() & tables.succeeded).sum())
    if estimated:
        yield (
            f"The server sent no usage for {estimated} of {successes} answers: their output tokens are counted by"
            " our tokenizer and are estimates."
        )
    if unknown:
        yield f"The output tokens of {unknown} of {successes} answers are not known: the server sent no usage."


def _short_share(tables: Tables) -> float:
    """Share of the successes with a known and an asked length that are short of it."""
    asked, given = tables.number("planned_output_tokens"), tables.number("output_tokens")
    known = tables.succeeded & np.isfinite(asked) & np.isfinite(given)
    return float((given < SHORT * asked)[known].mean()) if known.any() else 0.0
