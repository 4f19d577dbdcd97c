"""What SGLang's `bench_serving --output-file` appends, one line a run; with `--output-details` the requests are in it, too.

Its file has one line for every run that was ever told to write there, so only the last one is read, and that is said. Request
latency ends with the end of the stream. Of an answer whose server told no count, the output tokens are those asked for. The
inter-token latencies of the native back end are per token, of the others per chunk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loadstone.compare.importers import _numbers
from loadstone.compare.importers._asked import endpoint, load
from loadstone.compare.importers._document import Damaged, Document, count, each, number, numbers, pooled
from loadstone.compare.importers.vllm_json import of_arrays
from loadstone.compare.sides import Requests, Run

NATIVE = ("sglang", "sglang-native")
STATS = {"mean": "mean", "median": "p50", "p90": "p90", "p99": "p99"}
RATES = {
    "request_throughput": "request_throughput",
    "output_throughput": "output_token_throughput",
    "total_throughput": "total_token_throughput",
    "request_goodput": "goodput",
}
CAVEATS = {
    "request_latency": "ends with the end of the stream, not with the last token",
    "output_token_throughput": "an answer without the server's count has the tokens asked for",
    "total_token_throughput": "an answer without the server's count has the tokens asked for",
}


def knows(document: Document) -> bool:
    """Whether this is one."""
    return document.has("backend", "completed", "mean_e2e_latency_ms", "request_throughput")


def run(path: str, document: Document) -> Run:
    """The last run of the file."""
    found = document.values[-1]
    if not isinstance(found, dict) or not count(found, "completed"):
        raise Damaged("no request of its last run succeeded")
    native = found["backend"] in NATIVE
    names = {
        "ttft": "time_to_first_token",
        "tpot": "time_per_output_token",
        "itl": "inter_token_latency" if native else "inter_chunk_latency",
        "e2e_latency": "request_latency",
    }
    known = _numbers.told(found, names, STATS, RATES)
    detailed = _requests(found) if "ttfts" in found and "itls" in found else None
    if detailed is not None:
        known = {**_numbers.of_requests(detailed), **known}
    several = len(document.values)
    return Run(
        path=path,
        tool="SGLang bench_serving",
        asked=_asked(found),
        numbers=known,
        requests=detailed,
        caveats=CAVEATS,
        notes=(f"the file holds {several} runs; the last one is compared.",) if several > 1 else (),
    )


def _asked(found: dict[str, Any]) -> dict[str, Any]:
    lengths = [found.get(f"random_{kind}_len") for kind in ("input", "output")]
    random = str(found.get("dataset_name", "")).startswith("random")
    ratio = found.get("random_range_ratio")
    return {
        "model": found.get("model_id") or found.get("model"),
        "endpoint": endpoint(found["backend"]),
        "input_length": _length(lengths[0], ratio) if random else None,
        "output_length": _length(lengths[1], ratio) if random else None,
        "load": load(found.get("request_rate"), found.get("max_concurrency")),
        "requests": None,
        "dataset": found.get("dataset_name"),
    }


def _length(most: Any, ratio: Any) -> str | None:
    """Lengths are even from `ratio` of the greatest to the greatest: with a ratio of 1 all are the same."""
    if not most:
        return None
    return f"{most} tokens" if number(ratio) == 1.0 else f"up to {most} tokens, from {ratio} of that"


def _requests(found: dict[str, Any]) -> Requests:
    """The requests; SGLang does not tell when each was sent, nor its latency, which is its gaps added up."""
    first = numbers(found["ttfts"], "ttfts", 1000)
    itls, errors = (each(found, name, len(first), "ttfts") for name in ("itls", "errors"))
    tokens, inputs = (
        numbers(each(found, name, len(first), "ttfts"), name) for name in ("output_lens", "input_lens")
    )
    _, (totals, _) = pooled(itls, "itls", 1000)
    failed = np.array([bool(error) for error in errors])
    order, unknown = np.arange(len(first)), np.full(len(first), np.nan)
    made = of_arrays(order, unknown, failed, first, first + totals, tokens, inputs, itls)
    if found["backend"] not in NATIVE:
        return made
    name, old = "inter_token_latency", "inter_chunk_latency"
    return made._replace(pooled={name: made.pooled[old]}, pooled_sums={name: made.pooled_sums[old]})
