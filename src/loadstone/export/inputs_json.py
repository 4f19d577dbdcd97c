"""`inputs.json`: the body of every planned request, in the form AIPerf writes.

`{"data": [{"session_id": "...", "payloads": [{...}, ...]}, ...]}`; a session is a conversation, its payloads are
its turns. Bodies are copied from the plan as they were sent, one at a time. Bodies that were composed
ahead of need but never due are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import BinaryIO

from loadstone import folder as layout
from loadstone.export import replacing
from loadstone.plan.store import BODIES, Row, read_rows
from loadstone.report import Report

ROLE = "inputs"
FILE = "inputs.json"


def wanted(report: Report) -> bool:
    """Unless `output.inputs_json` is off."""
    return bool(report.config.get("output", {}).get("inputs_json", True))


def write(report: Report, folder: Path) -> None:
    """Writes `inputs.json`."""
    with replacing(folder / FILE) as file:
        file.write(b'{"data": [')
        for position, session in enumerate(sessions(folder)):
            file.write(b",\n" if position else b"\n")
            file.write(session)
        file.write(b"\n]}\n")


def sessions(folder: Path) -> Iterator[bytes]:
    """One JSON object for every conversation, in the order of the plan."""
    with (folder / layout.PLAN / BODIES).open("rb") as bodies:
        for conversation, rows in groupby(planned(folder), key=lambda row: row.conversation):
            payloads = b", ".join(_body(bodies, row) for row in rows)
            yield b'{"session_id": "session-%06d", "payloads": [%s]}' % (conversation, payloads)


def planned(folder: Path) -> Iterable[Row]:
    """The rows that counted, warm-up first."""
    phases = layout.read_run(folder).phases
    spans = ((phase.first_row, phase.first_row + phase.planned) for phase in phases)
    return chain.from_iterable(read_rows(folder / layout.PLAN, *span) for span in spans)


def _body(bodies: BinaryIO, row: Row) -> bytes:
    bodies.seek(row.body_at)
    return bodies.read(row.body_bytes)
