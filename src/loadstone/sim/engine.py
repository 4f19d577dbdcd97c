"""The engine: schedule, cost, postprocess, step by step, as vLLM's scheduler does it.

`begin` schedules a step and says when it will be over; `finish` hands out what it brought. The caller brings the clock,
real or virtual. One rule: a step costs the same however many sequences decode. Knows no sockets, no text, no HTTP.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, count
from typing import Generic, NamedTuple, TypeVar

from loadstone.roofline.work import StepCost, Work
from loadstone.sim.blocks import KvBlocks
from loadstone.sim.decodes import Decodes, Speculative, windowed_pairs
from loadstone.sim.sequence import Sequence
from loadstone.sim.waiting import ByPriority, Fcfs

TRIM_STEPS = 1 << 16
"""The times of so many steps are kept, and of those that somebody still needs."""
AT_ONCE_STEPS = 1024
"""Of a constant batch."""


class TooLong(Exception):
    """A sequence that this engine could never serve; the message says by how much."""


class Limits(NamedTuple):
    """What an engine takes at a time; the names are vLLM's."""

    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    blocks: int = 65_536
    block_size: int = 16
    max_model_len: int | None = None
    chunked: bool = True
    long_prefill_token_threshold: int = 0
    reserve_full_isl: bool = True
    """Nobody is taken in whose whole prompt does not fit, be its first chunk as short as it may."""
    by_priority: bool = False
    caching: bool = True
    draft_rates: tuple[float, ...] = ()
    """The chance of each draft token of speculation; empty: none."""
    draft_share: float = 0.0
    """What a draft token costs, as a share of a step in which every sequence that decodes computes one token. What drafting
    costs beside prompts is nothing."""
    prefill_only: bool = False
    """It hands its sequences on when their prompts are in, and keeps their blocks until it is told that they are there."""
    seed: int = 0


S = TypeVar("S", bound=Sequence)


