"""A child process spoken to in JSON lines: one message a line, over its stdin and stdout.

What may be secret goes this way, since arguments and environments can be read by others. A child that
sees the end of its stdin knows that its parent is gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec


class Child:
    """A running `python -m module`. Signals of the terminal do not reach it; its stderr goes to `log`."""

    def __init__(
        self, module: str, log: Path, pass_fds: Iterable[int] = (), env: Mapping[str, str] = {}
    ) -> None:
        self.module = module
        with log.open("ab") as stderr:
            # -P: a file in the working directory that is named like one of our imports must not win.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                pass_fds=tuple(pass_fds),
                start_new_session=True,
                env={**os.environ, **env},
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        self._heard = b""
        self.ended = False
        """The child has closed its stdout: it has exited, or is about to."""

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def fileno(self) -> int:
        """Readable when the child has said something."""
        return self._out

    def tell(self, message: Any) -> None:
        """Sends one message; a child that is gone is noticed when it is heard."""
        line = memoryview(msgspec.json.encode(message) + b"\n")
        try:
            while line:
                line = line[os.write(self._in, line) :]
        except BrokenPipeError:
            pass

    def hear(self) -> list[bytes]:
        """The lines that have come in; waits for at least one read."""
        received = os.read(self._out, 1 << 16)
        self.ended = not received
        *lines, self._heard = (self._heard + received).split(b"\n")
        return lines

    def hear_line(self) -> bytes | None:
        """Waits for the next line; None when the child ends without one. For children that say one thing."""
        while not self.ended:
            lines = self.hear()
            if lines:
                return lines[0]
        return None

    def failed(self) -> bool:
        """It has exited, and not because its work was done."""
        return self._process.poll() not in (None, 0)

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()

    def close(self, wait_s: float = 10.0) -> int:
        """Closes its stdin, waits for its exit, kills it when that takes too long; its exit status."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            status = self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._process.stdout.close()
        return status
