"""GuideLLM's JSON report: several benchmarks, one for each load (schema of GuideLLM 0.8.1, read in its wheel).

Its inter_token_latency_ms is one request's mean, (last - first) / (n - 1): our time_per_output_token. Its
time_per_output_token_ms has the prefill in it and so has a name of its own here. Both weigh a request by its tokens; ours count
every request once. Latencies are in seconds, end with the end of the stream, and are by the wall clock. Its token rates are
of successes in the window that warm-up and cool-down leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loadstone.compare.importers._document import Damaged, Document, number
from loadstone.compare.importers._pace import pace
from loadstone.compare.sides import Floats, Known, Requests, Run

TIMES = {
    "time_to_first_token_ms": ("time_to_first_token", 1.0),
    "inter_token_latency_ms": ("time_per_output_token", 1.0),
    "time_per_output_token_ms": ("time_per_output_token_with_prefill", 1.0),
    "request_latency": ("request_latency", 1000.0),
}
RATES = {
    "requests_per_second": "request_throughput",
    "output_tokens_per_second": "output_token_throughput",
    "tokens_per_second": "total_token_throughput",
    "request_goodput": "goodput",
}
PERCENTILES = ("p50", "p90", "p99")
CAVEATS = {
    "time_per_output_token": "weighs a request by its tokens",
    "request_latency": "ends with the end of the stream, not with the last token",
}


def knows(document: Document) -> bool:
    """Whether this is one."""
    benchmarks = document.first.get("benchmarks")
    return isinstance(benchmarks, Sequence) and bool(benchmarks) and "metrics" in (benchmarks[0] or {})


def run(path: str, document: Document) -> Run:
    """The run. Of several loads nobody knows which is meant. Raises `Damaged`."""
    benchmarks = document.first["benchmarks"]
    if len(benchmarks) > 1:
        raise Damaged(
            f"it has {len(benchmarks)} benchmarks, one for each load, and one is compared; keep one of them in the file"
        )
    found = benchmarks[0]
    metrics = found["metrics"]
    known = {
        (ours, stat): Known(value * scale)
        for theirs, (ours, scale) in TIMES.items()
        for stat, value in _stats(metrics.get(theirs))
    }
    known |= {
        (ours, "mean"): Known(value)
        for theirs, ours in RATES.items()
        for stat, value in _stats(metrics.get(theirs))
        if stat == "mean"
    }
    totals = metrics.get("request_totals") or {}
    errored, good = number(totals.get("errored")), number(totals.get("successful"))
    if errored is not None and good is not None and errored + good > 0:
        known["error_rate", "mean"] = Known(100 * errored / (errored + good))
    requests = _requests(found.get("requests"), good)
    metadata = document.first.get("metadata") or {}
    return Run(
        path=path,
        tool=f"GuideLLM {metadata.get('guidellm_version', '')}".strip(),
        asked=_asked(found),
        numbers=known,
        requests=requests,
        surroundings={"system": str(metadata["platform"])} if metadata.get("platform") else {},
        caveats=CAVEATS,
    )


def _stats(told: Any) -> list[tuple[str, float]]:
    """Mean and percentiles of the successes; those of a metric that nobody has are zeros over no request."""
    summary = (told or {}).get("successful") or {}
    if not summary or not number(summary.get("count")):
        return []
    values = {"mean": summary.get("mean"), **{name: summary["percentiles"].get(name) for name in PERCENTILES}}
    return [(name, value) for name, one in values.items() if (value := number(one)) is not None]


def _asked(found: Mapping[str, Any]) -> dict[str, Any]:
    config = found.get("config") or {}
    strategy = config.get("strategy") or {}
    told = [
        str(strategy.get("type_") or ""),
        f"{strategy['rate']:g} requests/s" if number(strategy.get("rate")) else "",
        f"{strategy['streams']} streams" if number(strategy.get("streams")) else "",
    ]
    return {"load": " ".join(word for word in told if word) or None}


def _requests(told: Any, good: float | None) -> Requests | None:
    """The requests, where all of them were kept (GuideLLM may keep a sample)."""
    kept = told or {}
    successes, errors = kept.get("successful") or [], kept.get("errored") or []
    if not successes or good is None or len(successes) != good:
        return None
    records = [*((one, False) for one in successes), *((one, True) for one in errors)]
    if any(number(one.get("request_start_time")) is None for one, _ in records):
        return None
    records.sort(key=lambda pair: pair[0]["request_start_time"])
    starts = np.array([one["request_start_time"] for one, _ in records], np.float64)
    failed = np.array([error for _, error in records])
    values = [one for one, _ in records]
    return Requests(
        sent_s=starts - starts[0],
        pace=pace(starts - starts[0], _column(values, "request_end_time") - starts[0]),
        succeeded=~failed,
        failed=failed,
        latencies={
            ours: np.where(failed, np.nan, scale * _column(values, theirs))
            for theirs, (ours, scale) in TIMES.items()
        },
        output_tokens=_column(values, "output_tokens"),
        input_tokens=_column(values, "prompt_tokens"),
    )


def _column(records: Sequence[Mapping[str, Any]], name: str) -> Floats:
    return np.array([np.nan if (value := number(one.get(name))) is None else value for one in records])
