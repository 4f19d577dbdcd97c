"""Engines behind one address: replicas behind a router, or prompts here and answers there. The caller brings the clock.

At one instant steps end first (`finish`), then what came at it joins (`add`), then steps begin (`begin`). One rule: no engine
is ahead of what another one may yet cause.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import Generic, TypeVar, cast

from loadstone.sim.engine import Engine
from loadstone.sim.router import Policy, router
from loadstone.sim.sequence import Sequence as Request

S = TypeVar("S", bound=Request)


class Deployment(Generic[S]):
    """`engines` answer. With `prefills` these take the prompts in, and hand each on in `transfer_ns` (of its tokens).

    What ended last is in `began` (first tokens) and `ended` (last ones).

    Of handing on: the engine that will answer is chosen when the prompt is in. Until all has come there, the prompt's blocks
    stay taken where it was computed, and where it goes it is counted as waiting and takes none (vLLM takes them before the
    transfer begins). Every transfer has the whole rate, however many there are, and is of the whole prompt, whatever of its
    beginning is cached where it goes. What was handed on is not preempted by the way, and its first token is that of the
    first step after it. A client that leaves in between does not shorten the transfer.
    """

    def __init__(
        self,
        engines: Sequence[Engine[S]],
        policy: Policy = "round-robin",
        prefills: Sequence[Engine[S]] = (),
        transfer_ns: Callable[[int], int] = lambda tokens: 0,
    ) -> None:
        self.engines = list(engines)
        self.prefills = list(prefills)
        self.all = [*self.engines, *self.prefills]
        """Engines that answer, then those that only take prompts in."""
        self.began: list[S] = []
        self.ended: list[S] = []
        self.finished: list[Engine[S]] = []
        """Engines of which a step ended last."""
        self._transfer_ns = transfer_ns
        self._choose = router(policy, cast("list[Engine[Request]]", self.engines))
        self._choose_prefill = router(policy, cast("list[Engine[Request]]", self.prefills or self.engines))
        self._where: dict[S, Engine[S]] = {}
        """The engine of each request; while it is handed on, that which gets it."""
        self._ends: list[tuple[int, int]] = []
        """Ends of steps under way, and the number of the engine: a heap."""
        self._idle: set[int] = set()
        """Engines between two steps that may have something to do."""
        self._transfers: list[tuple[int, int, S, Engine[S]]] = []
        """Moments of arrival, and the engine that each comes from: a heap."""
        self._numbers = count(1)
        """Of requests, the same for all engines, so that those from several meet in the order in which they came."""
        self._orders = count()
        self._number = {id(engine): number for number, engine in enumerate(self.all)}

    @property
    def next_ns(self) -> int | None:
        """When a step or a transfer ends next; None: nothing is under way."""
        ends, transfers = self._ends, self._transfers
        if not transfers:
            return ends[0][0] if ends else None
        return min(ends[0][0], transfers[0][0]) if ends else transfers[0][0]

    def check(self, sequence: Request) -> None:
        """Raises `TooLong` for a sequence that could never be served."""
        self.engines[0].check(sequence)
        if self.prefills:
            self.prefills[0].check(sequence)

    def engine_of(self, sequence: S) -> int:
        """The number of the engine that has it, had it last or gets it."""
        assert sequence.engine is not None, "it was added"
        return sequence.engine

    def token_ns(self, sequence: S, now_ns: int) -> int | None:
        """When the last token of a sequence came, of those that had come by now, also after it has ended; None: none had."""
        engine = self._where.get(sequence) or self.engines[0]
        return engine.token_ns(sequence, now_ns)

    def add(self, sequence: S) -> None:
        """A request comes. Raises `TooLong`."""
        sequence.order = next(self._numbers)
        if self.prefills:
            self.check(sequence)
            self._put(sequence, self.prefills[self._choose_prefill(sequence)])
        else:
            self._put(sequence, self.engines[self._choose(sequence)])

    def _put(self, sequence: S, engine: Engine[S]) -> None:
        engine.add(sequence)
        self._where[sequence] = engine
        sequence.engine = number = self._number[id(engine)]
        if engine.step_end_ns is None:
            self._idle.add(number)

    def _wake(self, engine: Engine[S]) -> None:
        """It may have something to do."""
        if engine.step_end_ns is None:
            self._idle.add(self._number[id(engine)])

    def drop(self, sequence: S) -> None:
        """Forgets a request whose client has left."""
        engine = self._where.pop(sequence, None)
        if engine is not None:
            engine.drop(sequence)
            engine.coming.pop(sequence, None)
            self._wake(engine)  # one behind it may fit where it did not

    def finish(self, now_ns: int) -> None:
        """Ends every step and every transfer whose time has come by now."""
        self.began, self.ended, self.finished = [], [], []
        ends = self._ends
        while ends and ends[0][0] <= now_ns:
            end_ns, number = heapq.heappop(ends)
            engine = self.all[number]
            engine.finish()
            self.finished.append(engine)
            self._idle.add(number)
            self.began += engine.began
            self.ended += engine.ended
            for sequence in engine.ended:
                del self._where[sequence]
            for sequence in engine.handed:
                self._hand_on(sequence, engine, end_ns)
        while self._transfers and self._transfers[0][0] <= now_ns:
            _, _, sequence, source = heapq.heappop(self._transfers)
            source.take_back(sequence)
            self._wake(source)  # one that had no blocks has some now
            if sequence in self._where:  # else its client has left
                engine = self._where[sequence]
                del engine.coming[sequence]
                sequence.remote = True
                self._put(sequence, engine)

    def _hand_on(self, sequence: S, source: Engine[S], end_ns: int) -> None:
        engine = self.engines[self._choose(sequence)]
        engine.coming[sequence] = None
        self._where[sequence] = engine
        sequence.engine = self._number[id(engine)]
        arrives_ns = end_ns + self._transfer_ns(sequence.target)
        heapq.heappush(self._transfers, (arrives_ns, next(self._orders), sequence, source))

    def begin(self, now_ns: int, until_ns: int | None = None) -> None:
        """Begins a step on every engine that has something to do and none under way.

        With `until_ns`, the next moment at which anything may come from outside, several steps may be taken as one.
        """
        if not self._idle:
            return
        idle, self._idle = self._idle, set()
        # Of several that begin together none knows what the others will cause.
        until_ns = until_ns if len(idle) == 1 else None
        for number in sorted(idle):
            if until_ns is not None and (others_ns := self.next_ns) is not None:
                until_ns = min(until_ns, others_ns)
            end_ns = self.all[number].begin(now_ns, until_ns)
            if end_ns is not None:
                heapq.heappush(self._ends, (end_ns, number))

    def reset_prefix_cache(self) -> bool:
        """Forgets all cached beginnings; False where some engine has blocks in use and keeps them."""
        done = [engine.blocks.reset() for engine in self.all]  # every one, whatever the first says
        return all(done)

    @property
    def busy(self) -> bool:
        """Whether anything is waiting, running or being handed on."""
        return bool(self._where)

    def waiting(self) -> int:
        """Requests that wait for a place in a batch."""
        return sum(engine.queued for engine in self.all)

    def running(self) -> int:
        """Requests in a batch."""
        return sum(len(engine.running) for engine in self.all)

    def decoding(self) -> chain[S]:
        """All sequences whose prompts are in, engine by engine."""
        return chain.from_iterable(engine.decoding for engine in self.engines)
