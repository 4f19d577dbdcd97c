"""What the pages list is what there is: files, columns, outcomes, exit codes, metrics, links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadstone.errors import Exit
from loadstone.metrics import _docs as docs
from loadstone.read.outcome import OUTCOMES
from loadstone.read.schema import REQUESTS
from loadstone.registry import load, names
from loadstone.report import SCHEMA_VERSION, LoadFacts, MetricResult, Outcomes, Report, RunFacts
from loadstone.sim.faults import FAULTS

ROOT = Path(__file__).parents[2]
OUTPUTS = (ROOT / "docs/outputs.md").read_text()
README = (ROOT / "README.md").read_text()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def chapter(title: str) -> str:
    return OUTPUTS.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_cells(text: str) -> list[str]:
    """Code words in the first cells of a table, in order."""
    cells = re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def test_the_page_of_metrics_is_what_the_docstrings_say() -> None:
    assert (ROOT / "docs/metrics.md").read_text().rstrip() == docs.markdown().rstrip(), "run: make docs"


def test_every_column_of_the_table_of_requests_is_explained_in_its_order() -> None:
    assert first_cells(chapter("requests.parquet")) == list(REQUESTS)


def test_every_outcome_is_explained_in_the_words_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", chapter("Outcomes"), re.MULTILINE))
    assert rows == OUTCOMES


@pytest.mark.parametrize("text", [chapter("Exit codes"), README])
def test_every_exit_code_is_explained(text: str) -> None:
    assert re.findall(r"^\| (\d+) \|", text, re.MULTILINE) == [str(code.value) for code in Exit]


def test_exit_codes_bear_their_names() -> None:
    found = re.findall(r"^\| (\d+) \| (\w+) \|", chapter("Exit codes"), re.MULTILINE)
    assert found == [(str(code.value), code.name) for code in Exit]


@pytest.mark.parametrize("name", names("export"))
def test_every_output_file_is_listed(name: str) -> None:
    exporter: Any = load("export", name)
    assert exporter.FILE in first_cells(OUTPUTS)
    assert f"`{exporter.FILE}`" in README


def test_every_branch_of_the_report_is_explained() -> None:
    branches = [field.name for field in msgspec.structs.fields(Report)]
    assert sorted(first_cells(chapter("report.json"))) == sorted(branches)


def test_every_field_of_a_metric_is_named() -> None:
    row = next(line for line in chapter("report.json").splitlines() if line.startswith("| `metrics`"))
    assert re.findall(r"`(\w+)`", row)[1:] == [field.name for field in msgspec.structs.fields(MetricResult)]


@pytest.mark.parametrize(("branch", "kind"), [("run", RunFacts), ("outcomes", Outcomes)])
def test_every_field_of_a_branch_is_named(branch: str, kind: type) -> None:
    row = next(line for line in chapter("report.json").splitlines() if line.startswith(f"| `{branch}`"))
    named = set(re.findall(r"`(\w+)`", row))
    assert named >= {field.name for field in msgspec.structs.fields(kind)}


def test_every_field_of_the_account_of_the_load_is_explained() -> None:
    fields = [field.name for field in msgspec.structs.fields(LoadFacts)]
    assert first_cells(chapter("Offered and sent")) == fields


def test_the_changelog_names_the_schema_of_today_and_that_of_each_release() -> None:
    unreleased, released = CHANGELOG.split("\n## [0.1.0]")
    assert f"`report.json` (schema {SCHEMA_VERSION})" in unreleased
    assert "`report.json` (schema 1.0)" in released


@pytest.mark.parametrize("text", [README, CHANGELOG])
def test_the_number_of_faults_is_that_of_the_list(text: str) -> None:
    assert re.findall(r"\b(\d+) ways", text) == [str(len(FAULTS))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def anchors(page: Path) -> set[str]:
    """The names by which the headings of a page can be reached."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_headings_that_are_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text())
    wrong = [(to, name) for to, name in links if name not in anchors(page.parent / to if to else page)]
    assert wrong == []
