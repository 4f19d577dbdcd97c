"""Reads a run from whatever a tool wrote, known by its content and not by its name. One file a format.

An importer has `knows(document)` and `run(path, document)`. It gives a number our metric's name only where it is counted as we
count it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from loadstone import folder
from loadstone.compare.importers import (
    aiperf_json,
    aiperf_jsonl,
    guidellm_json,
    report_json,
    run_folder,
    sglang_jsonl,
    vllm_json,
)
from loadstone.compare.importers._document import UNREADABLE, Document, content, wrong
from loadstone.compare.importers._sound import sound
from loadstone.compare.sides import Run
from loadstone.errors import UsageError

FORMATS = {
    "loadstone report.json": report_json,
    "AIPerf profile_export_aiperf.json": aiperf_json,
    "AIPerf profile_export.jsonl": aiperf_jsonl,
    "GuideLLM JSON": guidellm_json,
    "SGLang bench_serving JSONL": sglang_jsonl,
    "vllm bench serve JSON": vllm_json,
}
"""By what they are called; the first that knows a document reads it."""
IN_FOLDERS = ("profile_export.jsonl", "profile_export_aiperf.json", "benchmarks.json", folder.REPORT)
"""What is read of a folder that is no run of ours."""
LONG_NAME = 60
"""Letters of a name that no file can have that are told."""


def read(path: Path) -> Run:
    """The run that a folder or a file holds. Raises `UsageError`, one sentence."""
    if _is_folder(path):
        if (path / folder.RUN).is_file():
            return run_folder.run(path)
        there = [path / name for name in IN_FOLDERS if (path / name).is_file()]
        if not there:
            raise UsageError(
                f"{path}: holds neither a run of loadstone nor an export of AIPerf or GuideLLM; name the file."
            )
        if [one.name for one in there[:2]] == list(IN_FOLDERS[:2]):
            return _of_both(read(there[0]), read(there[1]), path)
        path = there[0]
    document = _parsed(path)
    for name, importer in FORMATS.items():
        if _knows(importer, document):
            try:
                with np.errstate(all="ignore"):  # what is out of all measure is told by its name
                    run: Run = importer.run(str(path), document)
                return sound(run)
            except UNREADABLE as error:
                raise UsageError(f"{path}: looks like {name}, and is damaged: {wrong(error)}.") from None
    raise UsageError(f"{path}: is in none of the formats that compare reads: {', '.join(FORMATS)}.")


def _of_both(requests: Run, summary: Run, home: Path) -> Run:
    """The run of AIPerf whose requests are in one file and what was asked for in the other."""
    told = {name: value for name, value in summary.asked.items() if value is not None}
    return requests._replace(
        path=str(home),
        tool=summary.tool,
        asked={**requests.asked, **told},
        notes=(*requests.notes, *summary.notes),
    )


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a name that no file can have
        raise UsageError(f"{str(path)[:LONG_NAME]}: cannot be read: no file can have such a name.") from None


def _knows(importer: Any, document: Document) -> bool:
    """A document whose parts are of another kind than the importer's is none of its."""
    try:
        return bool(importer.knows(document))
    except UNREADABLE:
        return False


def _parsed(path: Path) -> Document:
    data = content(path)
    try:
        return Document((_value(data),), lines=False)
    except RecursionError:
        raise UsageError(f"{path}: is nested too deeply to be a run.") from None
    except ValueError:
        pass
    values = []
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                values.append(_value(line))
            except RecursionError:
                raise UsageError(f"{path}: line {number} is nested too deeply to be of a run.") from None
            except ValueError as error:
                raise UsageError(f"{path}: line {number} is no JSON: {error}.") from None
    if not values:
        raise UsageError(f"{path}: is empty.")
    return Document(tuple(values), lines=True)


def _value(data: bytes) -> Any:
    """JSON as Python writes it: SGLang has Infinity for a rate, which is none of JSON's numbers. Raises `ValueError`."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as strict:
        try:
            return json.loads(data)
        except ValueError:
            raise strict from None
