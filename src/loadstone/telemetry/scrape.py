"""The process that reads the servers' Prometheus pages: `python -m loadstone.telemetry.scrape`.

A `Job` comes in by the first line, then `Look`s; `Finish` or the end of input stops it. Runs at nice 19, a thread a page, so
that a slow one keeps nobody waiting. Nothing it meets ends the run: what cannot be read is noted. From the first `Look` on
it stores now and then what it has, so that little is lost when it is killed itself.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from loadstone.config import hide
from loadstone.folder import ScrapeFault, ScrapeLog
from loadstone.telemetry.ask import FOR_GOOD, Read, ask
from loadstone.telemetry.job import Done, Finish, Job, Look, Looked, Order, PageJob, Word
from loadstone.telemetry.parse import NotAPageError, Page, Parser
from loadstone.telemetry.store import MOST_SAMPLES, Scrape, Scrapes, write
from loadstone.terminal import printable

NICE = 19
LOOK_S = 1.0
"""So long a `Look` waits for pages."""
LAST_S = 2.0
"""So long the last one does."""
IN_VAIN = 3
"""A page that has never been there is asked for so often."""
KEEP_SHARE = 0.01
"""Of a processor, at most, goes into storing before the end."""
MOST_FAULTS = 20
"""Kinds that are noted of one page."""


class Reading:
    """One page, read again and again in a thread of its own."""

    def __init__(
        self, page: PageJob, interval_s: float, changed: threading.Condition, most_samples: int
    ) -> None:
        self.page = page
        self.parser = Parser(page.hidden)
        self.scrapes = Scrapes(most_samples)
        self.scraped = self.failed = 0
        self.faults: list[ScrapeFault] = []
        self.given_up = False
        self._interval_ns = round(interval_s * 1e9)
        self._changed = changed
        self._wanted = self._looked = 0
        self._closing = False
        self._failing = False
        """The last attempt was in vain."""
        threading.Thread(target=self._read, daemon=True).start()

    # These four with the condition held.

    def want(self, number: int) -> None:
        """Asks for a scrape that begins after this."""
        self._wanted = number
        self._changed.notify_all()

    def close(self) -> None:
        """No other scrape begins, but for one that was asked for."""
        self._closing = True
        self._changed.notify_all()

    def settled(self, number: int, patient: bool) -> bool:
        """Whether there is nothing to wait for: it was tried, or, unless `patient`, was in vain before."""
        return self._looked >= number or self.given_up or (self._failing and not patient)

    def found(self) -> tuple[ScrapeLog, list[Scrape]]:
        """What was read so far, and the account of it."""
        log = ScrapeLog(
            page=self.page.name,
            serves=self.page.serves,
            scrapes=self.scraped,
            failed=self.failed,
            thinned=self.scrapes.thinned,
            samples=self.scrapes.samples,
            given_up=self.given_up,
            faults=self.faults,
        )
        return log, list(self.scrapes.found)

    def _read(self) -> None:
        """The thread: reads when it is time or when it is asked to, until it is closed or there is no page."""
        due_ns = time.monotonic_ns()
        while True:
            with self._changed:
                while self._wanted <= self._looked and not self._closing:
                    left_ns = due_ns - time.monotonic_ns()
                    if left_ns <= 0:
                        break
                    self._changed.wait(left_ns / 1e9)
                number = self._wanted
                if self._closing and number <= self._looked:
                    return
            read, page, fault = self._once()
            with self._changed:
                self._note(read, page, fault, kept=number > self._looked)
                self._looked = number
                self._changed.notify_all()
                if self.given_up:
                    return
            interval_ns = self._interval_ns * self.scrapes.every
            due_ns = max(due_ns + interval_ns, time.monotonic_ns())

    def _once(self) -> tuple[Read, Page | None, str | None]:
        """One attempt: the page, or why there is none, in words that may be shown."""
        read = ask(self.page)
        if read.text is None:
            return read, None, self._told(read.fault or "")
        try:
            return read, self.parser(read.text), None
        except NotAPageError as error:
            return read, None, self._told(str(error))
        except Exception as error:  # its words may be words of the page, and a traceback would log them
            return read, None, f"it could not be read ({type(error).__name__})"

    def _told(self, fault: str) -> str:
        return printable(hide(fault, self.page.hidden))

    def _note(self, read: Read, page: Page | None, fault: str | None, *, kept: bool) -> None:
        self._failing = page is None
        if page is not None:
            self.scraped += 1
            self.scrapes.add(Scrape(read.sent_ns, read.at_ns, page, kept))
            return
        self.failed += 1
        self.given_up = not self.scraped and (self.failed >= IN_VAIN or read.status in FOR_GOOD)
        known = [one for one in self.faults if (one.http_status, one.fault) == (read.status, fault)]
        if known:
            known[0].count += 1
        elif len(self.faults) < MOST_FAULTS:
            self.faults.append(ScrapeFault(at_ns=read.at_ns, http_status=read.status, fault=fault or ""))


class Readings:
    """All pages of a run."""

    def __init__(self, job: Job) -> None:
        self._home = Path(job.folder)
        self._keep_s = job.keep_s
        self._storing = threading.Lock()
        self._closing = False
        self._changed = threading.Condition()
        most = MOST_SAMPLES // max(1, len(job.pages))
        self._all = [Reading(page, job.interval_s, self._changed, most) for page in job.pages]
        self._number = 0

    def look(self, number: int, wait_s: float = LOOK_S, *, patient: bool = False) -> None:
        """Has every page read and waits until those have been that can be, so long at most."""
        with self._changed:
            if not self._number:
                threading.Thread(target=self._keep, daemon=True).start()
            self._number = number
            for reading in self._all:
                reading.want(number)
            self._changed.wait_for(lambda: all(one.settled(number, patient) for one in self._all), wait_s)

    def last_look(self) -> None:
        """Has every page read once more. One that failed before is awaited like the others."""
        self.look(self._number + 1, LAST_S, patient=True)

    def finish(self) -> list[ScrapeLog]:
        """Stores what was read; scrapes under way are left behind."""
        with self._changed:
            self._closing = True
            for reading in self._all:
                reading.close()
        return self._store()

    def _keep(self) -> None:
        """The thread: stores again and again what there is."""
        wait_s = self._keep_s
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: self._closing, wait_s):
                    return
            began_s = time.process_time()
            with suppress(Exception):  # the last one, in `finish`, tells what is wrong
                self._store()
            wait_s = max(self._keep_s, (time.process_time() - began_s) / KEEP_SHARE)

    def _store(self) -> list[ScrapeLog]:
        with self._storing:
            with self._changed:
                found = [(reading, *reading.found()) for reading in self._all]
            write(self._home, [(log.page, tuple(one.parser.series), scrapes) for one, log, scrapes in found])
        return [log for _, log, _ in found]


def main() -> None:
    """Job in, a table on disk, one line out; nothing at all when main is gone before it has said anything."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is main's to hear
    os.nice(NICE - os.nice(0))
    os.environ.update(OPENBLAS_NUM_THREADS="1", POLARS_MAX_THREADS="1")
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return
    readings = Readings(msgspec.json.decode(line, type=Job))
    decode = msgspec.json.Decoder(Order).decode
    for line in sys.stdin.buffer:
        order = decode(line)
        if isinstance(order, Finish):
            readings.last_look()
            break
        if isinstance(order, Look):
            readings.look(order.number)
            _say(Looked(number=order.number))
    _say(Done(logs=readings.finish()))
    sys.stdout.flush()
    os._exit(0)  # a thread may be within a page of which nothing more comes


def _say(word: Word) -> None:
    with suppress(BrokenPipeError):  # main is gone; what was read is on the disk
        os.write(1, msgspec.json.encode(word) + b"\n")


if __name__ == "__main__":
    main()
