"""Notices: what a reader has to know to read the numbers right, one sentence each, the gravest first.

A notice is about what the numbers mean. Whether the measurement can be believed is for the checks; why a
metric is missing or thin stands at the metric. Each fact is said in one place.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from loadstone.checks import Evidence
from loadstone.config import ENGINE
from loadstone.figures import brief, counted
from loadstone.folder import RunLog
from loadstone.metrics import Tables
from loadstone.metrics.lengths import checked
from loadstone.metrics.roofline import case_of
from loadstone.read.outcome import FAILURES, SUCCESSES
from loadstone.roofline.validation import caution
from loadstone.summary.shape import about_load
from loadstone.summary.transport import about_transport
from loadstone.summary.windows import about_slices

FAILED_SHARE = 0.01
"""Failures of a warm-up or a cooldown are worth a notice from this share of its requests on."""
ALL_TOKENS = "output_token_throughput_under_load"
NOT_THE_MODELS = ("builtin", "none")
OWN_MISMATCH = 0.02
"""With the model's own tokenizer text counted again seldom differs by more. Beside that, and with any other, a token an
answer is the one that ends it and is no text."""
FOREIGN_FACTOR = 2.0
"""Two tokenizers differ by less than this on any text that people write."""


def notices(evidence: Evidence) -> tuple[str, ...]:
    """All notices of a run: its own, then those that its tables give."""
    tables = evidence.tables
    found = (
        *_about_failures(tables),
        *_about_model(tables),
        *_about_run(tables.run),
        *_about_censored(evidence),
        *about_load(tables),
        *_about_tables(tables),
        *about_slices(tables),
    )
    return tuple(dict.fromkeys((*tables.run.notices, *found)))


def _about_model(tables: Tables) -> Iterator[str]:
    """Where the built-in engine played a model on a device for which its times are known to be off, or not known at all."""
    urls, case = tables.config.endpoint.urls, case_of(tables)
    engine = [url for url in urls if url.startswith(ENGINE)]
    if case is None or len(engine) < len(urls) or tables.config.server.roofline:
        return
    if any("calibration=" in url for url in engine):  # what it was fitted to is not in the folder
        return
    found = caution(case)
    if found is not None:
        yield f"Its steps are those of the roofline, and {found.caution}."


def _about_run(run: RunLog) -> Iterator[str]:
    if run.end != "complete" and not run.stopped_why:
        yield f"The run was {run.end}: the numbers are those of what had happened until then."
    if run.dataset.reused:
        yield (
            f"{counted(run.dataset.reused, 'request')} repeated a prompt sent before in this run; a prefix cache may have"
            " answered them faster."
        )
    for kind, noun in (("warmup", "warm-up request"), ("cooldown", "cooldown request")):
        if planned := sum(phase.planned for phase in run.phases if phase.kind == kind):
            yield f"{counted(planned, noun)} left out of every number."


def _about_failures(tables: Tables) -> Iterator[str]:
    """The phases that were not measured and in which more than the odd request failed, with what was said most often."""
    for log in tables.run.phases:
        ended = tables.unmeasured.filter(pl.col("phase") == log.name)
        failed = ended.filter(pl.col("outcome").is_in(list(FAILURES)))
        bad, good = (
            int(part["count"].sum())
            for part in (failed, ended.filter(pl.col("outcome").is_in(list(SUCCESSES))))
        )
        if bad <= FAILED_SHARE * (bad + good):
            continue
        kinds = (
            failed.group_by("outcome")
            .agg(pl.col("count").sum())
            .sort("count", "outcome", descending=[True, False])
        )
        told = ", ".join(f"{outcome} {count:,}" for outcome, count in kinds.iter_rows())
        words = (
            failed.drop_nulls("fault").sort("count", descending=True, maintain_order=True)["fault"].head(1)
        )
        said = f"; most often: {words[0].rstrip('.')}" if len(words) else ""
        yield f"{bad:,} of {counted(log.planned, 'request')} of phase {log.name} failed: {told}{said}."


def _about_tables(tables: Tables) -> Iterator[str]:
    yield from about_transport(tables)
    yield from _about_counts(tables)
    yield from _about_usage(tables)
    yield from _about_prompts(tables)


def _about_censored(evidence: Evidence) -> Iterator[str]:
    """Requests of which nobody knows how long they would have taken, and which figures have them."""
    who = _who_was_cut_off(evidence.tables)
    if not who or not any(metric.with_censored for metric in evidence.metrics.values()):
        return
    if not evidence.tables.succeeded.any():
        yield (
            f"{who}, and none succeeded: all that is known is how long they took at least, which is in the rows"
            ' "with ... cut off" (with_censored).'
        )
        return
    told = (
        f"{who}. Plain latencies leave them out, and can be too low or too high; the rows"
        ' "with ... cut off" (with_censored) count each as far as it had come'
    )
    lower_bounds = any(metric.with_censored_at_least for metric in evidence.metrics.values())
    told += "; those with > are lower bounds, as waits were growing." if lower_bounds else "."
    if (evidence.tables.censored & ~evidence.tables.cancelled).any() and evidence.metrics[
        ALL_TOKENS
    ].mean is not None:
        told += ' Throughputs are too low, but for "output, all tokens".'
    yield told


def _who_was_cut_off(tables: Tables) -> str:
    """The requests that were cut off, by what did it, and those that never had their turn; empty when there was none.

    What was cancelled as asked is told apart.
    """
    cut = int((tables.censored & ~tables.cancelled).sum())
    limited = int((tables.cut_off & ~tables.censored).sum())
    unsent = np.isfinite(tables.cut_off_ms("due_ns")) & ~tables.attempted
    waited = int(unsent.sum()) if tables.has_rate else 0
    end = "load was stopped" if tables.run.stopped_by else "run ended"
    kinds = [
        (cut, f"cut off when the {end}"),
        (limited, "cut off at a time limit"),
        (waited, "due but never sent"),
    ]
    known = [(count, f"{'was' if count == 1 else 'were'} {what}") for count, what in kinds if count]
    told = [
        f"{f'{count:,}' if number else counted(count, 'request')} {what}"
        for number, (count, what) in enumerate(known)
    ]
    *first, last = told or [""]
    return f"{', '.join(first)}{' and ' if first else ''}{last}"


def _about_prompts(tables: Tables) -> Iterator[str]:
    """Where the server's count of the prompts differs from what was asked."""
    asked, told = tables.number("planned_input_tokens"), tables.number("usage_prompt_tokens")
    known = tables.succeeded & np.isfinite(asked) & np.isfinite(told)
    more = float((told - asked)[known].mean()) if known.any() else 0.0
    if abs(more) >= 1 and not tables.config.input.isl_includes_template:
        counts = f"The server counts {brief(abs(more))} tokens {'more' if more > 0 else 'fewer'} per prompt than asked for"
        if more > 0 and np.ptp((told - asked)[known]) == 0:
            yield f"{counts}, always: its chat template."
        else:
            yield (
                f"{counts} (mean): its chat template, or another tokenizer than ours (--tokenizer takes the model's own)."
            )


