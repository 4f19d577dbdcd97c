"""A worker: one process, one thread, one loop; sends rows when they are due and stores what arrives.

The one rule of the loop: between bytes and their stamp there is nothing, and after the stamp there is only
append, framing and the endpoint's two byte predicates. No JSON, no tokens, no logging, no garbage collection.

    main --stdin--> Job, PhaseOrder..., Quit        worker --stdout--> Ready, PhaseDone...

Run as `python -m loadstone.load.worker`.
"""

from __future__ import annotations

import errno
import gc
import heapq
import os
import signal
import socket
import ssl
import sys
import time
from collections import OrderedDict, deque
from pathlib import Path

import httptools
import msgspec

from loadstone import registry
from loadstone.board import BUCKETS, FIELDS, Board, Field, Histogram, bucket
from loadstone.clock import sample_offset
from loadstone.folder import PLAN, RECORDING
from loadstone.load import sockets, timer
from loadstone.load.connection import (
    CONNECTING,
    HANDSHAKE,
    LARGE_READ_BYTES,
    READING,
    SENDING,
    Connection,
    Streaming,
)
from loadstone.load.flight import Flight
from loadstone.load.job import Job, Order, PhaseDone, PhaseOrder, Quit, Ready, StopOrder, Word
from loadstone.load.poller import READ, WRITE, poller
from loadstone.load.rows import Dealt, Shared
from loadstone.load.tape import ROWS_A_WRITE, Tape
from loadstone.load.tls import Tls
from loadstone.plan.store import BODIES, ROWS, WHEN_A_SLOT_FREES, Row
from loadstone.recording import CLOCK, END, PAIR, RESENT, ROW, START, WireEnd
from loadstone.wire.request import tail

TICK_NS = 20_000_000
"""Time limits are looked at this often; an answer is never late by it, only a time-out."""
FLUSH_NS = 200_000_000
LINGER_NS = 1_000_000_000
"""How long after the end mark of a stream the end of the HTTP message is awaited."""
EVENTS_A_POLL = 512
REORDER_FROM = 4
LAUNCHES_A_ROUND = 64
"""After so many requests sent in a row the loop reads again, so that a burst of sends delays no stamp for long."""

_NO_STAMP = bytes(sockets.TIMESPEC_BYTES)
_CLIENT_ERRNOS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
_TTFT_AT = FIELDS + Histogram.TTFT * BUCKETS
_LAG_AT = FIELDS + Histogram.SEND_LAG * BUCKETS


