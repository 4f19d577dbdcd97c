"""Composes the plan: conversations of a source, dated by a schedule, spelled by an endpoint, stored as rows.

`drafts` is pure and depends on its job alone, so any process can go on where another stopped. Run as
`python -m loadstone.compose` it is the composer: at low priority, a bounded stretch ahead of the workers, for
runs with more bodies than are worth waiting for before the start.
"""

from __future__ import annotations

import os
import select
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice, repeat
from pathlib import Path

import msgspec

from loadstone import registry, tokens
from loadstone.board import Board, Field
from loadstone.clock import SECOND_NS
from loadstone.config import InputConfig
from loadstone.endpoints import Ask
from loadstone.plan import schedule, seeds
from loadstone.plan.choices import Choice, canceller, chooser
from loadstone.plan.dated import Dated
from loadstone.plan.store import UNKNOWN, WHEN_A_SLOT_FREES, Draft, Writer
from loadstone.plan.turn import Conversation
from loadstone.sources import Conversations

BEFOREHAND_S = 1.0
"""Rows are composed before the clock starts for as long as this, and longer only for those needed at once."""
NEEDED_S = 2.0
"""Seconds of a phase whose rows have to be there before the start, where rows have due times."""
AHEAD_REQUESTS = 5_000
AHEAD_BYTES = 256 << 20
"""The composer keeps so many rows ahead of the workers, but no more than so many bytes of bodies."""
BATCH_REQUESTS = 250
NICENESS = 10
ROWS_BEYOND = 64
"""Marks of a phase's end: more than there are ever workers, each of which takes one."""


