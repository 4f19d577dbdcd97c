"""JUnit XML: the certificate and every objective of `--slo` as a test case, as the run's folder has them in `junit.xml`."""

from __future__ import annotations

from pathlib import Path

from loadstone.export import junit_xml
from loadstone.report import Report

SUMMARY = "Certificate and objectives as JUnit XML, for a CI"


def text(report: Report, folder: Path | None) -> str:
    """The whole file; without objectives it has the certificate alone."""
    return junit_xml.text(report)
