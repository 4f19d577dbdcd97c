"""The fleet: all workers of a run, started early, given phases, and heard until every flight has ended.

Co-ordination is nothing but orders down the pipes and words back; rows are shared by the kernel
(`loadstone.load.rows`). A worker that dies is noticed by its pipe, one that stands still by its beat on the board;
the others go on. Nothing here waits without a bound, but for flights that end by their own limits.
"""

from __future__ import annotations

import logging
import os
import selectors
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from loadstone.board import Board, Field
from loadstone.child import CLOSE_S, STOPPED_S, Child, Silence
from loadstone.folder import DeathLog
from loadstone.load.job import (
    BeginOrder,
    Job,
    PhaseDone,
    PhaseOrder,
    PhaseSent,
    Quit,
    Ready,
    StopOrder,
    Trouble,
    Word,
    latest,
)
from loadstone.plan.steps import share
from loadstone.plan.store import ROW, rows_file

logger = logging.getLogger("loadstone")
TICK_S = 0.25
READY_S = 60.0
"""A worker that is not ready by then, imports included, is killed."""
HUNG_S = 15.0
"""A worker without a beat for so long is killed, though it is not stopped: a busy machine or disk gets this much."""
OVERDUE_S = 5.0
"""A worker that has not ended a phase this long after its cut is taken for hung, and killed."""


