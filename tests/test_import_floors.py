"""What each process does without: help, planning and the workers start fast because they import little."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"numpy", "polars", "rich", "tokenizers"}


def imported(code):
    """Names of the top-level packages that a fresh interpreter has loaded after `code`."""
    script = (
        f"import sys\n{code}\nprint('\\0' + ' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("\0")[2].split())


@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["--help"],
        ["profile", "--help"],
        ["profile", "--help-all"],
        ["plot", "--help"],
        ["simulate", "--help"],
    ],
    ids=" ".join,
)
def test_help_imports_nothing_heavy(words):
    loaded = imported(f"from loadstone.__main__ import main\nmain({words})")
    assert {"loadstone", "click", "msgspec"} <= loaded
    assert loaded & (HEAVY | {"yaml", "tomli_w", "httptools", "asyncio", "ssl"}) == set()


def test_a_worker_imports_nothing_heavy():
    loaded = imported("import loadstone.load.worker")
    assert "loadstone" in loaded
    assert loaded & (HEAVY | {"click", "asyncio", "yaml", "tomli_w"}) == set()


@pytest.mark.parametrize(
    "part", ["config", "plan.schedule", "plan.store", "sources", "endpoints.chat", "wire.url"]
)
def test_planning_imports_neither_numpy_nor_polars(part):
    assert imported(f"import loadstone.{part}") & {"numpy", "polars"} == set()
