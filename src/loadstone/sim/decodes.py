"""The sequences that decode, as sums: what a step of all of them reads, which blocks it needs, whose last token it brings.

One rule: a step costs the same however many decode; work is done only where one joins, leaves, or comes to its end. So the
moment of everything that can be known when a sequence joins is noted then: its last step, its next blocks, its window.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import Generic, TypeVar

from loadstone.sim.sequence import Sequence

S = TypeVar("S", bound=Sequence)
NEVER = 1 << 62


def windowed_pairs(computed: int, chunk: int, window: int) -> int:
    """Query-key pairs of a chunk of a prompt, behind `computed` tokens, where each token sees `window` at most.

    The sum over i = 1..chunk of min(computed + i, window).
    """
    growing = min(chunk, max(0, window - computed))
    return growing * computed + growing * (growing + 1) // 2 + (chunk - growing) * window


class Decodes(Generic[S]):
    """Sequences that get one token a step. `window`: the tokens that windowed layers read at most; None: there are none."""

    tokens_each = 1
    """Tokens that each of them computes in a step."""

    def __init__(self, block_size: int, window: int | None) -> None:
        self.sequences: dict[S, None] = {}
        self.kv_tokens = 0
        """Tokens that they have in the KV cache, all together."""
        self.window_kv_tokens = 0
        """The same in a windowed layer."""
        self._block_size = block_size
        self._window = window or NEVER
        self._turns = [0] * block_size
        """How many need a block in a step, by its remainder."""
        self._last: dict[int, list[S]] = {}
        """Whose last token a step brings."""
        self._full: defaultdict[int, int] = defaultdict(int)
        """How many fill their window in a step."""
        self.growing = 0
        """How many have not filled it."""
        self._changes: list[int] = []
        """Steps in which something of this happens: a heap."""

    # ---- joining and leaving ------------------------------------------------------------------------------

    def join(self, sequence: S, step: int) -> None:
        """One begins, by the token that this step brought it; it has more to come."""
        stored = sequence.target
        sequence.joined = step
        self.sequences[sequence] = None
        self.kv_tokens += stored
        sequence.last_step = step + self._steps_left(sequence)
        self._note_last(sequence)
        self._note_blocks(sequence, step, 1)
        self.window_kv_tokens += min(stored, self._window)
        if stored < self._window < NEVER:
            self.growing += 1
            full = step + self._window - stored
            self._full[full] += 1
            heapq.heappush(self._changes, full)

    def leave(self, sequence: S, step: int) -> int:
        """One goes, when so many steps are over; tokens that it has in the KV cache."""
        joined = sequence.joined
        assert joined is not None, "it decodes"
        stored = self.stored(sequence, step)
        del self.sequences[sequence]
        self.kv_tokens -= stored
        if sequence.last_step > step:
            self._last[sequence.last_step].remove(sequence)
        self._note_blocks(sequence, step, -1)
        self.window_kv_tokens -= min(stored, self._window)
        if stored < self._window < NEVER:
            self.growing -= 1
            self._full[joined + self._window - sequence.target] -= 1
        return stored

    def _note_last(self, sequence: S) -> None:
        ending = self._last.get(sequence.last_step)
        if ending is None:
            self._last[sequence.last_step] = [sequence]
            heapq.heappush(self._changes, sequence.last_step)
        else:
            ending.append(sequence)

    # ---- what one of them has and needs ---------------------------------------------------------------------

    def _steps_left(self, sequence: S) -> int:
        return sequence.output_tokens - sequence.base

    def stored(self, sequence: S, step: int) -> int:
        """Its tokens in the KV cache when so many steps are over."""
        assert sequence.joined is not None, "it decodes"
        return sequence.target + step - sequence.joined

    def blocks(self, sequence: S, step: int) -> int:
        """The blocks it holds once those for this step are taken."""
        return -(-self.stored(sequence, step) // self._block_size)

    def _note_blocks(self, sequence: S, step: int, sign: int) -> None:
        if (
            sign > 0
        ):  # token j of the stretch goes to place target + j: a new block where that is the first of one
            sequence.turn = (step + 1 - sequence.target) % self._block_size
        self._turns[sequence.turn] += sign

    # ---- the next step of all of them -------------------------------------------------------------------------

    def needs(self, step: int) -> int:
        """Blocks that this step takes."""
        return self._turns[step % self._block_size]

    def constant(self, step: int, free: int) -> int:
        """How many steps, from the one after `step` on, may be taken as one: nothing changes but the contexts' length.

        The last of them may bring a change. `free` blocks are there for all after the first.
        """
        while self._changes and self._changes[0] <= step:
            heapq.heappop(self._changes)
        until = self._changes[0] - step if self._changes else NEVER
        rounds = free // len(self.sequences)  # each takes one block in a round of block_size steps
        return min(until, 1 + rounds * self._block_size)

    def take(self, step: int, steps: int) -> int:
        """Blocks taken by so many steps from this one on."""
        rounds, rest = divmod(steps, self._block_size)
        turns = self._turns
        size = self._block_size
        return rounds * len(self.sequences) + sum(turns[(step + i) % size] for i in range(rest))

    def windowed(self, step: int) -> tuple[int, int]:
        """`window_kv_tokens` and `window_pairs` of this step, the next one."""
        read = self.window_kv_tokens + self.growing
        return read, read

    def plain(self, step: int) -> int:
        """`window_kv_tokens` of this step, the next one, if each sequence computed a single token: its pairs are as many."""
        return self.windowed(step)[0]

    def advance(self, step: int, steps: int) -> None:
        """So many steps are over, `step` is the last of them."""
        self.kv_tokens += steps * len(self.sequences)
        self.window_kv_tokens += steps * self.growing
        self.growing -= self._full.pop(step, 0)

    def ending(self, step: int) -> Iterable[S]:
        """Whose last token this step has brought; to be told once."""
        return self._last.pop(step, ())


class Speculative(Decodes[S]):
    """Sequences with draft tokens: a step brings each of them one token and as many drafts as were accepted.

    `rates` has the chance of each draft position, given that those before were accepted. How each will fare is drawn when
    it joins, from the seed, its own `draw` and the tokens that it has, so that neither the clock nor others have a part in it.
    """

    def __init__(self, block_size: int, window: int | None, rates: tuple[float, ...], seed: int) -> None:
        super().__init__(block_size, None)
        self._sees = window
        self.tokens_each = 1 + len(rates)
        self.drafted = 0
        self.accepted = 0
        """Draft tokens so far, and those of them that were accepted, past the end of an answer too, by steps that are over."""
        self._rates = rates
        self._seed = seed
        self._growth: defaultdict[int, int] = defaultdict(int)
        self._surplus: defaultdict[int, int] = defaultdict(int)
        self._needs: defaultdict[int, int] = defaultdict(int)
        self._window_kv: defaultdict[int, int] = defaultdict(int)
        self._window_plain: defaultdict[int, int] = defaultdict(int)
        self._window_pairs: defaultdict[int, int] = defaultdict(int)

    def _steps_left(self, sequence: S) -> int:
        sequence.pace = self._draw(sequence)
        return len(sequence.pace) - 1

    def _draw(self, sequence: S) -> list[int]:
        """Tokens out after each step, from 0 on, to the last one it is to make."""
        number = sequence.order if sequence.draw is None else sequence.draw
        draw = Random(f"{self._seed}:{number}:{sequence.base}").random
        left = sequence.output_tokens - sequence.base
        pace = [0]
        while pace[-1] < left:
            accepted = 0
            while accepted < len(self._rates) and draw() < self._rates[accepted]:
                accepted += 1
            pace.append(pace[-1] + 1 + accepted)
        sequence.surplus = pace[-1] - left
        pace[-1] = left
        return pace

    def stored(self, sequence: S, step: int) -> int:
        """See `Decodes`."""
        assert sequence.joined is not None, "it decodes"
        return sequence.target + sequence.pace[step - sequence.joined]

    def blocks(self, sequence: S, step: int) -> int:
        """See `Decodes`: drafts need their places too, whether they are accepted or not."""
        assert sequence.joined is not None, "it decodes"
        steps = step - sequence.joined
        if not steps:
            return -(-sequence.target // self._block_size)
        before = sequence.target + sequence.pace[steps - 1]
        return -(-(before + self.tokens_each) // self._block_size)

    def _note_blocks(self, sequence: S, step: int, sign: int) -> None:
        assert sequence.joined is not None, "it decodes"
        held = self.blocks(sequence, step)
        for later in range(step + 1, sequence.last_step + 1):
            now = self.blocks(sequence, later)
            self._needs[later] += sign * (now - held)
            steps = later - sequence.joined
            self._growth[later] += sign * (sequence.pace[steps] - sequence.pace[steps - 1])
            held = now
            if self._sees is not None:
                before = sequence.target + sequence.pace[steps - 1]
                self._window_plain[later] += sign * min(before + 1, self._sees)
                self._window_kv[later] += sign * (min(before, self._sees - 1) + self.tokens_each)
                self._window_pairs[later] += sign * windowed_pairs(before, self.tokens_each, self._sees)
        if step < sequence.last_step:
            self._surplus[sequence.last_step] += sign * sequence.surplus

    def needs(self, step: int) -> int:
        """See `Decodes`."""
        return self._needs[step]

    def constant(self, step: int, free: int) -> int:
        """See `Decodes`: never more than one, since every step brings another number of tokens."""
        return 1

    def take(self, step: int, steps: int) -> int:
        """See `Decodes`."""
        return self._needs[step]

    def windowed(self, step: int) -> tuple[int, int]:
        """See `Decodes`."""
        return self._window_kv[step], self._window_pairs[step]

    def plain(self, step: int) -> int:
        """See `Decodes`."""
        return self._window_plain[step]

    def advance(self, step: int, steps: int) -> None:
        """See `Decodes`."""
        batch = len(self.sequences)
        grown = self._growth.pop(step, 0)
        self.kv_tokens += grown
        self.drafted += batch * len(self._rates)
        self.accepted += grown - batch + self._surplus.pop(step, 0)
        for sums in (self._needs, self._window_kv, self._window_plain, self._window_pairs):
            sums.pop(step, None)
