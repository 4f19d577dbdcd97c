"""What is known of the devices under test: how many there are, what they cost, how much energy they took. Knows no metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loadstone.roofline.case import Case

if TYPE_CHECKING:
    from loadstone.metrics._tables import Tables

ENERGY = "energy_j"
"""Of `run.json`'s environment: joules that all devices of the servers took over the measured phases, from the first send to the
last event, as telemetry measured them. Not there where nobody measured."""
_APART = "the devices served other requests beside these; the whole run has the number."


def devices(tables: Tables) -> float | None:
    """How many devices serve the load: as told, else as many as the one server of --roofline has; None: not known."""
    told = tables.config.cost.gpus
    case = tables.run.environment.get("roofline")
    if told is not None or case is None or len(tables.config.endpoint.urls) > 1:
        return told
    known = msgspec.convert(case, Case)
    return float(
        known.parallel.devices if known.parallel.data > 1 else known.parallel.devices * known.replicas
    )


def price_second(tables: Tables) -> float | None:
    """USD that all devices cost a second; None where that is not known."""
    price, count = tables.config.cost.gpu_hour_price, devices(tables)
    return None if price is None or count is None else price * count / 3600


def unpriced(tables: Tables) -> str:
    """Why there is no cost where a price was given; empty where there is one, or was none."""
    if tables.config.cost.gpu_hour_price is None:
        return ""
    if devices(tables) is None:
        return "how many devices serve the load is not known (--gpus)."
    return _APART if tables.apart else ""


def energy_j(tables: Tables) -> float | None:
    """Joules that all devices took over the measured phases; None where nobody measured."""
    told = tables.run.environment.get(ENERGY)
    return float(told) if isinstance(told, int | float) and told > 0 else None


def unpowered(tables: Tables) -> str:
    """Why there is no energy of these requests though there is one of the run; empty where there is one, or none at all."""
    if energy_j(tables) is None:
        return ""
    measured = {log.name for log in tables.run.phases if log.kind == "measured"}
    return _APART if tables.apart or {log.name for log in tables.phases} != measured else ""
