"""`report.json` of a run of loadstone, without its folder: summaries and their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadstone.compare.importers._document import Document, measured, part
from loadstone.compare.sides import LATENCIES, METRICS, STATS, Known, Run

SURROUNDINGS = ("host", "system", "cpu", "python")


def knows(document: Document) -> bool:
    """Whether this is one."""
    return document.has("schema_version", "loadstone_version", "certificate", "metrics")


def run(path: str, document: Document) -> Run:
    """The run."""
    report = document.first
    certificate = report["certificate"]
    return Run(
        path=path,
        tool=f"loadstone {report['loadstone_version']}",
        asked=asked(report),
        numbers=numbers(report["metrics"]),
        planned=report["outcomes"]["planned"] if _dataset(report) else None,
        surroundings=surroundings(report),
        verdict=certificate["verdict"],
        headline=certificate["headline"],
        notes=("simulated on a virtual clock; nothing was measured.",)
        if report["run"].get("simulated")
        else (),
    )


def numbers(metrics: Mapping[str, Any]) -> dict[tuple[str, str], Known]:
    """The statistics that are compared, by the names in the report."""
    found = {}
    for metric in METRICS:
        result = part(metrics, metric)
        for stat in STATS if metric in LATENCIES else ("mean",):
            value = measured(result, stat, f"{metric}.{stat}")
            if value is not None and stat not in result.get("thin", ()):
                interval = part(part(result, "intervals"), stat)
                low, high = (measured(interval, end, f"{metric}.{stat} {end}") for end in ("low", "high"))
                found[metric, stat] = Known(value, low, high)
    return found


def asked(report: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked, from the resolved configuration."""
    config = report["config"]
    endpoint, source, load = config["endpoint"], config["input"], config["load"]
    dataset = _dataset(report)
    return {
        "model": endpoint["model"],
        "endpoint": endpoint["path"] or endpoint["type"],
        "streaming": endpoint["streaming"],
        "input_length": _input(source),
        "output_length": _output(source),
        "load": " then ".join(one["words"] for one in report["load"]["arrivals"]) or None,
        "tokenizer": dataset.get("tokenizer"),
        "sampling": _extra(endpoint["extra_inputs"]),
        "requests": _count(load, report["outcomes"]["planned"]),
        "seed": report["run"]["seed"],
        "dataset": dataset.get("digest"),
    }


def surroundings(report: Mapping[str, Any]) -> dict[str, str]:
    """Where it ran."""
    environment = report["environment"]
    known = {name: str(environment[name]) for name in SURROUNDINGS if environment.get(name)}
    return {**known, "loadstone": str(report["loadstone_version"])}


def _dataset(report: Mapping[str, Any]) -> Mapping[str, Any]:
    return report["environment"].get("dataset") or {}


def _input(source: Mapping[str, Any]) -> str:
    if source["file"]:
        return "as in the file"
    turns = source["turns_mean"]
    text = f"{source['isl_mean']:g} tokens"
    text += f" +- {source['isl_stddev']:g}" if source["isl_stddev"] else ""
    return text if turns == 1 else f"{text}, {turns:g} turns"


def _output(source: Mapping[str, Any]) -> str:
    if source["file"] and source["osl_mean"] is None:
        return "as in the file"
    if source["osl_mean"] is None:
        return "as long as they become"
    text = f"{source['osl_mean']:g} tokens"
    return text + (f" +- {source['osl_stddev']:g}" if source["osl_stddev"] else "")


def _extra(inputs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={inputs[name]}" for name in sorted(inputs)) or "none"


def _count(load: Mapping[str, Any], planned: int) -> str:
    """How many requests, where their number and not a time was asked for."""
    return f"{load['duration_s']:g} s" if load.get("duration_s") else f"{planned:,}"
