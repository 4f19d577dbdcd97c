"""The page of the built-in engine names every path, flag, metric and field of the truth that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadstone.sim.loop import METRICS, Server
from loadstone.sim.options import SimOptions
from loadstone.sim.routes import ROUTES
from loadstone.sim.truth import TruthRow

PAGE = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text()
SHORTENED = "..."
"""Stands for what the name before it begins with."""


def named(section: str) -> set[str]:
    """What a section names between backticks."""
    return set(re.findall(r"`([^`\n]+)`", PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]))


@pytest.mark.parametrize("path", [*ROUTES, METRICS])
def test_every_path_is_named(path: str) -> None:
    assert path in {name.rpartition(" ")[2] for name in named("What it answers")}


@pytest.mark.parametrize("flag", SimOptions.__struct_fields__)
def test_every_flag_is_named(flag: str) -> None:
    assert flag in named("What the engine does")


@pytest.mark.parametrize("field", TruthRow.__struct_fields__)
def test_every_field_of_the_truth_is_named(field: str) -> None:
    assert field in named("The truth")


def test_every_metric_is_named() -> None:
    server = Server(SimOptions(num_speculative_tokens=2))
    try:
        found = re.findall(rb"^# TYPE vllm:(\S+)", server._page.render(), re.MULTILINE)
    finally:
        server.close()
    names = named("/metrics")
    ends = {name.removeprefix(SHORTENED) for name in names if name.startswith(SHORTENED)}
    whole = {name.decode() for name in found}
    assert len(whole) > 30
    assert {
        name for name in whole - names if not name.startswith("spec_decode") or not name.endswith(tuple(ends))
    } == set()
