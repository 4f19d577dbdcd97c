"""Composes the plan: conversations of a source, spelled by an endpoint, dated by a schedule, stored as rows.

`drafts` is pure and depends on its job alone, so any process can go on where another stopped. Run as
`python -m loadstone.compose` it is the composer: at low priority, a bounded stretch ahead of the workers, for
runs with more bodies than are worth waiting for before the start.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from loadstone import registry, tokens
from loadstone.board import Board, Field
from loadstone.config import InputConfig
from loadstone.endpoints import Ask
from loadstone.plan import schedule, seeds
from loadstone.plan.store import Draft, Writer

BEFOREHAND_S = 1.0
"""Rows are composed before the clock starts for as long as this, and longer only for those needed at once."""
NEEDED_S = 2.0
"""Seconds of an open loop whose rows have to be there before it starts."""
AHEAD_REQUESTS = 5_000
AHEAD_BYTES = 256 << 20
"""The composer keeps so many rows ahead of the workers, but no more than so many bytes of bodies."""
BATCH_REQUESTS = 250
NICENESS = 10
ROWS_BEYOND = 64
"""Rows due after the end of a phase of given duration: more than there are ever workers."""


class ComposeJob(msgspec.Struct, frozen=True, kw_only=True):
    """What the plan of a run depends on, and where it goes."""

    folder: str
    source: str
    input: InputConfig
    endpoint: str
    ask: Ask
    seed: int
    template_tokens: int
    phases: list[schedule.Phase]


class ComposerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A job for the composer: go on behind what the folder holds, ahead of what the board says was drawn."""

    job: ComposeJob
    board: str
    blocks: int


def drafts(job: ComposeJob, start: int = 0) -> Iterator[Draft]:
    """The rows of all phases in their order, from row `start` on. Endless when the last phase is.

    Warm-up prompts come from a stream of their own, so that the measured ones are the same with and without it.
    """
    words = tokens.load(job.input.tokenizer).words
    source = registry.load("sources", job.source)
    endpoint = registry.load("endpoints", job.endpoint)
    encode = msgspec.json.Encoder().encode
    passed = 0
    for number, phase in enumerate(job.phases):
        due_times = _due_times(phase, job.seed)
        skip = max(0, start - passed)
        if phase.requests is not None and skip >= phase.requests:
            passed += phase.requests
            continue
        seed = job.seed if phase.name == "measured" else seeds.derive(job.seed, phase.name)
        conversations = source.conversations(
            job.input, words, seed, start=skip, template_tokens=job.template_tokens
        )
        for due_ns in islice(due_times, skip, None):
            conversation = next(conversations)
            for position, turn in enumerate(conversation.turns):
                yield Draft(
                    due_ns=due_ns,
                    body=encode(endpoint.body([turn], job.ask)),
                    isl_tokens=-1 if turn.isl_tokens is None else turn.isl_tokens,
                    osl_tokens=-1 if turn.max_tokens is None else turn.max_tokens,
                    conversation=conversation.id,
                    turn=position,
                    phase=number,
                    final=int(position == len(conversation.turns) - 1),
                )
        passed += phase.requests or 0


def _due_times(phase: schedule.Phase, seed: int) -> Iterator[int]:
    """The due times of a phase, ended by its count, or a few rows after its duration.

    A worker that meets a row due after the end knows that the phase is over, and need not ask whether
    more will be composed; there has to be one for each.
    """
    beyond = 0
    for due_ns in islice(schedule.due_times(phase, seed), phase.requests):
        beyond += phase.duration_ns is not None and due_ns >= phase.duration_ns
        if beyond > ROWS_BEYOND:
            return
        yield due_ns


def compose(rows: Iterator[Draft], writer: Writer, limit: int | None) -> bool:
    """Stores up to `limit` further rows (None: all); whether the plan is complete with them."""
    left = limit
    while left is None or left > 0:
        batch = BATCH_REQUESTS if left is None else min(BATCH_REQUESTS, left)
        stored = writer.append(islice(rows, batch))
        if stored < batch:
            return True
        if left is not None:
            left -= stored
    return False


def beforehand(job: ComposeJob) -> bool:
    """Composes what is composed before the clock starts; whether the plan is complete with it.

    How far it gets depends on the time, what it writes does not: the composer goes on where this stops.
    """
    writer = Writer(Path(job.folder))
    rows = drafts(job)
    needed = _needed_at_once(job.phases)
    until = time.monotonic() + BEFOREHAND_S
    try:
        while not compose(rows, writer, BATCH_REQUESTS):
            if writer.requests >= needed and time.monotonic() >= until:
                return False
        return True
    finally:
        writer.close()


def _needed_at_once(phases: list[schedule.Phase]) -> int:
    """Rows without which the load would wait for the composer at its very start."""
    first = sum(phase.requests or 0 for phase in phases[:-1])
    return first + max(2 * (phases[-1].slots or 0), round(NEEDED_S * (phases[-1].rate or 0.0)))


def main() -> None:
    """The composer: stays ahead until the plan is complete or its stdin ends."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=ComposerOrder)
    os.nice(NICENESS)
    writer = Writer(Path(order.job.folder))
    board = Board(Path(order.board), order.blocks)
    rows = drafts(order.job, writer.requests)
    while not select.select([0], [], [], 0)[0]:
        # Not by the number drawn: rows that were dealt to a worker that died are never drawn.
        ahead = writer.requests - max(board.block(index)[Field.WANTED] for index in range(order.blocks))
        if ahead >= AHEAD_REQUESTS or ahead * writer.body_bytes >= AHEAD_BYTES * writer.requests:
            time.sleep(0.02)
        elif compose(rows, writer, BATCH_REQUESTS):
            return


if __name__ == "__main__":
    main()
