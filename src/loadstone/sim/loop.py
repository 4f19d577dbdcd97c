"""The built-in engine as a server: one thread, one loop, real sockets and real time around a `Deployment`.

A step starts where the last one ended, on the engine's own time line, before anything is sent: so neither a late loop nor
the burst of sends stretches the steps. Answers as it should; `faulty.py` has the one that does not.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

from loadstone.errors import UsageError
from loadstone.sim.api.answer import Answer
from loadstone.sim.api.asked import Asked
from loadstone.sim.api.errors import ApiError
from loadstone.sim.api.spell import met, spell
from loadstone.sim.build import deployment
from loadstone.sim.defects import Defects
from loadstone.sim.deployment import Deployment
from loadstone.sim.engine import TooLong
from loadstone.sim.exposition import CONTENT_TYPE, Page
from loadstone.sim.http import CONTINUE, Refused, Request, RequestReader, labelled, response
from loadstone.sim.options import SimOptions
from loadstone.sim.play import Play
from loadstone.sim.routes import HOOKS, METRICS, route
from loadstone.sim.stamps import GONE, Received, Stamps
from loadstone.sim.step_log import StepFile, StepRow
from loadstone.sim.tallies import Served, Tallies, cache_config
from loadstone.sim.truth import TruthFile, TruthRow
from loadstone.sim.turn import Part, Turn

BACKLOG = 4096
CATCH_UP_NS = 5_000_000
"""A step may start this much in the past; a loop that is later than that gives the time up for lost."""
NEVER_NS = 1 << 62
LONGEST_REST_S = 3600.0
"""Looks up once an hour: the kernel knows no wait of thousands of years."""
SPELL_NS = 1_000_000
"""So long in a row an answer that takes long is spelt, while others wait."""
FLUSH_BYTES = 1 << 20
"""No socket takes more of what waits at a time; copying all of it each time would take long."""
MOST_AT_ONCE = 1 << 18
"""Tokens of an answer without an engine, which is spelt and kept whole."""
TRUTH_REST_S = 0.05
"""The truth file is written out when nothing has happened for this long, and at the end."""
RESET = "/reset_prefix_cache"


class Connection:
    """One client. Requests that come before the answer under way has ended wait in `queue`."""

    __slots__ = ("closing", "fresh", "interest", "out", "queue", "reader", "sock", "turn")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.reader = RequestReader()
        self.out = bytearray()
        self.queue: deque[tuple[Request, Received]] = deque()
        self.turn: Turn | Play | None = None
        self.closing = False
        self.fresh = True
        """No fault has looked at it yet; kept by the faulty server only."""
        self.interest = selectors.EVENT_READ
        """What the loop looks for on it, apart from room to send."""


class Server:
    """A listening server. `run` serves until `stop` is called, from any thread or signal; then `close`."""

    def __init__(self, options: SimOptions) -> None:
        """Listens. Raises `UsageError` when the address, a file or the memory for the model cannot be had."""
        self._deployment: Deployment[Part] = deployment(options)
        self._options = met(options, self._deployment.engines[0].limits.max_model_len)
        self._tallies = Tallies(self._deployment)
        self._page = Page(options.models[0], cache_config(options, self._deployment), self._tallies)
        self._created = int(time.time())
        self._answers = itertools.count(1)
        self._defects = Defects()
        self._stamps = Stamps()
        self._truth = _opened(TruthFile, "truth", options.truth)
        self._truth_rests = True
        self._steps = _opened(StepFile, "steps", options.steps)
        self._connections: dict[Turn, Connection] = {}
        self._spelling: deque[Turn] = deque()
        self._selector = selectors.DefaultSelector()
        self._opens_ns = time.monotonic_ns() + round(options.startup_s * 1e9)
        """Until then the port is closed, as that of a server that loads its weights."""
        self._listener = bound(options) if options.startup_s else listen(options)
        self._stamps.ask(self._listener)
        self.port: int = self._listener.getsockname()[1]
        self._wake, self.waker = socket.socketpair()
        self._stopped = False
        self._watch(self._wake, self._woken)
        for end in (self._wake, self.waker):
            end.setblocking(False)

    def stop(self) -> None:
        """Makes `run` return."""
        with contextlib.suppress(BlockingIOError):  # full: it has been told often enough
            self.waker.send(b"\0")

    def run(self) -> None:
        """Serves until stopped, once it has started up. Raises `UsageError` when it cannot listen then."""
        self._start_up()
        clock = time.monotonic_ns
        while not self._stopped:
            if self._wait():
                due_ns = self._deployment.next_ns or NEVER_NS
                for key, mask in self._selector.select(0):
                    self._ready(key, mask)
                    if clock() >= due_ns:  # the others are ready in the next round too
                        break
            self._advance(clock())
            if self._spelling:
                self._spell()
            # Requests that waited behind an answer that has just ended, where the engine has nothing else to do.
            self._deployment.begin(clock())

    def close(self) -> None:
        """Gives every descriptor back and completes the truth file."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, Connection):
                self._close(key.data)
        self._selector.close()
        for sock in (self._listener, self._wake, self.waker):
            sock.close()
        for file in (self._truth, self._steps):
            if file:
                file.close()

    def live_with(self, fd: int) -> None:
        """Stops when the other end of `fd`, a pipe, is closed."""

        def check() -> None:
            if not os.read(fd, 4096):
                self._stopped = True

        with contextlib.suppress(PermissionError):  # a plain file: it has no other end
            self._watch(fd, check)

    # ---- the loop ----

    def _start_up(self) -> None:
        """Waits until it is time to listen."""
        while not self._stopped and (left_ns := self._opens_ns - time.monotonic_ns()) > 0:
            for key, _ in self._selector.select(left_ns / 1e9):
                key.data()
        if not self._stopped:
            if self._options.startup_s:
                _listen(self._listener, self._options)
            self._watch(self._listener, self._accept)

    def _watch(self, what: socket.socket | int, action: Callable[[], None]) -> None:
        self._selector.register(what, selectors.EVENT_READ, action)

    def _wait(self) -> bool:
        """Waits for a socket or for the end of the step; whether a socket is ready.

        select() on the selector's own descriptor: it counts microseconds where epoll counts milliseconds.
        """
        ready, _, _ = select.select([self._selector], [], [], self._patience_s())
        if not ready and not self._truth_rests and self._truth and not self._deployment.busy:
            self._truth.flush()
            self._truth_rests = True
        return bool(ready)

    def _patience_s(self) -> float | None:
        if self._spelling:
            return 0.0
        next_ns = self._deployment.next_ns
        if next_ns is not None:
            return min(max(next_ns - time.monotonic_ns(), 0) / 1e9, LONGEST_REST_S)
        return None if self._truth_rests else TRUTH_REST_S

    def _ready(self, key: selectors.SelectorKey, mask: int) -> None:
        target = key.data
        if not isinstance(target, Connection):
            target()
            return
        if mask & selectors.EVENT_WRITE:
            self._flush(target)
        if mask & selectors.EVENT_READ and target.sock.fileno() >= 0:
            self._read(target)

    def _advance(self, now_ns: int) -> None:
        """Ends the steps under way whose time has come, starts the next ones, and sends what the ended ones brought."""
        engines = self._deployment
        due_ns = engines.next_ns
        if due_ns is None or due_ns > now_ns:
            engines.begin(now_ns)  # on engines that had nothing to do
            return
        at_ns = max(due_ns, now_ns - CATCH_UP_NS)
        engines.finish(at_ns)
        served = self._tallies.served()
        engines.begin(at_ns)
        if self._steps is None:
            self._hand_out(served, at_ns)
            return
        begun_ns = time.monotonic_ns()
        self._hand_out(served, at_ns)
        tokens = sum(len(one.parts) for one in served)
        self._steps.add(
            StepRow(due_ns=due_ns, begun_ns=begun_ns, sent_ns=time.monotonic_ns(), sequences=tokens)
        )

    def _hand_out(self, served: list[Served], at_ns: int) -> None:
        """Sends the tokens of steps that were over at `at_ns`."""
        clock, connections = time.monotonic_ns, self._connections
        for one in served:
            batch = self._tallies.batch(one, at_ns)
            for part, tokens in one.parts:
                turn = part.owner
                connection = connections.get(turn)
                now_ns = clock()
                if connection is None:  # its client has left meanwhile
                    if part.ended:
                        part.out += tokens
                        batch.out(part, tokens, now_ns)
                    continue
                try:
                    data = turn.advance(part, tokens, now_ns)
                except Exception as error:
                    batch.out(part, tokens, now_ns)
                    self._fail(connection, "the spelling of an answer", error)
                    continue
                batch.out(part, tokens, now_ns)
                if turn.over:
                    self._record(turn)
                    connection.turn = None
                    self._send(connection, data)
                    self._take(connection)
                elif data:
                    self._send(connection, data)
                elif turn.unspelt:
                    self._spelling.append(turn)
            batch.close()

    def _spell(self) -> None:
        """Goes on with the answer that has waited to be spelt for longest."""
        turn, clock = self._spelling[0], time.monotonic_ns
        connection, until_ns = self._connections.get(turn), clock() + SPELL_NS
        if connection is None:  # its client has left meanwhile
            self._spelling.popleft()
            return
        try:
            while not (done := turn.spell()) and clock() < until_ns:
                pass
        except Exception as error:
            self._spelling.popleft()
            self._fail(connection, "the spelling of an answer", error)
            return
        if done:
            self._spelling.popleft()
            data = turn.spelt(clock())
            self._record(turn)
            connection.turn = None
            self._send(connection, data)
            self._take(connection)

    def _woken(self) -> None:
        self._stopped = True

    # ---- connections ----

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:  # none left, or no descriptor to be had: those that are open go on
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(sock)
            self._look(connection, connection.interest)

    def _look(self, connection: Connection, events: int) -> None:
        """Has the loop look for these events on a connection; 0: for none."""
        known = connection.sock in self._selector.get_map()
        if events and known:
            self._selector.modify(connection.sock, events, connection)
        elif events:
            self._selector.register(connection.sock, events, connection)
        elif known:
            self._selector.unregister(connection.sock)

    def _read(self, connection: Connection) -> None:
        try:
            received = self._stamps.receive(connection.sock)
        except BlockingIOError:
            return
        except OSError:
            received = GONE
        if received is GONE:
            self._close(connection)
        elif not received.data:
            self._left(connection)
        elif not connection.closing:  # else: what comes after the last request is nothing to us
            self._parse(connection, received)

    def _left(self, connection: Connection) -> None:
        """The client has closed its side."""
        self._close(connection)

    def _parse(self, connection: Connection, received: Received) -> None:
        try:
            requests = connection.reader.feed(received.data)
        except Refused as refused:
            connection.closing = True
            error = ApiError(refused.status, "BadRequestError", refused.message)
            self._send(connection, response(refused.status, error.body(), keep_alive=False))
            return
        connection.queue.extend((request, received) for request in requests)
        self._take(connection)

    def _take(self, connection: Connection) -> None:
        """Starts on the waiting requests of a connection, one at a time."""
        while connection.queue and connection.turn is None and not connection.closing:
            request, received = connection.queue.popleft()
            connection.closing = not request.keep_alive
            try:
                if request.path == METRICS:
                    self._show(connection, request)
                    continue
                found = route(request, self._options, self._created)
                if isinstance(found, bytes):
                    self._do(request, received)
                    told = response(200, found, keep_alive=request.keep_alive)
                    self._send(connection, labelled(told, self._told_id(request)))
                else:
                    self._start(connection, found, request, received)
            except ApiError as error:
                self._refuse(connection, request, error)
            except Exception as error:
                self._fail(connection, f"{request.method} {request.path}", error)
        if connection.turn is None and not connection.closing and connection.reader.expects():
            self._send(connection, CONTINUE)

    def _refuse(self, connection: Connection, request: Request, error: ApiError) -> None:
        data = response(
            error.status, error.body(), keep_alive=request.keep_alive, bodiless=request.method == "HEAD"
        )
        self._send(connection, labelled(data, self._told_id(request)))

    def _told_id(self, request: Request) -> str | None:
        """The id of a request, where its answer is to bear it."""
        return request.headers.get("x-request-id") if self._options.enable_request_id_headers else None

    def _fail(self, connection: Connection, doing: str, error: Exception) -> None:
        """Ends a connection on which we met a defect of ours, with a 500 where nothing of an answer is out."""
        self._defects.note(doing, error)
        begun = connection.turn is not None and connection.turn.truth.bytes_sent > 0
        self._abandon(connection)
        connection.queue.clear()
        connection.closing = True
        if begun:
            self._close(connection)
            return
        failed = ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalServerError", self._defects.words(error))
        self._send(connection, response(failed.status, failed.body(), keep_alive=False))

    def _show(self, connection: Connection, request: Request) -> None:
        """Answers with the page of metrics, which needs no key. Raises `ApiError`."""
        if request.method != "GET":
            message = f"{METRICS} takes GET only"
            raise ApiError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowedError", message)
        page = self._page.render()
        self._send(connection, response(200, page, keep_alive=request.keep_alive, content_type=CONTENT_TYPE))

    def _do(self, request: Request, received: Received) -> None:
        """Does what was asked for, where that is more than to answer, and notes it."""
        if request.path == RESET:
            self._deployment.reset_prefix_cache()
        if request.path in HOOKS:
            self._note(request, received)

    def _start(self, connection: Connection, asked: Asked, request: Request, received: Received) -> None:
        """Begins an answer. Raises `ApiError` for one that the engine could never give."""
        answer, truth = self._prepared(asked, request, received)
        turn = Turn(asked, answer, truth, request.keep_alive, self._told_id(request))
        if self._options.null:
            if turn.generates and asked.output_tokens > MOST_AT_ONCE:
                wish = f"{asked.output_tokens} tokens at once are more than {MOST_AT_ONCE}; ask for fewer, or leave null out"
                raise ApiError(HTTPStatus.BAD_REQUEST, "BadRequestError", wish)
            data = turn.at_once(time.monotonic_ns())
            self._tallies.at_once(turn)
            if turn.unspelt:
                connection.turn = turn
                self._connections[turn] = connection
                self._spelling.append(turn)
                return
            self._record(turn)
            self._send(connection, data)
            return
        try:
            for part in turn.parts:
                self._deployment.check(part)
        except TooLong as error:
            raise ApiError(HTTPStatus.BAD_REQUEST, "BadRequestError", f"too long: {error}") from None
        if self._truth and asked.stream:
            truth.sent_ns = []
        connection.turn = turn
        self._connections[turn] = connection
        for part in turn.parts:
            self._deployment.add(part)

    def _prepared(self, asked: Asked, request: Request, received: Received) -> tuple[Answer, TruthRow]:
        """The answer to spell and the row of its truth."""
        answer = spell(asked, next(self._answers), int(time.time()))
        truth = TruthRow(
            request_id=request.headers.get("x-request-id", answer.id),
            received_ns=received.received_ns,
            read_ns=received.read_ns,
            prompt_tokens=asked.prompt_tokens,
        )
        return answer, truth

    def _record(self, turn: Turn | Play) -> None:
        if isinstance(turn, Turn):
            self._connections.pop(turn, None)
        if self._truth:
            self._truth.add(turn.row())
            self._truth_rests = False
        if isinstance(turn, Turn):
            turn.parts = ()  # they know it: else nothing but the garbage collector would free them

    def _note(self, request: Request, received: Received) -> None:
        """Records that something was to be done."""
        if self._truth:
            self._truth.add(
                TruthRow(
                    request_id=request.headers.get("x-request-id", ""),
                    received_ns=received.received_ns,
                    read_ns=received.read_ns,
                    prompt_tokens=0,
                    end="done",
                    hook=request.path,
                )
            )
            self._truth_rests = False

    def _send(self, connection: Connection, data: bytes) -> None:
        """Sends what the socket takes now; the rest waits until it takes more."""
        if connection.out:
            connection.out += data
            return
        try:
            sent = connection.sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(connection)
            return
        if sent < len(data):
            connection.out += data[sent:]
            self._look(connection, connection.interest | selectors.EVENT_WRITE)
        elif connection.closing and connection.turn is None:
            self._close(connection)

    def _flush(self, connection: Connection) -> None:
        """Sends of what waits what the socket takes now."""
        out = connection.out
        try:
            sent = connection.sock.send(out[:FLUSH_BYTES])
        except BlockingIOError:
            return
        except OSError:
            self._close(connection)
            return
        del out[:sent]
        if out:
            return
        self._look(connection, connection.interest)
        if connection.closing and connection.turn is None:
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        connection.queue.clear()
        self._abandon(connection)
        self._look(connection, 0)
        connection.sock.close()

    def _abandon(self, connection: Connection) -> None:
        """Nobody wants the answer under way any more."""
        turn, connection.turn = connection.turn, None
        if turn:
            turn.truth.bytes_sent -= min(len(connection.out), turn.truth.bytes_sent)
            if isinstance(turn, Turn):
                for part in turn.parts:
                    if not part.over:
                        self._tallies.left(part)
                        self._deployment.drop(part)
            self._record(turn)


def listen(options: SimOptions) -> socket.socket:
    """A socket that listens where the options say. Raises `UsageError`."""
    listener = bound(options)
    _listen(listener, options)
    return listener


def bound(options: SimOptions) -> socket.socket:
    """A socket that has the address, and refuses who connects to it. Raises `UsageError`."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.host, options.port))
    except OSError as error:
        listener.close()
        raise _no_address(options, error) from None
    listener.setblocking(False)
    return listener


def _listen(listener: socket.socket, options: SimOptions) -> None:
    try:
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _no_address(options, error) from None


def _no_address(options: SimOptions, error: OSError) -> UsageError:
    where = f"{options.host} port {options.port}"
    return UsageError(f"cannot listen on {where}: {error.strerror}; choose another --port or --host.")


File = TypeVar("File")


def _opened(kind: Callable[[Path], File], name: str, path: str | None) -> File | None:
    try:
        return kind(Path(path)) if path else None
    except OSError as error:
        raise UsageError(f"{name} = {path}: {error.strerror}; name a file that can be written.") from None
