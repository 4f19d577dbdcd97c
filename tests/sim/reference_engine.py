"""An engine that shares nothing with the real one: sequence by sequence, block by block, token by token, as slow as it is plain.

The order is that of vLLM's V1 scheduler: who runs goes on, who waits comes in while nobody had to give way, all within one
token budget; the last of the batch (by priority: the least urgent) gives way, and comes back before all who wait, to be
computed again. Where the real engine differs by its design this one follows it:

- sequences that decode go before prompts that are partly in, whatever their places in the batch, and end before them;
- whoever has to give way for decodes does so before any of them takes a block, so that its blocks serve them;
- blank blocks are taken before those that still hold something;
- while a key is borne by one block, no other one bears it: a copy gets it when it is given back, if it is free by then;
  blocks behind such a copy, and all that fill up while it decodes, get theirs then too;
- a prompt whose client leaves in mid-step is computed by that step all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass(eq=False)
class Block:
    key: int | None = None
    users: int = 0


class Pool:
    def __init__(self, total: int) -> None:
        self.blocks = [Block() for _ in range(total)]
        self.lru: list[Block] = []
        """Free blocks that hold something, the one unused for longest first."""

    def free(self) -> int:
        return sum(not block.users for block in self.blocks)

    def find(self, key: int) -> Block | None:
        return next((block for block in self.blocks if block.key == key), None)

    def share(self, block: Block) -> None:
        if not block.users:
            self.lru.remove(block)
        block.users += 1

    def take(self) -> Block:
        blank = [block for block in self.blocks if not block.users and block.key is None]
        block = blank[0] if blank else self.lru.pop(0)
        block.key, block.users = None, 1
        return block

    def give(self, block: Block, key: int | None) -> None:
        """`key`: what it holds, if it bears no key yet."""
        block.users -= 1
        if block.users:
            return
        if block.key is None and key is not None and self.find(key) is None:
            block.key = key
        if block.key is not None:
            self.lru.append(block)


@dataclass(eq=False)
class Job:
    prompt: int
    output: int
    keys: tuple[int, ...] = ()
    priority: int = 0
    order: int = 0
    out: int = 0
    """Tokens that have come out."""
    stored: int = 0
    """Tokens in the KV cache."""
    target: int = 0
    """Tokens to take in before the next one comes out."""
    table: list[Block] = field(default_factory=list)
    named: int = 0
    times: list[int] = field(default_factory=list)
    cached: int | None = None
    preemptions: int = 0
    draw: int | None = None
    draws: Random | None = None


@dataclass
class Rules:
    """The real engine's `Limits`, by its own names."""

    seqs: int
    budget: int
    blocks: int
    size: int
    threshold: int = 0
    chunked: bool = True
    reserves: bool = True
    by_priority: bool = False
    rates: tuple[float, ...] = ()
    share: float = 0.0
    seed: int = 0
    window: int | None = None
    prefill_only: bool = False


