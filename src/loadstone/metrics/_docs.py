"""The documentation of all metrics, as Markdown, made from their docstrings."""

from __future__ import annotations

import inspect
import sys
from itertools import groupby

from loadstone.metrics import NEEDS, Metric, all_metrics
from loadstone.metrics._namesakes import Namesake, namesakes

_INTRO = """\
# Metrics

This page is made from the docstrings of the metrics.

Every metric is over the measured phases; warm-up and cooldown are left out, and so is the time between two measured
phases, in which none of them was going on. The five instants are `due` (planned moment; in
a closed loop the moment the slot freed), `sent` (just before the first byte goes to the kernel), `first` and
`last` (arrival of the first and the last output token) and `done` (end of the response). A distribution has
count, mean, min, max, std (of the population) and the percentiles p1 p5 p10 p25 p50 p75 p90 p95 p99 p99.9
(linear interpolation). A percentile with fewer than 10 samples expected beyond it is marked as thin. A metric
that cannot be computed is null with a reason, never 0.

What has one value a request is exact, whatever the number of requests. Of metrics that pool one value a chunk
(inter_token_latency, client_lag) up to 2,000,000 samples are kept one by one and all numbers are exact too. Beyond
that they go into a histogram whose bins are 1/512 of a power of two wide: count, mean, min, max and std stay exact, each
percentile is within 0.1 % of the exact one (at most 1/1024 of it, by the width of a bin), and the note says "Percentiles are within 0.1 %."

*Elsewhere* says what other tools call the same thing, how they compute it, and why their number differs; where nothing
differs but the tool's clock and its count of tokens, it says no more. Read in the sources of AIPerf 0.13, GenAI-Perf (the
repository of perf_analyzer), vLLM 0.32, SGLang 0.5.23, GuideLLM 0.8.1, inference-perf 7de5ef2, genai-bench 0.0.5, EvalScope 1.14.1
and llmperf f1d6bed. `loadstone explain METRIC` prints it, by their names as well.
"""


def markdown() -> str:
    """The page: a chapter a module, a section a metric."""
    chapters = groupby(all_metrics().values(), key=lambda metric: metric.fn.__module__)
    return "\n".join([_INTRO, *(_chapter(module, list(metrics)) for module, metrics in chapters)])


def _chapter(module: str, metrics: list[Metric]) -> str:
    title, _, text = inspect.cleandoc(sys.modules[module].__doc__ or module).partition("\n")
    title = title.rstrip(".")
    return "\n".join([f"## {title}", *([text] if text else []), "", *map(_section, metrics)])


def _section(metric: Metric) -> str:
    parts = [f"### {metric.name}", _facts(metric), inspect.cleandoc(metric.doc), *_elsewhere(metric.name)]
    return "\n\n".join(parts) + "\n"


def _elsewhere(name: str) -> list[str]:
    """How other tools compute theirs, as one list; empty where none is known to."""
    told = namesakes(name)
    if not told:
        return []
    return ["Elsewhere:\n" + "\n".join(map(_namesake, told))]


def _namesake(one: Namesake) -> str:
    names = ", ".join(f"`{name}`" for name in one.names)
    differs = f" Differs: {one.differs}." if one.differs else ""
    return f"- {one.tool}, {names}: {one.how}.{differs}"


def _facts(metric: Metric) -> str:
    facts = [f"Unit: {metric.unit}"]
    if metric.better != "neither":
        facts.append(f"{metric.better} is better")
    if metric.needs:
        facts.append("null " + ", ".join(NEEDS[need].lack for need in metric.needs))
    return " · ".join(facts) + "."
