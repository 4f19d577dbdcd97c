"""What an answer rests on, in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date

from loadstone.capacity.answer import Answer
from loadstone.capacity.candidates import OWN_PRICE, Asked
from loadstone.capacity.search import FINE, LESSER_FLEET, Question
from loadstone.figures import brief
from loadstone.roofline import calibration
from loadstone.roofline.setup import Efficiency
from loadstone.roofline.validation import DENSE, FITTED_VERSIONS, PAGE

MOST_DAYS = 92
"""Between two prices that are compared."""


def assumptions(found: Answer, asked: Asked, question: Question, spare: float) -> Iterator[str]:
    """One sentence each."""
    yield from _times(asked)
    yield _arrivals(question, asked)
    yield (
        "Waits are those at the engine: no network, no tokenizer, no gateway. Lengths are normal, cut four standard deviations"
        " above the mean; every answer has the length drawn for it."
    )
    if not spare:
        yield "No reserve: the fleet is as small as keeps the objectives, without a spare replica (--headroom 10 keeps 10 % free)."
    if found.best and found.best.replicas >= FINE * 2:
        yield "So many replicas are counted by the hundredth."
    yield from _prices(found)


def _times(asked: Asked) -> Iterator[str]:
    """Where the times of steps come from."""
    if asked.base.calibration is None:
        reached = Efficiency()
        yield (
            f"Steps by the roofline, at efficiencies that are assumptions until a calibration says better: {brief(100 * reached.bandwidth)} % of"
            f" the bandwidth, {brief(100 * reached.compute)} % of the FLOP/s, {brief(1e6 * reached.layer_s)} us a layer and"
            f" {brief(1e6 * reached.sequence_s)} us a sequence. They were fitted to vLLM {FITTED_VERSIONS}; published times of"
            f" dense models on NVIDIA are some {brief(round(DENSE.rms_percent))} % off (rms; {PAGE}). loadstone roofline --fit RUN... measures yours."
        )
        return
    measured = calibration.read(asked.base.calibration)
    how = (
        "fitted to simulated runs, which say nothing of hardware, of" if measured.simulated else "measured on"
    )
    yield (
        f"Steps by the roofline, at efficiencies {how} {measured.setup.gpu} with {measured.setup.model}"
        f" (within {brief(measured.rms_percent)} % rms, {brief(measured.worst_percent)} % at worst); for any other device, model or"
        " split they are taken over."
    )


def _arrivals(question: Question, asked: Asked) -> str:
    smoothness = question.workload.smoothness
    process = "Poisson" if smoothness == 1 else f"gamma, smoothness {smoothness:g}"
    if asked.base.router == "round-robin":
        return (
            f"Arrivals are {process}, and one router deals all of them out in turn, so that a replica's come more evenly;"
            " behind several routers, or one that draws lots, more replicas are needed."
        )
    return (
        f"Arrivals are {process}, behind one router ({asked.base.router}); of more than {LESSER_FLEET} replicas so many are"
        " simulated, with their share of the load."
    )


def _prices(found: Answer) -> Iterator[str]:
    """The sources of prices; who pays knows better."""
    told: dict[str, list[str]] = {}
    for way in found.ways:
        gpu = way.setup.gpu
        source = gpu.sources.get("usd_hour", "no source")
        if gpu.usd_hour is not None and source != OWN_PRICE:
            entry = f"{gpu.name} {gpu.usd_hour:.2f}"
            names = told.setdefault(source, [])
            if entry not in names:
                names.append(entry)
    if told:
        all_told = "; ".join(f"{', '.join(names)}: {source}" for source, names in told.items())
        yield f"Prices, USD a device and hour, examples of on-demand offers (--price has yours): {all_told}."
    yield from _apart(told)
    unknown = sorted({way.setup.gpu.name for way in found.ways if way.setup.gpu.usd_hour is None})
    if unknown:
        yield f"Prices not known: {', '.join(unknown)}; --price NAME=USD tells one."


def _apart(told: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """That prices are of different times, if they are too far apart to be compared."""
    dated = sorted((day, names) for source, names in told.items() if (day := _date(source)) is not None)
    if dated and (dated[-1][0] - dated[0][0]).days > MOST_DAYS:
        (first, old), *_, (last, new) = dated
        yield (
            f"These prices lie more than three months apart, from {first} ({', '.join(old)}) to {last} ({', '.join(new)}), and the"
            " order of the ways rests on them: give today's with --price."
        )


def _date(source: str) -> date | None:
    """The day of a source, by how it is written in the tables; None: it names none."""
    found = re.search(r"\b(20\d\d-\d\d-\d\d)\b", source)
    return date.fromisoformat(found[1]) if found else None
