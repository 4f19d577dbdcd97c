"""Metrics: pure functions on tables. A metric is one decorated function; its docstring is its documentation.

```
@metric("time_to_first_token", unit="ms", better="lower", needs=("success", "streaming"))
def time_to_first_token(tables: Tables) -> Result: ...
```
The modules of this package (or of the entry-point group `loadstone.metrics`) are searched for them. A metric that
cannot be computed is `Missing` with a reason, never 0: `needs` names what must hold before it is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from loadstone import registry
from loadstone.errors import UsageError
from loadstone.estimate.rates import Paced
from loadstone.histogram import Histogram
from loadstone.metrics._hardware import energy_j, price_second, unpowered, unpriced
from loadstone.metrics._tables import Tables, capped, limited
from loadstone.stats import Floats, Weighted

__all__ = [
    "NEEDS",
    "Each",
    "Metric",
    "Missing",
    "Need",
    "Number",
    "Result",
    "Samples",
    "Tables",
    "all_metrics",
    "capped",
    "limited",
    "metric",
    "names",
    "objectives",
    "of_one",
    "per_request",
]

Better = Literal["lower", "higher", "neither"]


class Each(NamedTuple):
    """One value a request, in the order of `tables.requests` and the metric's unit; NaN where it has none.

    A function says by its return type that this is what it gives. The distribution is over the successes, or with
    `failed_too` over all requests. `none` is the reason to give when no value is left.

    `cut_off` is for a time that a request may not have come to the end of, because we cut it off, with the run or at a
    time limit (or never sent it): how long it had lasted by then; NaN for every other request. What came before we
    cut a request off stands in `values` and was seen to its end. `at_most` bounds a value that cannot be told from above; NaN where nothing does.
    """

    values: Floats
    none: str
    note: str | None = None
    failed_too: bool = False
    cut_off: Floats | None = None
    at_most: Floats | None = None


class Samples(NamedTuple):
    """A distribution that is not one value a request, in the metric's unit; see `stats` for weighted samples.

    An array is consumed; a histogram stands for more samples than are kept one by one. `counted` stands in for the sum of
    the weights where that is no number of samples.
    `ended` and `censored` are there where we cut some of the requests off: all times that were seen to their end, those
    of such requests included, and those that were not. `batches` are the same samples run by run of equally many
    requests, in the order of sending: what the interval of a pooled distribution is made from. `in_order`: the values are
    one a request, in the order of sending.
    """

    values: Floats | Weighted | Histogram
    note: str | None = None
    counted: int | None = None
    ended: Floats | None = None
    censored: Floats | None = None
    batches: tuple[Histogram, ...] = ()
    in_order: bool = False


class Number(NamedTuple):
    """A metric that is one number, with a note, and what its interval is made from.

    `rate` is what each request brought and the time that it took up, in the order of sending: the value is the one sum over the
    other. `hits` says of each thing that was counted, in the order of sending, whether it was one: the value is their share
    in percent; `values` are those that made them hits or not. With both it is a rate of hits. Without either the number
    has no interval.
    """

    value: float
    note: str | None = None
    rate: tuple[Floats, Paced] | None = None
    hits: NDArray[np.bool_] | None = None
    values: Floats | None = None


class Missing(NamedTuple):
    """A metric that cannot be computed, and why, in one sentence.

    `ended` and `censored` are there, as in `Samples`, where we cut some of the requests off: though none succeeded, it is
    known how long they took at least.
    """

    reason: str
    ended: Floats | None = None
    censored: Floats | None = None


Result = Each | Samples | Number | float | Missing


class Need(NamedTuple):
    """A condition of a metric."""

    met: Callable[[Tables], bool]
    reason: str
    """Why there is no value when it is not met, as a sentence for the report."""
    lack: str
    """The same in a few words, for the documentation: null ..."""
    partly: Callable[[Tables], str] = lambda tables: ""
    """The reason where it is met in some phases; empty where it is in none."""


NEEDS: dict[str, Need] = {
    "streaming": Need(
        lambda tables: tables.streaming,
        "it needs a stream, and answers came whole (set --streaming).",
        "without --streaming",
    ),
    "rate": Need(
        lambda tables: tables.has_rate,
        "it needs due times (a request rate or a schedule); in a closed loop a request is due when a slot frees.",
        "in a closed loop",
        partly=lambda tables: _mixed(tables),
    ),
    "cap": Need(
        lambda tables: tables.has_cap,
        "requests wait for a slot only where a rate or a schedule goes together with a limit (--concurrency,"
        " --prefill-concurrency).",
        "without both due times and a limit",
    ),
    "no cap": Need(
        lambda tables: not tables.has_limit,
        "with a limit the wait for it cannot be told from lag (where requests have due times, queue_wait has both).",
        "where due times, or a closed loop with --prefill-concurrency, go together with a limit",
    ),
    "roofline": Need(
        lambda tables: tables.run.environment.get("roofline") is not None,
        "no roofline was named (--roofline gpu=NAME,model=NAME).",
        "without --roofline",
    ),
    "price": Need(
        lambda tables: price_second(tables) is not None and not unpriced(tables),
        "no price was given (--gpu-hour-price, and --gpus for how many).",
        "without --gpu-hour-price",
        partly=lambda tables: unpriced(tables),
    ),
    "energy": Need(
        lambda tables: energy_j(tables) is not None and not unpowered(tables),
        "nobody measured the energy of the servers' devices.",
        "where no telemetry measured it",
        partly=lambda tables: unpowered(tables),
    ),
    "connections": Need(
        lambda tables: not tables.run.simulated,
        "there are no connections on the virtual clock.",
        "in a simulation (--virtual)",
    ),
    "objectives": Need(
        lambda tables: bool(tables.goodput),
        "no limit for a request was set (--slo METRIC<LIMIT, --goodput METRIC:VALUE).",
        "without a limit for each request (--slo, --goodput)",
    ),
    "plan": Need(
        lambda tables: len(tables.requests) > 0,
        "no request was planned.",
        "when no request was planned",
        partly=lambda tables: _lost(tables),
    ),
    "attempt": Need(
        lambda tables: bool(tables.attempted.any()),
        "no request was sent.",
        "when no request was sent",
        partly=lambda tables: _lost(tables),
    ),
    "success": Need(
        lambda tables: bool(tables.succeeded.any()),
        "no request succeeded.",
        "when no request succeeded",
        partly=lambda tables: _lost(tables),
    ),
    "failure": Need(
        lambda tables: bool(tables.failed.any()),
        "no request failed, so it would be the plain latency once more.",
        "where no request failed",
        partly=lambda tables: _lost(tables),
    ),
    "window": Need(
        lambda tables: tables.window_s > 0,
        "no time passed between the first send and the last event.",
        "when the window has no length",
    ),
}
"""Conditions that metrics name in `needs`, checked in the order in which they name them."""


class Metric(NamedTuple):
    """A metric and what it is called."""

    name: str
    unit: str
    better: Better
    needs: tuple[str, ...]
    each: str | None
    """The metric that stands for this one where a single request is judged; None: itself."""
    fn: Callable[[Tables], Result]

    @property
    def doc(self) -> str:
        """What it means, with formula and source."""
        return self.fn.__doc__ or ""

    def result(self, tables: Tables) -> Samples | Number | Missing:
        """What the tables give: a distribution, a number, or the reason why there is none.

        Where no request succeeded, a time that was cut off is looked at all the same.
        """
        lacking = [need for need in self.needs if not NEEDS[need].met(tables)]
        if lacking and not (lacking == ["success"] and get_type_hints(self.fn)["return"] is Each):
            need = NEEDS[lacking[0]]
            return Missing(need.partly(tables) or need.reason)
        result = self.fn(tables)
        if isinstance(result, Each):
            return _distribution(result, tables)
        return Number(result) if isinstance(result, float) else result


def metric(
    name: str, *, unit: str, better: Better, needs: tuple[str, ...] = (), each: str | None = None
) -> Callable[[Callable[[Tables], Result]], Any]:
    """Marks a function as the metric `name`."""

    def mark(fn: Callable[[Tables], Result]) -> Callable[[Tables], Result]:
        fn.metric = Metric(name, unit, better, needs, each, fn)  # type: ignore[attr-defined]  # for all_metrics
        return fn

    return mark


@cache
def all_metrics() -> dict[str, Metric]:
    """Every metric by name, in the order of display: modules by their `ORDER`, then as they stand in them."""
    modules = [registry.load("metrics", name) for name in registry.names("metrics")]
    modules.sort(key=lambda module: (getattr(module, "ORDER", 100), module.__name__))
    found: dict[str, Metric] = {}
    for module in modules:
        for value in vars(module).values():
            mark = getattr(value, "metric", None)
            if isinstance(mark, Metric) and mark.fn.__module__ == module.__name__:
                found[mark.name] = mark
    return found


def names() -> tuple[str, ...]:
    """The names of all metrics, in the order of display."""
    return tuple(all_metrics())


def objectives() -> tuple[str, ...]:
    """Names that can be an objective of one request: metrics with a value a request and a better direction."""
    return tuple(name for name, one in all_metrics().items() if one.better != "neither" and of_one(one))


def per_request(name: str, tables: Tables, *, bounded: bool = False) -> Floats:
    """The metric's value of every request, in its unit and the tables' order; NaN where there is none.

    With `bounded` what a value is at most stands where it cannot be told. Raises `UsageError` for a name that is not a
    metric of single requests.
    """
    one = of_one(all_metrics()[name]) if name in all_metrics() else None
    if one is None:
        raise UsageError(f"{name} has no value for a single request; use one of {', '.join(objectives())}.")
    result = one.fn(tables) if all(NEEDS[need].met(tables) for need in one.needs) else None
    if not isinstance(result, Each):
        return np.full(len(tables.requests), np.nan)
    if bounded and result.at_most is not None:
        return np.where(np.isnan(result.values), result.at_most, result.values)
    return result.values


def of_one(one: Metric) -> Metric | None:
    """The metric that judges a single request where `one` is asked for. Its return type, `Each`, tells."""
    stand_in = all_metrics()[one.each] if one.each else one
    return stand_in if get_type_hints(stand_in.fn)["return"] is Each else None


def _lost(tables: Tables) -> str:
    """Why a simulation that was cut off has no such number; empty for any other run."""
    run = tables.run
    return (
        "it was cut off before what came of its requests was stored." if run.simulated and run.cut_off else ""
    )


def _mixed(tables: Tables) -> str:
    """Why there are no numbers from due times where only some phases have them."""
    closed = [load.name for load in tables.loads if not load.timed]
    if len(closed) == len(tables.loads):
        return ""
    phases = (
        f"phase {closed[0]} is a closed loop"
        if len(closed) == 1
        else f"phases {', '.join(closed)} are closed loops"
    )
    return f"it needs due times in every phase, and {phases}; phases in report.json has the numbers of each."


def _distribution(each: Each, tables: Tables) -> Samples | Missing:
    known = np.isfinite(each.values)
    kept = known if each.failed_too else known & tables.succeeded
    ended, censored = _cut_off(each, known, kept, tables)
    if kept.any():
        sent = tables.sending_order
        values = each.values[sent[kept[sent]]]
        return Samples(values, each.note, ended=ended, censored=censored, in_order=True)
    none = each.none if each.failed_too or tables.succeeded.any() else NEEDS["success"].reason
    none = none if tables.attempted.any() else _lost(tables) or none
    return Missing(none, ended, censored)


def _cut_off(
    each: Each, known: NDArray[np.bool_], kept: NDArray[np.bool_], tables: Tables
) -> tuple[Floats, Floats] | tuple[None, None]:
    """All times that were seen to their end, and those that were not; None when we cut off no request that had one."""
    if each.cut_off is None:
        return None, None
    cut = np.isfinite(each.cut_off)
    seen = known & ~cut & (kept | tables.cut_off)
    if not cut.any() and np.array_equal(seen, kept):
        return None, None
    return each.values[seen], each.cut_off[cut]
