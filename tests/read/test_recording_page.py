"""`docs/recording.md` lists what there is; the table of requests and the outcomes are on the page of outputs."""

from __future__ import annotations

import re
from pathlib import Path

from loadstone import recording
from loadstone.read import decoder, faults

PAGE = (Path(__file__).parents[2] / "docs" / "recording.md").read_text()


def test_every_code():
    for name in ("CLOCK", "START", "RESENT", "REDIRECTED", "END"):
        assert f"`0x{getattr(recording, name):08X}` {name}" in PAGE
    assert recording.ROW.size == 32


def test_every_fact_and_every_end():
    facts = PAGE.partition("## Facts")[2].partition("\n## ")[0]
    assert first_cells(facts)[: len(recording.Facts._fields)] == list(recording.Facts._fields)
    ends = re.findall(r"(\d+) `([a-z-]+)`", facts)
    assert ends == [(str(end.value), end.name.lower().replace("_", "-")) for end in recording.WireEnd]


def first_cells(text):
    return [
        word
        for cell in re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE)
        for word in re.findall(r"`(\w+)`", cell)
    ]


def test_the_limits_of_the_samples():
    assert f"up to {faults.SAMPLE_BYTES >> 10} KiB" in PAGE
    assert f"at most {faults.KINDS} a decoder" in PAGE


def test_the_limits_of_a_part():
    assert (decoder.PART_TOKENS, decoder.PART_REQUESTS, decoder.PART_NS) == (131_072, 5_000, 10 * 10**9)
