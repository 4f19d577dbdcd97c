"""Objectives as people write them: `time_to_first_token.p99<500ms, error_rate<0.1%`. Knows names and units, no numbers of a run.

`METRIC[.STATISTIC]<LIMIT[UNIT]`, `>` where higher is better. With a statistic, or of a metric that is one number, it is
about the whole run; without one it is about each request. Two rules: whoever reads the name of a metric takes its short
names from here, so that `ttft` means the same everywhere; and a value exactly at its limit keeps it, so `<=` is the same
as `<`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from loadstone.errors import UsageError, nearest

SHORT_NAMES = {
    "ttft": "time_to_first_token",
    "itl": "inter_token_latency",
    "tpot": "time_per_output_token",
    "e2e": "request_latency",
    "e2el": "request_latency",
    "latency": "request_latency",
}
"""What the field writes short, and the metric that is meant; `e2el` is vLLM's word."""
ADJUSTED = "adjusted_"
"""Begins the name of a latency in which a request that failed took for ever."""
SHORT_STATS = {"avg": "mean", "average": "mean", "median": "p50"}
"""The words of AIPerf and of vllm bench for a statistic."""
STATS = ("mean", "min", "max", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99_9")
ASKED_FOR = ("ttft", "tpot", "itl", "e2el", "output_token_throughput", "goodput_attainment", "error_rate")
"""What most objectives are about: named where there are too many metrics to name them all."""
MOST_NAMED = 12
UNITS_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
EXAMPLE = "write for example time_to_first_token.p99<500ms,error_rate<0.1%"
_FORM = re.compile(
    r"([a-z_][a-z_0-9]*?)(?:\.([a-z0-9_.]+))?\s*([<>])=?\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*(.*)", re.IGNORECASE
)

_OTHER = re.compile(r"(mean|avg|average|median|min|max|p\d+(?:_\d+)?)_(\w+?)(?:_(?:ms|s))?")
"""A statistic as it stands in the names of results files of other tools: `p99_ttft_ms`."""


class Kind(NamedTuple):
    """What may be asked of a metric. `number`: it is one number and has no statistics; `each`: a request has a value."""

    unit: str = "ms"
    better: Literal["lower", "higher", "neither"] = "lower"
    number: bool = False
    each: bool = False


TIME = Kind(each=True)
"""Any latency."""


class Objective(NamedTuple):
    """What a statistic of a metric has to stay below, or above; the limit is in the metric's unit."""

    metric: str
    stat: str
    """Empty: the value of each request, or the one number that the metric is."""
    limit: float
    unit: str = "ms"
    better: Literal["lower", "higher"] = "lower"
    each: bool = False
    """It is about each request, and so one of the limits of goodput."""

    def keeps(self, value: float) -> bool:
        """Whether a value is on the good side of the limit; one at the limit is."""
        return value <= self.limit if self.better == "lower" else value >= self.limit

    def __str__(self) -> str:
        """As it is written."""
        sign = "<" if self.better == "lower" else ">"
        return f"{self.what}{sign}{self.limit:.10g}{self.unit}"

    @property
    def what(self) -> str:
        """The part before the sign."""
        return f"{self.metric}.{_said(self.stat)}" if self.stat else self.metric


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """An objective of which it can be certain, while the load lasts, that it is missed: it allows so many requests beyond it.

    A request is beyond it when it has a value above one of `limits`, or, with `failures`, when it failed.
    """

    objective: str
    """As it is written."""
    limits: dict[str, float]
    """Milliseconds by metric."""
    failures: bool
    most: int
    """With more of the `planned` requests beyond it even an end without a further one leaves it missed."""
    planned: int


MOST_WATCHED = 8
"""Objectives that can be watched at once."""


def split(texts: Sequence[str]) -> list[str]:
    """The objectives in texts that each have one, or several separated by commas."""
    return [part for text in texts for part in map(str.strip, text.split(",")) if part]


def objectives(
    texts: Sequence[str],
    metrics: Mapping[str, Kind],
    default: str = "",
    elsewhere: Callable[[str], str | None] = lambda _: None,
) -> list[Objective]:
    """The objectives in some texts. `default` is the statistic of one that names none, where there are no requests to ask;
    `elsewhere` gives the metric that another tool's name means, to be named in the refusal.

    Raises `UsageError` for one that is not of this form, whose metric is none of `metrics`, whose unit or sign is not
    the metric's, or that stands there twice.
    """
    found: list[Objective] = []
    for part in split(texts):
        objective = _objective(part, metrics, default, elsewhere)
        if any(other[:2] == objective[:2] for other in found):
            usual = f" ({default} is the default)" if default and objective.stat == default else ""
            raise UsageError(f"--slo {part!r}: {objective.what} is limited twice{usual}; give it once.")
        found.append(objective)
    if not found:
        raise UsageError(f"--slo is empty; {EXAMPLE}.")
    return found


def _objective(
    part: str, metrics: Mapping[str, Kind], default: str, elsewhere: Callable[[str], str | None]
) -> Objective:
    if ";" in part:
        raise UsageError(f"--slo {part!r}: objectives are separated by commas.")
    match = _FORM.fullmatch(part)
    if not match:
        raise UsageError(f"--slo {part!r} is not METRIC.STATISTIC<LIMIT; {EXAMPLE}.{_meant(part)}")
    name, stat, sign, number, unit = match.groups()
    metric = SHORT_NAMES.get(name.lower(), name.lower())
    kind = metrics.get(metric)
    if kind is None:
        raise UsageError(f"--slo {part!r}: there is no {name}. {_instead(metric, metrics, elsewhere)}")
    if kind.better == "neither":
        raise UsageError(
            f"--slo {part!r}: of {metric} neither more nor less is better, so it can be no objective."
        )
    better = "<" if kind.better == "lower" else ">"
    if sign != better:
        raise UsageError(f"--slo {part!r}: {kind.better} is better for {metric}: write {better}.")
    chosen = _stat(part, metric, kind, stat, default)
    limit = _limit(part, number, unit, kind)
    return Objective(metric, chosen, limit, kind.unit, kind.better, each=not (chosen or kind.number))


def _instead(name: str, metrics: Mapping[str, Kind], elsewhere: Callable[[str], str | None]) -> str:
    """What to write for a name that is none: what it means in another tool, what it may be a slip for, or what there is."""
    other = _OTHER.fullmatch(name)
    stat, bare = other.groups() if other else ("", name)
    long = "_".join(SHORT_NAMES.get(word, word) for word in bare.split("_"))
    found = long if long in metrics else elsewhere(name) or nearest(long, [*metrics, *SHORT_NAMES])
    if found in (*metrics, *SHORT_NAMES):
        full = SHORT_NAMES.get(found, found)
        behind = "" if not stat or metrics[full].number else f".{_said(SHORT_STATS.get(stat, stat))}"
        return f"Did you mean {found}{behind}?"
    known = sorted(_with_limits(metrics))
    if len(known) <= MOST_NAMED:
        return f"Known: {', '.join(known)}."
    return f"Most ask for {', '.join(ASKED_FOR)}; `loadstone explain` lists all."


def _said(stat: str) -> str:
    """A statistic as people write it: `p99.9`."""
    return stat.replace("_", ".")


def _with_limits(metrics: Mapping[str, Kind]) -> Iterator[str]:
    return (name for name, kind in metrics.items() if kind.better != "neither")


def _stat(part: str, metric: str, kind: Kind, stat: str | None, default: str) -> str:
    """The statistic that is meant; empty for each request, and for a metric that is one number."""
    if kind.number:
        if stat:
            raise UsageError(f"--slo {part!r}: {metric} is one number; leave .{stat} out.")
        return ""
    if not (stat or default or kind.each):
        raise UsageError(
            f"--slo {part!r}: no single request has a {metric}; name a statistic, such as {metric}.p99."
        )
    stat = stat.lower().replace(".", "_") if stat else default
    stat = SHORT_STATS.get(stat, stat)
    if stat and stat not in STATS:
        raise UsageError(f"--slo {part!r}: there is no {_said(stat)}. Known: {', '.join(map(_said, STATS))}.")
    return stat


def _limit(part: str, number: str, unit: str, kind: Kind) -> float:
    """The limit in the metric's unit."""
    try:
        limit = float(number) * _scale(part, unit.strip(), kind.unit)
    except ValueError:
        raise UsageError(f"--slo {part!r}: {number} is not a number.") from None
    if not (limit > 0 and math.isfinite(limit)):
        raise UsageError(f"--slo {part!r}: the limit has to be above 0, and finite.")
    return limit


def _scale(part: str, unit: str, own: str) -> float:
    """By what a number in `unit` is multiplied to be in the metric's `own` one. A time and a share need theirs."""
    if own in UNITS_MS:
        if unit in UNITS_MS:
            return UNITS_MS[unit] / UNITS_MS[own]
        raise UsageError(f"--slo {part!r}: the limit needs a unit: {', '.join(UNITS_MS)}.")
    if unit == own or (not unit and own != "%"):
        return 1.0
    if own == "%":
        raise UsageError(f"--slo {part!r}: the limit is a share and needs the unit %.")
    raise UsageError(f"--slo {part!r}: {unit} is not its unit; write {own}, or none.")


def _meant(part: str) -> str:
    """A hint to what was written in the way of another flag, or of another language."""
    if ":" in part:
        return " METRIC:NUMBER is how --goodput of loadstone profile limits each request; here it is METRIC<LIMIT."
    return ""
