"""What `vllm bench serve --save-result` writes; with `--save-detailed` the requests are in it, too.

Times to first token count from the send to the first event that has choices, be it empty. Inter-token latencies are gaps
between chunks, so they have a name of their own here. Request latency ends with the last chunk that has output. A set of
metrics with no success is all zeros in the file; such zeros are not taken for numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loadstone.compare.importers import _numbers
from loadstone.compare.importers._asked import endpoint, load
from loadstone.compare.importers._document import Damaged, Document, count, each, number, numbers, pooled
from loadstone.compare.importers._pace import pace
from loadstone.compare.sides import Bools, Floats, Ints, Known, Requests, Run

NAMES = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_chunk_latency",
    "e2el": "request_latency",
}
STATS = {"mean": "mean", "p50": "p50", "median": "p50", "p90": "p90", "p99": "p99"}
RATES = {
    "request_throughput": "request_throughput",
    "output_throughput": "output_token_throughput",
    "total_token_throughput": "total_token_throughput",
    "request_goodput": "goodput",
}
DETAILS = ("ttfts", "itls", "output_lens")
CAVEATS = {"time_to_first_token": "counts the first event that has choices, even an empty one"}


def knows(document: Document) -> bool:
    """Whether this is one."""
    return not document.lines and document.has("completed", "request_throughput", "model_id")


def run(path: str, document: Document) -> Run:
    """The run."""
    found = document.first
    completed, failed = count(found, "completed"), count(found, "failed")
    if not completed:
        raise Damaged("no request of it succeeded, so its numbers are zeros that stand for nothing")
    known = _numbers.told(found, NAMES, STATS, RATES)
    detailed = _requests(found) if all(name in found for name in DETAILS) else None
    if failed is not None:
        known["error_rate", "mean"] = Known(100 * failed / (failed + completed))
    if detailed is not None:
        known = {**_numbers.of_requests(detailed), **known}
    return Run(
        path=path,
        tool="vllm bench serve",
        asked=_asked(found),
        numbers=known,
        requests=detailed,
        surroundings={"label": str(found["label"])} if found.get("label") else {},
        caveats=CAVEATS,
    )


def _asked(found: Any) -> dict[str, Any]:
    """The lengths that were asked for are not in the file: its totals are what the server counted."""
    prompts = number(found.get("num_prompts"))
    return {
        "model": found["model_id"],
        "endpoint": endpoint(found.get("backend") or found.get("endpoint_type")),
        "load": load(
            found.get("request_rate"),
            found.get("max_concurrency"),
            shape=found.get("burstiness"),
            drawn="conditioned",
        ),
        "tokenizer": found.get("tokenizer_id"),
        "requests": None if prompts is None else f"{prompts:,.0f}",
        "seed": found.get("seed"),
    }


def _requests(found: Any) -> Requests:
    first = numbers(found["ttfts"], "ttfts", 1000)
    itls, errors = (each(found, name, len(first), "ttfts") for name in ("itls", "errors"))
    tokens, inputs, sent = (
        numbers(each(found, name, len(first), "ttfts"), name)
        for name in ("output_lens", "input_lens", "start_times")
    )
    _, (totals, _) = pooled(itls, "itls", 1000)
    failed = np.array([bool(error) for error in errors])
    order = np.argsort(sent, kind="stable")
    return of_arrays(order, sent, failed, first, first + totals, tokens, inputs, itls)


def of_arrays(
    order: Ints,
    sent: Floats,
    failed: Bools,
    first: Floats,
    latencies: Floats,
    tokens: Floats,
    inputs: Floats,
    itls: Any,
) -> Requests:
    """Requests from the arrays that vLLM's and SGLang's clients write, in `order`; times in ms, `sent` in seconds or NaN."""
    gaps, sums = pooled([itls[at] for at in order], "itls", 1000)
    failed = failed[order]

    def of_successes(values: Floats) -> Floats:
        return np.where(failed, np.nan, values[order])

    later = np.where(tokens > 1, tokens - 1, np.nan)
    since = sent[order] - sent[order][0]
    ends = since + latencies[order] / 1000
    return Requests(
        sent_s=since,
        succeeded=~failed,
        failed=failed,
        latencies={
            "time_to_first_token": of_successes(first),
            "time_per_output_token": of_successes((latencies - first) / later),
            "request_latency": of_successes(latencies),
        },
        output_tokens=of_successes(tokens),
        input_tokens=of_successes(inputs),
        pace=pace(since, ends),
        pooled={"inter_chunk_latency": gaps},
        pooled_sums={"inter_chunk_latency": sums},
    )