def _about_counts(tables: Tables) -> Iterator[str]:
    """Where the output tokens come from, when it is not the server."""
    successes = int(tables.succeeded.sum())
    source = tables.requests["output_tokens_source"]
    unknown = int((np.isnan(tables.number("output_tokens")) & tables.succeeded).sum())
    estimated = int(((source == "tokenizer").fill_null(False).to_numpy() & tables.succeeded).sum())
    if estimated:
        yield (
            f"The server sent no usage that counts for {estimated} of {successes} answers: their output tokens are counted by"
            " our tokenizer and are estimates."
        )
    if unknown:
        yield f"The output tokens of {unknown} of {successes} answers are not known: the server sent no usage."


def _about_usage(tables: Tables) -> Iterator[str]:
    """Where the server counts output tokens otherwise than the text it sent has."""
    told = tables.number("usage_completion_tokens")
    text = (tables.column("text_chars") > 0) | (tables.column("reasoning_chars") > 0)
    zero = int(((told == 0) & text.fill_null(False).to_numpy() & tables.succeeded).sum())
    answers, usage, ours = checked(tables)
    own = tables.config.input.tokenizer not in NOT_THE_MODELS
    if zero:
        yield f"The server's usage counts 0 output tokens for {counted(zero, 'answer')} with text: it is not to be believed."
    elif abs(usage - ours) > answers and _far(usage, ours, own):
        whose = "the model's own tokenizer" if own else "our tokenizer, which is not the model's,"
        yield (
            f"The server's usage and the text of its answers differ: {usage:,} output tokens by usage, {ours:,} by {whose}"
            f" in {counted(answers, 'answer')} counted. Token rates go by usage."
        )


def _far(usage: int, ours: int, own: bool) -> bool:
    """Whether two counts of the same text differ by more than two tokenizers, or one used twice, would."""
    if own:
        return abs(usage - ours) > OWN_MISMATCH * ours
    return usage >= FOREIGN_FACTOR * ours or ours >= FOREIGN_FACTOR * usage
