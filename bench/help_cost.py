"""What `--help` costs, and that it is made without numpy and polars."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.ground import Ground
from bench.table import Item

REPEATS = 5
HEAVY = ("numpy", "polars")


def measure(ground: Ground) -> list[Item]:
    """The first repeat also writes the bytecode that a user's second call finds."""
    if ground.repeat == 0:
        _help()
    return [
        Item("profile --help: CPU", "s", [_help()], 0.3),
        Item("profile --help: heavy packages imported", "", [_heavy_imports()], 0, exact=True),
    ]


def _help() -> float:
    """CPU of `loadstone profile --help`, seconds."""
    command = [sys.executable, "-m", "loadstone", "profile", "--help"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


def _heavy_imports() -> int:
    command = [sys.executable, "-X", "importtime", "-m", "loadstone", "profile", "--help"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    names = {line.rpartition("|")[2].strip() for line in listing.splitlines()}
    return len(names & set(HEAVY))
