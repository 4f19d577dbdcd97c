"""The command as a person types it, the built-in engine with its ground truth, and a server that plays faults.

Every test here starts real processes that speak over real sockets; nothing inside the package is replaced. A
run costs about a second, so runs that several tests look at are fixtures of their module.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from itertools import count
from typing import NamedTuple

import polars as pl
import psutil
import pytest
from tests import folders

from loadstone.errors import Exit
from loadstone.sim.truth import read_truth

PROGRAM = [sys.executable, "-m", "loadstone"]
PATIENCE_S = 60.0
OF_THE_MACHINE = {
    "client_cpu", "client_lag", "first_tokens", "send_lag", "offered_load", "arrival_fidelity", "loop_stalls",
    "machine_steal", "other_load", "clock_rate", "kernel_drops", "memory_pressure",
}  # fmt: skip
"""Checks that a busy machine fails without any fault of the program."""


def environ(changes):
    """The environment without what would configure loadstone, and with `changes`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOADSTONE")}
    return {**kept, "COLUMNS": "100", **changes}


def until(happens):
    """Waits for something that other processes do; what it gave when it came true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (seen := happens()):
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
    return seen


@pytest.fixture(scope="session")
def wait_until():
    return until


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def loadstone(tmp_path_factory):
    """Runs `loadstone WORDS...` to its end, in an empty folder unless told where."""

    def run(*words, cwd=None, **changes):
        done = subprocess.run(
            [*PROGRAM, *words], cwd=cwd or tmp_path_factory.mktemp("cwd"), env=environ(changes),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    return run


def runs(process, module):
    try:
        return module in process.cmdline()
    except psutil.NoSuchProcess:  # it ended meanwhile, or nobody has heard of its end yet
        return False


class Started(subprocess.Popen):
    """A command under way."""

    def ended(self):
        """What it was, when it has ended by itself."""
        out, err = self.communicate(timeout=PATIENCE_S)
        return Done(self.returncode, out, err)

    def children(self, module):
        """The processes it has started that run a module."""
        return [child for child in psutil.Process(self.pid).children() if runs(child, module)]


@pytest.fixture
def started(tmp_path):
    """Starts `loadstone WORDS...` and gives the process; whatever still runs at the end is killed."""
    processes = []

    def start(words, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process = Started(
            [*PROGRAM, *shlex.split(words)], cwd=tmp_path, env=environ(options.pop("changes", {})),
            stdin=subprocess.DEVNULL, text=True, **options,
        )  # fmt: skip
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


# ---- runs -----------------------------------------------------------------------------------------------


class Folder(folders.Folder):
    """The folder of a run of one measured phase, the last one."""

    @property
    def requests(self):
        return self.table.filter(pl.col("phase") == "measured")

    @property
    def counts(self):
        return self.report.outcomes.counts

    @property
    def measured(self):
        """The log of the measured phase."""
        return self.log.phases[-1]

    @property
    def due_ns(self):
        """Due times from the start of the measured phase."""
        return (self.requests["due_ns"] - self.measured.start_ns).to_list()

    @property
    def recorded_bytes(self):
        """What the workers have written so far and no decoder has taken."""
        return sum(file.stat().st_size for file in self.path.glob("recording/w*.dat"))

    def adds_up(self):
        """Every planned request is there once and has ended in one way."""
        assert self.report.outcomes.planned == sum(self.counts.values()) == len(self.requests)
        assert self.requests["request"].to_list() == list(range(len(self.requests)))

    def number(self, metric):
        return self.report.metrics[metric].mean

    @property
    def in_one_piece(self):
        """Answers without a time to first token, since a busy machine kept the client from reading."""
        return self.requests["coalesced"].sum()

    @property
    def against(self):
        """Checks that speak against the run, but for those that a busy machine fails or a faulty server."""
        checks = self.report.certificate.checks
        return [
            c.name
            for c in checks
            if c.verdict in ("DEGRADED", "INVALID") and c.name not in {*OF_THE_MACHINE, "failures"}
        ]

    def check(self, name):
        return next(check for check in self.report.certificate.checks if check.name == name)


class Run(Folder):
    """A finished `loadstone profile`."""

    def __init__(self, path, done):
        super().__init__(path)
        self.code, self.out, self.err = done


def held(run):
    """The same run, when it came to its end and nothing but a busy machine speaks against it."""
    assert (run.path / "report.json").exists(), run.err
    assert run.against == [], run.out
    invalid = run.report.certificate.verdict == "INVALID"
    assert run.code == (Exit.INVALID if invalid else Exit.DONE), run.out + run.err
    return run


@pytest.fixture(scope="session")
def run_of():
    """Reads a run's folder."""
    return Folder


