"""Faults: the ways in which the server answers wrongly when it is told to, so that clients can be tested.

A fault is one small declaration in the file of its family: a pure function from the request and its good answer to
the steps that the server plays (`steps.py`). `family.py` says how one is written.
"""

from __future__ import annotations

from loadstone.sim.faults import connections, content, endings, framing, hostile, statuses
from loadstone.sim.faults.family import Family, Fault
from loadstone.sim.faults.script import Script

__all__ = ["FAMILIES", "FAULTS", "Family", "Fault", "Script"]

FAMILIES = (
    framing.FAMILY, content.FAMILY, endings.FAMILY, statuses.FAMILY, connections.FAMILY, hostile.FAMILY,
)  # fmt: skip
FAULTS: dict[str, Fault] = {fault.name: fault for family in FAMILIES for fault in family.faults}
"""All of them by name, in the order of the list."""
