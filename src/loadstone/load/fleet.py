"""The fleet: all workers of a run, started early, given phases, and heard until every flight has ended.

Co-ordination is nothing but orders down the pipes and words back; rows are shared by the kernel
(`loadstone.load.rows`). A worker that dies is noticed by its pipe, and the others go on.
"""

from __future__ import annotations

import logging
import os
import selectors
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from loadstone.child import Child
from loadstone.load.job import Job, PhaseDone, PhaseOrder, Quit, Ready, StopOrder, Word
from loadstone.plan.store import ROW

logger = logging.getLogger("loadstone")
TICK_S = 0.25
OVERDUE_S = 5.0
"""A worker that has not ended a phase this long after its cut is taken for hung, and killed."""


def share(slots: int | None, worker: int, workers: int) -> int | None:
    """How many of the slots one worker has: as even as whole numbers allow; None stays None."""
    if slots is None:
        return None
    return slots // workers + (worker < slots % workers)


class Fleet:
    """The worker processes. `rows_fd` is the shared description of the plan's rows."""

    def __init__(self, workers: int, rows_path: Path, log: Path) -> None:
        self.workers = workers
        self.faults: dict[int, str] = {}
        self.kernel_stamps = True
        self.rows_fd = os.open(rows_path, os.O_RDONLY | os.O_CREAT, 0o644)
        self._children = [
            Child("loadstone.load.worker", log, pass_fds=[self.rows_fd]) for _ in range(workers)
        ]
        self._selector = selectors.DefaultSelector()
        for index, child in enumerate(self._children):
            self._selector.register(child, selectors.EVENT_READ, index)
        self._stop: StopOrder | None = None
        self._ended = False

    def brief(self, job: Job) -> None:
        """Gives every worker its job and waits until all are ready."""
        for index, child in enumerate(self._children):
            child.tell(msgspec.structs.replace(job, worker=index, workers=self.workers, rows_fd=self.rows_fd))
        waiting = self._alive()
        while waiting:
            for index, word in self._words(TICK_S):
                if isinstance(word, Ready):
                    waiting.discard(index)
                    self.kernel_stamps = self.kernel_stamps and word.kernel_stamps
            waiting &= self._alive()

    def run(self, order: PhaseOrder, slots: int | None, tick: Callable[[], None]) -> dict[int, PhaseDone]:
        """Runs one phase in every worker that is alive, to its end; `tick` is called about 4 times a second.

        The words of the workers by number; one that died is missing here and has an entry in `faults`.
        """
        self._stop = None
        os.lseek(self.rows_fd, order.first_row * ROW.size, os.SEEK_SET)
        for index in self._alive():
            self._children[index].tell(
                msgspec.structs.replace(order, slots=share(slots, index, self.workers))
            )
        done: dict[int, PhaseDone] = {}
        next_tick = 0.0
        while self._alive() - done.keys():
            done |= {index: word for index, word in self._words(TICK_S) if isinstance(word, PhaseDone)}
            if time.monotonic() >= next_tick:
                next_tick = time.monotonic() + TICK_S
                tick()
                self._end_hung(order, done)
        return done

    def stop(self, stop_ns: int, cut_ns: int) -> None:
        """Lets nothing more be sent, and cancels at `cut_ns` what is still under way then."""
        self._stop = StopOrder(stop_ns=stop_ns, cut_ns=cut_ns)
        for index in self._alive():
            self._children[index].tell(self._stop)

    def quit(self) -> None:
        """Lets every worker write what it holds and exit, and waits for that; a second time does nothing."""
        if self._ended:
            return
        self._ended = True
        for index in self._alive():
            self._children[index].tell(Quit())
        for child in self._children:
            child.close()
        self._selector.close()
        os.close(self.rows_fd)

    def kill(self) -> None:
        """Ends every worker at once; what they have written stays."""
        for child in self._children:
            child.kill()
        self.quit()

    def _alive(self) -> set[int]:
        return set(range(self.workers)) - self.faults.keys()

    def _words(self, wait_s: float) -> Iterator[tuple[int, Word]]:
        """What the workers say within `wait_s`."""
        for key, _ in self._selector.select(wait_s):
            index: int = key.data
            child = self._children[index]
            for line in child.hear():
                yield index, msgspec.json.decode(line, type=Word)
            if child.ended:
                self._selector.unregister(child)
                self.faults[index] = f"its process (pid {child.pid}) died"
                logger.error("worker %d: %s", index, self.faults[index])

    def _end_hung(self, order: PhaseOrder, done: dict[int, PhaseDone]) -> None:
        cut_ns = self._stop.cut_ns if self._stop else order.cut_ns
        if cut_ns is not None and time.monotonic_ns() > cut_ns + OVERDUE_S * 1e9:
            for index in self._alive() - done.keys():
                self._children[index].kill()
