"""Runs `loadstone profile`, or another program, as a user would, and takes the measure of its whole process tree."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import msgspec
import polars as pl
import psutil

from bench.tokens import Row

BELIEVABLE = (0, 5)
"""Exit codes of a run that was done; 5: the certificate says the machine was too busy, the bench judges itself."""
SAMPLE_S = 0.2
PR_SET_CHILD_SUBREAPER = 36


class _Session(msgspec.Struct):
    payloads: list[msgspec.Raw]


class _Inputs(msgspec.Struct):
    """`inputs.json`; the bodies stay the bytes they are."""

    data: list[_Session]


class Sample(NamedTuple):
    """Memory of the tree at one moment: proportional set size, so that shared pages count once."""

    at_ns: int
    pss_bytes: int


class Run(NamedTuple):
    """One run of the client, over."""

    folder: Path
    cpu_s: float
    """User and system time of all its processes."""
    host_cpu_s: float
    """CPU time of the whole machine meanwhile: ours, the server's, and that of others."""
    begun_ns: int
    ended_ns: int
    samples: Sequence[Sample]

    def others_cores(self, server_cpu_s: float) -> float:
        """How many cores were busy with work that is not the bench's, on average."""
        return (self.host_cpu_s - self.cpu_s - server_cpu_s) / ((self.ended_ns - self.begun_ns) / 1e9)

    def requests(self) -> pl.DataFrame:
        """The measured requests, in the order of the plan."""
        table = pl.read_parquet(self.folder / "requests.parquet")
        return table.filter(pl.col("phase") == "measured").sort("request")

    def report(self) -> Any:
        """The decoded `report.json`."""
        return msgspec.json.decode((self.folder / "report.json").read_bytes())

    def bodies(self) -> list[bytes]:
        """The request bodies of the plan, in its order."""
        inputs = msgspec.json.decode((self.folder / "inputs.json").read_bytes(), type=_Inputs)
        return [bytes(payload) for session in inputs.data for payload in session.payloads]

    def with_log(self, rows: Sequence[Row]) -> pl.DataFrame:
        """The measured requests joined with the server's log by X-Request-ID; its columns begin with `server_`."""
        log = pl.DataFrame(
            {
                f"server_{name}": [getattr(row, name) for row in rows]
                for name in Row._fields
                if name != "request_id"
            }
        ).with_columns(request_id=pl.Series([row.request_id for row in rows], dtype=pl.String))
        return self.requests().join(log, on="request_id", how="inner", validate="1:1")


class BenchFailed(Exception):
    """A run did not get far enough to be measured."""


def profile(folder: Path, port: int, *arguments: str, memory: bool = False, model: str = "tokens") -> Run:
    """Runs `loadstone profile` against a server of this machine; `memory` samples its size. Raises `BenchFailed`."""
    command = [
        sys.executable, "-m", "loadstone", "profile", "--url", f"127.0.0.1:{port}", "--model", model,
        "--endpoint-type", "chat", "--streaming", "--artifact-dir", str(folder), "--ui", "none", *arguments,
    ]  # fmt: skip
    return spend(command, folder, memory=memory)


def spend(
    command: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
    allowed: Collection[int] = BELIEVABLE,
    memory: bool = False,
) -> Run:
    """Runs a command that writes into `folder` to its end, and takes the measure of its tree. Raises `BenchFailed`."""
    _adopt_orphans()
    strangers = _children()
    begun_ns, host_s = time.monotonic_ns(), _host_cpu_s()
    with folder.with_suffix(".out").open("w+") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env={**_environment(), **(environment or {})}
        )
        with _Sampler(process.pid, memory) as sampler:
            _, status, usage = os.wait4(process.pid, 0)
        ended_ns, host_s = time.monotonic_ns(), _host_cpu_s() - host_s
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if process.returncode not in allowed:
            raise BenchFailed(f"{' '.join(command)}\nended with {process.returncode}:\n{out.read()}")
    orphans = _children() - strangers
    if orphans:
        raise BenchFailed(f"{len(orphans)} processes outlived their parent; their CPU would not be counted")
    return Run(folder, usage.ru_utime + usage.ru_stime, host_s, begun_ns, ended_ns, sampler.samples)


def _host_cpu_s() -> float:
    times = psutil.cpu_times()
    return float(sum(times) - times.guest - times.guest_nice - times.idle - times.iowait)


def _environment() -> dict[str, str]:
    """Ours, with bytecode allowed: a client without it is not what anyone runs twice."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _adopt_orphans() -> None:
    """Has processes that lose their parent become ours, so that none escapes the count (prctl, Linux)."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


class _Sampler:
    """Adds up the PSS of a process and all below it, five times a second, in a thread of its own."""

    def __init__(self, pid: int, on: bool) -> None:
        self.samples: list[Sample] = []
        self._tree = psutil.Process(pid)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True) if on else None

    def __enter__(self) -> _Sampler:
        if self._thread:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread:
            self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(SAMPLE_S):
            try:
                pids = [self._tree.pid, *(child.pid for child in self._tree.children(recursive=True))]
            except psutil.NoSuchProcess:
                return
            self.samples.append(Sample(time.monotonic_ns(), sum(map(pss_bytes, pids))))


def pss_bytes(pid: int) -> int:
    """Proportional set size of one process; 0 when it is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    lines = (line.split() for line in text.splitlines())
    return next((int(words[1]) * 1024 for words in lines if words[0] == "Pss:"), 0)