class Fleet:
    """The worker processes.

    `plan` is the folder of the plan, `first_rows` the number of the first row of every phase; `rows_fds` are the shared
    descriptions of their rows. Block w of the board is worker w's.
    """

    def __init__(self, workers: int, plan: Path, first_rows: Sequence[int], log: Path, board: Board) -> None:
        self.workers = workers
        self.deaths: dict[int, DeathLog] = {}
        """The workers that ended before their time, by number."""
        self.trouble: str | None = None
        """Why a worker says that it cannot go on."""
        self.kernel_stamps = True
        self.rows_fds = [
            os.open(plan / rows_file(first), os.O_RDONLY | os.O_CREAT, 0o644) for first in first_rows
        ]
        self._children = [Child("loadstone.load.worker", log, pass_fds=self.rows_fds) for _ in range(workers)]
        self._selector = selectors.DefaultSelector()
        for index, child in enumerate(self._children):
            self._selector.register(child, selectors.EVENT_READ, index)
        self._blocks = [board.block(index) for index in range(workers)]
        self._silence = Silence()
        self._stop: StopOrder | None = None
        self._started: dict[int, int] = {}
        """When each phase began, in the worker where it began last."""
        self._ended = False

    @property
    def alive(self) -> set[int]:
        """The workers that are left."""
        return set(range(self.workers)) - self.deaths.keys()

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the workers that are left, by name."""
        return {f"worker {index}": self._children[index].pid for index in self.alive}

    def brief(self, job: Job) -> None:
        """Gives every worker its job and waits until all are ready, for `READY_S` at most."""
        for index, child in enumerate(self._children):
            child.tell(msgspec.structs.replace(job, worker=index, workers=self.workers))
        until = time.monotonic() + READY_S
        waiting = self.alive
        while waiting:
            for index, word in self._words(TICK_S):
                if isinstance(word, Ready):
                    waiting.discard(index)
                    self.kernel_stamps = self.kernel_stamps and word.kernel_stamps
            waiting &= self.alive
            if time.monotonic() >= until:
                self._kill(waiting, f"not ready within {READY_S:g} s, then killed")

    def run(
        self,
        orders: Sequence[PhaseOrder],
        tick: Callable[[], None],
        sent: Callable[[PhaseSent], None] = lambda word: None,
        ended: Callable[[int], None] = lambda number: None,
    ) -> list[dict[int, PhaseDone]]:
        """Runs phases that follow each other without a pause in every worker that is alive, to their end.

        The orders have the slots of all workers together. `tick` is called about 4 times a second, `sent` when a worker
        has nothing more to send of a phase, `ended` when all are done with one. The words of the workers by phase and number; one that died is missing
        and has an entry in `deaths`. Lasts as long as the phases and their flights; a worker that shows no sign of
        life meanwhile is killed.
        """
        self._stop = None
        for order in orders:
            os.lseek(order.rows_fd, 0, os.SEEK_SET)
        for index in self.alive:
            for order in orders:
                self._children[index].tell(self._own(order, index))
        done: dict[int, dict[int, PhaseDone]] = {order.number: {} for order in orders}
        next_tick = 0.0
        while any(self.alive - words.keys() for words in done.values()):
            for index, word in self._words(TICK_S):
                if isinstance(word, PhaseDone):
                    done[word.number][index] = word
                    if self.alive <= done[word.number].keys():
                        ended(word.number)
                elif isinstance(word, PhaseSent):
                    self._started[word.number] = max(word.start_ns, self._started.get(word.number, 0))
                    sent(word)
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + TICK_S
                tick()
                over = set.intersection(*(set(words) for words in done.values()))
                self._end_overdue(orders, over)
                self._end_silent(over)
        return list(done.values())

    def _own(self, order: PhaseOrder, worker: int) -> PhaseOrder:
        """One worker's order: its share of the places."""
        return msgspec.structs.replace(
            order,
            slots=None if order.slots is None else share(order.slots, worker, self.workers),
            prefill=None if order.prefill is None else share(order.prefill, worker, self.workers),
        )

    def begin(self, number: int, start_ns: int) -> None:
        """Tells all workers when a phase begins that awaits to be told."""
        for index in self.alive:
            self._children[index].tell(BeginOrder(number=number, start_ns=start_ns))

    def stop(self, stop_ns: int, cut_ns: int, given_up: bool = True) -> None:
        """Lets nothing more be sent, and cancels at `cut_ns` what is still under way then."""
        self._stop = StopOrder(stop_ns=stop_ns, cut_ns=cut_ns, given_up=given_up)
        for index in self.alive:
            self._children[index].tell(self._stop)

    def drawn(self, phase: int, rows: int | None) -> int:
        """Rows of a phase that workers have read from the shared description; exact whoever died."""
        taken = os.lseek(self.rows_fds[phase], 0, os.SEEK_CUR) // ROW.size
        return taken if rows is None else min(taken, rows)

    def quit(self) -> None:
        """Lets every worker write what it holds and exit; one that takes over 10 s is killed. Does it once."""
        if self._ended:
            return
        self._ended = True
        for index in self.alive:
            self._children[index].tell(Quit())
        until = time.monotonic() + CLOSE_S
        for index, child in enumerate(self._children):
            if child.close(until - time.monotonic()) and index not in self.deaths:
                self._died(index, child.death())
        for block in self._blocks:
            block.release()
        self._selector.close()
        for rows_fd in self.rows_fds:
            os.close(rows_fd)

    def kill(self) -> None:
        """Ends every worker at once; what they have written stays."""
        for child in self._children:
            child.kill()
        self.quit()

    def _words(self, wait_s: float) -> Iterator[tuple[int, Word]]:
        """What the workers say within `wait_s`."""
        for key, _ in self._selector.select(wait_s):
            index: int = key.data
            child = self._children[index]
            for line in child.hear():
                word = msgspec.json.decode(line, type=Word)
                if isinstance(word, Trouble):
                    self.trouble = self.trouble or word.message
                    self._died(index, word.message)
                yield index, word
            if child.ended:
                self._selector.unregister(child)
                if index not in self.deaths:
                    self._died(index, child.death())

    def _died(self, index: int, fault: str) -> None:
        self.deaths[index] = DeathLog(process=f"worker {index}", fault=fault, noticed_ns=time.monotonic_ns())
        logger.error("worker %d (pid %d) died: %s", index, self._children[index].pid, fault)

    def _kill(self, workers: set[int], because: str) -> None:
        for index in workers:
            self._children[index].kill(because)

    def _end_overdue(self, orders: Sequence[PhaseOrder], over: set[int]) -> None:
        cut_ns = self._stop.cut_ns if self._stop else latest(map(self._cut_ns, orders))
        if cut_ns is not None and time.monotonic_ns() > cut_ns + OVERDUE_S * 1e9:
            why = f"had not ended its requests {OVERDUE_S:g} s after they were cancelled, then killed"
            self._kill(self.alive - over, why)

    def _cut_ns(self, order: PhaseOrder) -> int | None:
        """When the last worker cancels what is under way of a phase; None: never, or not known yet."""
        return order.cut_ns(order.start_ns or self._started.get(order.number))

    def _end_silent(self, over: set[int]) -> None:
        """Kills the workers that are stopped, and those that hang, unless they are `over` with all phases."""
        beats = {index: self._blocks[index][Field.BEAT_NS] for index in self.alive - over}
        for index, silent_s in self._silence.look(beats, time.monotonic_ns()).items():
            if silent_s >= STOPPED_S and self._children[index].stopped():
                self._kill({index}, f"stopped for {STOPPED_S:g} s, then killed")
            elif silent_s >= HUNG_S:
                self._kill({index}, f"no sign of life for {HUNG_S:g} s, then killed")
