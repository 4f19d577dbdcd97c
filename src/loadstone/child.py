"""A child process spoken to in JSON lines: one message a line, over its stdin and stdout.

What may be secret goes this way, since arguments and environments can be read by others. A child that
sees the end of its stdin knows that its parent is gone. No call here waits without a bound.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import psutil

TELL_S = 5.0
"""A child that does not take an order within this time is killed."""
CLOSE_S = 10.0
STOPPED_S = 4.0
"""A process stopped (SIGSTOP) for so long is given up: it is told within 5 s."""
STOOD_STILL_NS = 1_000_000_000
"""Between two looks at others so far apart it was the one who looks that stood still."""


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
        os.set_blocking(self._in, False)
        self._heard = b""
        self._killed_because: str | None = None
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
        """Sends one message; a child that is gone is noticed when it is heard.

        Waits for at most `TELL_S` for room in the pipe, then kills the child.
        """
        line = memoryview(msgspec.json.encode(message) + b"\n")
        until = time.monotonic() + TELL_S
        try:
            while line:
                if not _ready(self._in, select.POLLOUT, until):
                    self.kill(f"took no order for {TELL_S:g} s, then killed")
                    return
                line = line[os.write(self._in, line) :]
        except BrokenPipeError:
            pass

    def hear(self) -> list[bytes]:
        """The lines that have come in; waits for at least one read, so call it when `fileno` is readable."""
        received = os.read(self._out, 1 << 16)
        self.ended = not received
        *lines, self._heard = (self._heard + received).split(b"\n")
        return lines

    def hear_line(self, wait_s: float) -> bytes | None:
        """Waits for the next line; None when the child ends without one or `wait_s` is over.

        For children that say one thing.
        """
        until = time.monotonic() + wait_s
        while not self.ended and _ready(self._out, select.POLLIN, until):
            lines = self.hear()
            if lines:
                return lines[0]
        return None

    def exited(self) -> bool:
        """It has exited."""
        return self._process.poll() is not None

    def failed(self) -> bool:
        """It has exited, and not because its work was done."""
        return self._process.poll() not in (None, 0)

    def stopped(self) -> bool:
        """It is stopped by a signal (SIGSTOP); one that only waits for a processor is not."""
        try:
            return self._process.poll() is None and psutil.Process(self.pid).status() == psutil.STATUS_STOPPED
        except psutil.Error:
            return False

    def cpu_s(self) -> float:
        """Processor time it has used, in seconds; 0 once it has exited."""
        try:
            used = psutil.Process(self.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(used.user + used.system)

    def death(self) -> str:
        """How it came to its end, in words, such as `killed by signal 9`.

        For a child that has `ended`: one whose stdout is closed and that still lives after a second is killed.
        """
        try:
            status = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self.kill("closed its output, then killed")
            status = self._process.wait(CLOSE_S)
        if self._killed_because:
            return self._killed_because
        return f"killed by signal {-status}" if status < 0 else f"exit status {status}"

    def kill(self, because: str | None = None) -> None:
        """Ends it at once; `because` is then what `death` says."""
        if self._process.poll() is None:
            self._killed_because = self._killed_because or because
        self._process.kill()

    def dismiss(self) -> None:
        """Closes its stdin: it has nothing more to do, and is not waited for."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass

    def close(self, wait_s: float = CLOSE_S) -> int:
        """Closes its stdin, waits up to `wait_s` for its exit, kills it when that takes longer; its exit status."""
        assert self._process.stdout is not None
        self.dismiss()
        try:
            status = self._process.wait(max(0.0, wait_s))
        except subprocess.TimeoutExpired:
            self.kill("did not end when told to, then killed")
            status = self._process.wait()  # the kernel ends what SIGKILL was sent to
        self._process.stdout.close()
        return status


class Silence:
    """For how long each of some counters has not moved, as seen by one who may himself stand still.

    After a time in which nobody looked (main was stopped, the machine suspended) everyone gets a new start.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[object, int]] = {}
        self._looked_ns = 0

    def look(self, counters: Mapping[int, object], now_ns: int) -> dict[int, float]:
        """Seconds since each of `counters` was first seen at its present value."""
        if now_ns - self._looked_ns > STOOD_STILL_NS:
            self._seen.clear()
        self._looked_ns = now_ns
        for key, value in counters.items():
            if key not in self._seen or self._seen[key][0] != value:
                self._seen[key] = value, now_ns
        return {key: (now_ns - self._seen[key][1]) / 1e9 for key in counters}


def _ready(fd: int, event: int, until: float) -> bool:
    """Waits for a descriptor until that monotonic time; whether it, or its other end's end, was seen."""
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(max(0.0, until - time.monotonic()) * 1e3))
