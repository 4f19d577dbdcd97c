"""`junit.xml`: the verdicts as test cases, for a CI that shows such files: one for the certificate, one for each objective.

A missed objective, and an INVALID certificate, is a `failure`. An undecided objective is an `error`: JUnit's word for a test
that came to no result; `skipped` would be green in most CIs, and so would pass for met. What was seen is in `system-out`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from loadstone.export import replacing
from loadstone.export._objectives import said
from loadstone.report import Report, SloVerdict
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


class Case(NamedTuple):
    """One test case: what was asked, what was seen, and, where it did not pass, JUnit's tag for that and our word and reason."""

    group: str
    name: str
    seen: str
    tag: str | None = None
    word: str = ""
    why: str = ""


def text(report: Report) -> str:
    """The whole file for a run."""
    run, certificate = report.run, report.certificate
    believed = Case("certificate", "the measurement can be believed", certificate.headline)
    if certificate.verdict == "INVALID":
        believed = believed._replace(tag="failure", word=certificate.verdict, why=certificate.headline)
    facts = {"run": run.id, "command": run.command, "loadstone_version": report.loadstone_version}
    return page(facts, run.started, run.duration_s or 0, [believed, *map(of_objective, report.slo)])


def of_objective(one: SloVerdict) -> Case:
    """An objective as a test case."""
    case = Case("slo", one.objective, f"{said(one)} {one.finding if one.verdict == 'PASS' else ''}")
    if one.verdict == "PASS":
        return case
    return case._replace(tag="failure" if one.verdict == "FAIL" else "error", word=one.verdict, why=said(one))


def page(facts: Mapping[str, str], started: str, lasted_s: float, cases: Sequence[Case]) -> str:
    """The whole file from its test cases."""
    suite = ElementTree.Element("testsuite", name="loadstone", timestamp=started)
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=name, value=_legal(value))
    for one in cases:
        case = _case(suite, one.group, one.name, one.seen)
        if one.tag:
            _verdict(case, one.tag, one.word, one.why)
    root = ElementTree.Element("testsuites", name="loadstone")
    for element in (root, suite):
        element.set("tests", str(len(cases)))
        element.set("failures", str(len(suite.findall("testcase/failure"))))
        element.set("errors", str(len(suite.findall("testcase/error"))))
        element.set("time", f"{lasted_s:.3f}")
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
