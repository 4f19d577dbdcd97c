"""A worker: one process, one thread, one loop; sends rows when they are due and stores what arrives.

The one rule of the loop: between bytes and their stamp there is nothing, and after the stamp there is only
append, framing and the endpoint's two byte predicates. No JSON, no tokens, no logging, no garbage collection.

    main --stdin--> Job, PhaseOrder..., Quit        worker --stdout--> Ready, PhaseDone...

Run as `python -m loadstone.load.worker`.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from operator import sub
from pathlib import Path

import msgspec
from httptools import HttpParserError

from loadstone import registry
from loadstone.board import BUCKETS, FIELDS, Board, Field, Histogram, bucket
from loadstone.clock import ANCILLARY_BYTES, TIMESPEC, kernel_stamps_available, sample_offset
from loadstone.folder import PLAN, RECORDING
from loadstone.load import timer
from loadstone.load.agenda import Agenda
from loadstone.load.capacity import NEVER_NS
from loadstone.load.connection import EVENT_AND_CHUNK_END, MOST_HEAD_BYTES, Connection
from loadstone.load.flight import Flight
from loadstone.load.job import (
    BeginOrder,
    Job,
    Order,
    PhaseDone,
    PhaseOrder,
    PhaseSent,
    Quit,
    Ready,
    StopOrder,
    Trouble,
    Word,
)
from loadstone.load.limits import LINGER_NS, Limit
from loadstone.load.links import Links
from loadstone.load.poller import READ, poller
from loadstone.load.slots import Launch
from loadstone.load.stage import Stage
from loadstone.load.tape import ROWS_A_WRITE, NoSpaceError, Tape
from loadstone.plan.store import BODIES, Row
from loadstone.recording import CLOCK, END, PAIR, ROW, START, WireEnd
from loadstone.wire.request import session_lines, tail

TICK_NS = 20_000_000
"""Time limits are looked at this often: only a time-out can be late by it, never an answer."""
FLUSH_NS = 200_000_000
STALL_NS = 50_000_000
"""A tick that is later is noted: a busy machine lets a process wait for some milliseconds now and then."""
LOOK_NS = 1_000_000_000
"""Pauses and sizes of the answers under way are looked at this often, oftener only for a short idle limit."""
EVENTS_A_POLL = 512
REORDER_FROM = 4
LAUNCHES_A_ROUND = 64
"""After so many requests sent in a row the loop reads again: a burst of sends must not delay stamps for long."""

_LONG_HEAD = f"a head of more than {MOST_HEAD_BYTES >> 10} kB"
_STOPPED = "still waiting for a connection when the load was stopped"
_NO_STAMP = bytes(TIMESPEC.size)
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
        self._stamps = kernel_stamps_available() and not job.portable
        self._tape = Tape(folder / RECORDING, job.worker)
        self._board = Board(Path(job.board), job.blocks)
        self._block = self._board.block(job.worker)
        self._bodies = os.open(folder / PLAN / BODIES, os.O_RDONLY)
        self._poller = poller(job.portable)
        self._poller.register(control, READ)
        self._timer = timer.Timer() if timer.available() and not job.portable else None
        if self._timer:
            self._poller.register(self._timer.fd, READ)
        self._links = Links(
            job, self._poller, self._stamps, (endpoint.begun, endpoint.ended), self._started, self._end
        )
        self._flights: Limit[Flight] = Limit(job.timeout_ns)
        self._unbegun: Limit[Flight] = Limit(job.first_token_timeout_ns)
        self._lingering: Limit[Flight] = Limit(LINGER_NS)
        self._agenda = Agenda(job.worker, job.workers, len(job.targets))
        self._serial = self._reads = self._ended = 0
        self._told_of = (0, 0, 0)
        """What of `_counted` main knows."""
        self._next_tick = self._next_flush = self._next_look = 0
        self._stall_ns = self._stalled_ns = self._write_ns = 0
        """Of the phase that is on; see `PhaseDone`."""
        self._collected = 0
        """Garbage collections before the first order."""
        self._look_ns = min(LOOK_NS, max(TICK_NS, job.idle_timeout_ns // 10))
        self._quit = False

    def run(self) -> None:
        """Serves orders until told to quit, or until main is gone."""
        self._collected = collections()
        self.say(Ready(kernel_stamps=self._stamps))
        poll, now_ns, pack = self._poller.poll, time.monotonic_ns, ROW.pack
        links, connections, waiting = self._links, self._links.by_fd, self._links.waiting_fds
        postponed, agenda = links.opening.postponed, self._agenda
        rows = self._tape.rows
        put_row, put_data = rows.append, self._tape.data.append
        ancillary_bytes, no_stamp = ANCILLARY_BYTES, _NO_STAMP
        whole_event = EVENT_AND_CHUNK_END
        most_bytes = self._job.max_response_bytes
        while not self._quit:
            events = poll(self._wait_s(now_ns()), EVENTS_A_POLL)
            if len(events) > REORDER_FROM and waiting:
                # Packets that wait in a socket are merged and bear the last one's stamp: first tokens go first.
                events = [e for e in events if e[0] in waiting] + [e for e in events if e[0] not in waiting]
            for fd, mask in events:
                connection = connections[fd]
                if connection is None:
                    self._other(fd)
                    continue
                if connection.state and not links.proceed(connection, mask):
                    continue
                try:
                    data, ancillary, _, _ = connection.recvmsg(connection.want, ancillary_bytes)
                except BlockingIOError:
                    continue
                except OSError as error:
                    links.broken(connection, error)
                    continue
                read_ns = now_ns()
                flight = connection.flight
                if flight is None or not data:
                    links.closed(connection, read_ns)
                    continue
                size = len(data)
                put_row(pack(flight.serial, size, read_ns, ancillary[0][2] if ancillary else no_stamp))
                put_data(data)
                connection.read_ns = read_ns
                connection.got += size
                if connection.under_way and data.endswith(whole_event):
                    continue
                if size >= connection.want:  # a full read ends with a whole event by chance at most
                    connection.widen()
                if connection.got > most_bytes:
                    self._give_up(flight, WireEnd.TOO_LARGE, "", read_ns)
                    continue
                try:
                    if flight.status < 200:
                        flight.received = True
                        connection.opening += data
                        if len(connection.opening) > MOST_HEAD_BYTES:
                            raise HttpParserError(_LONG_HEAD)
                    connection.feed(data)
                except Exception as error:  # the framer's, or a defect of an endpoint's predicate
                    links.unframed(connection, flight, read_ns, error)
                    continue
                if fd in waiting and flight.begun_ns:
                    self._begun(fd, flight)
                if connection.complete:
                    links.complete(connection, flight, read_ns)
                    self._look(read_ns)
                elif flight.ended_mark and flight not in self._lingering:
                    self._lingering.start(flight, read_ns)
            now = now_ns()
            if postponed:
                links.resume(now)
            if now >= agenda.due_ns:
                self._look(now)
            if now >= self._next_tick or len(rows) >= ROWS_A_WRITE:
                self._tick(now_ns())  # what was launched meanwhile was sent after `now`
        self._tape.close()

    def _wait_s(self, now: int) -> float:
        """How long to wait for events: to the next tick, or not at all when a row can go at once."""
        until = self._next_tick
        if self._links.opening.retry_ns:
            until = min(until, self._links.opening.retry_ns)
        due_ns = self._agenda.due_ns
        if due_ns < until and (due_ns <= now or self._timer is None):
            until = due_ns
        return (until - now) / 1e9 if until > now else 0.0

    def _look(self, now: int) -> None:
        """Does what is due, and finds out when there is something to be done again that no event tells."""
        for flight in self._agenda.to_cancel(now):
            if flight in self._flights:
                self._give_up(flight, WireEnd.CANCELLED_AS_PLANNED, "", now)
        for _ in range(LAUNCHES_A_ROUND):
            launch = self._agenda.next(now)
            if launch is None:
                break
            self._fly(launch, now)
        due_ns = self._agenda.plan_ahead(now)
        if self._timer is not None and now < due_ns < NEVER_NS:
            self._timer.arm(due_ns)

    def _other(self, fd: int) -> None:
        """What is readable is no connection: the timer, main's orders, or a connection closed in this round."""
        if self._timer and fd == self._timer.fd:
            self._timer.clear()
        elif fd == self._control:
            self._hear()

    # ---- flights ----------------------------------------------------------------------------------

    def _fly(self, launch: Launch, now: int) -> None:
        row = launch.row
        self._serial += 1
        self._block[Field.DRAWN] += 1
        target = self._agenda.homes.choose(row)
        body = os.pread(self._bodies, row.body_bytes, row.body_at)
        request_id = f"{self._job.id_prefix}{row.request}"
        payload = self._job.targets[target].head + tail(request_id, body, self._session(row))
        flight = Flight(self._serial, row, launch.due_ns, payload, target)
        self._agenda.flew(flight)
        self._flights.start(flight, now)
        self._links.carry(flight)

    def _session(self, row: Row) -> bytes:
        """The header lines that tell the conversation, and its end."""
        job = self._job
        end = job.session_end_header if row.final else None
        if not job.session_headers and end is None:
            return b""
        return session_lines(job.session_headers, f"{job.id_prefix}c{row.phase}-{row.conversation}", end)

    def _started(self, connection: Connection, flight: Flight, sent_ns: int) -> None:
        """The first byte of a flight is about to go."""
        first = flight.sending == START
        told = PAIR.pack(flight.row.request, flight.due_ns) if first else PAIR.pack(0, 0)
        self._tape.rows.append(ROW.pack(flight.serial, flight.sending, sent_ns, told))
        if first:
            self._block[Field.SENT] += 1
            self._block[_LAG_AT + bucket((sent_ns - flight.due_ns) // 1000)] += 1
            if flight.row.cancelled:
                self._agenda.sent(flight, sent_ns)
        if self._job.streaming:
            if not flight.redirects:
                self._unbegun.start(flight, sent_ns)
            self._links.waiting_fds.add(connection.fd)

    def _begun(self, fd: int, flight: Flight) -> None:
        """The first output of a flight has come."""
        self._links.waiting_fds.discard(fd)
        self._agenda.begun(flight, flight.begun_ns)
        self._unbegun.stop(flight)
        flight.payload = b""
        self._block[_TTFT_AT + bucket((flight.begun_ns - flight.sent_ns) // 1000)] += 1

    def _end(self, flight: Flight, end: WireEnd, now: int, message: str = "") -> None:
        """Writes the one end of a flight and frees its slot. What happens after the end mark is no fault any more."""
        if flight.ended_mark:
            end, message = WireEnd.COMPLETE, ""
        said = message.encode(errors="replace")
        facts = flight.facts(end)
        self._tape.data.append(facts + said)
        self._tape.rows.append(ROW.pack(flight.serial, END, now, PAIR.pack(len(facts) + len(said), 0)))
        self._flights.stop(flight)
        self._unbegun.stop(flight)
        self._lingering.stop(flight)
        self._block[Field.ENDED] += 1
        self._ended += 1
        if not self._agenda.ended(flight, end, now) and not flight.row.final:
            self._leave(flight.row)

    def _leave(self, row: Row) -> None:
        """The conversation of a row does not go on."""
        self._agenda.homes.forget(row)
        self._links.forget(row)

    def _give_up(self, flight: Flight, end: WireEnd, message: str, now: int) -> None:
        """Ends a flight that is under way."""
        self._links.abandon(flight, now)
        self._end(flight, end, now, message)

    def _waits_unsent(self, flight: Flight) -> bool:
        """Whether it was never sent and has no connection, not even one in the making."""
        return not flight.sent_ns and flight in self._links.opening.postponed

    def _send_nothing_more(self, stage: Stage, now: int) -> None:
        """A phase is stopped: what of it waits for a connection to be sent on is not sent."""
        for flight in filter(self._waits_unsent, list(self._links.opening.postponed)):
            if flight.row.phase == stage.order.number:
                self._give_up(flight, WireEnd.NOT_SENT, _STOPPED, now)

    # ---- housekeeping -----------------------------------------------------------------------------

    def _tick(self, now: int) -> None:
        """Now and then: time limits, the end of the phase, the clocks, the recording, signs of life."""
        if now >= self._next_tick:
            self._note_stall(now - self._next_tick)
            self._next_tick = now + TICK_NS
            self._agenda.due_ns = 0
            self._expire(now)
            for row in self._agenda.let_go(now):
                self._leave(row)
            self._block[Field.BEAT_NS] = now
            if self._agenda.stages:
                self._block[Field.QUEUED] = self._agenda.queued(now)
                self._block[Field.WANTED] = self._agenda.wanted()
                self._tell_phases(now)
        if now >= self._next_flush:
            self._next_flush = now + FLUSH_NS
            offset = sample_offset()
            self._tape.rows.append(ROW.pack(0, CLOCK, offset.mono_ns, PAIR.pack(offset.offset_ns, 0)))
            self._block[Field.CPU_NS] = time.process_time_ns()
            self._block[Field.CONNECTS] = self._links.connects
            self._flush()
        elif len(self._tape.rows) >= ROWS_A_WRITE:
            self._flush()

    def _note_stall(self, late_ns: int) -> None:
        """Notes by how much a tick is late: so long one round took, or nobody let this process run."""
        if not self._next_tick or not self._agenda.stages:  # the first one, or while there is nothing to do
            return
        self._stall_ns = max(self._stall_ns, late_ns)
        if late_ns > STALL_NS:
            self._stalled_ns += late_ns

    def _flush(self) -> None:
        self._reads += len(self._tape.data)
        begun_ns = time.monotonic_ns()
        self._block[Field.BYTES] += self._tape.flush()
        self._write_ns = max(self._write_ns, time.monotonic_ns() - begun_ns)

    def _expire(self, now: int) -> None:
        self._links.opening.expire(now)
        if now >= self._next_look:
            self._next_look = now + self._look_ns
            for flight, end in self._links.idle_or_large(now):
                self._give_up(flight, end, "", now)
        for limit, end in (
            (self._unbegun, WireEnd.TIMEOUT_FIRST_TOKEN),
            (self._flights, WireEnd.TIMEOUT_TOTAL),
            (self._lingering, WireEnd.COMPLETE),
        ):
            for flight in limit.expired(now):
                if self._waits_unsent(flight):
                    self._give_up(flight, *self._links.opening.verdict(flight), now)
                else:
                    self._give_up(flight, end, "", now)
        for stage in self._agenda.stages.values():
            if stage.slots.closed(now):
                self._send_nothing_more(stage, now)
            if now >= stage.slots.cut_ns:
                self._cut(stage, now)

    def _cut(self, stage: Stage, now: int) -> None:
        stage.slots.clear(now)
        end = WireEnd.CANCELLED if stage.given_up else WireEnd.CUT
        self._send_nothing_more(stage, now)
        for flight in self._flights:
            if flight.row.phase == stage.order.number:
                self._give_up(flight, end, "", now)

    def _tell_phases(self, now: int) -> None:
        """Tells main which phases have nothing more to send, and which are over: nothing of them is under way."""
        for stage in self._agenda.stages.values():
            if not stage.told_spent and stage.slots.spent():
                stage.told_spent = True
                self.say(PhaseSent(number=stage.order.number, start_ns=stage.start_ns, end_ns=now))
        for stage in self._agenda.over():
            self._finish(stage, now)

    def _finish(self, stage: Stage, now: int) -> None:
        self._flush()
        before, self._told_of = self._told_of, self._counted()
        reads, waits, waited_ns = map(sub, self._told_of, before)
        self.say(
            PhaseDone(
                number=stage.order.number,
                start_ns=stage.start_ns,
                flights=stage.ended,
                reads=reads,
                cpu_ns=stage.cpu_ns(),
                wall_ns=now - stage.start_ns,
                end_ns=now,
                starved=stage.slots.starved,
                waits=waits,
                waited_ns=waited_ns,
                stall_ns=self._stall_ns,
                stalled_ns=self._stalled_ns,
                write_ns=self._write_ns,
                collections=collections() - self._collected,
            )
        )
        self._stall_ns = self._stalled_ns = self._write_ns = 0

    def _counted(self) -> tuple[int, int, int]:
        """Reads, waits, and the time waited in ns, all so far."""
        return self._reads - self._ended, self._links.opening.waits, self._links.opening.waited_ns

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
            self._add(order)
        elif isinstance(order, BeginOrder):
            self._agenda.date(order.number, order.start_ns)
        elif isinstance(order, StopOrder):
            self._stop(order, time.monotonic_ns())
        elif isinstance(order, Quit):
            self._quit = True

    def _add(self, order: PhaseOrder) -> None:
        """Begins a phase; sleeps through the few tens of milliseconds before one that nothing goes before."""
        now = time.monotonic_ns()
        while (
            not self._agenda.stages and order.start_ns is not None and (left_ns := order.start_ns - now) > 0
        ):
            time.sleep(left_ns / 1e9)
            now = time.monotonic_ns()
        self._next_tick = 0  # the sleep is no stall
        self._agenda.add(order, now)

    def _stop(self, order: StopOrder, now: int) -> None:
        """Ends all phases under way; those that were to follow never begin."""
        for stage in self._agenda.stages.values():
            stage.stop(order.stop_ns, order.cut_ns, order.given_up, now)
            self._send_nothing_more(stage, now)
        for never in self._agenda.stop():
            self.say(PhaseDone.never(never.number, now))
        self._next_tick = 0

    def say(self, word: Word) -> None:
        """Tells main."""
        os.write(1, msgspec.json.encode(word) + b"\n")


def collections() -> int:
    """Garbage collections of this process so far."""
    return sum(generation["collections"] for generation in gc.get_stats())


def main() -> None:
    """Reads the job from stdin, says that it is ready, and works until told to quit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 1 << 20)
        if not piece:
            sys.exit(1)
        line += piece
    serve(msgspec.json.decode(line, type=Job), control=0)


def serve(job: Job, control: int) -> None:
    """Works until told to quit. A recording that cannot be written is main's to know; what was written stays."""
    worker = Worker(job, control)
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        worker.run()
    except NoSpaceError as error:
        worker.say(Trouble(message=str(error)))


if __name__ == "__main__":
    main()
