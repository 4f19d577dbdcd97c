"""The KV cache as blocks: how many are taken, and which of those given back still hold a beginning worth having.

One rule: a block with a key stays findable until its space is needed; the one unused for longest goes first, the end of a
sequence before its beginning. Knows keys and numbers of blocks, no tokens.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice


class KvBlocks:
    """`total` blocks, all blank at first. Whoever takes blocks has asked `free` before."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._blank = total
        """Free, and nothing worth having in them."""
        self._held: dict[int, int] = {}
        """Keys of blocks in use, and by how many sequences."""
        self._idle: OrderedDict[int, None] = OrderedDict()
        """Keys of free blocks, the one unused for longest first."""
        self.changes = 0
        """Goes up whenever what can be found, or which of it is free, may have changed."""

    @property
    def free(self) -> int:
        """Blocks that may be taken."""
        return self._blank + len(self._idle)

    @property
    def usage(self) -> float:
        """The share that is in use."""
        return 1 - self.free / self.total

    def match(self, keys: Sequence[int], most: int) -> int:
        """How many of the first `most` keys, from the first on, are there."""
        held, idle = self._held, self._idle
        count = 0
        for key in islice(keys, most):
            if key not in held and key not in idle:
                break
            count += 1
        return count

    def idle(self, keys: Sequence[int]) -> int:
        """How many of these keys are of free blocks."""
        return sum(key in self._idle for key in keys)

    def share(self, keys: Sequence[int]) -> None:
        """Takes blocks that are there."""
        self.changes += 1
        for key in keys:
            if key in self._held:
                self._held[key] += 1
            else:
                del self._idle[key]
                self._held[key] = 1

    def take(self, count: int) -> None:
        """Takes blank blocks, as many as there are, and then the longest unused ones."""
        missing = count - self._blank
        if missing <= 0:
            self._blank -= count
            return
        self._blank = 0
        self.changes += 1
        forget = self._idle.popitem
        for _ in range(missing):
            forget(last=False)

    def name(self, keys: Sequence[int]) -> int:
        """Makes blocks that one sequence has taken findable, up to the first key that another one bears already.

        Returns how many; those behind are made findable when they are given back.
        """
        self.changes += 1
        held, idle = self._held, self._idle
        for count, key in enumerate(keys):
            if key in held or key in idle:
                return count
            held[key] = 1
        return len(keys)

    def forget(self, keys: Sequence[int]) -> None:
        """Makes blocks that one sequence alone holds not findable any more: what their keys promise was not computed."""
        self.changes += 1
        for key in keys:
            del self._held[key]

    def give(self, keys: Sequence[int], named: int, blocks: int) -> None:
        """Gives back so many blocks, of which the first bear these keys, `named` of them findable all along."""
        self.changes += 1
        held, idle = self._held, self._idle
        self._blank += blocks - len(keys)
        for key in reversed(keys[named:]):
            if key in held or key in idle:
                self._blank += 1
            else:
                idle[key] = None
        for key in reversed(keys[:named]):
            if held[key] > 1:
                held[key] -= 1
            else:
                del held[key]
                idle[key] = None

    def reset(self) -> bool:
        """Forgets all that could be found; False, and nothing is done, while any block is in use (as vLLM)."""
        if self.free != self.total:
            return False
        self.changes += 1
        self._idle.clear()
        self._blank = self.total
        return True