class ComposeJob(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan of a run depends on, and where it goes."""

    folder: str
    source: str
    input: InputConfig
    endpoint: str
    ask: Ask
    """Its model is asked where `models` is empty."""
    seed: int
    template_tokens: int
    phases: list[schedule.Phase]
    target_choice: Choice = Choice()
    models: tuple[str, ...] = ()
    model_choice: Choice = Choice()
    """Among `models`."""


class ComposerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A job for the composer: go on behind what the folder holds, ahead of what the board says was drawn."""

    job: ComposeJob
    board: str
    blocks: int
    workers: int
    """The first blocks are theirs."""


def drafts(job: ComposeJob, number: int, start: int = 0) -> Iterator[Draft]:
    """The rows of phase `number` in their order, from its own row `start` (from 0) on.

    As many as the phase has `requests`: a conversation that the count cuts ends with its last row. Where the phase ends
    before, or has no count, marks of its end follow. Endless when the phase is.
    """
    phase = job.phases[number]
    stop = _stop(job.phases, number)
    phrased = _Phrased(job, number)
    passed = 0
    for dated in schedule.dated(phase, job.seed, phrased.outlines()):
        turns = len(dated.due_ns) if stop is None else min(len(dated.due_ns), stop - passed)
        if passed + turns > start:
            yield from phrased.rows(dated, passed, range(max(0, start - passed), turns))
        passed += turns
        if passed == stop:
            break
    if passed != phase.requests:
        yield from repeat(_mark(number), ROWS_BEYOND - max(0, start - passed))


def _stop(phases: list[schedule.Phase], number: int) -> int | None:
    """How many rows a phase has at most; without a count, as many as the numbers up to the next phase allow."""
    if phases[number].requests is not None or number + 1 == len(phases):
        return phases[number].requests
    return phases[number + 1].first_row - phases[number].first_row - ROWS_BEYOND


def _mark(number: int) -> Draft:
    return Draft(WHEN_A_SLOT_FREES, b"", UNKNOWN, UNKNOWN, conversation=0, turn=0, phase=number)


class _Phrased:
    """The conversations of one phase as rows.

    Prompts and choices are drawn from the seed of the run in the first measured phase, so that it is the same whatever
    is before it, and in every other one from a seed that its name gives it: no phase repeats another.
    """

    def __init__(self, job: ComposeJob, number: int) -> None:
        self._number = number
        self._phase = job.phases[number]
        self._job = job
        seed = _content_seed(job, number)
        self._source = registry.load("sources", job.source)
        self._conversations: Conversations = self._source.conversations(
            job.input, tokens.load(job.input.tokenizer), seed, template_tokens=job.template_tokens
        )
        self._body = registry.load("endpoints", job.endpoint).body
        self._encode = msgspec.json.Encoder().encode
        self._asks = [msgspec.structs.replace(job.ask, model=model) for model in job.models] or [job.ask]
        self._target = chooser(job.target_choice, seeds.derive(seed, "targets"))
        self._model = chooser(job.model_choice, seeds.derive(seed, "models"))
        self._is_cancelled = canceller(self._phase, seeds.derive(seed, "cancelled"))

    def outlines(self) -> Iterator[Conversation]:
        """All conversations, and each but once where times are given or nothing but the data bounds the phase."""
        phase = self._phase
        once = phase.pattern == "fixed" or phase.requests is phase.sessions is phase.duration_ns is None
        distinct = self._source.distinct(self._job.input) if once else None
        return islice(self._conversations.outlines(), distinct)

    def rows(self, dated: Dated, position: int, chosen: range) -> Iterator[Draft]:
        """Of a conversation whose first row is at `position` in the phase, the rows `chosen`; their end is its end."""
        number = dated.conversation.id
        target, model = self._target(number), self._model(number)
        first, stop = dated.first_turn, chosen.stop
        turns = self._conversations.conversation(number).turns[: first + stop]
        isl_tokens = 0
        for at, turn in enumerate(turns):
            isl_tokens = _sum(isl_tokens, turn.isl_tokens)
            row = at - first
            if row < chosen.start:
                continue
            yield Draft(
                dated.due_ns[row],
                self._encode(self._body(turns[: at + 1], self._asks[model])),
                isl_tokens,
                UNKNOWN if turn.max_tokens is None else turn.max_tokens,
                number,
                at,
                self._number,
                int(row == stop - 1),
                target,
                model,
                dated.follows[row],
                int(self._is_cancelled(position + row)),
                int(row == 0),
            )


def _content_seed(job: ComposeJob, number: int) -> int:
    kinds = [phase.kind for phase in job.phases]
    is_first = kinds[number] == "measured" and "measured" not in kinds[:number]
    return job.seed if is_first else seeds.derive(job.seed, job.phases[number].name)


def _sum(before: int, more: int | None) -> int:
    return UNKNOWN if more is None or before == UNKNOWN else before + more


class Composition:
    """A plan while it grows: behind what its folder holds, phase by phase."""

    def __init__(self, job: ComposeJob) -> None:
        self._phases = job.phases
        self._first = [phase.first_row for phase in job.phases]
        self._writer = Writer(Path(job.folder), self._first)
        self._drafts = [drafts(job, number, rows) for number, rows in enumerate(self._writer.rows)]
        self._whole = [False] * len(job.phases)
        self._opened = [0] * len(job.phases)
        """Conversations composed here."""
        self._reached_ns = [-1] * len(job.phases)
        """When the last of them begins, from the start of its phase."""

    def close(self) -> None:
        """Closes the files."""
        self._writer.close()

    def grow(self, number: int) -> None:
        """Stores a batch of a phase: `BATCH_REQUESTS` rows and on to the end of a conversation."""
        stored = self._writer.append(self._batch(number))
        self._whole[number] = stored < BATCH_REQUESTS

    def _batch(self, number: int) -> Iterator[Draft]:
        for taken, draft in enumerate(self._drafts[number], 1):
            if draft.opens:
                self._opened[number] += 1
                self._reached_ns[number] = draft.due_ns
            yield draft
            if draft.final and taken >= BATCH_REQUESTS:
                return

    def is_begun(self, number: int) -> bool:
        """Whether a phase has what the load would wait for at its very start.

        That is two conversations for every slot, and where there are due times what is due within `NEEDED_S`.
        """
        phase = self._phases[number]
        # A burst through slots is taken as fast as answers come, like a closed loop.
        by_slots = not phase.timed or (phase.pattern == "burst" and phase.slots)
        is_reached = by_slots or self._reached_ns[number] >= NEEDED_S * SECOND_NS
        is_filled = self._opened[number] >= max(1, 2 * (phase.slots or 0))
        return self._whole[number] or bool(is_reached and is_filled)

    def is_whole(self, number: int) -> bool:
        """Whether a phase has no more rows to come."""
        return self._whole[number]

    def unfinished(self, wanted: int = 0) -> int | None:
        """The first phase that has more rows to come, from the one on in which row `wanted` lies; None: no one has."""
        numbers = range(self._phase_of(wanted), len(self._whole))
        return next((number for number in numbers if not self._whole[number]), None)

    def behind(self, wanted: Sequence[int]) -> int | None:
        """The first phase that has too little ahead of the workers, who want these rows next; None: no one has.

        Where phases follow each other without a pause, workers may be in several.
        """
        latest = max(wanted)
        for number in range(self._phase_of(min(wanted)), self._phase_of(latest)):
            own = [row for row in wanted if self._phase_of(row) == number]
            if own and not self._whole[number] and not self.is_ahead(number, max(own)):
                return number
        unfinished = self.unfinished(latest)
        return None if unfinished is None or self.is_ahead(unfinished, latest) else unfinished

    def is_ahead(self, number: int, wanted: int) -> bool:
        """Whether so much is there behind row `wanted`, up to the end of what phase `number` has, that there is no haste."""
        current, rows = self._phase_of(wanted), self._writer.rows
        ahead = self._first[current] - wanted + sum(rows[current : number + 1])
        return ahead >= AHEAD_REQUESTS or ahead * self._writer.body_bytes >= AHEAD_BYTES * max(1, sum(rows))

    def _phase_of(self, row: int) -> int:
        return max(0, bisect_right(self._first, row) - 1)


def beforehand(job: ComposeJob) -> bool:
    """Composes what is composed before the clock starts; whether the plan is complete with it.

    How far it gets depends on the time, what it writes does not: the composer goes on where this stops.
    """
    until = time.monotonic() + BEFOREHAND_S
    with closing(Composition(job)) as plan:
        for number in range(len(job.phases)):
            while not plan.is_begun(number):
                plan.grow(number)
        while (unfinished := plan.unfinished()) is not None:
            if time.monotonic() >= until:
                return False
            plan.grow(unfinished)
    return True


def main() -> None:
    """The composer: stays ahead until the plan is complete or its stdin ends."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=ComposerOrder)
    os.nice(NICENESS)
    plan = Composition(order.job)
    board = Board(Path(order.board), order.blocks)
    while not select.select([0], [], [], 0)[0]:
        # Not by the number drawn: rows that were dealt to a worker that died are never drawn.
        wanted = [board.block(index)[Field.WANTED] for index in range(order.workers)]
        if plan.unfinished(min(wanted)) is None:
            return
        if (number := plan.behind(wanted)) is None:
            time.sleep(0.02)
        else:
            plan.grow(number)


if __name__ == "__main__":
    main()
