"""`report.json`: the whole report tree, as it is.

The schema is `loadstone.report.Report`, its version the key `schema_version`. Strict JSON: a number that
is not known is null, and `reason` says why; there are no NaN or Infinity tokens.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from loadstone.export import replacing
from loadstone.report import Report

ROLE = "report"
FILE = "report.json"


def wanted(report: Report) -> bool:
    """Always."""
    return True


def write(report: Report, folder: Path) -> None:
    """Writes `report.json`."""
    with replacing(folder / FILE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
