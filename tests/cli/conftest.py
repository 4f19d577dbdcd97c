"""The real command, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture
def loadstone(tmp_path):
    """Runs `loadstone WORDS...` in an empty folder and gives the finished process."""

    def run(*words, columns=100, **environ):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LOADSTONE")}
        return subprocess.run(
            [sys.executable, "-m", "loadstone", *words],
            cwd=tmp_path,
            env={**kept, "COLUMNS": str(columns), "NO_COLOR": "1", **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
