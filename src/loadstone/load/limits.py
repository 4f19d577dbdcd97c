"""Time limits of one length: they end in the order in which they began, so the first is always the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

LINGER_NS = 1_000_000_000
"""How long after the end mark of a stream the end of the HTTP message is awaited."""

T = TypeVar("T", bound=Hashable)


class Limit(Generic[T]):
    """Things that have `span_ns` from their start. Everything but `expired` costs the same however many there are."""

    def __init__(self, span_ns: int) -> None:
        self.span_ns = span_ns
        self._until: OrderedDict[T, int] = OrderedDict()

    def start(self, thing: T, now: int) -> None:
        """Gives `thing` the full span from `now` on."""
        self._until.pop(thing, None)
        self._until[thing] = now + self.span_ns

    def stop(self, thing: T) -> None:
        """Takes the limit off `thing`, if it has one."""
        self._until.pop(thing, None)

    @property
    def next_ns(self) -> int | None:
        """When the first of them is up; None when there is none."""
        return next(iter(self._until.values()), None)

    def expired(self, now: int) -> Iterator[T]:
        """Those whose time is up, each taken off as it is given."""
        while self._until and next(iter(self._until.values())) <= now:
            yield self._until.popitem(last=False)[0]

    def __len__(self) -> int:
        return len(self._until)

    def __contains__(self, thing: object) -> bool:
        return thing in self._until

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._until))
