"""Plays requests against the built-in engine on the virtual clock, in a process of its own: prints what it took.

    python -m bench.engine_hour OPTIONS RATE REQUESTS

OPTIONS are those of `sim:` as JSON. Poisson arrivals of RATE requests/s; RATE 0: all come at once. Requests are 250 tokens
in and 200 out, each with 28 blocks of its own. The times of all tokens are made and added up.
"""

from __future__ import annotations

import json
import random
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

from loadstone.sim.build import deployment
from loadstone.sim.deployment import Deployment
from loadstone.sim.drive import drive
from loadstone.sim.options import SimOptions
from loadstone.sim.sequence import Sequence

ISL, OSL = 250, 200
BLOCKS = 28


def requests(rate: float, count: int) -> Iterator[tuple[int, Sequence]]:
    draw, at_s = random.Random(1).expovariate, 0.0
    for number in range(count):
        at_s += draw(rate) if rate else 0.0
        keys = tuple(range(BLOCKS * number, BLOCKS * (number + 1)))
        yield round(at_s * 1e9), Sequence(ISL, OSL, keys=keys)


def main(options: str, rate: str, count: str) -> None:
    begun_s = time.process_time()
    engines: Deployment[Sequence] = deployment(SimOptions(**json.loads(options)))
    ends_ns, tokens, total_ns = array("q"), 0, 0
    for now_ns, sequence in drive(engines, requests(float(rate), int(count))):
        times = sequence.times()
        tokens += len(times)
        total_ns += sum(times)
        ends_ns.append(now_ns)
    cpu_s = time.process_time() - begun_s
    engine = engines.engines[0]
    fifth = len(ends_ns) // 5  # neither while the batch grows nor while it runs out
    print(
        json.dumps(
            {
                "cpu_s": cpu_s,
                "peak_mb": _peak_mb(),
                "tokens": tokens,
                "mean_token_s": total_ns / tokens / 1e9,
                "last_s": ends_ns[-1] / 1e9,
                "rate": 3 * fifth / (ends_ns[4 * fifth] - ends_ns[fifth]) * 1e9,
                "steps": engine.step,
                "preemptions": engine.preemptions,
            }
        )
    )


def _peak_mb() -> float:
    """The most that was resident at a time. `getrusage` would tell the parent's, were that more."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


if __name__ == "__main__":
    main(*sys.argv[1:])
