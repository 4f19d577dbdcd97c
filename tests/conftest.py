"""Runs built by hand: rows of `requests.parquet` and a `run.json`, for the tests of everything that reads them; and a
server that gives prepared answers, for the tests of what is asked beside the load.

Times are given in milliseconds after `T0_NS`, which lies beyond 2**53: whoever turns an absolute time into a float
loses nanoseconds, and a test sees it. No property has a deadline: how long an example takes is the machine's.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import settings

settings.register_profile("loadstone", deadline=None)
settings.load_profile("loadstone")

T0_NS = 2**53 + 1_000_000_001
_serial = count()


@pytest.fixture(scope="session", autouse=True)
def state_of_nobody(tmp_path_factory):
    """No test sees what the user of this machine keeps of it (`loadstone calibrate`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def ns(at_ms):
    return None if at_ms is None else T0_NS + round(at_ms * 1e6)


def _answer(
    *arrivals,
    sent=0.0,
    due=None,
    done=None,
    lag=0.0,
    tokens=None,
    outcome="ok-length",
    counts=None,
    **columns,
):
    """A request sent at `sent` whose token events arrived at `arrivals` and were read `lag` later."""
    last = arrivals[-1] if arrivals else None
    request = next(_serial)
    row = {
        "request": request,
        "request_id": f"id-{request}",
        "phase": "measured",
        "worker": 0,
        "outcome": outcome,
        "retries": 0,
        "due_ns": ns(sent if due is None else due),
        "sent_ns": ns(sent),
        "first_ns": ns(arrivals[0]) if arrivals else None,
        "first_answer_ns": ns(arrivals[0]) if arrivals else None,
        "last_ns": ns(last),
        "done_ns": ns(last if done is None else done),
        "first_read_ns": ns(arrivals[0] + lag) if arrivals else None,
        "kernel_stamps": True,
        "output_tokens": len(arrivals) if tokens is None else tokens,
        "output_tokens_source": "usage",
        "input_tokens": 10,
        "input_tokens_source": "usage",
        "arrival_ns": [ns(at) for at in arrivals],
        "read_ns": [ns(at + lag) for at in arrivals],
        "chunk_tokens": counts,
    }
    return row | columns


@pytest.fixture
def answer():
    """One row: `answer(50, 60, 70, sent=0)` got its tokens 50, 60 and 70 ms after it was sent."""
    return _answer


@pytest.fixture
def unsent():
    """One row that was due at `due` ms and never sent."""

    def make(due=0.0, **columns):
        return (
            _answer(outcome="not-sent", due=due, tokens=0)
            | {"sent_ns": None, "kernel_stamps": None}
            | columns
        )

    return make


@pytest.fixture
def frame():
    """Rows as the table that `requests.parquet` holds."""
    import polars as pl

    from loadstone.read.schema import REQUESTS

    def make(*rows):
        return pl.DataFrame(list(rows), schema=REQUESTS, strict=False)

    return make


@pytest.fixture
def run_log():
    """A `run.json` of one measured phase that lasted from 0 to `end_ms`.

    `load` are further keys of [load].
    """
    import msgspec

    from loadstone.config import Config, EndpointConfig, LoadConfig, SloConfig
    from loadstone.folder import ClockLog, DatasetLog, PhaseLog, RunLog, WorkerLog

    def make(
        streaming=True,
        rate=None,
        cap=None,
        goodput=None,
        slo=(),
        planned=1,
        end_ms=1000.0,
        cpu=0.1,
        load=None,
        **changes,
    ):
        config = Config(
            endpoint=EndpointConfig(streaming=streaming),
            load=LoadConfig(**{"request_rate": rate, "concurrency": cap, **(load or {})}),
            slo=SloConfig(goodput=goodput or {}, objectives=tuple(slo)),
        )
        log = RunLog(
            id="r1",
            command="loadstone profile",
            loadstone_version="0",
            started="2026-01-01T00:00:00Z",
            end="complete",
            seed=1,
            config=msgspec.to_builtins(config),
            phases=[
                PhaseLog(
                    name="measured",
                    kind="measured",
                    first_row=0,
                    planned=planned,
                    start_ns=ns(0),
                    stop_ns=ns(end_ms),
                    end_ns=ns(end_ms),
                )
            ],
            workers=[
                WorkerLog(
                    worker=0, cpu_ns=round(cpu * 1e9), wall_ns=1_000_000_000, flights=planned, reads=planned
                )
            ],
            clock=ClockLog(kernel_stamps=True, steps=0),
            dataset=DatasetLog(
                source="synthetic",
                tokenizer="builtin",
                lengths_exact=True,
                unique_prompts=True,
                reused=0,
                digest="0",
            ),
            preflight=None,
            server_local=False,
            host_busy_share=0.2,
            environment={"host": "test"},
            notices=[],
        )
        return msgspec.structs.replace(log, **changes)

    return make


@pytest.fixture
def phase_log():
    """The log of one phase that sent from `start_ms` to `stop_ms`, and whose last answer came at `end_ms`."""
    from loadstone.folder import PhaseLog

    def make(name, start_ms, stop_ms, end_ms=None, kind="measured", planned=0, **more):
        end = stop_ms if end_ms is None else end_ms
        moments = {"start_ns": ns(start_ms), "stop_ns": ns(stop_ms), "end_ns": ns(end)}
        return PhaseLog(name=name, kind=kind, first_row=0, planned=planned, **moments, **more)

    return make


@pytest.fixture
def tables(frame, run_log):
    """The tables of a run with these rows; keywords go to `run_log`."""
    from loadstone.metrics import Tables

    def make(*rows, **run):
        return Tables.read(frame(*rows).lazy(), run_log(**{"planned": len(rows), **run}))

    return make


class Called(NamedTuple):
    """A request that a `Playing` has had. `body` is its JSON, None without one."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Playing:
    """A server that has for every path (status, body) answers, given in turn, the last one for ever.

    A path it does not know gets a 404; for an answer of None it says nothing until the client leaves; one that is a
    function is asked for the answer.
    """

    def __init__(self, answers):
        self.calls = []
        waiting = {path: list(given) for path, given in answers.items()}
        playing = self

        class Answering(BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(length)) if length else None
                playing.calls.append(Called(self.command, self.path, dict(self.headers.items()), body))
                left = waiting.get(self.path, [(404, {"error": "not here"})])
                answer = left.pop(0) if len(left) > 1 else left[0]
                if callable(answer):
                    answer = answer()
                if answer is None:
                    self.connection.recv(1)
                    return
                data = json.dumps(answer[1]).encode()
                self.send_response(answer[0])
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST  # noqa: N815

            def log_message(self, *words):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()


@pytest.fixture
def playing():
    """Starts servers on the loopback: `playing({"/path": [(503, {}), (200, {})]})`."""
    servers = []

    def start(answers):
        servers.append(Playing(answers))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
