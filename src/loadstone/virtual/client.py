"""The loop of a virtual run: one client and the engines it asks, from one moment at which anything happens to the next.

At one instant steps end first, then the client acts (ends, what follows, what is due), then what it sent joins, then steps
begin. The network is a way of constant length: an engine's clock is that way behind the client's, so that what is sent joins
at that instant, and what its steps bring comes both ways later. What goes next and when is `load.agenda`'s to say, as in a
worker; time limits are the worker's too. Tells nobody the time but what it drives.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from http import HTTPStatus
from itertools import count

from loadstone import registry
from loadstone.board import BUCKETS, FIELDS, Field, Histogram, bucket
from loadstone.config import EndpointConfig
from loadstone.errors import LoadstoneError
from loadstone.load.agenda import Agenda
from loadstone.load.capacity import NEVER_NS
from loadstone.load.limits import Limit
from loadstone.load.slots import Launch
from loadstone.load.stage import Stage
from loadstone.read import beyond, outcome
from loadstone.read.answer import Answer, read_answer
from loadstone.recording import WireEnd
from loadstone.sim.http import response
from loadstone.slo import Watched
from loadstone.virtual import said
from loadstone.virtual.moments import REFUSAL_NS
from loadstone.virtual.pauses import Pauses
from loadstone.virtual.plan import Plan
from loadstone.virtual.servers import Call, Server
from loadstone.virtual.table import COLUMNS, Ended, Parts, ended, refused

SHOWN_EVERY = 256
"""Instants."""
_NO_ANSWER = Answer(0, {})
_FIRST, _LAST, _REFUSAL = range(3)
"""What comes to the client: the first token of an answer, the end of one, a refusal."""
_TTFT_AT = FIELDS + Histogram.TTFT * BUCKETS
_DRAWN, _SENT, _ENDED, _DECODED, _OK, _FAILED, _TOKENS = map(
    int, (Field.DRAWN, Field.SENT, Field.ENDED, Field.DECODED, Field.OK, Field.FAILED, Field.TOKENS)
)
_LATENCY_US, _TTFT_US, _TTFTS, _GAPS_US, _GAPS, _TPOT_US, _TPOTS = map(
    int,
    (
        Field.LATENCY_US, Field.TTFT_US, Field.TTFTS, Field.GAPS_US, Field.GAPS, Field.TPOT_US, Field.TPOTS,
    ),
)  # fmt: skip
"""Plain numbers: counting by an enumeration's members takes as long as all the rest of it."""


class Watch:
    """Who is told what happens, and may stop the load. Moments are those of the virtual clock."""

    next_ns = NEVER_NS
    """When to `look` next, whatever happens."""

    def look(self, now: int) -> None:
        """The moment that was asked for has come."""

    def failed(self, now: int) -> None:
        """A request has failed."""

    def show(self, now: int) -> None:
        """Some hundred instants have gone by."""

    def spent(self, stage: Stage, now: int) -> None:
        """A phase has nothing more to send."""

    def over(self, stage: Stage, now: int) -> None:
        """A phase is over: all its requests have ended."""


