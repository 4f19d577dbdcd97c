"""`inputs.json`: the body of every planned request, in the form AIPerf writes.

`{"data": [{"session_id": "...", "payloads": [{...}, ...]}, ...]}`; a session is a conversation, its payloads are
its turns. Bodies are copied from the plan as they were sent, one at a time. Bodies that were composed
ahead of need but never due are left out. A body that is no strict JSON, which we never send but a folder from somewhere
else may hold, stands there as a text, so that the file is JSON whatever is in the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec

from loadstone import folder as layout
from loadstone.endpoints import _error
from loadstone.export import replacing
from loadstone.plan.store import Row, read_requests
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
    for conversation, requests in groupby(planned(folder), key=lambda request: request[0].conversation):
        payloads = b", ".join(payload(body) for _, body in requests)
        yield b'{"session_id": "session-%06d", "payloads": [%s]}' % (conversation, payloads)


def payload(body: bytes) -> bytes:
    """`body` if it is JSON, else JSON's text of it."""
    try:
        body.decode()
        msgspec.json.decode(body, type=msgspec.Raw)
    except _error.NOT_JSON:
        return msgspec.json.encode(body.decode("utf-8", "backslashreplace"))
    return body


def planned(folder: Path) -> Iterator[tuple[Row, bytes]]:
    """The rows that counted, with their bodies, warm-up first."""
    for phase in layout.read_run(folder).phases:
        yield from read_requests(folder / layout.PLAN, phase.first_row, phase.first_row + phase.planned)
