"""`docs/recording.md` lists what there is; the table of requests and the outcomes are on the page of outputs."""

from __future__ import annotations

from pathlib import Path

from loadstone import recording
from loadstone.read import decoder

PAGE = (Path(__file__).parents[2] / "docs" / "recording.md").read_text()


def test_every_code():
    for name in ("CLOCK", "START", "RESENT", "END"):
        assert f"`0x{getattr(recording, name):08X}` {name}" in PAGE
    assert recording.ROW.size == 32


def test_the_limits_of_a_part():
    assert (decoder.PART_TOKENS, decoder.PART_REQUESTS, decoder.PART_NS) == (131_072, 5_000, 10 * 10**9)
