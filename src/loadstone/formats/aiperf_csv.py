"""`profile_export_aiperf.csv` of AIPerf: a table of distributions, a blank line, a table of single numbers, 2 decimals."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from loadstone.formats._aiperf import DISTRIBUTIONS, NUMBERS, STATS, UNITLESS, Tag, found, statistics
from loadstone.report import Report

SUMMARY = "profile_export_aiperf.csv of AIPerf"
HEADER = ("avg", "min", "max", "sum", *STATS, "std")


def text(report: Report, folder: Path | None) -> str:
    """The file; lines in the order of their titles, as there."""
    del folder
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(("Metric", *HEADER))
    for tag, result in sorted(found(report, DISTRIBUTIONS), key=lambda one: one[0].title):
        told = statistics(tag, result)
        table.writerow((_title(tag), *(f"{told[stat]:.2f}" if stat in told else "" for stat in HEADER)))
    table.writerow(())
    table.writerow(("Metric", "Value"))
    for tag, result in sorted(found(report, NUMBERS), key=lambda one: one[0].title):
        table.writerow((_title(tag), f"{(result.mean or 0.0) * tag.scale:.2f}"))
    return out.getvalue()


def _title(tag: Tag) -> str:
    return tag.title if tag.unit in UNITLESS else f"{tag.title} ({tag.unit})"
