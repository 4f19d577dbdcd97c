"""Objectives in the summary, in junit.xml, and as Markdown."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec
import pytest

from loadstone.export import console, junit_xml
from loadstone.formats import junit, markdown
from loadstone.report import Interval, Report, SloVerdict


def verdict(word: str, **more: object) -> SloVerdict:
    facts = {
        "objective": "time_to_first_token.p99<500ms", "metric": "time_to_first_token", "stat": "p99", "limit": 500.0,
        "better": "lower", "unit": "ms", "value": 85.5, "interval": None, "verdict": word,
        "finding": "2 % of 200 requests are above 500 ms, 1 % may be.",
    }  # fmt: skip
    return msgspec.convert({**facts, **more}, SloVerdict)


PASSED = verdict("PASS")
MISSED = verdict("FAIL")
OPEN = verdict("UNDECIDED", more_requests=1200)


def judged(report: Report, *slo: SloVerdict) -> Report:
    return msgspec.structs.replace(report, slo=slo)


def summary(report: Report, color: bool = False) -> list[str]:
    return console.render(report, width=100, color=color).splitlines()


def test_they_stand_right_below_the_certificate(valid: Report) -> None:
    lines = summary(judged(valid, PASSED, OPEN))
    assert lines[0] == "VALID: The client kept its times."
    assert lines[2:5] == [
        "PASS       time to first token p99 < 500 ms: 85.5 ms.",
        "UNDECIDED  time to first token p99 < 500 ms: 85.5 ms. 2 % of 200 requests are above 500 ms, 1 % may",
        "           be. About 1,200 more requests would decide it.",
    ]


def test_where_more_is_better_and_nothing_is_known(valid: Report) -> None:
    one = verdict(
        "UNDECIDED", metric="goodput", stat=None, limit=5.0, better="higher", unit="requests/s", value=None
    )
    assert summary(judged(valid, one))[2].startswith(
        "UNDECIDED  goodput > 5 requests/s: not known. 2 % of 200"
    )


def test_a_report_without_objectives_says_nothing_of_them(valid: Report) -> None:
    assert summary(valid)[2].startswith("M · chat")
    assert not junit_xml.wanted(valid)
    assert junit_xml.wanted(judged(valid, PASSED))


@pytest.mark.parametrize(
    ("one", "color"), [(PASSED, "\x1b[1;32m"), (MISSED, "\x1b[1;31m"), (OPEN, "\x1b[1;33m")]
)
def test_the_word_is_coloured(valid: Report, one: SloVerdict, color: str) -> None:
    assert summary(judged(valid, one), color=True)[2].startswith(f"{color}{one.verdict}")


def test_verdicts_on_what_is_invalid_are_not_to_be_believed(invalid: Report) -> None:
    assert "The measurement is INVALID, so neither can these verdicts be believed." in summary(
        judged(invalid, PASSED)
    )
    assert "**The measurement is INVALID" in markdown.text(judged(invalid, PASSED), None)


def read(report: Report) -> ElementTree.Element:
    return ElementTree.fromstring(junit_xml.text(report))


def test_each_objective_and_the_certificate_is_a_test_case(valid: Report) -> None:
    root = read(judged(valid, PASSED, MISSED, OPEN))
    assert root.attrib == {
        "name": "loadstone",
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "time": "20.437",
    }
    first, passed, missed, undecided = root.iter("testcase")
    assert first.attrib["classname"] == "loadstone.certificate"
    assert [child.tag for child in first] == [child.tag for child in passed] == ["system-out"]
    failure, error = missed.find("failure"), undecided.find("error")
    assert failure is not None and failure.attrib["type"] == "FAIL"
    assert error is not None and error.attrib["message"].endswith(
        "About 1,200 more requests would decide it."
    )
    assert passed.attrib["name"] == "time_to_first_token.p99<500ms"


def test_an_invalid_certificate_is_a_failure(invalid: Report) -> None:
    failures = read(judged(invalid, PASSED)).findall(
        ".//testcase[@classname='loadstone.certificate']/failure"
    )
    assert [one.attrib["message"] for one in failures] == ["Worker 0 was busy 99 % of the time."]


def test_what_somebody_else_wrote_breaks_neither(valid: Report, hostile: str) -> None:
    run = msgspec.structs.replace(valid.run, command=f"loadstone {hostile}\ufffe")
    report = msgspec.structs.replace(
        judged(valid, verdict("FAIL", finding=hostile)),
        run=run,
        config={"endpoint": {"model": hostile}},
    )
    assert len(read(report).findall(".//failure")) == 1
    page = markdown.text(report, None)
    assert not any(char in page for char in "\x1b\x07\u202e\u2028\r")
    heading = next(line for line in page.splitlines() if line.startswith("## "))
    assert "<script>" not in heading
    assert len([line for line in page.splitlines() if line.startswith("| time to first token p99")]) == 1


def test_the_format_is_the_file(valid: Report) -> None:
    report = judged(valid, MISSED)
    assert junit.text(report, None) == junit_xml.text(report)


def test_markdown_has_intervals_beside_the_numbers(valid: Report) -> None:
    latency = msgspec.structs.replace(
        valid.metrics["request_latency"], intervals={"p99": Interval(low=1900.0, high=2100.0)}
    )
    report = msgspec.structs.replace(
        judged(valid, OPEN), metrics={**valid.metrics, "request_latency": latency}
    )
    lines = markdown.text(report, None).splitlines()
    assert lines[0] == "## M: VALID"
    assert "| request latency | ms | 1,360 | 1,340 | 1,470 | 2,010 [1,900 to 2,100] |" in lines
    assert "| output throughput | 1,250 | tokens/s |" in lines
    assert any(
        line.startswith("| time to first token p99 &lt; 500 ms | **UNDECIDED** | 85.5 ms |") for line in lines
    )


def test_markdown_says_what_is_open_above_and_what_is_thin(valid: Report) -> None:
    latency = msgspec.structs.replace(
        valid.metrics["request_latency"],
        intervals={"p50": Interval(low=None, high=None), "p99": Interval(low=1900.0, high=None)},
        thin=("p99",),
    )
    report = msgspec.structs.replace(valid, metrics={**valid.metrics, "request_latency": latency})
    page = markdown.text(report, None)
    assert r"| 1,340 | 1,470 | 2,010\~ [&gt;= 1,900] |" in page
    assert page.count("the intervals of about 95 hold the true value") == 1


def test_what_is_infinite_is_no_value_that_is_missing(valid: Report) -> None:
    one = verdict("FAIL", metric="adjusted_request_latency", value=None, infinite=True)
    report = judged(valid, one)
    assert "FAIL       adjusted request latency p99 < 500 ms: inf." in summary(report)[2]
    assert "| **FAIL** | inf |" in markdown.text(report, None)
