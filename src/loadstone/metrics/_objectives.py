"""Which metrics can be an objective, and the objectives of a configuration: found wrong before anything is sent.

Those about each request join the limits of --goodput, so that there is one set of them. Looks at no table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import get_args, get_type_hints

import msgspec

from loadstone.config import ENGINE, Config, check_goodput
from loadstone.errors import UsageError
from loadstone.metrics import NEEDS, Metric, Number, all_metrics, of_one
from loadstone.metrics import objectives as judged_alone
from loadstone.metrics._tables import capped, limited
from loadstone.plan.schedule import Phase
from loadstone.slo import Kind, Objective, objectives


@cache
def kinds() -> Mapping[str, Kind]:
    """What may be asked of every metric; the return type of its function says whether it is one number."""
    return {
        name: Kind(one.unit, one.better, number=_is_number(one), each=of_one(one) is not None)
        for name, one in all_metrics().items()
    }


def settled(config: Config, phases: Sequence[Phase]) -> Config:
    """The configuration with every limit for one request in `slo.goodput`.

    Raises `UsageError` for an objective that is none, that no run of this load can have a value for, or that
    contradicts --goodput.
    """
    given = config.slo
    check_goodput(config, judged_alone())
    found = objectives(given.objectives, kinds(), elsewhere=_of_other_tools) if given.objectives else []
    limits = dict(given.goodput)
    for one in found:
        if one.each and limits.setdefault(one.metric, one.limit) != one.limit:
            raise UsageError(
                f"--slo {one} and --goodput {one.metric}:{limits[one.metric]:g} limit the same; leave one of them out."
            )
    for name in limits:
        if why := absent(of_one(all_metrics()[name]) or all_metrics()[name], config, phases, bool(limits)):
            raise UsageError(f"{name} can be no objective of this run: {why}")
    for one in found:
        if why := absent(all_metrics()[one.metric], config, phases, bool(limits)):
            raise UsageError(f"--slo {one}: {one.metric} has no value in this run: {why}")
    return msgspec.structs.replace(config, slo=msgspec.structs.replace(given, goodput=limits))


def of_run(config: Config) -> list[Objective]:
    """The objectives with a verdict: those about the whole run."""
    given = config.slo.objectives
    return [one for one in objectives(given, kinds()) if not one.each] if given else []


def absent(metric: Metric, config: Config, phases: Sequence[Phase], limited_each: bool) -> str:
    """Why no run of this load has a value of a metric, as far as that can be known before; empty where it may have."""
    measured = [phase for phase in phases if phase.kind == "measured"]
    has = {
        "streaming": config.endpoint.streaming,
        "rate": all(phase.timed for phase in measured),
        "cap": any(map(capped, measured)),
        "no cap": not any(map(limited, measured)),
        "roofline": bool(config.server.roofline)
        or all(one.startswith(ENGINE) for one in config.endpoint.urls),
        "objectives": limited_each,
    }
    return next((NEEDS[need].reason for need in metric.needs if not has.get(need, True)), "")


def _of_other_tools(word: str) -> str | None:
    """The metric that another tool's name means."""
    from loadstone.metrics._namesakes import ours  # for a name that is none of ours

    return ours(word, kinds())


def _is_number(metric: Metric) -> bool:
    returned = get_type_hints(metric.fn)["return"]
    return bool({Number, float} & {returned, *get_args(returned)})
