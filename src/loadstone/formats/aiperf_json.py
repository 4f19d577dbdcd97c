"""`profile_export_aiperf.json` of AIPerf, schema 1.4: one object a metric beside the facts of the run, on one level.

Held against a file of AIPerf 0.13.0, whose own loader of plots reads ours. Which AIPerf wrote it is not in it: none did.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from loadstone.formats._aiperf import DISTRIBUTIONS, NUMBERS, found, statistics
from loadstone.report import Report

SUMMARY = "profile_export_aiperf.json of AIPerf"
SCHEMA_VERSION = "1.4"


def text(report: Report, folder: Path | None) -> str:
    """The file, indented."""
    del folder
    metrics: dict[str, Any] = {
        tag.tag: {"unit": tag.unit, "avg": (result.mean or 0.0) * tag.scale}
        for tag, result in found(report, NUMBERS)
    }
    metrics |= {
        tag.tag: {"unit": tag.unit, **statistics(tag, result)} for tag, result in found(report, DISTRIBUTIONS)
    }
    told = {
        "schema_version": SCHEMA_VERSION,
        "benchmark_id": hashlib.sha256(report.run.id.encode()).hexdigest()[:12],
        **metrics,
        "input_config": _input(report),
        "run_info": {"benchmark_id": report.run.id, "trial": 0, "cli_command": report.run.command},
        "was_cancelled": report.run.end == "interrupted",
        "is_complete": report.run.end == "complete",
        "error_summary": _errors(report),
        "start_time": report.run.started.removesuffix("Z"),
        "loadstone": {
            "version": report.loadstone_version,
            "certificate": report.certificate.verdict,
            "headline": report.certificate.headline,
        },
    }
    return msgspec.json.format(msgspec.json.encode(told), indent=2).decode() + "\n"


def _input(report: Report) -> dict[str, Any]:
    """What was asked, in the shape of its `input_config`, as far as both have it; what was not asked is left out, as there."""
    endpoint, load, source = (report.config.get(name, {}) for name in ("endpoint", "load", "input"))
    urls, models = endpoint.get("url"), endpoint.get("model")
    phase = {
        "name": "profiling",
        "kind": "profiling",
        "type": _type(load),
        "requests": load.get("request_count"),
        "duration": load.get("duration_s"),
        "concurrency": load.get("concurrency"),
        "rate": load.get("request_rate"),
    }
    return {
        "models": {"items": [{"name": name} for name in _several(models)]},
        "endpoint": {
            "urls": _several(urls),
            "type": endpoint.get("type"),
            "streaming": endpoint.get("streaming"),
            "extra": endpoint.get("extra_inputs"),
        },
        "datasets": [
            {
                "random_seed": report.run.seed,
                "prompts": {
                    "isl": {"mean": source.get("isl_mean"), "stddev": source.get("isl_stddev")},
                    "osl": {"mean": source.get("osl_mean"), "stddev": source.get("osl_stddev")},
                },
            }
        ],
        "phases": [{name: value for name, value in phase.items() if value is not None}],
        "tokenizer": {"name": source.get("tokenizer")},
    }


def _type(load: dict[str, Any]) -> str | None:
    """Its word for the arrivals; None for those that it has none for."""
    if isinstance(load.get("request_rate"), int | float):
        return load.get("arrival_pattern") or "poisson"
    return "concurrency" if load.get("concurrency") and load.get("request_rate") is None else None


def _errors(report: Report) -> list[dict[str, Any]]:
    return [
        {
            "error_details": {"code": None, "type": fault["outcome"], "message": fault["message"]},
            "count": fault["count"],
        }
        for fault in report.outcomes.faults
    ]


def _several(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
