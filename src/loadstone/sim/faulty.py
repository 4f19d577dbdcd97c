"""The server that answers wrongly when it is told to: plays the steps of faults beside the engine, on the same loop.

It is a server of its own so that the good one, which is measured with, does nothing for it.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import socket
import struct
import time
from collections.abc import Callable
from functools import partial

import msgspec

from loadstone.sim.api.asked import Asked
from loadstone.sim.api.choices import Choices
from loadstone.sim.faults import Fault, Script
from loadstone.sim.faults.choice import mix
from loadstone.sim.faults.script import TOKENS
from loadstone.sim.faults.steps import Close, Die, Hold, IgnoreClose, Reset, Send, Step, Steps, Wait
from loadstone.sim.http import Request
from loadstone.sim.loop import Connection, Server, listen
from loadstone.sim.options import SimOptions
from loadstone.sim.play import Play
from loadstone.sim.stamps import Received
from loadstone.sim.turn import Turn

PREFLIGHT = "preflight-"
"""How the ids begin of the requests by which loadstone looks whether a server is there."""
STEPS_AT_ONCE = 4096
"""After so many steps of one answer the others get their turn."""
_BREAK = struct.pack("ii", 1, 0)
"""SO_LINGER on, for no time: closing sends a RST."""


class FaultyServer(Server):
    """A server some of whose answers are faults."""

    def __init__(self, options: SimOptions) -> None:
        """Listens. Raises `UsageError`, also for a fault that there is not."""
        self._mix = mix(options.fault)
        self._numbers = itertools.count(1)
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._left_open: set[Connection] = set()
        super().__init__(options)

    def close(self) -> None:
        """Gives back the connections too that were kept although the client had left."""
        for connection in list(self._left_open):
            self._close(connection)
        super().close()

    # ---- the loop ----

    def _patience_s(self) -> float | None:
        patience_s = super()._patience_s()
        if not self._timers:
            return patience_s
        rest_s = max(self._timers[0][0] - time.monotonic_ns(), 0) / 1e9
        return rest_s if patience_s is None else min(rest_s, patience_s)

    def _advance(self, now_ns: int) -> None:
        super()._advance(now_ns)
        due = []
        while self._timers and self._timers[0][0] <= now_ns:
            due.append(heapq.heappop(self._timers)[2])
        for action in due:  # what they put off is for the next round, after the sockets
            action()

    def _at(self, due_ns: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (due_ns, next(self._order), action))

    # ---- which answer ----

    def _start(self, connection: Connection, asked: Asked, request: Request, received: Received) -> None:
        first, connection.fresh = connection.fresh, False
        name = request.headers.get("x-request-id", "")
        if name.startswith(PREFLIGHT) and not self._options.fault_preflight:
            super()._start(connection, asked, request, received)
            return
        spoilt = asked.plain(TOKENS)
        answer, truth = self._prepared(spoilt, request, received)
        if not isinstance(answer, Choices):  # faults know how to spell lists of choices only
            super()._start(connection, asked, request, received)
            return
        script = Script(spoilt, answer, request, first, next(self._numbers))
        fault, steps = self._spoilt(script, name)
        if fault is None or steps is None:
            super()._start(connection, asked, request, received)
            return
        truth.fault = fault.name
        play = connection.turn = Play(steps, truth)
        self._tallies.plays()
        self._go_on(connection, play)

    def _spoilt(self, script: Script, name: str) -> tuple[Fault | None, Steps | None]:
        """The fault of a request and its steps; no steps: it is answered well."""
        for fault, after in self._mix.whole_server:
            if steps := fault.play(script._replace(after=after)):
                return fault, steps
        found = self._mix.pick(self._options.seed, name or f"#{script.number}")
        return found, found.play(script) if found and found.applies(script) else None

    # ---- steps ----

    def _go_on(self, connection: Connection, play: Play) -> None:
        """Plays until there is something to wait for."""
        if connection.turn is not play:  # the client has left while it waited
            return
        try:
            for _ in range(STEPS_AT_ONCE):
                if not self._step(connection, play, next(play.steps, None)):
                    return
        except Exception as error:
            self._fail(connection, f"the fault {play.truth.fault}", error)
            return
        self._at(play.due_ns, partial(self._go_on, connection, play))

    def _step(self, connection: Connection, play: Play, step: Step | None) -> bool:
        """One step; whether the next one may follow at once."""
        now_ns = time.monotonic_ns()
        match step:
            case Send(data):
                play.note(step, now_ns)
                self._tallies.sends(step.tokens)
                self._send(connection, data)
                play.blocked = bool(connection.out)
                return connection.turn is play and not play.blocked
            case Wait(ns) if play.wait(ns, now_ns):
                self._at(play.due_ns, partial(self._go_on, connection, play))
                return False
            case Hold():
                return False
            case IgnoreClose():
                play.deaf = True
            case Close() | Reset() | Die() | None:
                self._end(connection, play, step)
                return False
        return True

    def _flush(self, connection: Connection) -> None:
        super()._flush(connection)
        play = connection.turn
        if isinstance(play, Play) and play.blocked and not connection.out:
            play.blocked = False
            self._go_on(connection, play)

    def _end(self, connection: Connection, play: Play, last: Close | Reset | Die | None) -> None:
        """The answer is over: what becomes of the connection, or of the server."""
        play.truth.end = "played"
        connection.turn = None
        self._record(play)
        connection.closing = connection.closing or last is not None
        if isinstance(last, Die):
            self._at(0, partial(self._die, last))  # the loop is in the middle of its connections
        elif isinstance(last, Reset):
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _BREAK)
            self._close(connection)
        elif connection.closing and not connection.out:
            self._close(connection)
        else:
            self._take(connection)

    def _record(self, turn: Turn | Play) -> None:
        super()._record(turn)
        if isinstance(turn, Play):
            self._tallies.played(turn.truth)

    # ---- connections ----

    def _left(self, connection: Connection) -> None:
        play = connection.turn
        if not (isinstance(play, Play) and play.deaf):
            super()._left(connection)
            return
        connection.interest = 0
        self._look(connection, selectors.EVENT_WRITE if connection.out else 0)
        self._left_open.add(connection)

    def _close(self, connection: Connection) -> None:
        self._left_open.discard(connection)
        super()._close(connection)

    def _die(self, death: Die) -> None:
        """As if the process had died: nobody listens, every connection is closed."""
        if self._listener.fileno() < 0:  # it is dead already
            return
        self._selector.unregister(self._listener)
        self._listener.close()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Connection):
                self._close(key.data)
        if death.back_after_ns is not None:
            self._at(time.monotonic_ns() + death.back_after_ns, self._come_back)

    def _come_back(self) -> None:
        self._listener = listen(msgspec.structs.replace(self._options, port=self.port))
        self._stamps.ask(self._listener)
        self._watch(self._listener, self._accept)
