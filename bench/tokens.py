"""The C token server (`tokens.c`), built when needed, started, stopped, and its log read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

HERE = Path(__file__).parent
SOURCE = HERE / "tokens.c"
PROGRAM = HERE / "build" / "tokens"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Row(NamedTuple):
    """One line of the server's log; times are CLOCK_MONOTONIC ns, 0 where it never came to that."""

    request_id: str
    received_ns: int
    """The kernel's stamp of the packet that completed the request."""
    read_ns: int
    """When the server read it."""
    first_ns: int
    last_ns: int
    tokens: int
    whole: bool
    """False: the client left before the end."""
    body_hash: str
    """FNV-1a, 64 bits, of the request's body, in hexadecimal."""


def build() -> Path:
    """The server's program, compiled with gcc unless it is there and newer than its source."""
    if not PROGRAM.exists() or PROGRAM.stat().st_mtime < SOURCE.stat().st_mtime:
        PROGRAM.parent.mkdir(exist_ok=True)
        draft = PROGRAM.with_suffix(f".{os.getpid()}")
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", draft, SOURCE], check=True)
        draft.replace(PROGRAM)
    return PROGRAM


def parse(line: str) -> Row:
    """The row of one log line."""
    request_id, received, read, first, last, tokens, whole, body_hash = line.split()
    return Row(
        request_id, int(received), int(read), int(first), int(last), int(tokens), whole == "1", body_hash
    )


class TokenServer:
    """A running token server: `with TokenServer(10_000, 0, 128, log) as server: ...`.

    All running streams get a token every `step_us`, the first one at the first step `ttft_us` after
    the request; `step_us` 0 answers at once. `tokens` is the longest answer; a request may ask for less.
    """

    def __init__(self, step_us: int, ttft_us: int, tokens: int, log: Path | None) -> None:
        self._arguments = ["0", str(step_us), str(ttft_us), str(tokens)]
        self._log = log

    def __enter__(self) -> TokenServer:
        log = [str(self._log)] if self._log else []
        command = [str(build()), *self._arguments, *log]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid
        assert self._process.stdout
        self.port = int(self._process.stdout.readline().removeprefix("port "))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the server; its log is complete afterwards. Harmless when it has ended."""
        self._process.terminate()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def cpu_s(self) -> float:
        """CPU time of the running server so far, user and system, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def rows(self) -> list[Row]:
        """The log so far, in the order in which the answers ended.

        A running server writes it whenever no stream is running (a torn last line is left out); after
        `stop` it is whole.
        """
        assert self._log, "the server keeps no log; give it a path"
        lines = self._log.read_text().splitlines(keepends=True)
        return [parse(line) for line in lines if line.endswith("\n")]
