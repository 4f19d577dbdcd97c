"""The list of faults, for the terminal and as a page."""

from __future__ import annotations

import pytest

from loadstone.__main__ import main
from loadstone.sim.faults import FAMILIES, FAULTS
from loadstone.sim.faults.listing import markdown, text


def test_the_command_lists_every_fault_in_a_line_by_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--faults"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line and not line.startswith(" ")] == [one.title for one in FAMILIES]
    listed = [line.split(maxsplit=1)[0] for line in lines if line.startswith("  ")]
    assert listed == list(FAULTS)
    eof = next(line for line in lines if line.startswith("  eof "))
    assert eof.split(maxsplit=3)[1:] == [
        "truncated",
        "stream",
        "Ends the stream properly after three tokens, with neither finish reason nor `[DONE]`.",
    ]


def test_the_page_has_every_fault_with_its_outcome() -> None:
    rows = [line.split(" | ") for line in markdown().splitlines() if line.startswith("| `")]
    assert {row[0].strip("| `"): row[1].strip("`") for row in rows} == {
        fault.name: fault.outcome for fault in FAULTS.values()
    }
    assert all(len(row) == 4 for row in rows)


def test_both_name_the_outcome_without_a_stream_where_it_is_another() -> None:
    for listed in (text(), markdown()):
        told = [line for line in listed.splitlines() if "Without a stream: `" in line]
        assert [line.split("`")[-2] for line in told] == ["timeout-total", "timeout-idle", "timeout-total"]
        names = ("never-replies", "head-stalls", "drip-head")
        assert all(name in line for name, line in zip(names, told, strict=True))


@pytest.mark.parametrize("words", [["--fault", "crfl"], ["--fault", "eof:0.9", "--fault", "cr:0.2"]])
def test_a_wrong_fault_is_wrong_usage(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["simulate", "--port", "0", *words]) == 2
    assert capsys.readouterr().err.startswith("loadstone: error: fault")
