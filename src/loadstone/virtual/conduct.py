"""Leads a virtual run through its phases and notes how each went, as `load.conduct` does for real ones.

The orders are the same. What main hears of its workers some milliseconds later, and gives them to know some milliseconds
before, is known here at once: a phase that waits for the one before begins at the moment at which that one is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress

from loadstone import folder
from loadstone.account import Setting
from loadstone.board import Board, Field
from loadstone.compose import ComposeJob
from loadstone.config import phase_loads
from loadstone.folder import PhaseLog
from loadstone.load.capacity import NEVER_NS
from loadstone.load.certain import certain
from loadstone.load.conduct import BY_USER, GIVEN_UP_GRACE_S, Conducted, Stop, grace_s
from loadstone.load.counted import drawn_rows, due_rows
from loadstone.load.course import chain, dated
from loadstone.load.failures import Failures
from loadstone.load.job import PhaseOrder, latest
from loadstone.load.stage import Stage
from loadstone.load.steady import Steady
from loadstone.load.waiting import Queue, queue
from loadstone.plan.schedule import Phase
from loadstone.settle import threshold
from loadstone.slo import Watched
from loadstone.tui.simple import Progress
from loadstone.virtual.client import Client, Watch
from loadstone.virtual.moments import BASE_NS, LOOK_NS
from loadstone.virtual.plan import Plan
from loadstone.virtual.servers import Server
from loadstone.virtual.table import Parts
from loadstone.watching import measured_rows

SHOW_S = 0.25
"""Between two looks at the progress and at the user's wishes, in real time."""
STORE_S = 2.0
"""What came of requests is stored so often at least, in real time: no more of it is lost when the process is killed."""

Tick = Callable[[Phase, float, int, float], None]
"""Told the phase, seconds into it, requests due and not sent, and the real seconds that it has taken."""


class Began(Watch):
    """Phases that follow each other without a pause, while they last."""

    def __init__(
        self, conduct: Conduct, first: int, phases: Sequence[Phase], orders: list[PhaseOrder]
    ) -> None:
        self._conduct = conduct
        self._first = first
        self._phases = phases
        self._orders = orders
        self._at = 0
        before = conduct.board.live().fields
        self._launched = before[Field.DRAWN]
        slots = max((phase.slots or 0 for phase in phases), default=0) or None
        self._failures = Failures(conduct.threshold, slots, before)
        self._queue: Queue = queue(phases[0], conduct.plan.folder, conduct.seed)
        self._began_ns = orders[0].start_ns or BASE_NS
        self._start_ns = self._began_ns
        self._phase_s = time.monotonic()
        """When the phase that is on began, in real time."""
        self._show_s = self._phase_s + SHOW_S
        self.ends: dict[int, tuple[Stage, int]] = {}
        """The phases that are over, and when they were."""
        if conduct.stops_when_steady or conduct.watched:
            self.next_ns = self._began_ns + LOOK_NS

    @property
    def phase(self) -> Phase:
        """The one that is on."""
        return self._phases[self._at]

    def look(self, now: int) -> None:
        """See `Watch`: whether what is asked for is known well enough, or cannot be had any more."""
        self.next_ns = now + LOOK_NS
        if why := certain(self._conduct.watched, self._conduct.board.live().fields):
            self._conduct.stop(Stop("slo", why), min(grace_s(self.phase), GIVEN_UP_GRACE_S), now)
            self.next_ns = NEVER_NS
            return
        elapsed_s = (now - self._start_ns) / 1e9
        phase = self.phase
        if self._conduct.stops_when_steady and phase.name == self._conduct.last_measured:
            why = self._conduct.steady.look(self._conduct.board.live(), elapsed_s)
            if why:
                self._conduct.stop(Stop("steady", why), grace_s(phase), now)
                self.next_ns = NEVER_NS

    def failed(self, now: int) -> None:
        """See `Watch`: whether too much fails for going on."""
        fields = self._conduct.board.live().fields
        if why := self._failures.look(fields, (now - self._began_ns) / 1e9):
            self._conduct.stop(Stop("failures", why), min(grace_s(self.phase), GIVEN_UP_GRACE_S), now)

    def show(self, now: int) -> None:
        """See `Watch`: how far it is, and whether the user has had enough."""
        if time.monotonic() < self._show_s:
            return
        self._show_s = time.monotonic() + SHOW_S
        conduct = self._conduct
        asked = conduct.interrupted()
        conduct.store()
        if asked:
            conduct.stop(BY_USER, 0.0 if asked > 1 else grace_s(self.phase), now)
        live = conduct.board.live().fields
        drawn = conduct.plan.drawn(self._first + self._at)
        held = conduct.client.agenda.queued(now)
        elapsed_ns = now - self._start_ns
        waiting = self._queue.look(elapsed_ns, drawn, live[Field.DRAWN] - self._launched, held)
        conduct.tick(self.phase, elapsed_ns / 1e9, waiting, time.monotonic() - self._phase_s)

    def spent(self, stage: Stage, now: int) -> None:
        """See `Watch`: the next phase begins."""
        number = stage.order.number - self._first
        if number != self._at or number + 1 == len(self._phases):
            return
        self._at += 1
        order = self._orders[self._at]
        if order.awaits:
            self._conduct.client.agenda.date(order.number, now)
        self._start_ns, self._phase_s = now, time.monotonic()
        self._launched = self._conduct.board.live().fields[Field.DRAWN]
        self._queue = queue(self.phase, self._conduct.plan.folder, self._conduct.seed)

    def over(self, stage: Stage, now: int) -> None:
        """See `Watch`."""
        self.ends[stage.order.number] = (stage, now)


