"""`junit.xml`: the verdicts as test cases, for a CI that shows such files: one for the certificate, one for each objective.

A missed objective, and an INVALID certificate, is a `failure`. An undecided objective is an `error`: JUnit's word for a test
that came to no result; `skipped` would be green in most CIs, and so would pass for met. What was seen is in `system-out`.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from loadstone.export import replacing
from loadstone.export._objectives import said
from loadstone.report import Report
from loadstone.terminal import printable

ROLE = "junit"
FILE = "junit.xml"
_NO_XML = re.compile("[^\\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even as references."""


def wanted(report: Report) -> bool:
    """Where an objective of the run was set."""
    return bool(report.slo)


def write(report: Report, folder: Path) -> None:
    """Writes `junit.xml`."""
    with replacing(folder / FILE) as file:
        file.write(text(report).encode())


def text(report: Report) -> str:
    """The whole file."""
    run, certificate = report.run, report.certificate
    suite = ElementTree.Element("testsuite", name="loadstone", timestamp=run.started)
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("run", run.id),
        ("command", run.command),
        ("loadstone_version", report.loadstone_version),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=_legal(value))
    case = _case(suite, "certificate", "the measurement can be believed", certificate.headline)
    if certificate.verdict == "INVALID":
        _verdict(case, "failure", certificate.verdict, certificate.headline)
    for one in report.slo:
        case = _case(
            suite, "slo", one.objective, f"{said(one)} {one.finding if one.verdict == 'PASS' else ''}"
        )
        if one.verdict != "PASS":
            _verdict(case, "failure" if one.verdict == "FAIL" else "error", one.verdict, said(one))
    root = ElementTree.Element("testsuites", name="loadstone")
    for element in (root, suite):
        element.set("tests", str(1 + len(report.slo)))
        element.set("failures", str(len(suite.findall("testcase/failure"))))
        element.set("errors", str(len(suite.findall("testcase/error"))))
        element.set("time", f"{run.duration_s or 0:.3f}")
    root.append(suite)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, group: str, name: str, seen: str) -> ElementTree.Element:
    """A test case, and what was seen."""
    case = ElementTree.SubElement(suite, "testcase", classname=f"loadstone.{group}", name=_legal(name))
    ElementTree.SubElement(case, "system-out").text = _legal(seen)
    return case


def _verdict(case: ElementTree.Element, tag: str, word: str, why: str) -> None:
    """Why a test case did not pass; JUnit's schema has it before the output."""
    verdict = ElementTree.Element(tag, type=word, message=_legal(why))
    case.insert(0, verdict)


def _legal(text: str) -> str:
    """`text` with hidden characters as their escapes."""
    return _NO_XML.sub("\ufffd", printable(text))
