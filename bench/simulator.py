"""The built-in engine as a child process of the bench."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psutil


class Simulator(NamedTuple):
    """One that listens."""

    process: psutil.Process
    port: int

    def cpu_s(self) -> float:
        """Its CPU time so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


@contextmanager
def simulator(options: dict[str, Any], cores: Collection[int] = ()) -> Iterator[Simulator]:
    """Serves with these options of `SimOptions`, on `cores` if any are named; ended afterwards, so that its logs are whole."""
    command = [sys.executable, "-m", "loadstone.sim.server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin and child.stdout
        if cores:
            os.sched_setaffinity(child.pid, cores)
        child.stdin.write(json.dumps(options) + "\n")
        child.stdin.flush()
        try:
            yield Simulator(psutil.Process(child.pid), json.loads(child.stdout.readline())["port"])
        finally:
            child.terminate()
            child.wait()
