"""The process of the built-in engine: `Server` until a signal or the end of its parent.

As a child process: `python -m loadstone.sim.server` reads one JSON line of options on stdin, prints one JSON line with
`port` and `pid` when it listens, and ends when stdin closes or on SIGTERM.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import sys
from collections.abc import Callable

import msgspec

from loadstone.errors import LoadstoneError, UsageError
from loadstone.sim.loop import Server
from loadstone.sim.options import SimOptions


def serve(
    options: SimOptions, announce: Callable[[int], None] | None = None, lifeline_fd: int | None = None
) -> None:
    """Serves until SIGTERM, SIGINT, or the end of `lifeline_fd`; `announce` is told the port. Main thread only.

    Raises `UsageError` when it cannot listen.
    """
    server = _server(options)
    _raise_descriptor_limit()
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    wakeup = signal.set_wakeup_fd(server.waker.fileno())
    if lifeline_fd is not None:
        server.live_with(lifeline_fd)
    gc.freeze()
    try:
        if announce:
            announce(server.port)
        server.run()
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        server.close()


def _server(options: SimOptions) -> Server:
    if not options.fault:
        return Server(options)
    from loadstone.sim.faulty import FaultyServer

    return FaultyServer(options)


def _raise_descriptor_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems have a lower limit than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> int:
    """The child process: options in, address out; the exit code."""
    try:
        serve(_read_options(), announce=_announce, lifeline_fd=sys.stdin.fileno())
    except LoadstoneError as error:
        print(error, file=sys.stderr)
        return int(error.exit)
    return 0


def _read_options() -> SimOptions:
    try:
        return msgspec.json.decode(sys.stdin.buffer.readline(), type=SimOptions)
    except msgspec.DecodeError as error:
        raise UsageError(f"options: {error}") from None


def _announce(port: int) -> None:
    print(msgspec.json.encode({"port": port, "pid": os.getpid()}).decode(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
