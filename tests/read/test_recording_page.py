"""`docs/recording.md` lists what there is."""

from __future__ import annotations

import re
from pathlib import Path

from loadstone import recording
from loadstone.read import decoder
from loadstone.read.outcome import OUTCOMES
from loadstone.read.schema import REQUESTS

PAGE = (Path(__file__).parents[2] / "docs" / "recording.md").read_text()


def rows(heading):
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| (`[^|]*) \| ([^|]*) \|$", section, re.MULTILINE)


def test_every_column_in_its_order():
    assert [name for names, _ in rows("requests.parquet") for name in re.findall(r"`(\w+)`", names)] == list(
        REQUESTS
    )


def test_every_outcome_with_its_meaning():
    assert {name.strip("`"): meaning for name, meaning in rows("Outcomes")} == OUTCOMES


def test_every_code():
    for name in ("CLOCK", "START", "RESENT", "END"):
        assert f"`0x{getattr(recording, name):08X}` {name}" in PAGE
    assert recording.ROW.size == 32


def test_the_limits_of_a_part():
    assert (decoder.PART_TOKENS, decoder.PART_REQUESTS, decoder.PART_NS) == (131_072, 5_000, 10 * 10**9)
