"""What a streamed token costs the client, everything included, against what it costs wrk."""

from __future__ import annotations

from bench.ground import Ground
from bench.streams import streams
from bench.table import Item

REPEATS = 3


def measure(ground: Ground) -> list[Item]:
    found = streams(ground)
    return [
        Item("client CPU per streamed token", "us", [found.client_us]),
        Item("wrk CPU per streamed token", "us", [found.wrk_us]),
        Item("client CPU per token / wrk's", "x", [found.client_us / found.wrk_us], 2.5),
    ]
