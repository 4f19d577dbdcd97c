"""The examples of the page of settings are configurations, and the schema for editors allows what they say."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from loadstone.config import load, phase_loads
from loadstone.config.fitting import SHAPE

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = re.findall(
    r"^```toml\n(.*?)^```$", (DOCS / "configuration.md").read_text(), re.MULTILINE | re.DOTALL
)
SCHEMA = json.loads((DOCS / "config.schema.json").read_text())["$defs"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_a_configuration(example: str, tmp_path: Path) -> None:
    (tmp_path / "bench.toml").write_text(example)
    config = load(tmp_path / "bench.toml", environ={})
    written = tomllib.loads(example)["load"]
    assert config.load.request_rate == written["request_rate"]
    assert len(phase_loads(config.load)) == len(written.get("phases", [{}]))


def test_there_is_an_example_of_phases() -> None:
    assert ["load.phases" in example for example in EXAMPLES] == [False, True]


def test_the_schema_knows_the_keys_of_a_phase() -> None:
    keys = SCHEMA["LoadConfig"]["properties"]
    phase = keys["phases"]["items"]
    assert sorted(phase["properties"]) == sorted([*SHAPE, "name", "kind", "handover"])
    ends = [
        key["$ref"].removeprefix("#/$defs/LoadConfig/properties/")
        for key in phase["properties"].values()
        if "$ref" in key
    ]
    assert set(ends) == set(SHAPE) <= keys.keys()


def test_the_schema_takes_one_address_or_several_and_a_rate_that_is_a_word() -> None:
    assert [kind["type"] for kind in SCHEMA["EndpointConfig"]["properties"]["url"]["anyOf"]] == [
        "array",
        "string",
    ]
    assert {"enum": ["inf"]} in SCHEMA["LoadConfig"]["properties"]["request_rate"]["anyOf"]
