"""Waiting for descriptors: epoll where there is one, and the same four calls on `selectors` elsewhere."""

from __future__ import annotations

import select
import selectors
from typing import Protocol

READ = 1
WRITE = 4
"""The values of EPOLLIN and EPOLLOUT; errors and hang-ups are reported as READ or by epoll's own bits."""


class Poller(Protocol):
    """The part of `select.epoll` that the load path uses."""

    def register(self, fd: int, mask: int, /) -> None:
        """Starts to watch a descriptor."""

    def modify(self, fd: int, mask: int, /) -> None:
        """Changes what it is watched for."""

    def unregister(self, fd: int, /) -> None:
        """Stops watching it."""

    def poll(self, timeout_s: float, maxevents: int, /) -> list[tuple[int, int]]:
        """The descriptors that are ready, with what for."""


class Selectors:
    """`selectors.DefaultSelector` behind epoll's calls, for systems without epoll and for the tests."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, mask: int, /) -> None:
        """Starts to watch a descriptor."""
        self._selector.register(fd, _events(mask))

    def modify(self, fd: int, mask: int, /) -> None:
        """Changes what it is watched for."""
        self._selector.modify(fd, _events(mask))

    def unregister(self, fd: int, /) -> None:
        """Stops watching it."""
        self._selector.unregister(fd)

    def poll(self, timeout_s: float, maxevents: int, /) -> list[tuple[int, int]]:
        """The descriptors that are ready, with what for; `maxevents` bounds one call as in epoll."""
        ready = self._selector.select(timeout_s)[:maxevents]
        return [(key.fd, _mask(events)) for key, events in ready]


def _events(mask: int) -> int:
    return (selectors.EVENT_READ if mask & READ else 0) | (selectors.EVENT_WRITE if mask & WRITE else 0)


def _mask(events: int) -> int:
    return (READ if events & selectors.EVENT_READ else 0) | (WRITE if events & selectors.EVENT_WRITE else 0)


def poller(portable: bool = False) -> Poller:
    """The best one here; `portable` asks for the fallback."""
    if portable or not hasattr(select, "epoll"):
        return Selectors()
    epoll: Poller = select.epoll()
    return epoll
