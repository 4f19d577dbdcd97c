"""Measures what the client can do at most here: two short loads against the built-in server, several times.

What counts is the CPU time of the worker, and not how much the server managed: so the answer is the same on a busy machine,
and with a server that shares its cores. One load of requests that are answered at once, one of streams whose tokens come one
by one. The cost of a token is that of a stream's reads after what the requests themselves cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from loadstone import environment, folder
from loadstone.ceiling import Ceiling, where
from loadstone.config import load
from loadstone.errors import LoadstoneError
from loadstone.run import run
from loadstone.settle import MOST_WORKERS

REPEATS = 3
LEAST_FLIGHTS, LEAST_READS = 500, 5_000
"""Fewer say too little: the load did not come about."""
OTHERS = 64
"""Descriptors that are no sockets of the load."""
REQUESTS = {"endpoint.url": ["sim:null=true"], "input.osl_mean": ["1"], "load.concurrency": ["32"]}
STREAMS = {
    "endpoint.url": ["sim:step_ms=2"],
    "endpoint.streaming": True,
    "endpoint.extra_inputs": ["ignore_eos:true"],
    "input.osl_mean": ["256"],
    "load.concurrency": ["64"],
}


class _Cost(msgspec.Struct, frozen=True):
    """CPU of one worker over one short load."""

    cpu_us: float
    flights: int
    reads: int


def calibrate(duration_s: float, say: Callable[[str], None]) -> Ceiling:
    """The ceiling of this machine. Raises `LoadstoneError` when the loads do not come about."""
    by_request: list[float] = []
    by_token: list[float] = []
    with TemporaryDirectory(prefix="loadstone-calibrate-") as home:
        for number in range(REPEATS):
            say(f"measuring {number + 1} of {REPEATS}: requests, then streams, {duration_s:g} s each")
            requests = _load(Path(home) / f"requests-{number}", REQUESTS, duration_s)
            streams = _load(Path(home) / f"streams-{number}", STREAMS, duration_s)
            if requests.flights < LEAST_FLIGHTS or streams.reads < LEAST_READS:
                raise LoadstoneError(
                    f"only {requests.flights:,} requests and {streams.reads:,} reads came about in {duration_s:g} s each: this machine"
                    " is too busy to be measured. End what else runs here, or set a longer --duration."
                )
            by_request.append(requests.cpu_us / requests.flights)
            by_token.append((streams.cpu_us - streams.flights * by_request[-1]) / streams.reads)
    if median(by_token) <= 0:
        raise LoadstoneError(
            "the costs of a request and of a token could not be told apart: other processes disturb the measurement. End what"
            " else runs here, or set a longer --duration."
        )
    descriptors, ports = environment.raise_descriptor_limit(), environment.local_ports()
    return Ceiling(
        made=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        where=where(environment.host()),
        request_us=median(by_request),
        token_us=median(by_token),
        workers=max(1, min(environment.usable_cores() // 2, MOST_WORKERS)),
        connections=max(min(descriptors - OTHERS, ports or descriptors), 1),
    )


def _load(home: Path, asked: Mapping[str, object], duration_s: float) -> _Cost:
    config = load(
        flags={
            **asked,
            "input.isl_mean": ["128"],
            "load.duration_s": [f"{duration_s:g}"],
            "load.workers": ["1"],
            "output.folder": [str(home)],
            "output.ui": ["none"],
            "output.inputs_json": False,
            "output.keep": ["none"],
            "output.check_tokens": ["none"],
        },
        environ={},
    )
    run(config, "loadstone calibrate", show=False)
    worker, *_ = folder.read_run(home).workers
    return _Cost(worker.cpu_ns / 1e3, worker.flights, worker.reads)