class Engine(Generic[S]):
    """One engine. Between `begin` and `finish` a step is under way (`step_end_ns`).

    What the last step brought: `began` (first tokens), `ended` (last ones), `resumed` (the first after a preemption),
    `handed` (prompts that are in, where another engine goes on). The other sequences of `decoding` got their tokens too.
    """

    def __init__(self, cost: StepCost, limits: Limits) -> None:
        self.limits = limits
        self.waiting: Fcfs[S] | ByPriority[S] = ByPriority() if limits.by_priority else Fcfs()
        self.running: dict[S, None] = {}
        """All that are in the batch, in the order in which they came to it."""
        self.coming: dict[S, None] = {}
        """Those that another engine hands on to this one: they wait for their keys and values, and hold no blocks here."""
        self.blocks = KvBlocks(limits.blocks)
        self.step = 0
        """Steps that are over."""
        self.step_end_ns: int | None = None
        """When the step under way is over; None between steps."""
        self.began: list[S] = []
        self.ended: list[S] = []
        self.resumed: list[S] = []
        self.handed: list[S] = []
        self.preemptions = 0
        self.prefix_queries = 0
        """Tokens of prompts that were looked for in the prefix cache."""
        self.prefix_hits = 0
        """Those that were found."""
        self.external_queries = 0
        """Tokens of prompts whose keys and values were looked for at another engine."""
        self.external_hits = 0
        """Those that came from there."""
        self.last_work = Work()
        """What the step under way, or the last one, does."""
        self._cost = cost
        self._decodes: Decodes[S] = (
            Speculative(limits.block_size, cost.window, limits.draft_rates, limits.seed)
            if limits.draft_rates
            else Decodes(limits.block_size, cost.window)
        )
        self._prefilling: dict[S, None] = {}
        self._lent: dict[S, int] = {}
        """Tokens of sequences that were handed on and are read here still."""
        self._looked: tuple[S, int, int, int] | None = None
        """The next in line that did not fit: when it was looked for in the cache, blocks found, and those of them that are
        free. It is looked for step by step, and mostly nothing has changed."""
        self._chunks: list[tuple[S, int]] = []
        self._fickle = False
        """The next in line does not fit now but may in a step without a change: when less of it is found, its first chunk
        reaches less far."""
        self._steps = 0
        """Steps under way, taken as one."""
        self._ends = array("q")
        self._first_end = 1
        """The step whose end is the first of `_ends`."""
        self._trim_at = TRIM_STEPS
        self._orders = count(1)
        self._places = count(1)

    @property
    def decoding(self) -> dict[S, None]:
        """The sequences whose prompts are in."""
        return self._decodes.sequences

    @property
    def drafts(self) -> tuple[int, int]:
        """Draft tokens of all steps that are over, and those of them that were accepted, past the end of an answer too."""
        found = self._decodes
        return (found.drafted, found.accepted) if isinstance(found, Speculative) else (0, 0)

    def token_ns(self, sequence: S, now_ns: int) -> int | None:
        """When the last token of a sequence came, of those that had come by now; None: none had."""
        if sequence.joined is not None and self._ends[sequence.joined - self._first_end] <= now_ns:
            return self._ends[bisect_right(self._ends, now_ns, sequence.joined - self._first_end) - 1]
        times = sequence.times()
        come = bisect_right(times, now_ns)
        return times[come - 1] if come else None

    @property
    def busy(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.running or self.waiting)

    @property
    def queued(self) -> int:
        """Requests that are here, or on their way from another engine, and in no batch."""
        return len(self.waiting) + len(self.coming)

    # ---- coming and going ---------------------------------------------------------------------------------

    def check(self, sequence: Sequence) -> None:
        """Raises `TooLong` for a sequence that could never be served. Who only takes prompts in needs no room for answers."""
        limits = self.limits
        tokens = sequence.prompt_tokens + (1 if limits.prefill_only else sequence.output_tokens)
        drafts = 0 if limits.prefill_only else len(limits.draft_rates)
        if limits.max_model_len is not None and tokens > limits.max_model_len:
            raise TooLong(f"{tokens} tokens, and max_model_len is {limits.max_model_len}")
        if -(-(tokens + drafts) // limits.block_size) > limits.blocks:
            raise TooLong(
                f"{tokens} tokens, and the KV cache holds {limits.blocks * limits.block_size - drafts}"
            )
        if not limits.chunked and tokens > limits.max_num_batched_tokens:
            raise TooLong(
                f"{tokens} tokens, and without chunked prefill a step takes {limits.max_num_batched_tokens}"
            )

    def add(self, sequence: S) -> None:
        """Queues a request. Raises `TooLong`."""
        self.check(sequence)
        if not self.limits.caching:
            sequence.keys = ()
        sequence.order = sequence.order or next(self._orders)
        self.waiting.add(sequence)

    def drop(self, sequence: S) -> None:
        """Forgets a request whose client has left; a step under way costs what it costs."""
        if sequence in self.waiting:
            self.waiting.remove(sequence)
        elif sequence in self.running:
            self._settle()
            if self.step_end_ns is not None and sequence in self._prefilling:
                # The step computes it all the same, and others of the step may share its blocks.
                sequence.computed += sum(chunk for one, chunk in self._chunks if one is sequence)
            self._leave(sequence, self._steps)

    def _settle(self) -> None:
        """Of several steps taken as one all but the last are over."""
        if self._steps > 1:
            self._decodes.advance(self.step + self._steps - 1, self._steps - 1)
            self.step += self._steps - 1
            self._steps = 1

    def _leave(self, sequence: S, ahead: int = 0) -> None:
        """Takes a running sequence out of the batch; blocks have been taken for `ahead` more steps than are over."""
        del self.running[sequence]
        if sequence in self._prefilling:
            del self._prefilling[sequence]
            stored, blocks = sequence.computed, sequence.blocks
        else:
            joined = sequence.joined
            assert joined is not None, "what runs and is not prefilled decodes"
            blocks = self._decodes.blocks(sequence, min(self.step + ahead, sequence.last_step))
            stored = self._decodes.leave(sequence, self.step)
            first = joined - self._first_end
            sequence.note_times(self._ends[first : self.step + 1 - self._first_end])
            sequence.base = sequence.produced(self.step)
            sequence.joined = None
        full = stored // self.limits.block_size
        if sequence.named > full:  # it gives way in the step that was to compute them
            self.blocks.forget(sequence.keys[full : sequence.named])
            sequence.named = full
        self.blocks.give(sequence.keys[:full], sequence.named, blocks)
        sequence.blocks = sequence.named = 0

    # ---- a step begins ------------------------------------------------------------------------------------

    def begin(self, at_ns: int, until_ns: int | None = None) -> int | None:
        """Starts a step at `at_ns` and returns when it will be over; None when nothing can be done.

        With `until_ns` several steps may be taken as one: of a constant batch, and the last begins before that moment.
        """
        if not self.running and not self.waiting:
            return None
        preempted = self._schedule_all(at_ns)
        while not self._chunks and not self._decodes.sequences:
            if not preempted:  # what is lent is in the way
                return None
            preempted = self._schedule_all(at_ns)
        self._sum_up()
        ends = self._ends
        if len(ends) >= self._trim_at:
            self._trim()
        most = 1
        if until_ns is not None and not (self._chunks or preempted or self._fickle):
            most = self._decodes.constant(self.step, self.blocks.free)
        self._steps = 1
        duration_ns = self._duration_ns()
        end_ns = at_ns + duration_ns
        ends.append(end_ns)
        if most > 1 and until_ns is not None and end_ns < until_ns:
            # Contexts only grow, so no further step is shorter than this one.
            fit = 1 + (until_ns - end_ns) // duration_ns
            end_ns = self._go_on(end_ns, until_ns, min(most - 1, fit))
        self.step_end_ns = end_ns
        return end_ns

    def _schedule_all(self, at_ns: int) -> bool:
        """Chooses what the next step does; whether somebody had to give way."""
        preempted = False
        if (needed := self._decodes.needs(self.step + 1)) > self.blocks.free:
            preempted, needed = True, self._make_room()
        self.blocks.take(needed)
        self._chunks = []
        self._fickle = False
        if self._prefilling and self._continue():
            preempted = True
        if self.waiting and not preempted:
            self._admit(self._budget(), at_ns)
        return preempted

    def _make_room(self) -> int:
        """Has sequences give way until there are blocks for those that decode; how many these need."""
        while (needed := self._decodes.needs(self.step + 1)) > self.blocks.free:
            self._preempt(0)
        return needed

    def _preempt(self, ahead: int) -> S:
        """Puts the last of the batch back to the line; it will be computed again, as far as it is not found."""
        running = self.running
        sequence = (
            max(running, key=lambda one: (one.priority, one.order))
            if self.limits.by_priority
            else next(reversed(running))
        )
        self._leave(sequence, ahead)
        sequence.target = sequence.prompt_tokens + sequence.base
        sequence.computed = 0
        sequence.remote = False
        sequence.preemptions += 1
        self.preemptions += 1
        self.waiting.put_back(sequence)
        return sequence

    def _budget(self) -> int:
        """The tokens that are left of the step."""
        decodes = self._decodes
        left = self.limits.max_num_batched_tokens - len(decodes.sequences) * decodes.tokens_each
        for _, chunk in self._chunks:
            left -= chunk
        return left

    def _continue(self) -> bool:
        """Schedules prompts that are partly in; whether somebody had to give way."""
        preempted = False
        budget = self._budget()
        for sequence in list(self._prefilling):
            if sequence not in self._prefilling:  # it gave way to one before it
                continue
            if budget <= 0:
                break
            chunk = self._chunk(sequence.target - sequence.computed, budget)
            while (missing := self._missing(sequence, sequence.computed + chunk)) > self.blocks.free:
                preempted = True
                gone = self._preempt(1)
                self._chunks = [entry for entry in self._chunks if entry[0] is not gone]
                budget = self._budget()
                if gone is sequence:
                    break
            else:
                self._schedule(sequence, chunk, missing)
                budget -= chunk
        return preempted

    def _chunk(self, left: int, budget: int) -> int:
        threshold = self.limits.long_prefill_token_threshold
        return min(left, budget, threshold) if threshold else min(left, budget)

    def _missing(self, sequence: S, tokens: int) -> int:
        """Blocks that a sequence lacks to have so many tokens in the KV cache."""
        return -(-tokens // self.limits.block_size) - sequence.blocks

    def _schedule(self, sequence: S, chunk: int, blocks: int) -> None:
        """Has so many tokens of a prompt computed by the step about to begin."""
        size = self.limits.block_size
        self.blocks.take(blocks)
        sequence.blocks += blocks
        named = sequence.named
        if sequence.keys and named == sequence.computed // size:
            sequence.named += self.blocks.name(sequence.keys[named : (sequence.computed + chunk) // size])
        self._chunks.append((sequence, chunk))

    def _admit(self, budget: int, at_ns: int) -> None:
        """Takes in who waits, as long as there is room for one more, tokens for it, and blocks."""
        limits, blocks, waiting, running = self.limits, self.blocks, self.waiting, self.running
        size = limits.block_size
        while waiting and len(running) < limits.max_num_seqs and budget > 0:
            sequence = waiting.first()
            hit, unused = self._found(sequence)
            computed = sequence.target - 1 if sequence.remote else hit * size
            left = sequence.target - computed
            if not limits.chunked and left > budget:
                self._looked = sequence, blocks.changes, hit, unused
                break
            chunk = self._chunk(left, budget)
            missing = -(-(computed + chunk) // size) - hit
            reserved = -(-sequence.target // size) - hit if limits.reserve_full_isl else missing
            if reserved > blocks.free - unused:
                self._fickle = hit > 0 and not limits.reserve_full_isl
                self._looked = sequence, blocks.changes, hit, unused
                break
            waiting.remove(sequence)
            running[sequence] = None
            self._prefilling[sequence] = None
            sequence.place = next(self._places)
            if hit:
                blocks.share(sequence.keys[:hit])
            self._count_hits(sequence, hit, at_ns)
            sequence.blocks = sequence.named = hit
            sequence.computed = computed
            self._schedule(sequence, chunk, missing)
            budget -= chunk

    def _found(self, sequence: S) -> tuple[int, int]:
        """Leading blocks of a sequence that are in the prefix cache, and those of them that are free.

        Its last token is always computed.
        """
        keys, blocks = sequence.keys, self.blocks
        if not keys or sequence.remote:
            return 0, 0
        if (looked := self._looked) is not None:
            self._looked = None
            who, when, hit, unused = looked
            if who is sequence and when == blocks.changes:
                return hit, unused
        hit = blocks.match(keys, (sequence.target - 1) // self.limits.block_size)
        return hit, blocks.idle(keys[:hit]) if hit else 0

    def _count_hits(self, sequence: S, hit: int, at_ns: int) -> None:
        if not sequence.preemptions:
            if sequence.remote:
                self.external_queries += sequence.target
                self.external_hits += sequence.target
            elif self.limits.caching:
                self.prefix_queries += sequence.target
                self.prefix_hits += hit * self.limits.block_size
        if sequence.scheduled_ns is None:
            sequence.scheduled_ns = at_ns
            sequence.cached_tokens = hit * self.limits.block_size

    # ---- its cost -----------------------------------------------------------------------------------------

    def _sum_up(self) -> None:
        """What the step does, as sums."""
        work, decodes = self.last_work, self._decodes
        batch = len(decodes.sequences)
        each = decodes.tokens_each
        work.sequences = batch
        work.prefill_tokens = work.prefill_kv_tokens = work.prefill_pairs = 0
        work.new_tokens = batch * each
        work.kv_tokens = decodes.kv_tokens + batch * each
        work.pairs = work.kv_tokens * each - batch * (each * (each - 1) // 2)
        window = self._cost.window
        if window is None:
            for sequence, chunk in self._chunks:
                self._add_chunk(sequence.computed, chunk)
            work.window_kv_tokens, work.window_pairs = work.kv_tokens, work.pairs
            return
        work.window_kv_tokens, work.window_pairs = decodes.windowed(self.step + 1)
        for sequence, chunk in self._chunks:
            self._add_chunk(sequence.computed, chunk)
            work.window_kv_tokens += min(sequence.computed, window - 1) + chunk
            work.window_pairs += windowed_pairs(sequence.computed, chunk, window)

    def _add_chunk(self, computed: int, chunk: int) -> None:
        work = self.last_work
        pairs = chunk * computed + chunk * (chunk + 1) // 2
        work.sequences += 1
        work.prefill_tokens += chunk
        work.new_tokens += chunk
        work.kv_tokens += computed + chunk
        work.pairs += pairs
        work.prefill_kv_tokens += computed + chunk
        work.prefill_pairs += pairs

    def _duration_ns(self) -> int:
        duration_ns = self._cost.step_ns(self.last_work)
        if self._decodes.tokens_each == 1 or not self.decoding:
            return duration_ns
        batch = len(self.decoding)
        plain = Work()
        plain.new_tokens = plain.sequences = batch
        plain.kv_tokens = plain.pairs = self._decodes.kv_tokens + batch
        plain.window_kv_tokens = plain.window_pairs = (
            plain.kv_tokens if self._cost.window is None else self._decodes.plain(self.step + 1)
        )
        drafts = len(self.limits.draft_rates) * self.limits.draft_share
        return duration_ns + int(drafts * self._cost.step_ns(plain))

    def _go_on(self, end_ns: int, until_ns: int, most: int) -> int:
        """Takes up to `most` further steps of the same batch with the one that ends at `end_ns`; when the last is over.

        Each begins before `until_ns`.
        """
        batch, growing = len(self.decoding), self._decodes.growing
        work, ends = self.last_work, self._ends
        taken = 0
        while taken < most and end_ns < until_ns:
            _grow(work, 1, batch, growing)
            durations = self._cost.steps_ns(work, min(most - taken, AT_ONCE_STEPS), batch, growing)
            later = list(accumulate(durations, initial=end_ns))
            more = bisect_left(
                later, until_ns, 1, len(later) - 1
            )  # the first that ends no sooner, or the last
            ends.extend(later[1 : more + 1])
            end_ns = later[more]
            taken += more
            _grow(work, more - 1, batch, growing)
        self.blocks.take(self._decodes.take(self.step + 2, taken))
        self._steps += taken
        return end_ns

    # ---- a step ends --------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Ends the step under way and hands out what it brought."""
        self.began, self.ended, self.resumed, self.handed = [], [], [], []
        steps, self._steps = self._steps, 0
        self.step += steps
        self.step_end_ns = None
        self._decodes.advance(self.step, steps)
        for sequence in self._decodes.ending(self.step):
            self._leave(sequence)
            self.ended.append(sequence)
        for sequence, chunk in self._chunks:
            if sequence in self._prefilling:  # else its client has left
                sequence.computed += chunk
                if sequence.computed == sequence.target:
                    self._take_in(sequence)

    def _take_in(self, sequence: S) -> None:
        """A prompt is in, and its next token is out; or it goes to another engine with what was computed."""
        if self.limits.prefill_only:
            del self._prefilling[sequence], self.running[sequence]
            self._lent[sequence] = sequence.target
            self.handed.append(sequence)
            return
        del self._prefilling[sequence]
        (self.resumed if sequence.base else self.began).append(sequence)
        sequence.base += 1
        if sequence.base < sequence.output_tokens:
            self._decodes.join(sequence, self.step)
            return
        del self.running[sequence]
        sequence.note_times(self._ends[-1:])
        self._give_all(sequence, sequence.target)
        self.ended.append(sequence)

    def take_back(self, sequence: S) -> None:
        """Who was handed on has been read: its blocks are free."""
        self._give_all(sequence, self._lent.pop(sequence))

    def _give_all(self, sequence: S, stored: int) -> None:
        """Gives back the blocks of a prompt of which so many tokens were computed."""
        full = stored // self.limits.block_size
        self.blocks.give(sequence.keys[:full], sequence.named, sequence.blocks)
        sequence.blocks = sequence.named = 0

    def _trim(self) -> None:
        """Forgets the times that nobody needs any more; not again before they are twice as many as are left."""
        first = min((one.joined for one in self.decoding if one.joined is not None), default=self.step + 1)
        gone = first - self._first_end
        if gone > 0:
            del self._ends[:gone]
            self._first_end = first
        self._trim_at = max(TRIM_STEPS, 2 * len(self._ends))


def _grow(work: Work, steps: int, batch: int, growing: int) -> None:
    """The sums of a step of the same batch so many steps later."""
    work.kv_tokens += steps * batch
    work.pairs += steps * batch
    work.window_kv_tokens += steps * growing
    work.window_pairs += steps * growing
