"""A study's folder stands for its runs that count; one of two servers does not."""

from __future__ import annotations

import msgspec
import pytest

from loadstone.errors import UsageError
from loadstone.study.aggregate import RunLine
from loadstone.study.document import FILE, Study
from loadstone.study.members import runs_of


@pytest.fixture
def study(tmp_path):
    """The folder of a study of these runs: name, side, fault."""

    def make(*runs):
        lines = tuple(
            RunLine(name=name, side=side, seed=1, exit=0, verdict="VALID", fault=fault)
            for name, side, fault in runs
        )
        told = Study(
            command="c", started="2026-01-01T00:00:00Z", seed=1, asked=len(lines), runs=lines, sides={}
        )
        (tmp_path / FILE).write_bytes(msgspec.json.encode(told))
        return tmp_path

    return make


def test_the_runs_that_count_are_those_of_the_study(study):
    home = study(("run-1", "run", None), ("run-2", "run", "INVALID"), ("run-3", "run", None))
    assert runs_of(home) == [home / "run-1", home / "run-3"]


def test_what_is_no_study_stands_for_itself(tmp_path):
    assert runs_of(tmp_path) == [tmp_path]
    assert len(runs_of(tmp_path / ("x" * 5000))) == 1


def test_two_servers_in_turn_are_two_sides_and_are_named(study):
    home = study(("a-1", "a", None), ("b-1", "b", None), ("a-2", "a", None), ("b-2", "b", "INVALID"))
    with pytest.raises(UsageError, match="holds the runs of 2 servers") as raised:
        runs_of(home)
    assert str(raised.value).endswith(f"loadstone compare {home}/a-1,{home}/a-2 {home}/b-1")


def test_a_study_without_a_run_that_counts_is_refused(study):
    with pytest.raises(UsageError, match="no run of this study counts"):
        runs_of(study(("run-1", "run", "INVALID")))