class Conduct:
    """One run about to be led. See `simulate` for what it is made of."""

    def __init__(
        self,
        client: Client,
        plan: Plan,
        board: Board,
        seed: int,
        threshold: float,
        steady: Steady,
        stops_when_steady: bool,
        last_measured: str,
        interrupted: Callable[[], int],
        say: Callable[[str], None],
        tick: Tick,
        parts: Parts,
        watched: Sequence[Watched] = (),
    ) -> None:
        self.client = client
        self.plan = plan
        self.board = board
        self.seed = seed
        self.threshold = threshold
        self.steady = steady
        self.stops_when_steady = stops_when_steady
        self.last_measured = last_measured
        self.interrupted = interrupted
        self.tick = tick
        self.watched = watched
        self._say = say
        self._parts = parts
        self._store_s = time.monotonic() + STORE_S
        self._why: Stop | None = None
        self._stop_ns: int | None = None
        self._cut_ns: int | None = None

    def lead(self) -> Conducted:
        """Runs all phases; after a stop those that have not begun are left out."""
        phases, logs, now = self.plan.phases, list[PhaseLog](), BASE_NS
        first = 0
        while first < len(phases) and not self._why:
            following = first + 1
            while following < len(phases) and phases[following].seamless:
                following += 1
            now = self._run(first, phases[first:following], now, logs)
            first = following
        return Conducted(logs, [], self._why, 0, None)

    def _run(self, first: int, phases: Sequence[Phase], now: int, logs: list[PhaseLog]) -> int:
        """Runs phases that follow each other without a pause, the first from `now` on; when the last one is over."""
        orders = dated(chain(first, phases, self.plan.rows_fds, self.seed), now)
        self._cut_ns = latest(order.cut_ns(order.start_ns) for order in orders)
        watch = Began(self, first, phases, orders)
        for order in orders:
            self.client.agenda.add(order, now)
        end_ns = self.client.run(now, watch)
        for number, phase in enumerate(phases, first):
            if number in watch.ends:
                stage, over_ns = watch.ends[number]
                logs.append(self._log(number, phase, stage, over_ns))
        return end_ns

    def stop(self, why: Stop, grace_s: float, now: int) -> None:
        """Sends nothing more, unless what is under way is cancelled sooner anyway. The first reason is the one told."""
        cut_ns = now + round(grace_s * 1e9)
        self._why = self._why or why
        if self._cut_ns is not None and cut_ns >= self._cut_ns:
            return
        self._stop_ns = self._stop_ns or now
        self._cut_ns = cut_ns
        agenda = self.client.agenda
        for stage in agenda.stages.values():
            stage.stop(self._stop_ns, cut_ns, why.by != "steady", now)
        agenda.stop()
        self._say(f"stopping ({why.why})")

    def store(self) -> None:
        """Stores what came of requests, when that is due."""
        if time.monotonic() >= self._store_s:
            self._parts.flush()
            self._store_s = time.monotonic() + STORE_S

    def _log(self, number: int, phase: Phase, stage: Stage, end_ns: int) -> PhaseLog:
        """How a phase went; see `load.conduct`."""
        start_ns = stage.start_ns
        planned_stop_ns = None if phase.duration_ns is None else start_ns + phase.duration_ns
        stopped_ns = min(at for at in (planned_stop_ns, self._stop_ns, end_ns) if at is not None)
        bounded = planned_stop_ns is not None or self._stop_ns is not None
        lasted_ns = max(0, stopped_ns - start_ns) if bounded else None
        drawn = 0 if phase.slots is None else self.plan.drawn(number)
        self.plan.reach(number, lasted_ns)
        if phase.timed:
            planned = due_rows(phase, self.plan.folder, self.seed, lasted_ns)
        else:
            planned = drawn_rows(phase, self.plan.folder, drawn)
        return PhaseLog(
            name=phase.name,
            kind=phase.kind,
            seamless=phase.seamless,
            first_row=phase.first_row,
            planned=planned,
            start_ns=start_ns,
            stop_ns=max(start_ns, stopped_ns),
            end_ns=max(start_ns, end_ns),
            drawn=drawn,
            dealt=phase.slots is None,
        )


