"""A TCP server that plays scripts, and a real worker that is run against it in this process.

Every recording a test looks at has been held to the rules that all recordings keep (`flights_of`).
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import threading
import time
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import trustme

from loadstone.board import FIELDS, Board, Field
from loadstone.load import worker
from loadstone.load.job import Job, PhaseDone, PhaseOrder, PhaseSent, Quit, Ready, TargetJob, TlsJob
from loadstone.load.worker import Worker
from loadstone.plan.store import Draft, Writer, rows_file
from loadstone.recording import (
    CLOCK,
    END,
    END_FACTS,
    FIRST_CODE,
    PAIR,
    REDIRECTED,
    RESENT,
    ROW,
    START,
    Facts,
    WireEnd,
)
from loadstone.wire import request, url

MS = 1_000_000
PAUSE_S = 0.004
"""Between two pieces that are to arrive as two reads; a test must not depend on their doing so."""


def chunk(data):
    """One HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


class Peer:
    """The server's side of one connection, as a script sees it, and the pieces of a plain streamed answer."""

    HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    TOKEN = chunk(b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n')
    DONE = chunk(b"data: [DONE]\n\n")
    LAST = chunk(b"")
    ANSWER = HEAD + TOKEN + DONE + LAST

    def __init__(self, sock, server):
        self.sock = sock
        self._server = server
        self._rest = b""

    def request(self):
        """The next whole request. Ends the script when the client has closed."""
        while (head_end := self._rest.find(b"\r\n\r\n")) < 0:
            self._receive()
        head = self._rest[: head_end + 4]
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(self._rest) < len(head) + length:
            self._receive()
        body, self._rest = self._rest[len(head) : len(head) + length], self._rest[len(head) + length :]
        self._server.requests.append(head + body)
        return head + body

    def _receive(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError
        self._rest += data

    def send(self, *pieces):
        for number, piece in enumerate(pieces):
            if number:
                time.sleep(PAUSE_S)
            self.sock.sendall(piece)

    def head(self):
        """Only the head of the next request; its body stays in the kernel, or on the way."""
        while b"\r\n\r\n" not in self._rest:
            self._rest += self.sock.recv(256)

    def serve(self, answer=None):
        """Answers every request, as a well-behaved server does."""
        while True:
            self.request()
            self.send(answer or self.ANSWER)

    def close(self):
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock = self.sock.unwrap()
        self.sock.close()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def hold(self):
        """Says nothing more, and waits for the client to close."""
        while self.sock.recv(65536):
            pass


class Server:
    """Listens on the loopback; the n-th connection is played by the n-th script, later ones by the last."""

    def __init__(self, scripts, family=socket.AF_INET, context=None):
        self._scripts = scripts
        self._context = context
        self.requests = []
        self.connections = 0
        self.faults = []
        self._peers = []
        self._threads = []
        self._listener = socket.create_server(
            ("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family
        )
        self.address = self._listener.getsockname()
        self.port = self.address[1]
        self._spawn(self._accept)

    def _spawn(self, call, *arguments):
        thread = threading.Thread(target=call, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            script = self._scripts[min(self.connections, len(self._scripts) - 1)]
            self.connections += 1
            self._spawn(self._play, sock, script)

    def _play(self, sock, script):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(sock, self)
        self._peers.append(peer)
        try:
            if self._context:
                peer.sock = self._context.wrap_socket(sock, server_side=True)
            script(peer)
        except (EOFError, OSError):
            pass  # the client went away: what that means is for the test to say
        except Exception as error:
            self.faults.append(error)
        finally:
            peer.sock.close()
            sock.close()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for peer in self._peers:
            try:
                peer.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join(5)
        assert not self.faults


class Read(NamedTuple):
    at_ns: int
    stamped: bool
    arrival_ns: int
    data: bytes


class Flown:
    """One flight as the recording tells it."""

    def __init__(self, serial):
        self.serial = serial
        self.codes = []
        self.sends = []
        self.reads = []
        self.passed_over = []
        """Reads before the request was sent again."""
        self.resent = 0
        self.redirected = 0
        self.ends = 0

    @property
    def end(self):
        return WireEnd(self.facts.end)

    @property
    def data(self):
        return b"".join(read.data for read in self.reads)


def _read_recording(folder):
    """All flights of a folder's recording by (worker, serial), and the clock samples."""
    flights, clocks = {}, []
    for index in sorted(folder.glob("*.idx")):
        data, at = index.with_suffix(".dat").read_bytes(), 0
        process = index.name[:3]
        for serial, code, at_ns, rest in ROW.iter_unpack(index.read_bytes()):
            if code == CLOCK:
                clocks.append((at_ns, PAIR.unpack(rest)[0]))
                continue
            flown = flights.setdefault((process, serial), Flown(serial))
            flown.codes.append(code)
            if code == START:
                flown.request, flown.due_ns = PAIR.unpack(rest)
            if code in (START, RESENT, REDIRECTED):
                flown.sends.append(at_ns)
                flown.resent += code == RESENT
                flown.redirected += code == REDIRECTED
                flown.passed_over += flown.reads
                flown.reads = []
            elif code == END:
                length = PAIR.unpack(rest)[0]
                packed, at = data[at : at + length], at + length
                flown.facts = Facts._make(END_FACTS.unpack(packed[: END_FACTS.size]))
                flown.words = packed[END_FACTS.size :].decode()
                flown.at_ns = at_ns
                flown.ends += 1
            else:
                assert code < FIRST_CODE
                sec, nsec = PAIR.unpack(rest)
                piece, at = data[at : at + code], at + code
                wall_ns = sec * 1_000_000_000 + nsec
                offset_ns = clocks[-1][1] if clocks else time.time_ns() - time.monotonic_ns()
                flown.reads.append(Read(at_ns, wall_ns > 0, wall_ns - offset_ns, piece))
        assert at == len(data), "every byte belongs to a row"
    return flights, clocks


def flights_of(folder):
    """The flights of a recording, in the order of their requests, after a look at what holds for every recording."""
    flights, clocks = _read_recording(folder)
    for flown in flights.values():
        facts = flown.facts
        assert flown.ends == 1
        assert flown.codes[-1] == END
        if flown.sends:
            assert flown.codes[0] == START
            assert flown.codes.count(START) == 1
            assert (flown.request, flown.due_ns) == (facts.request, facts.due_ns)
            assert facts.due_ns <= flown.sends[0]
            assert facts.sent_ns == flown.sends[0 if flown.redirected else -1]
        assert flown.resent <= facts.retries <= 1
        assert flown.redirected <= facts.redirects <= 1
        assert flown.resent + flown.redirected == len(flown.sends[1:])
        if facts.connect_ns and facts.connected_ns:
            assert facts.connect_ns <= facts.tcp_ns <= facts.connected_ns <= facts.sent_ns
        assert facts.connect_ns or not facts.tcp_ns
        assert facts.tcp_ns or not facts.connected_ns
        if facts.written_ns:
            assert facts.sent_ns <= facts.written_ns
        times = [*flown.sends, *(read.at_ns for read in flown.reads), flown.at_ns]
        assert times == sorted(times)
        for read in flown.reads:
            if read.stamped:
                assert flown.sends[-1] - MS < read.arrival_ns < read.at_ns + MS
        assert facts.begun_ns in (0, *(read.at_ns for read in flown.reads))
    assert clocks or not flights
    return sorted(flights.values(), key=lambda flown: flown.facts.request)


class Flew(NamedTuple):
    """What a run left behind."""

    flights: list[Flown]
    done: list[PhaseDone]
    fields: list[int]
    server: Server
    home: Path

    @property
    def ends(self):
        return [flown.end for flown in self.flights]


class Overheard(Worker):
    """A worker in this process: what it says is kept, and it quits after its last phase.

    Orders that begin by themselves (`start_ns` None) are given together with the one before them.
    """

    def __init__(self, job, orders):
        self._told, self._tell = os.pipe()
        super().__init__(job, self._told)
        self.words = []
        self._to_give = list(orders)

    def tell(self, order):
        """What main would say."""
        os.write(self._tell, msgspec.json.encode(order) + b"\n")

    def say(self, word):
        self.words.append(word)
        if isinstance(word, PhaseSent) or self._agenda.stages or self._agenda._orders:
            return
        if not self._to_give:
            self.tell(Quit())
            return
        now = time.monotonic_ns()
        self.tell(_begun_at(self._to_give.pop(0), now))
        while self._to_give and (self._to_give[0].start_ns is None or self._to_give[0].start_ns > 0):
            self.tell(_begun_at(self._to_give.pop(0), now))

    def close(self):
        for connection in filter(None, self._links.by_fd):
            self._links.drop(connection)
        if self._timer:
            self._timer.close()
        for fd in (self._told, self._tell, self._bodies):
            os.close(fd)


def _begun_at(order, now):
    """The order on the clock; tests give the start from the start of the first phase."""
    return order if order.start_ns is None else msgspec.structs.replace(order, start_ns=now + order.start_ns)


def _phase(requests, slots=1, first_row=0, number=0, prefill=None, **changes):
    """An order; of slots it has so many from the start on, or steps. Its rows are opened by whoever flies it."""
    steps = {name: ((0, level),) if isinstance(level, int) else level for name, level in
             (("slots", slots), ("prefill", prefill))}  # fmt: skip
    order = PhaseOrder(number=number, rows_fd=-1, first_row=first_row, rows=requests, start_ns=0, **steps)
    return msgspec.structs.replace(order, **changes)


def _write_plan(folder, rows, body=b"{}", first_rows=(0,)):
    """Rows given by their due times, or as drafts; `first_rows` are those with which phases begin."""
    writer = Writer(folder, first_rows)
    for i, row in enumerate(rows):
        phase = sum(first <= i for first in first_rows) - 1
        writer.append([Draft(row, body, -1, -1, i, 0, phase) if isinstance(row, int) else row])
    writer.close()


def _job_for(
    home,
    address,
    *,
    family=socket.AF_INET,
    tls=None,
    blocks=1,
    head=None,
    tunnel=b"",
    authority="host:1",
    targets=None,
    **changes,
):
    target = url.parse("host:1")
    job = Job(
        worker=0,
        workers=1,
        folder=str(home),
        board=str(home / "board"),
        blocks=blocks,
        targets=targets
        or [
            TargetJob(
                head=head or request.head(target, "/v1/chat/completions", streaming=True, api_key="key"),
                family=int(family),
                address=address,
                authority=authority,
                tls=tls,
                tunnel=tunnel,
            )
        ],
        id_prefix="r-",
        reuse="pooled",
        endpoint="chat",
        streaming=True,
        connect_timeout_ns=5_000 * MS,
        first_token_timeout_ns=5_000 * MS,
        idle_timeout_ns=5_000 * MS,
        timeout_ns=5_000 * MS,
        max_response_bytes=1 << 28,
        portable=False,
    )
    return msgspec.structs.replace(job, **changes)


@pytest.fixture(params=["default", "portable"])
def portable(request):
    """Both ways a worker can be: with epoll, timerfd and kernel stamps, and without."""
    return request.param == "portable"


@pytest.fixture
def serve():
    """Starts a scripted server."""
    with ExitStack() as stack:

        def start(*scripts, **how):
            server = Server(scripts, **how)
            stack.callback(server.close)
            return server

        yield start


@pytest.fixture(scope="session")
def authority():
    """A certificate authority of our own."""
    return trustme.CA()


@pytest.fixture
def trusted(authority, tmp_path, monkeypatch):
    """The server's TLS context; the client believes its authority, as if the system did."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    roots = tmp_path / "roots.pem"
    authority.cert_pem.write_to_path(roots)
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))
    return context


@pytest.fixture
def write_plan():
    return _write_plan


@pytest.fixture
def job_for():
    return _job_for


@pytest.fixture
def read_recording():
    return _read_recording


@pytest.fixture
def new_home(tmp_path):
    """Run folders, empty but for what a worker expects to be there."""
    numbers = count()

    def make():
        home = tmp_path / f"run{next(numbers)}"
        (home / "recording").mkdir(parents=True)
        (home / "plan").mkdir()
        return home

    return make


@pytest.fixture
def fly(new_home, serve, monkeypatch):
    """Runs a worker against scripts: `fly(script, ..., requests=3, slots=2, timeout_ns=...)`.

    A script may give orders too, through `fly.worker.tell`. `due` are the rows' due times; without them the
    loop is closed.
    """
    monkeypatch.setattr(worker, "TICK_NS", 2 * MS)  # ends are noticed sooner, and tests take less time

    def run(*scripts, requests=1, slots=1, due=None, body=b"{}", orders=None, address=None, context=None,
            family=socket.AF_INET, **changes):  # fmt: skip
        home = new_home()
        server = serve(*scripts, family=family, context=context)
        orders = orders or [_phase(len(due) if due else requests, slots)]
        first_rows = [order.first_row for order in orders]
        _write_plan(home / "plan", due or [-1] * requests, body, first_rows)
        Board(home / "board", 1, create=True).close()
        fds = [os.open(home / "plan" / rows_file(first), os.O_RDONLY) for first in first_rows]
        orders = [msgspec.structs.replace(order, rows_fd=fd) for order, fd in zip(orders, fds, strict=True)]
        if context:
            changes.setdefault("tls", TlsJob(server_name="localhost", verify=True))
        changes.setdefault("portable", run.portable)
        job = _job_for(home, address or server.address, family=family, **changes)
        run.worker = Overheard(job, orders)
        try:
            run.worker.run()
        finally:
            run.worker.close()
            for fd in fds:
                os.close(fd)
        flights = flights_of(home / "recording")
        board = Board(home / "board", 1)
        fields = board.live().fields
        board.close()
        assert isinstance(run.worker.words[0], Ready)
        done = [word for word in run.worker.words[1:] if isinstance(word, PhaseDone)]
        assert sum(word.flights for word in done) == len(flights) == fields[Field.ENDED]
        assert sum(word.reads for word in done) == sum(
            len(flown.reads) + len(flown.passed_over) for flown in flights
        )
        assert fields[Field.SENT] == sum(bool(flown.sends) for flown in flights)
        assert fields[Field.DRAWN] == len(flights)
        assert len(fields) == FIELDS
        return Flew(flights, done, fields, server, home)

    run.phase = _phase
    run.portable = False
    return run
