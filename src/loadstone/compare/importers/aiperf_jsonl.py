"""AIPerf's `profile_export.jsonl`: one record a request, warm-up included, which is left out here (AIPerf 0.13).

Its clock is the wall clock. Which prompt a request had is told by its conversation and turn, and not which conversations the run
had: so requests of two runs are paired by position, and only when that is asked for. Output tokens are those that the server
told (`usage_completion_tokens`) where it told them of every answer, else those of AIPerf's own tokenizer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loadstone.compare.importers import _numbers
from loadstone.compare.importers._document import Damaged, Document, number, pooled
from loadstone.compare.importers._pace import pace
from loadstone.compare.importers.aiperf_json import NAMES, TO_MS, TOKENIZER
from loadstone.compare.sides import SERVER, Floats, Requests, Run

PROFILING = "profiling"
POOLED = "inter_chunk_latency"
BY_SERVER = "output tokens of AIPerf are those that the server told, not those of AIPerf's own tokenizer."


def knows(document: Document) -> bool:
    """Whether this is one."""
    return document.has("metadata", "metrics") and "request_start_ns" in (document.first["metadata"] or {})


def run(path: str, document: Document) -> Run:
    """The run."""
    records = [one for one in document.values if _measured(one)]
    if not records:
        raise Damaged("it has no record of a request that was measured")
    if any(number(one["metadata"].get("request_start_ns")) is None for one in records):
        raise Damaged("a record does not tell when its request was sent")
    records.sort(key=lambda one: one["metadata"]["request_start_ns"])
    found, by_server = _requests(records)
    return Run(
        path=path,
        tool="AIPerf",
        asked={"requests": f"{len(records):,}"},
        numbers=_numbers.of_requests(found),
        requests=found,
        notes=(BY_SERVER,) if by_server else (),
        counted_by=SERVER if by_server else TOKENIZER,
    )


def _measured(record: Mapping[str, Any]) -> bool:
    return bool(record["metadata"].get("benchmark_phase", PROFILING) == PROFILING)


def _requests(records: Sequence[Mapping[str, Any]]) -> tuple[Requests, bool]:
    """The requests, and whether the server counted their output tokens."""
    starts = np.array([one["metadata"]["request_start_ns"] for one in records], np.float64)
    ends = np.array([one["metadata"].get("request_end_ns") or np.nan for one in records], np.float64)
    cancelled = np.array([bool(one["metadata"].get("was_cancelled")) for one in records])
    failed = np.array([bool(one.get("error")) for one in records]) & ~cancelled
    succeeded = ~failed & ~cancelled
    latencies = {
        ours: np.where(succeeded, values, np.nan)
        for theirs, ours in NAMES.items()
        if ours != POOLED and np.isfinite(values := _column(records, theirs)).any()
    }
    told, counted = (_column(records, name) for name in ("usage_completion_tokens", "output_sequence_length"))
    by_server = bool(succeeded.any() and np.isfinite(told[succeeded]).all())
    if by_server and {"request_latency", "time_to_first_token"} <= latencies.keys():
        later = np.where(told > 1, told - 1, np.nan)
        latencies["time_per_output_token"] = (
            latencies["request_latency"] - latencies["time_to_first_token"]
        ) / later
    gaps, sums = pooled([_listed(one) for one in records], POOLED, 1.0)
    there = len(gaps.values) > 0
    requests = Requests(
        sent_s=(starts - starts[0]) / 1e9,
        pace=pace((starts - starts[0]) / 1e9, (ends - starts[0]) / 1e9),
        succeeded=succeeded,
        failed=failed,
        latencies=latencies,
        output_tokens=told if by_server else counted,
        input_tokens=_column(records, "input_sequence_length"),
        pooled={POOLED: gaps} if there else {},
        pooled_sums={POOLED: sums} if there else {},
    )
    return requests, by_server


def _column(records: Sequence[Mapping[str, Any]], name: str) -> Floats:
    return np.array([_value(one, name) for one in records])


def _value(record: Mapping[str, Any], name: str) -> float:
    told = (record.get("metrics") or {}).get(name) or {}
    value = number(told.get("value"))
    return np.nan if value is None else value * TO_MS.get(told.get("unit", ""), 1.0)


def _listed(record: Mapping[str, Any]) -> list[float]:
    told = (record.get("metrics") or {}).get(POOLED) or {}
    scale = TO_MS.get(told.get("unit", "ms"), 1.0)
    values = told.get("value") or []
    return [one * scale for one in values] if not record.get("error") else []