@pytest.fixture(scope="session")
def profile(loadstone, tmp_path_factory):
    """`profile("--url ... --isl 16")`: a benchmark run to its end, in a new folder."""
    serial = count()
    home = tmp_path_factory.mktemp("runs")

    def run(words, **changes):
        folder = home / f"run{next(serial)}"
        words = ["profile", "--artifact-dir", str(folder), *shlex.split(words)]
        return Run(folder, loadstone(*words, cwd=home, **changes))

    return run


@pytest.fixture(scope="session")
def good(profile):
    """Like `profile`, for runs that have to end well."""
    return lambda words, **changes: held(profile(words, **changes))


# ---- the built-in engine --------------------------------------------------------------------------------


class Engine:
    """`loadstone simulate` on a free port, and the truth it writes."""

    def __init__(self, folder, words):
        self.truth_path = folder / "truth.jsonl"
        self.process = subprocess.Popen(
            [*PROGRAM, "simulate", "--port", "0", "--truth", str(self.truth_path), *shlex.split(words)],
            env=environ({}), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        line = self.process.stdout.readline()
        self.url = re.match(r"http://(\S+) model", line)[1]

    def truth(self, run, requests):
        """What the engine says of a run: its rows by request id, preflight included, when there are `requests` of them."""

        def rows():
            found = {
                row.request_id: row for row in read_truth(self.truth_path) if run.log.id in row.request_id
            }
            return found if len(found) >= requests else None

        return until(rows)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE_S) == 0
        self.process.stdout.close()


@pytest.fixture(scope="session")
def simulate(tmp_path_factory):
    """Starts engines with the flags they are given, and ends them."""
    engines = []

    def start(words=""):
        engines.append(Engine(tmp_path_factory.mktemp("engine"), words))
        return engines[-1]

    yield start
    for engine in engines:
        engine.stop()


@pytest.fixture(scope="session")
def engine(simulate):
    """The engine most tests share: quick steps, model `sim`."""
    return simulate("--step-ms 1")


@pytest.fixture
def running(started, engine, tmp_path):
    """A benchmark in `tmp_path / "run"`, when its first answers have come: one of 40 tokens is about 10,000 bytes."""

    def start(words, url=engine.url, **options):
        process = started(f"profile --url {url} --artifact-dir run {words}", **options)
        until(lambda: process.poll() is not None or Folder(tmp_path / "run").recorded_bytes > 200_000)
        assert process.poll() is None, process.communicate()[1]
        return process

    return start


# ---- a server that plays scripts ------------------------------------------------------------------------


