"""What a run costs before and after its load: start, plan of 200 prompts, end, report."""

from __future__ import annotations

from bench.client import profile
from bench.ground import Ground
from bench.table import Item
from bench.tokens import TokenServer

REPEATS = 3
REQUESTS = 200


def measure(ground: Ground) -> list[Item]:
    with TokenServer(0, 0, 1, None) as server:
        run = profile(
            ground.path("fixed"), server.port, "--request-count", str(REQUESTS), "--isl", "128", "--osl", "1"
        )
    first_ns = run.requests()["sent_ns"].to_list()[0]
    return [
        Item(f"fixed cost: CPU of a run of {REQUESTS} 1-token answers", "s", [run.cpu_s], 2.5),
        Item("fixed cost: wall time to the first request", "s", [(first_ns - run.begun_ns) / 1e9], 1.5),
        Item("fixed cost: wall time of the whole run", "s", [(run.ended_ns - run.begun_ns) / 1e9]),
    ]
