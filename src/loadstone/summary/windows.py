"""The numbers of stretches of time: the whole run, what was measured, the steady state in it, and slices.

Of the whole run and of what was measured they are those of the requests, ramp and drain included. In the steady state and in
slices throughputs are of what arrived in them (of an answer that began before, only the tokens that came within), and
latencies of the requests that were sent in them, however late they were answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import polars as pl
from msgspec.structs import replace

from loadstone.checks import Evidence
from loadstone.metrics import Tables, all_metrics, capped
from loadstone.metrics._flow import arrived
from loadstone.metrics._steady import Drift, Steady, drifts, steady
from loadstone.metrics._sweep import Ints, levels, means
from loadstone.report import MetricResult, Trend, Window
from loadstone.stats import Floats
from loadstone.summary.groups import numbers, told, waits_grew
from loadstone.summary.outcomes import counts

RATES = ("output_token_throughput", "request_throughput", "concurrency")
"""What is told of a window itself; beside it stands what is told of any part of the requests."""
SATURATED = "requests waited longer and longer until the load ended, so there was none."
UNKNOWN = "the number of tokens is not known for any answer."
MOST_SLICES = 2000
"""More would make the report larger than the table of requests, and nobody reads them."""


def windows(table: pl.LazyFrame, evidence: Evidence) -> tuple[Window, ...]:
    """The whole run where other phases ran as well, what was measured, and the steady state."""
    tables = evidence.tables
    names = [log.name for log in tables.run.phases]
    found = [_plain("measured", tables, evidence)]
    if len(names) > len(tables.phases):
        whole = Tables.read(table, tables.run, names)
        found.insert(0, _plain("whole", whole, evidence))
    return (*found, _steady(evidence))


def slices(evidence: Evidence) -> tuple[Window, ...]:
    """The time from the start of the measurement to the last event in slices as long as was asked for; the last one may be
    shorter, and is marked then. None where that would be more than `MOST_SLICES`.
    """
    tables = evidence.tables
    window_ns, start_ns, number = tables.window_ns, tables.start_ns, _slices(tables)
    if window_ns is None or start_ns is None or not 0 < number <= MOST_SLICES:
        return ()
    length_ns = _slice_ns(tables)
    edges_ns = start_ns + length_ns * np.arange(number + 1)
    whole = edges_ns[-1] == window_ns[1]
    edges_ns[-1] = window_ns[1]
    ends_s = [f"{round(_since(edge_ns, start_ns), 3):.10g}" for edge_ns in edges_ns.tolist()]
    found = _cut(evidence, [f"{start}-{stop} s" for start, stop in pairwise(ends_s)], edges_ns)
    return (*found[:-1], replace(found[-1], complete=bool(whole)))


def about_slices(tables: Tables) -> Iterator[str]:
    """That there are too many slices to tell of."""
    if (number := _slices(tables)) > MOST_SLICES:
        yield (
            f"--slice-duration {tables.config.output.slice_duration_s:g} makes {number:,} slices of this run, and a report"
            f" has {MOST_SLICES:,} at most: none is told of."
        )


def _slices(tables: Tables) -> int:
    """How many slices there would be; 0 where none were asked for, or nothing was measured."""
    window_ns, start_ns = tables.window_ns, tables.start_ns
    if tables.config.output.slice_duration_s is None or window_ns is None or start_ns is None:
        return 0
    return -((start_ns - window_ns[1]) // _slice_ns(tables))


def _slice_ns(tables: Tables) -> int:
    return max(round((tables.config.output.slice_duration_s or 0.0) * 1e9), 1)


def _plain(name: str, of: Tables, evidence: Evidence) -> Window:
    """The numbers of all requests of some phases over their own window."""
    measured, names = evidence.tables, [*told(of), RATES[-1]]
    metrics = (
        {one: evidence.metrics[one] for one in names}
        if of is measured
        else numbers(of, waits_grew(of, evidence), names)
    )
    window_ns, start_ns = of.window_ns, measured.start_ns
    return Window(
        name=name,
        planned=len(of.requests),
        counts=counts(of.requests),
        metrics=metrics,
        start_s=_since(window_ns[0], start_ns) if window_ns else None,
        end_s=_since(window_ns[1], start_ns) if window_ns else None,
        share=_share(*window_ns, measured) if window_ns else None,
        reason=None if window_ns else metrics[RATES[-1]].reason,
    )


def _steady(evidence: Evidence) -> Window:
    tables, behind = evidence.tables, waits_grew(evidence.tables, evidence)
    # Where a limit of ours holds the queue, the server behind it may well be in a steady state.
    settled = [load.name for load in tables.loads if load.name not in behind or capped(load)]
    unsent = evidence.metrics[RATES[-1]].reason
    span = unsent or (steady(tables.of_phases(*settled)) if settled else SATURATED)
    if not isinstance(span, Steady):
        return Window(name="steady", planned=0, counts={}, metrics={}, start_s=None, end_s=None, reason=span)
    (found,) = _cut(evidence, ["steady"], np.array([span.start_ns, span.stop_ns]))
    trends = tuple(map(_trend, drifts(tables, span)))
    return replace(found, level=span.level, level_is=span.level_is, trends=trends)


def _trend(drift: Drift) -> Trend:
    change = None if drift.change is None else 100 * drift.change
    return Trend(of=drift.of, found=drift.found, change_percent=change, p=drift.p, reason=drift.reason)


def _cut(evidence: Evidence, names: list[str], edges_ns: Ints) -> list[Window]:
    """The windows between each edge and the next."""
    tables, behind = evidence.tables, waits_grew(evidence.tables, evidence)
    latencies = [name for name in told(tables) if name not in RATES]
    sent_ns = tables.requests["sent_ns"].fill_null(-1).to_numpy()
    done_ns = tables.requests["done_ns"].fill_null(-1).to_numpy()[tables.succeeded]
    came = np.histogram(done_ns, edges_ns)[0]
    tokens = arrived(tables, edges_ns)
    lasts_s = np.diff(edges_ns) / 1e9
    concurrency = _concurrency(tables, edges_ns)
    unknown = bool(np.isnan(tables.number("output_tokens"))[tables.succeeded].all())
    found = []
    for place, (name, (start_ns, stop_ns)) in enumerate(zip(names, pairwise(edges_ns.tolist()), strict=True)):
        own = tables.only((sent_ns >= start_ns) & (sent_ns < stop_ns))
        metrics = numbers(own, behind, latencies)
        rates = (
            None if unknown else tokens[place] / lasts_s[place],
            came[place] / lasts_s[place],
            concurrency[place],
        )
        metrics |= {one: _number(one, rate) for one, rate in zip(RATES, rates, strict=True)}
        found.append(
            Window(
                name=name,
                planned=len(own.requests),
                counts=counts(own.requests),
                metrics=metrics,
                start_s=_since(start_ns, tables.start_ns),
                end_s=_since(stop_ns, tables.start_ns),
                share=_share(start_ns, stop_ns, tables),
            )
        )
    return found


def _concurrency(tables: Tables, edges_ns: Ints) -> Floats:
    """The mean number of requests in flight between each edge and the next."""
    flown = tables.requests.select("sent_ns", left_ns=tables.left_ns).drop_nulls()
    ends = (int(edges_ns[0]), int(edges_ns[-1]))
    return means(levels(flown["sent_ns"].to_numpy(), flown["left_ns"].to_numpy(), ends), ends[0], edges_ns)


def _number(name: str, value: float | None) -> MetricResult:
    metric = all_metrics()[name]
    if value is None:
        return MetricResult(unit=metric.unit, better=metric.better, reason=UNKNOWN)
    return MetricResult(unit=metric.unit, better=metric.better, count=1, mean=float(value))


def _since(moment_ns: int, start_ns: int | None) -> float:
    """Seconds from the start of the measurement."""
    return (moment_ns - (moment_ns if start_ns is None else start_ns)) / 1e9


def _share(start_ns: int, stop_ns: int, tables: Tables) -> float | None:
    """The length of a window as a share of what was measured."""
    return (stop_ns - start_ns) / 1e9 / tables.window_s if tables.window_s else None