class Client:
    """All requests of a run. `block` is its part of the board; `counted`: there is a tokenizer."""

    def __init__(
        self,
        servers: Sequence[Server],
        plan: Plan,
        parts: Parts,
        endpoint: EndpointConfig,
        block: memoryview,
        id_prefix: str,
        counted: bool,
        watched: Sequence[Watched] = (),
        measured: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.agenda = Agenda(0, 1, len(servers), plan.rows)
        self._servers = servers
        self._plan = plan
        self._parts = parts
        self._block = block
        self._id_prefix = id_prefix
        self._counted = counted
        self._watched = watched
        self._measured = measured
        self._streaming = endpoint.streaming
        self._endpoint = registry.load("endpoints", endpoint.type)
        self._flights: Limit[Call] = Limit(round(endpoint.timeout_s * 1e9))
        self._unbegun: Limit[Call] = Limit(round(endpoint.first_token_timeout_s * 1e9))
        self._pausing: Pauses[Call] = Pauses(round(endpoint.idle_timeout_s * 1e9))
        self._limit_ns = NEVER_NS
        """No time limit is up before."""
        self._cut_ns = NEVER_NS
        """When answers under way are cut off next."""
        self._coming: list[tuple[int, int, int, Call]] = []
        """What is on its way to the client, by the moment at which it comes: a heap."""
        self._sent = count()
        self._busy: set[int] = set()
        """Servers to which something has happened at this instant, so that they may begin a step."""
        self._serial = 0
        self._failed = False

    # ---- from instant to instant ------------------------------------------------------------------------------

    def run(self, now: int, watch: Watch) -> int:
        """Goes on until every phase that was ordered is over; the moment at which the last one was."""
        agenda, servers, busy = self.agenda, self._servers, self._busy
        instants = 0
        lone = servers[0].deployment if len(servers) == 1 else None
        while True:
            self._act(now, watch)
            instants += 1
            if not instants % SHOWN_EVERY:
                watch.show(now)
            if not agenda.stages:
                return now
            until = self._next_act(now, watch)
            if lone is not None:
                lone.begin(now, until)
                next_ns = lone.next_ns
            else:
                next_ns = self._begin(now, until)
            if next_ns is None or until < next_ns:
                if until >= NEVER_NS:
                    raise LoadstoneError("the virtual run stands still: nothing is left that could happen.")
                now = until
            else:
                now = next_ns
                for number, server in enumerate(servers):
                    due = server.deployment.next_ns
                    if due is not None and due <= now:
                        busy.add(number)
                        self._finish(server, now)

    def _begin(self, now: int, until: int) -> int | None:
        """Begins steps where something has happened; when something ends next.

        Several steps are taken as one only as far as no other server ends one: what comes of it may be sent here.
        """
        together = len(self._busy) > 1
        deployments = [server.deployment for server in self._servers]
        for number in sorted(self._busy):
            ends = (one.next_ns for at, one in enumerate(deployments) if at != number)
            reach = min((end for end in ends if end is not None), default=until)
            deployments[number].begin(now, None if together else min(until, reach))
        self._busy.clear()
        return min((end for one in deployments if (end := one.next_ns) is not None), default=None)

    def _finish(self, server: Server, now: int) -> None:
        """Ends the steps that are over by now, and the answers that end with them."""
        deployment, comes_ns = server.deployment, now + 2 * server.way_ns
        deployment.finish(now)
        if self._streaming:
            for sequence in deployment.began:
                if (call := sequence.call) is not None and not call.begun_ns:
                    self._send(call, _FIRST, comes_ns)
        for sequence in deployment.ended:
            call = sequence.call
            assert call is not None, "it was under way"
            call.left -= 1
            if not call.left:
                self._send(call, _LAST, comes_ns)

    def _send(self, call: Call, news: int, comes_ns: int) -> None:
        """Sends something to the client, where it comes at this moment."""
        heapq.heappush(self._coming, (comes_ns, next(self._sent), news, call))

    def _receive(self, now: int) -> None:
        """Takes what has come by now."""
        coming = self._coming
        while coming and coming[0][0] <= now:
            _, _, news, call = heapq.heappop(coming)
            if call not in self._flights:
                continue  # it was given up while this was on its way
            if news == _LAST:
                call.status, call.received = HTTPStatus.OK, True
                self._end(call, WireEnd.COMPLETE, now)
            elif news == _REFUSAL:
                self._refuse(call, now)
            elif not call.begun_ns:  # by another choice of the same answer
                self._begun(call, now)

    def _act(self, now: int, watch: Watch) -> None:
        """All that the client does at this instant, until nothing more is to be done."""
        agenda = self.agenda
        if self._coming and self._coming[0][0] <= now:
            self._receive(now)
        if now >= watch.next_ns:
            watch.look(now)
        if now >= self._limit_ns:
            self._expire(now)
        if self._failed:
            self._failed = False
            watch.failed(now)
        if now < agenda.due_ns:
            return
        if now >= self._cut_ns:
            for stage in list(agenda.stages.values()):
                if now >= stage.slots.cut_ns:
                    self._cut(stage, now)
        for flight in agenda.to_cancel(now):
            if flight in self._flights:
                self._give_up(flight, WireEnd.CANCELLED_AS_PLANNED, now)  # type: ignore[arg-type]  # every one is a call
        while True:
            while (launch := agenda.next(now)) is not None:
                self._fly(launch, now)
            agenda.due_ns = NEVER_NS
            for stage in agenda.stages.values():
                if not stage.slots.taking or stage.slots.gone:
                    self._tell(now, watch)
                    break
            if agenda.due_ns:  # nothing that was told has changed anything
                break
        due_ns = agenda.plan_ahead(now)
        self._cut_ns = NEVER_NS
        for stage in agenda.stages.values():
            stop_ns, cut_ns = stage.slots.stop_ns, stage.slots.cut_ns
            if now < stop_ns < due_ns:
                due_ns = stop_ns
            if now < cut_ns < self._cut_ns:
                self._cut_ns = cut_ns
        agenda.due_ns = max(min(due_ns, self._cut_ns), now + 1)

    def _next_act(self, now: int, watch: Watch) -> int:
        """When the client does something that no engine makes it do."""
        until = min(self.agenda.due_ns, watch.next_ns, self._limit_ns)
        if self._coming and self._coming[0][0] < until:
            until = self._coming[0][0]
        return until

    def _tell(self, now: int, watch: Watch) -> None:
        """Tells which phases have nothing more to send, and which are over."""
        agenda = self.agenda
        for row in agenda.let_go(now):
            agenda.homes.forget(row)
        for stage in list(agenda.stages.values()):
            if not stage.told_spent and stage.slots.spent():
                stage.told_spent = True
                watch.spent(stage, now)
        for stage in agenda.over():
            agenda.due_ns = 0
            watch.over(stage, now)

    # ---- flights ----------------------------------------------------------------------------------------------

    def _fly(self, launch: Launch, now: int) -> None:
        row = launch.row
        agenda, block = self.agenda, self._block
        self._serial += 1
        target = agenda.homes.choose(row)
        call = Call(self._serial, row, launch.due_ns, target)
        call.sent_ns = call.written_ns = now
        block[_DRAWN] += 1
        block[_SENT] += 1
        agenda.flew(call)
        self._limit(self._flights, call, now)
        if self._streaming:
            self._limit(self._unbegun, call, now)
        if row.cancelled:
            agenda.sent(call, now)
        server = self._servers[target]
        server.take(call, self._plan.body(row))
        if call.refusal is None:
            self._busy.add(target)
        else:
            self._send(call, _REFUSAL, now + REFUSAL_NS + 2 * server.way_ns)

    def _begun(self, call: Call, now: int) -> None:
        call.begun_ns, call.status, call.received = now, HTTPStatus.OK, True  # the head comes with it
        self.agenda.begun(call, now)
        self._unbegun.stop(call)
        self._limit(self._pausing, call, now)
        self._block[_TTFT_AT + bucket((now - call.sent_ns) // 1000)] += 1

    def _end(self, call: Call, end: WireEnd, now: int) -> None:
        """Keeps what came of a flight, and goes on with its conversation or frees its place."""
        row = call.row
        request_id = f"{self._id_prefix}{row.request}"
        if call.sequences:
            server = self._servers[call.target]
            found = ended(call, end, now, request_id, self._counted, 2 * server.way_ns)
            if server.truth is not None:
                server.truth.add(said.row(call, request_id, server.way_ns))
        else:
            found = self._unanswered(call, end, now, request_id)
        self._parts.add(found)
        self._flights.stop(call)
        self._unbegun.stop(call)
        self._pausing.stop(call)
        self._count(call, found, now)
        if not self.agenda.ended(call, end, now) and not row.final:
            self.agenda.homes.forget(row)
        for sequence in call.sequences:  # a circle would wait for the garbage collection
            sequence.call = None

    def _count(self, call: Call, found: Ended, now: int) -> None:
        """Counts for the board as a decoder does (see `read.tally`), without the histograms that nobody is shown."""
        block = self._block
        block[_ENDED] += 1
        block[_DECODED] += 1
        if self._watched and any(first <= call.row.request < stop for first, stop in self._measured):
            beyond.count(block, dict(zip(COLUMNS, found.row, strict=True)), self._watched)
        if found.outcome not in outcome.SUCCESSES:
            if found.outcome in outcome.FAILURES:
                block[_FAILED] += 1
                self._failed = True
            return
        times = found.times
        tokens = sum(sequence.output_tokens for sequence in call.sequences)
        block[_TOKENS] += tokens
        block[_OK] += 1
        block[_LATENCY_US] += (now - call.sent_ns) // 1000
        if not times:
            return
        block[_TTFT_US] += (times[0] - call.sent_ns) // 1000
        block[_TTFTS] += 1
        if tokens > 1:
            span_ns = times[-1] - times[0]
            block[_GAPS_US] += span_ns // 1000
            block[_GAPS] += tokens - 1
            block[_TPOT_US] += span_ns // (tokens - 1) // 1000
            block[_TPOTS] += 1

    def _give_up(self, call: Call, end: WireEnd, now: int) -> None:
        """Ends a flight that is under way: the client leaves."""
        if call.sequences:
            for sequence in call.sequences:
                if not sequence.ended:
                    self._servers[call.target].deployment.drop(sequence)
            self._busy.add(call.target)
        self._end(call, end, now)

    def _cut(self, stage: Stage, now: int) -> None:
        """The time for answers under way is over."""
        stage.slots.clear(now)
        end = WireEnd.CANCELLED if stage.given_up else WireEnd.CUT
        for call in self._flights:
            if call.row.phase == stage.order.number:
                self._give_up(call, end, now)

    def _limit(self, limit: Limit[Call] | Pauses[Call], call: Call, since_ns: int) -> None:
        """Gives a call the full span of a limit from then on."""
        limit.start(call, since_ns)
        up_ns = since_ns + limit.span_ns
        if up_ns < self._limit_ns:
            self._limit_ns = up_ns

    def _expire(self, now: int) -> None:
        """Ends the flights whose time is up."""
        for call in self._unbegun.expired(now):
            self._give_up(call, WireEnd.TIMEOUT_FIRST_TOKEN, now)
        for call in self._flights.expired(now):
            self._give_up(call, WireEnd.TIMEOUT_TOTAL, now)
        for call in self._pausing.expired(now):
            self._look_for_pause(call, now)
        limits = (self._unbegun, self._flights, self._pausing)
        self._limit_ns = min(NEVER_NS if limit.next_ns is None else limit.next_ns for limit in limits)

    def _look_for_pause(self, call: Call, now: int) -> None:
        """Ends a flight that has got no token for too long: a step is long, or it had to give way to others and waits."""
        server = self._servers[call.target]
        later_ns = 2 * server.way_ns
        times = (server.deployment.token_ns(sequence, now - later_ns) for sequence in call.sequences)
        last_ns = later_ns + max(at_ns for at_ns in times if at_ns is not None)
        if now - last_ns >= self._pausing.span_ns:
            self._give_up(call, WireEnd.TIMEOUT_IDLE, now)
        else:
            self._limit(self._pausing, call, last_ns)

    # ---- refusals ---------------------------------------------------------------------------------------------

    def _refuse(self, call: Call, now: int) -> None:
        assert call.refusal is not None, "that is what came"
        call.status, call.received = int(call.refusal.status), True
        self._end(call, WireEnd.COMPLETE, now)

    def _unanswered(self, call: Call, end: WireEnd, now: int, request_id: str) -> Ended:
        """The row of a request that was refused, or given up before the refusal came."""
        error = call.refusal
        assert error is not None, "what is not answered is refused"
        if end != WireEnd.COMPLETE:
            name, fault = outcome.decide(end, "", _NO_ANSWER)
            return refused(call, name, fault, None, now, request_id)
        # Made and read as the bytes of a real one: so a refusal has the same outcome and the same words.
        raw = response(int(error.status), error.body(), keep_alive=True)
        answer = read_answer(raw, self._endpoint, streaming=False, complete=True)
        name, fault = outcome.decide(end, "", answer._replace(fault=None))
        return refused(call, name, fault, int(error.status), now, request_id)
