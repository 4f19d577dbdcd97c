"""What a fault does, as a list of steps that the server plays one after the other on its own loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Send(NamedTuple):
    """Gives bytes to the connection, in a send of their own. The next step comes when the kernel has taken them all."""

    data: bytes
    tokens: int = 0
    """Output tokens that they bring."""


class Wait(NamedTuple):
    """Lets time pass, counted from when the wait before was over: late sends do not stretch what follows."""

    ns: int


class Close(NamedTuple):
    """Closes the connection without a word (FIN). The last step."""


class Reset(NamedTuple):
    """Breaks the connection (RST). The last step."""


class Hold(NamedTuple):
    """Does nothing more; the connection stays open until the client closes it. The last step."""


class IgnoreClose(NamedTuple):
    """From now on it is nothing to the server that the client closes; it goes on."""


class Die(NamedTuple):
    """Closes the listening socket and every connection, as when the process had died. The last step."""

    back_after_ns: int | None
    """When the address is served again; None: never."""


Step = Send | Wait | Close | Reset | Hold | IgnoreClose | Die
Steps = Iterator[Step]
"""When they run out, the answer is over and the connection is free for the next request."""