class ReferenceEngine:
    """`cost` turns the sums of a step into its duration."""

    def __init__(self, cost, rules: Rules) -> None:
        self.cost, self.rules = cost, rules
        self.pool = Pool(rules.blocks)
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.decoding: list[Job] = []
        self.chunks: dict[Job, int] = {}
        self.computing: list[Job] = []
        """Who decodes in the step under way."""
        self.end_ns: int | None = None
        self.work: dict[str, int] = {}
        self.handed: list[Job] = []
        self.queries = self.hits = self.orders = 0
        self.drafted = self.accepted = 0

    def add(self, job: Job) -> None:
        self.orders += 1
        job.order, job.target = self.orders, job.prompt
        self.waiting.append(job)

    def drop(self, job: Job) -> None:
        if job in self.waiting:
            self.waiting.remove(job)
        elif job in self.running:
            job.stored += self.chunks.get(job, 0) if self.end_ns is not None else 0
            self.leave(job)

    def leave(self, job: Job) -> None:
        full = job.stored // self.rules.size
        for place in reversed(range(len(job.table))):
            block = job.table[place]
            if place >= full:
                block.key = None
            self.pool.give(block, job.keys[place] if place < min(full, len(job.keys)) else None)
        job.table, job.stored, job.named = [], 0, 0
        self.running.remove(job)
        self.chunks.pop(job, None)
        for those in (self.decoding, self.computing):
            if job in those:
                those.remove(job)

    def preempt(self) -> Job:
        urgency = (lambda job: (job.priority, job.order)) if self.rules.by_priority else self.running.index
        job = max(self.running, key=urgency)
        self.leave(job)
        job.target = job.prompt + job.out
        job.preemptions += 1
        self.waiting.insert(0, job)
        return job

    def lacks(self, job: Job, tokens: int) -> int:
        lacking = 0
        while (len(job.table) + lacking) * self.rules.size < tokens:
            lacking += 1
        return lacking

    def take(self, job: Job, tokens: int) -> None:
        while len(job.table) * self.rules.size < tokens:
            job.table.append(self.pool.take())

    def left(self) -> int:
        each = 1 + len(self.rules.rates)
        return self.rules.budget - each * len(self.decoding) - sum(self.chunks.values())

    # ---- a step -------------------------------------------------------------------------------------------

    def begin(self, at_ns: int, until_ns: int | None = None) -> int | None:
        if not self.running and not self.waiting:
            return None
        while self.schedule():
            if self.decoding or self.chunks:
                break
        if not self.decoding and not self.chunks:
            return None
        self.computing = list(self.decoding)
        self.work = self.sums(1 + len(self.rules.rates))
        self.end_ns = at_ns + self.cost(self.work) + self.drafting_ns()
        return self.end_ns

    def drafting_ns(self) -> int:
        """What the drafts of all that decode take: a share each of a step in which they compute one token each."""
        if not self.rules.rates or not self.computing:
            return 0
        chunks, self.chunks = self.chunks, {}
        plain = self.cost(self.sums(1))
        self.chunks = chunks
        return int(len(self.rules.rates) * self.rules.share * plain)

    def schedule(self) -> bool:
        """Chooses what the next step does; whether somebody had to give way."""
        each = 1 + len(self.rules.rates)
        self.chunks, preempted = {}, False
        while sum(self.lacks(job, job.stored + each) for job in self.decoding) > self.pool.free():
            self.preempt()
            preempted = True
        for job in self.decoding:
            self.take(job, job.stored + each)
        for job in [job for job in self.running if job not in self.decoding]:
            if job not in self.running:
                continue
            chunk = self.chunk(job.target - job.stored)
            if chunk <= 0:
                break
            while job in self.running and self.lacks(job, job.stored + chunk) > self.pool.free():
                self.preempt()
                preempted = True
            if job in self.running:
                self.compute(job, chunk)
        if not preempted:
            while self.waiting and len(self.running) < self.rules.seqs and self.left() > 0:
                if not self.admit():
                    break
        return preempted

    def chunk(self, left: int) -> int:
        return min([left, self.left(), *([self.rules.threshold] if self.rules.threshold else [])])

    def compute(self, job: Job, chunk: int) -> None:
        size = self.rules.size
        self.take(job, job.stored + chunk)
        self.chunks[job] = chunk
        if job.named < job.stored // size:
            return  # there is a copy of another one's before these
        for place in range(job.named, min(len(job.keys), (job.stored + chunk) // size)):
            if self.pool.find(job.keys[place]) is not None:
                break
            job.table[place].key = job.keys[place]
            job.named += 1

    def admit(self) -> bool:
        job = self.waiting[0]
        if self.rules.by_priority:
            job = min(self.waiting, key=lambda job: (job.priority, job.order))
        found = []
        for key in job.keys[: (job.target - 1) // self.rules.size]:
            if (block := self.pool.find(key)) is None:
                break
            found.append(block)
        cached = len(found) * self.rules.size
        if not self.rules.chunked and job.target - cached > self.left():
            return False
        chunk = self.chunk(job.target - cached)
        unused = sum(not block.users for block in found)
        new = -(-(cached + chunk) // self.rules.size) - len(found)
        whole = -(-job.target // self.rules.size) - len(found) if self.rules.reserves else new
        if whole > self.pool.free() - unused:
            return False
        self.waiting.remove(job)
        self.running.append(job)
        for block in found:
            self.pool.share(block)
        job.table, job.named, job.stored = found, len(found), cached
        if not job.preemptions:
            self.queries += job.target
            self.hits += cached
        if job.cached is None:
            job.cached = cached
        self.compute(job, chunk)
        return True

    def sums(self, each: int) -> dict[str, int]:
        """What the step does, of so many tokens each that decodes."""
        tokens = [(job.stored, each) for job in self.computing]
        tokens += [(job.stored, chunk) for job, chunk in self.chunks.items()]
        window = self.rules.window or 10**9
        pairs = window_pairs = window_kv = 0
        for stored, new in tokens:
            seen: set[int] = set()
            for at in range(stored, stored + new):
                visible = range(max(0, at + 1 - window), at + 1)
                pairs += at + 1
                window_pairs += len(visible)
                seen.update(visible)
            window_kv += len(seen)
        return {
            "new_tokens": sum(new for _, new in tokens),
            "prefill_tokens": sum(self.chunks.values()),
            "sequences": len(tokens),
            "kv_tokens": sum(stored + new for stored, new in tokens),
            "pairs": pairs,
            "window_kv_tokens": window_kv,
            "window_pairs": window_pairs,
        }

    def finish(self) -> None:
        end_ns, self.end_ns = self.end_ns, None
        self.handed = []
        chunks = self.chunks
        for job in list(self.computing):
            accepted = self.accept(job)
            self.drafted += len(self.rules.rates)
            self.accepted += accepted
            for _ in range(min(1 + accepted, job.output - job.out)):
                job.stored += 1
                job.out += 1
                job.times.append(end_ns)
            if job.out == job.output:
                self.leave(job)
        for job, chunk in list(chunks.items()):
            job.stored += chunk
            if job.stored == job.target and self.rules.prefill_only:
                self.running.remove(job)
                self.handed.append(job)
            elif job.stored == job.target:
                job.out += 1
                job.times.append(end_ns)
                number = job.order if job.draw is None else job.draw
                job.draws = Random(f"{self.rules.seed}:{number}:{job.out}")
                if job.out == job.output:
                    self.leave(job)
                else:
                    self.decoding.append(job)
        self.chunks = {}

    def take_back(self, job: Job) -> None:
        """It has been read where it was handed to."""
        self.running.append(job)
        self.leave(job)

    def accept(self, job: Job) -> int:
        count = 0
        for rate in self.rules.rates:
            if job.draws.random() >= rate:
                break
            count += 1
        return count