class Worker:
    """The state of one load-generating process."""

    def __init__(self, job: Job, control: int) -> None:
        folder = Path(job.folder)
        endpoint = registry.load("endpoints", job.endpoint)
        self._job = job
        self._control = control
        self._heard = b""
        self._begun, self._ended = endpoint.begun, endpoint.ended
        self._stamps = sockets.kernel_stamps_available() and not job.portable
        self._tls = sockets.tls_context(job.tls.verify) if job.tls else None
        self._tape = Tape(folder / RECORDING, job.worker)
        self._board = Board(Path(job.board), job.blocks)
        self._block = self._board.block(job.worker)
        self._rows_path = folder / PLAN / ROWS
        self._bodies = os.open(folder / PLAN / BODIES, os.O_RDONLY)
        self._poller = poller(job.portable)
        self._timer = timer.Timer() if timer.available() and not job.portable else None
        self._poller.register(control, READ)
        if self._timer:
            self._poller.register(self._timer.fd, READ)

        self._connections: dict[int, Connection] = {}
        self._idle: list[Connection] = []
        self._connecting: OrderedDict[Connection, int] = OrderedDict()
        self._first_due: OrderedDict[Flight, int] = OrderedDict()
        self._total_due: OrderedDict[Flight, int] = OrderedDict()
        self._lingering: OrderedDict[Flight, int] = OrderedDict()
        self._carriers: dict[Flight, Connection] = {}
        self._waiting_fds: set[int] = set()
        """Descriptors whose first output has not come: they are read before the others."""

        self._phase: PhaseOrder | None = None
        self._source: Shared | Dealt | None = None
        self._due: list[tuple[int, int, Row]] = []
        self._freed: deque[int] = deque()
        """Moments at which slots became free that have not been filled yet."""
        self._exhausted = True
        self._serial = 0
        self._starved = self._drawn = self._reads = 0
        self._phase_cpu_ns = self._phase_flights = self._phase_reads = 0
        self._next_tick = self._next_flush = 0
        self._quit = False

    # ---- the loop -------------------------------------------------------------------------------

    def run(self) -> None:
        """Serves orders until told to quit, or until main is gone."""
        self._say(Ready(kernel_stamps=self._stamps))
        poll = self._poller.poll
        connections = self._connections
        waiting = self._waiting_fds
        rows = self._tape.rows
        put_row, put_data = rows.append, self._tape.data.append
        pack, now_ns = ROW.pack, time.monotonic_ns
        while not self._quit:
            events = poll(self._wait_s(now_ns()), EVENTS_A_POLL)
            if len(events) > REORDER_FROM and waiting:
                # Packets that wait in a socket are merged and bear the last one's stamp: first tokens go first.
                events = [e for e in events if e[0] in waiting] + [e for e in events if e[0] not in waiting]
            for fd, mask in events:
                connection = connections.get(fd)
                if connection is None:
                    self._other(fd)
                    continue
                if connection.state != READING and not self._proceed(connection, mask):
                    continue
                try:
                    data, ancillary, _, _ = connection.recvmsg(connection.want, sockets.ANCILLARY_BYTES)
                except BlockingIOError:
                    continue
                except OSError as error:
                    self._broken(connection, error)
                    continue
                read_ns = now_ns()
                flight = connection.flight
                if flight is None or not data:
                    self._closed(connection, read_ns)
                    continue
                if connection.tls is not None:
                    data = self._decrypt(connection, data, read_ns)
                    if not data:
                        continue
                put_row(pack(flight.serial, len(data), read_ns, ancillary[0][2] if ancillary else _NO_STAMP))
                put_data(data)
                if not flight.received:
                    flight.received = True
                    connection.opening = data
                    connection.want = LARGE_READ_BYTES if len(data) == connection.want else connection.want
                connection.read_ns = read_ns
                try:
                    connection.feed(data)
                except httptools.HttpParserError as error:
                    self._unframed(connection, flight, read_ns, error)
                    continue
                if connection.complete:
                    self._complete(connection, flight, read_ns)
                elif flight.begun_ns:
                    if fd in waiting:
                        self._first_output(fd, flight)
                    if flight.ended_mark and flight not in self._lingering:
                        self._lingering[flight] = read_ns + LINGER_NS
            now = now_ns()
            if self._phase is not None:
                self._launch_due(now)
            if len(rows) >= ROWS_A_WRITE or now >= self._next_tick:
                self._tick(now)
        self._tape.close()

    def _wait_s(self, now: int) -> float:
        if self._freed and not self._starving():
            return 0.0
        until = self._next_tick
        if self._due:
            due = self._due[0][0]
            if due <= now:
                return 0.0
            if self._timer:
                self._timer.arm(due)
            else:
                until = min(until, due)
        return max(0.0, (until - now) / 1e9)

    def _starving(self) -> bool:
        return self._source is not None and self._source.starved

    def _other(self, fd: int) -> None:
        """What is readable is no connection: the timer, main's orders, or one just closed."""
        if self._timer and fd == self._timer.fd:
            self._timer.clear()
        elif fd == self._control:
            self._hear()

    # ---- sending --------------------------------------------------------------------------------

    def _launch_due(self, now: int) -> None:
        """Fills free slots and sends what is due, a bounded number at a time."""
        for _ in range(LAUNCHES_A_ROUND):
            if self._freed:
                self._draw(self._freed.popleft(), now)
            elif self._due and self._due[0][0] <= now:
                due, _, row = heapq.heappop(self._due)
                self._launch(row, due, now)
                if isinstance(self._source, Dealt):
                    self._freed.append(now)
            else:
                break
            if self._starving():
                break
        self._maybe_done(now)

    def _draw(self, freed: int, now: int) -> None:
        """Takes the next row for a slot that became free at `freed`."""
        phase, source = self._phase, self._source
        if phase is None or source is None or self._exhausted:
            return
        if phase.stop_ns is not None and now >= phase.stop_ns:
            self._exhausted = True
            return
        row = source.next()
        if row is None and source.starved:
            self._starved += 1
            self._freed.appendleft(freed)
        elif row is None:
            self._exhausted = True
        elif row.due_ns == WHEN_A_SLOT_FREES:
            self._launch(row, freed, now)
        else:
            due = phase.start_ns + row.due_ns
            if phase.stop_ns is not None and due >= phase.stop_ns:
                self._exhausted = True
            else:
                heapq.heappush(self._due, (due, row.request, row))

    def _launch(self, row: Row, due: int, now: int) -> None:
        """Starts the flight of a row, on a kept-alive connection when there is one."""
        self._serial += 1
        self._drawn += 1
        self._block[Field.DRAWN] += 1
        body = os.pread(self._bodies, row.body_bytes, row.body_at)
        payload = self._job.head + tail(f"{self._job.id_prefix}{row.request}", body)
        flight = Flight(self._serial, row, due, payload)
        self._total_due[flight] = now + self._job.timeout_ns
        if self._idle:
            connection = self._idle.pop()
            connection.renew(flight)
            self._carriers[flight] = connection
            self._send(connection, flight)
        else:
            self._connect(flight)

    def _connect(self, flight: Flight) -> None:
        flight.connect_ns = time.monotonic_ns()
        try:
            sock = sockets.start_connect(self._job.family, self._job.address, self._stamps)
        except OSError as error:
            end = WireEnd.CLIENT if error.errno in _CLIENT_ERRNOS else WireEnd.CONNECT
            self._end(flight, end, time.monotonic_ns(), str(error))
            return
        tls = Tls(self._tls, self._job.tls.server_name) if self._tls and self._job.tls else None
        connection = (
            Streaming(sock, flight, tls, self._begun, self._ended)
            if self._job.streaming
            else Connection(sock, flight, tls)
        )
        self._carriers[flight] = connection
        self._connections[connection.fd] = connection
        self._connecting[connection] = flight.connect_ns + self._job.connect_timeout_ns
        self._poller.register(connection.fd, WRITE)

    def _proceed(self, connection: Connection, mask: int) -> bool:
        """Goes on with connecting, the TLS handshake or sending; True when there may be bytes to read."""
        flight = connection.flight
        assert flight is not None
        if connection.state == CONNECTING:
            # An event of a descriptor that was closed and given out again in this very round may be stale.
            code = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self._refused(connection, flight, f"{os.strerror(code)} ({errno.errorcode.get(code, code)})")
            elif not mask & WRITE:
                return False
            elif connection.tls is None:
                self._connected(connection, flight)
            else:
                connection.state = HANDSHAKE
                self._poller.modify(connection.fd, READ)
                self._handshake(connection, flight, b"")
            return False
        if connection.state == HANDSHAKE:
            self._handshake_read(connection, flight)
            return False
        if mask & WRITE:
            self._write(connection, flight)
        return bool(mask & ~WRITE) and connection.flight is flight

    def _handshake_read(self, connection: Connection, flight: Flight) -> None:
        try:
            received = connection.sock.recv(LARGE_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._refused(connection, flight, f"TLS: {error}")
            return
        if received:
            self._handshake(connection, flight, received)
        else:
            self._refused(connection, flight, "TLS: the server closed the connection during the handshake")

    def _handshake(self, connection: Connection, flight: Flight, received: bytes) -> None:
        tls = connection.tls
        assert tls is not None
        try:
            done = tls.handshake(received)
            if reply := tls.pending():
                connection.sock.sendall(reply)
        except (ssl.SSLError, ssl.CertificateError, OSError) as error:
            self._refused(connection, flight, f"TLS: {error}")
            return
        if done:
            self._connected(connection, flight)

    def _refused(self, connection: Connection, flight: Flight, message: str) -> None:
        self._drop(connection)
        self._end(flight, WireEnd.CONNECT, time.monotonic_ns(), message)

    def _connected(self, connection: Connection, flight: Flight) -> None:
        self._connecting.pop(connection, None)
        self._block[Field.CONNECTS] += 1
        flight.connected_ns = time.monotonic_ns()
        connection.state = SENDING
        self._poller.modify(connection.fd, READ)
        self._send(connection, flight)

    def _send(self, connection: Connection, flight: Flight) -> None:
        """Gives the request to the kernel; `sent` is the moment before."""
        payload = flight.payload
        connection.outgoing = payload if connection.tls is None else connection.tls.encrypt(payload)
        flight.sent_ns = sent = time.monotonic_ns()
        put = self._tape.rows.append
        if flight.retries:
            put(ROW.pack(flight.serial, RESENT, sent, PAIR.pack(0, 0)))
        else:
            put(ROW.pack(flight.serial, START, sent, PAIR.pack(flight.row.request, flight.due_ns)))
            self._block[Field.SENT] += 1
            self._block[_LAG_AT + bucket((sent - flight.due_ns) // 1000)] += 1
        if self._job.streaming:
            self._first_due[flight] = sent + self._job.first_token_timeout_ns
            self._waiting_fds.add(connection.fd)
        self._write(connection, flight)

    def _write(self, connection: Connection, flight: Flight) -> None:
        try:
            written = connection.sock.send(connection.outgoing)
        except BlockingIOError:
            written = 0
        except OSError as error:
            self._broken(connection, error)
            return
        if written < len(connection.outgoing):
            connection.outgoing = memoryview(connection.outgoing)[written:]
            connection.state = SENDING
            self._poller.modify(connection.fd, READ | WRITE)
            return
        flight.written_ns = time.monotonic_ns()
        connection.outgoing = b""
        if connection.state == SENDING:
            connection.state = READING
            self._poller.modify(connection.fd, READ)

    # ---- receiving, away from the common path -----------------------------------------------------

    def _first_output(self, fd: int, flight: Flight) -> None:
        self._waiting_fds.discard(fd)
        self._first_due.pop(flight, None)
        flight.payload = b""
        self._block[_TTFT_AT + bucket((flight.begun_ns - flight.sent_ns) // 1000)] += 1

    def _decrypt(self, connection: Connection, data: bytes, read_ns: int) -> bytes:
        """The plaintext of what was read; empty when there is none yet or the connection is gone."""
        tls = connection.tls
        assert tls is not None
        try:
            plain = tls.decrypt(data)
            if reply := tls.pending():
                connection.sock.sendall(reply)
        except ssl.SSLZeroReturnError:
            self._closed(connection, read_ns)
            return b""
        except (ssl.SSLError, OSError) as error:
            self._broken(connection, error)
            return b""
        return plain

    def _complete(self, connection: Connection, flight: Flight, now: int) -> None:
        if flight.begun_ns and connection.fd in self._waiting_fds:
            self._first_output(connection.fd, flight)
        if connection.keeps_alive() and not connection.outgoing:
            self._waiting_fds.discard(connection.fd)
            connection.flight = None
            self._carriers.pop(flight, None)
            self._idle.append(connection)
        else:
            self._drop(connection)
        self._end(flight, WireEnd.COMPLETE, now)

    def _unframed(self, connection: Connection, flight: Flight, now: int, error: Exception) -> None:
        """The framer refused what came: after a complete message that is only a reason to close."""
        complete = connection.complete
        self._drop(connection)
        if complete:
            self._end(flight, WireEnd.COMPLETE, now)
        else:
            self._end(flight, WireEnd.PROTOCOL, now, str(error) or type(error).__name__)

    def _closed(self, connection: Connection, now: int) -> None:
        """The server closed the connection."""
        flight = connection.flight
        self._drop(connection)
        if flight is None:
            return
        if self._may_retry(connection, flight):
            self._retry(flight)
        elif flight.ended_mark or (flight.received and connection.ends_with_close()):
            self._end(flight, WireEnd.COMPLETE, now)
        else:
            self._end(flight, WireEnd.CLOSED, now)

    def _broken(self, connection: Connection, error: OSError) -> None:
        """The connection was reset, or cannot be written to."""
        flight = connection.flight
        self._drop(connection)
        if flight is None:
            return
        if self._may_retry(connection, flight):
            self._retry(flight)
        else:
            self._end(flight, WireEnd.RESET, time.monotonic_ns(), str(error))

    def _may_retry(self, connection: Connection, flight: Flight) -> bool:
        return connection.reused and not flight.received and not flight.retries

    def _retry(self, flight: Flight) -> None:
        """The server had closed a kept-alive connection before the request reached it: once more, anew."""
        flight.retries += 1
        self._first_due.pop(flight, None)
        self._connect(flight)

    def _drop(self, connection: Connection) -> None:
        """Closes a connection and forgets it; its flight is the caller's to end."""
        self._connections.pop(connection.fd, None)
        self._connecting.pop(connection, None)
        self._waiting_fds.discard(connection.fd)
        if connection.flight is None:
            self._idle.remove(connection)
        else:
            self._carriers.pop(connection.flight, None)
            connection.flight = None
        self._poller.unregister(connection.fd)
        connection.sock.close()
        # The framer and the connection hold each other, and nobody collects cycles here.
        connection.parser = connection.feed = connection.recvmsg = None  # type: ignore[assignment]

    def _end(self, flight: Flight, end: WireEnd, now: int, message: str = "") -> None:
        """Writes the one end of a flight and frees its slot."""
        said = message.encode(errors="replace")
        facts = flight.facts(end)
        self._tape.data.append(facts + said)
        self._tape.rows.append(ROW.pack(flight.serial, END, now, PAIR.pack(len(facts) + len(said), 0)))
        self._total_due.pop(flight, None)
        self._first_due.pop(flight, None)
        self._lingering.pop(flight, None)
        self._block[Field.ENDED] += 1
        self._phase_flights += 1
        if isinstance(self._source, Shared):
            self._freed.append(now)

    # ---- time limits and housekeeping -------------------------------------------------------------

    def _tick(self, now: int) -> None:
        """Now and then: time limits, the clocks, the recording, signs of life."""
        self._reads += len(self._tape.data)
        if now >= self._next_tick:
            self._next_tick = now + TICK_NS
            self._expire(now)
            self._maybe_done(now)
            self._block[Field.QUEUED] = self._queued(now)
            self._block[Field.BEAT_NS] = now
        if now >= self._next_flush:
            self._next_flush = now + FLUSH_NS
            offset = sample_offset()
            self._tape.rows.append(ROW.pack(0, CLOCK, offset.mono_ns, PAIR.pack(offset.offset_ns, 0)))
            self._block[Field.CPU_NS] = time.process_time_ns()
            self._flush()
        elif len(self._tape.rows) >= ROWS_A_WRITE:
            self._flush()

    def _flush(self) -> None:
        self._phase_reads += len(self._tape.data)
        self._block[Field.BYTES] += self._tape.flush()

    def _queued(self, now: int) -> int:
        return sum(due <= now for due, _, _ in self._due)

    def _expire(self, now: int) -> None:
        while self._connecting and (first := next(iter(self._connecting.items())))[1] <= now:
            flight = first[0].flight
            assert flight is not None
            limit_s = self._job.connect_timeout_ns / 1e9
            self._refused(first[0], flight, f"no connection within {limit_s:g} s")
        self._expire_flights(self._first_due, now, WireEnd.TIMEOUT_FIRST_TOKEN)
        self._expire_flights(self._total_due, now, WireEnd.TIMEOUT_TOTAL)
        self._expire_flights(self._lingering, now, WireEnd.COMPLETE)
        if self._phase and self._phase.cut_ns is not None and now >= self._phase.cut_ns:
            self._due.clear()
            self._exhausted = True
            for flight in list(self._total_due):
                self._abandon(flight, WireEnd.CUT, now)

    def _expire_flights(self, limits: OrderedDict[Flight, int], now: int, end: WireEnd) -> None:
        while limits and (first := next(iter(limits.items())))[1] <= now:
            self._abandon(first[0], end, now)

    def _abandon(self, flight: Flight, end: WireEnd, now: int) -> None:
        """Ends a flight from our side: its connection cannot be used again."""
        connection = self._carriers.get(flight)
        if connection is not None:
            self._drop(connection)
        self._end(flight, end, now)

    # ---- main's orders ----------------------------------------------------------------------------

    def _hear(self) -> None:
        received = os.read(self._control, 65536)
        if not received:
            self._quit = True
            return
        *lines, self._heard = (self._heard + received).split(b"\n")
        for line in lines:
            self._obey(msgspec.json.decode(line, type=Order))

    def _obey(self, order: Order) -> None:
        if isinstance(order, PhaseOrder):
            self._start(order)
        elif isinstance(order, StopOrder) and self._phase is not None:
            self._phase = msgspec.structs.replace(self._phase, stop_ns=order.stop_ns, cut_ns=order.cut_ns)
            self._due = [entry for entry in self._due if entry[0] < order.stop_ns]
            heapq.heapify(self._due)
            self._next_tick = 0
        elif isinstance(order, Quit):
            self._quit = True

    def _start(self, order: PhaseOrder) -> None:
        self._phase = order
        if order.slots is None:
            self._source = Dealt(self._rows_path, order, self._job.worker, self._job.workers)
        else:
            self._source = Shared(self._job.rows_fd, order)
        # A slot frees when the phase begins; a dealt worker holds one row ahead of its due time.
        self._freed = deque([order.start_ns] * (1 if order.slots is None else order.slots))
        self._exhausted = False
        self._starved = self._drawn = self._phase_flights = self._phase_reads = 0
        self._phase_cpu_ns = time.process_time_ns()
        self._wait_until(order.start_ns)

    def _wait_until(self, start_ns: int) -> None:
        """Sleeps through the moments before a phase; main gives a few tens of milliseconds' notice."""
        while (left := start_ns - time.monotonic_ns()) > 0:
            time.sleep(left / 1e9)

    def _maybe_done(self, now: int) -> None:
        phase = self._phase
        if phase is None or not self._exhausted or self._total_due or self._due:
            return
        self._flush()
        self._phase = self._source = None
        self._freed.clear()
        self._say(
            PhaseDone(
                number=phase.number,
                drawn=self._drawn,
                flights=self._phase_flights,
                reads=self._phase_reads,
                cpu_ns=time.process_time_ns() - self._phase_cpu_ns,
                wall_ns=now - phase.start_ns,
                end_ns=now,
                starved=self._starved,
            )
        )

    def _say(self, word: Word) -> None:
        os.write(1, msgspec.json.encode(word) + b"\n")


def main() -> None:
    """Reads the job from stdin, says that it is ready, and works until told to quit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1 << 20)
        if not piece:
            sys.exit(1)
        line += piece
    worker = Worker(msgspec.json.decode(line, type=Job), control=0)
    os.set_blocking(0, False)
    gc.collect()
    gc.freeze()
    gc.disable()
    worker.run()


if __name__ == "__main__":
    main()