def simulate(
    setting: Setting,
    servers: Sequence[Server],
    job: ComposeJob,
    progress: Progress,
    interrupted: Callable[[], int],
    say: Callable[[str], None],
) -> Conducted:
    """Runs the whole plan and writes its parts into the run's folder. `interrupted`: how often the user asked to stop.

    Whatever ends it before its time, what came of requests until then is stored as far as there is space.
    """
    config, home = setting.config, setting.home
    for name in (folder.PLAN, folder.RECORDING, folder.PARTS):
        (home / name).mkdir(exist_ok=True)
    last = [asked for asked in phase_loads(config.load) if asked.kind == "measured"][-1]
    steady = Steady(last.load.stop_when)
    board_path = home / folder.RECORDING / folder.BOARD
    parts = Parts(home / folder.PARTS)
    with closing(Board(board_path, 1, create=True)) as board, closing(Plan(job)) as plan:
        counted = config.input.tokenizer != "none"
        with board.block(0) as block:
            client = Client(
                servers,
                plan,
                parts,
                config.endpoint,
                block,
                f"{setting.id}-",
                counted,
                setting.watched,
                measured_rows(setting.phases),
            )
            conduct = Conduct(
                client,
                plan,
                board,
                setting.seed,
                threshold(config),
                steady,
                bool(last.load.stop_when),
                last.name,
                interrupted,
                say,
                lambda phase, elapsed_s, waiting, took_s: progress.update(
                    board.live(), elapsed_s, phase, waiting, took_s
                ),
                parts,
                setting.watched,
            )
            try:
                conducted = conduct.lead()
            except BaseException:
                with suppress(Exception):  # what ended the run is the one to tell
                    parts.flush()
                raise
    parts.flush()
    for server in servers:
        if server.truth:
            server.truth.close()
    board_path.unlink(missing_ok=True)
    board_path.parent.rmdir()
    return conducted._replace(remarks=tuple(steady.unmet()) if conducted.stop is None else ())