class Call(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict
    nth: int
    """Its number on its connection, from 0."""

    @property
    def row(self):
        """Its row in the plan; None for the preflight and for what is asked aside."""
        last = self.headers.get("x-request-id", "").rpartition("-")
        return int(last[2]) if last[0] and last[0] != "preflight" else None


class Wire:
    """What a script answers with."""

    def __init__(self, sock):
        self.sock = sock
        self.closed = False

    @staticmethod
    def event(**fields):
        return b"data: " + json.dumps(fields).encode() + b"\n\n"

    @classmethod
    def delta(cls, finish=None, **message):
        return cls.event(choices=[{"index": 0, "delta": message, "finish_reason": finish}])

    def send(self, data):
        self.sock.sendall(data)

    def begin(self):
        """The head of a stream."""
        self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

    def chunk(self, data):
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def stream(self, *events):
        """A whole stream of these events, its end mark included."""
        self.begin()
        for data in events:
            self.chunk(data)
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def respond(self, body, status="200 OK"):
        """A whole answer that is not streamed."""
        data = json.dumps(body).encode()
        self.send(
            b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (status.encode(), len(data), data)
        )

    def refuse(self, status, message):
        self.respond({"error": {"message": message, "type": "x", "code": int(status[:3])}}, status)

    def answer(self, call, words=("one", " two", " three"), finish="stop"):
        """What a well-behaved server says: `words` and a usage, streamed if asked for."""
        usage = {"prompt_tokens": 20, "completion_tokens": len(words), "total_tokens": 20 + len(words)}
        if not call.body.get("stream"):
            message = {"role": "assistant", "content": "".join(words)}
            choice = {"index": 0, "message": message, "text": "".join(words), "finish_reason": finish}
            self.respond({"choices": [choice], "usage": usage})
            return
        texts = [self.delta(content=word) for word in words]
        self.stream(*texts, self.delta(finish=finish), self.event(choices=[], usage=usage))

    def close(self):
        self.closed = True
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def hold(self):
        """Says nothing more until the client leaves."""
        while self.sock.recv(65536):
            pass
        self.close()


class Scripted:
    """A server on the loopback. `script(call, wire)` answers what is measured, `preflight` the one request before."""

    def __init__(self, script=None, preflight=None, *, family=socket.AF_INET, tls=None, get=None):
        self.script = script or (lambda call, wire: wire.answer(call))
        self.preflight = preflight or (lambda call, wire: wire.answer(call))
        self.get = get or (lambda call, wire: wire.refuse("404 Not Found", "nothing here"))
        self.tls = tls
        self.calls = []
        self.connections = 0
        self.faults = []
        self._threads = []
        self._socks = []
        host = "::1" if family == socket.AF_INET6 else "127.0.0.1"
        self._listener = socket.create_server((host, 0), family=family)
        self.port = self._listener.getsockname()[1]
        self.url = f"127.0.0.1:{self.port}"
        self._spawn(self._accept)

    @property
    def posts(self):
        return [call for call in self.calls if call.method == "POST"]

    def _spawn(self, call, *arguments):
        self._threads.append(threading.Thread(target=call, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._spawn(self._serve, sock)

    def _serve(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            sock = self.tls.wrap_socket(sock, server_side=True) if self.tls else sock
            self._socks.append(sock)
            wire = Wire(sock)
            for nth in count():
                call = self._read(sock, nth)
                if call is None:
                    break
                self.calls.append(call)
                self._script(call)(call, wire)
                if wire.closed:
                    break
        except OSError:
            pass  # the client left: what that means is for the test to say
        except Exception as fault:
            self.faults.append(fault)
        finally:
            sock.close()

    def _script(self, call):
        if call.method == "GET":
            return self.get
        return self.preflight if call.row is None else self.script

    def _read(self, sock, nth):
        """The next request; None when the client has closed."""
        data = b""
        while b"\r\n\r\n" not in data:
            received = sock.recv(65536)
            if not received:
                return None
            data += received
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        length = int(headers.get("content-length", 0))
        while len(body) < length:
            body += sock.recv(65536)
        method, path, _ = first.split(" ")
        return Call(method, path, headers, json.loads(body) if body else {}, nth)

    def vanish(self):
        """Takes no further connections; those that stand stay."""
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has vanished already
        self._listener.close()

    def close(self):
        self.vanish()
        for sock in self._socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join(10)
        assert self.faults == []


def _servers():
    servers = []

    def start(script=None, preflight=None, **options):
        servers.append(Scripted(script, preflight, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def scripted():
    """Starts servers that play the scripts they are given."""
    yield from _servers()


@pytest.fixture(scope="module")
def scripted_for_all():
    """The same for the runs that a whole module looks at."""
    yield from _servers()
