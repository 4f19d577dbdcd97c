"""The summary on the front page is what the command at its end prints."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
FOLDER = re.compile(r"^(files  artifacts/\S+-)[\d.T]+/$", re.MULTILINE)


def test_the_sample_is_what_is_printed(tmp_path: Path) -> None:
    sample = re.search(r"```text\n(SIMULATED: .*?)```", README.read_text(), re.DOTALL)
    assert sample is not None
    command = next(line for line in sample[1].splitlines() if line.startswith("loadstone profile "))
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert FOLDER.sub(r"\1", done.stdout) == FOLDER.sub(r"\1", sample[1])
