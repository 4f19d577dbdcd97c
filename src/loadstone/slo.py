"""Objectives as people write them: `time_to_first_token.p99<500ms, tpot<20ms`. Knows names and units, no numbers of a run.

One rule: whoever reads the name of a metric takes its short names from here, so that `ttft` means the same everywhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import NamedTuple

from loadstone.errors import UsageError, did_you_mean

SHORT_NAMES = {
    "ttft": "time_to_first_token",
    "itl": "inter_token_latency",
    "tpot": "time_per_output_token",
    "e2e": "request_latency",
    "e2el": "request_latency",
    "latency": "request_latency",
}
"""What the field writes short, and the metric that is meant; `e2el` is vLLM's word."""
STATS = ("mean", "min", "max", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99_9")
UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
_FORM = re.compile(
    r"([a-z_][a-z_0-9]*?)(?:\.([a-z0-9_.]+))?\s*<\s*([0-9.]+(?:e-?[0-9]+)?)\s*([a-z]*)", re.IGNORECASE
)
EXAMPLE = "write for example time_to_first_token.p99<500ms,inter_token_latency.p99<40ms"


class Objective(NamedTuple):
    """A statistic of a metric of time that has to stay below a limit."""

    metric: str
    stat: str
    limit_ms: float

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.metric}.{self.stat}<{self.limit_ms:g}ms"


def objectives(text: str, metrics: Collection[str], stat: str = "p99") -> list[Objective]:
    """The objectives in a text, separated by commas; `stat` where one names none.

    Raises `UsageError` for one that is not of this form, or whose metric is none of `metrics`, or that stands there twice.
    """
    found: list[Objective] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        objective = _objective(part, metrics, stat)
        if any(other[:2] == objective[:2] for other in found):
            default = f" ({stat} is the default)" if objective.stat == stat else ""
            raise UsageError(
                f"--slo {part!r}: {objective.metric}.{objective.stat} is limited twice{default}; give it once."
            )
        found.append(objective)
    if not found:
        raise UsageError(f"--slo is empty; {EXAMPLE}.")
    return found


def _objective(part: str, metrics: Collection[str], default: str) -> Objective:
    match = _FORM.fullmatch(part)
    if not match:
        raise UsageError(f"--slo {part!r} is not METRIC.STATISTIC<LIMIT; {EXAMPLE}.{_meant(part)}")
    name, stat, number, unit = match.groups()
    metric = SHORT_NAMES.get(name.lower(), name.lower())
    if metric not in metrics:
        known = f"Known: {', '.join(sorted(metrics))}."
        raise UsageError(f"--slo {part!r}: there is no {name}. {did_you_mean(metric, metrics)} {known}")
    stat = (stat or default).lower().replace(".", "_")
    if stat not in STATS:
        raise UsageError(f"--slo {part!r}: there is no {stat}. Known: {', '.join(STATS)}.")
    if unit not in UNITS_MS:
        raise UsageError(f"--slo {part!r}: the limit needs a unit: {', '.join(UNITS_MS)}.")
    try:
        limit = float(number) * UNITS_MS[unit]
    except ValueError:
        raise UsageError(f"--slo {part!r}: {number} is not a number.") from None
    if not (limit > 0 and math.isfinite(limit)):
        raise UsageError(f"--slo {part!r}: the limit has to be above 0, and finite.")
    return Objective(metric, stat, limit)


def _meant(part: str) -> str:
    """A hint to what was written in the way of another flag, or of another language."""
    if "<=" in part or ">" in part:
        return " A statistic is kept when it is below its limit: <."
    if ":" in part:
        return " METRIC:NUMBER is how --goodput of loadstone profile limits each request."
    return ""
