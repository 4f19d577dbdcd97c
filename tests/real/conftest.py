"""llama.cpp's own server with a tiny model, and runs of the real command against it.

The server has an interpreter of its own, `.venv-llama`, which `make real` makes; without it these tests are skipped.
Whatever it counts is read from the server itself: its /metrics, its log, its /tokenize.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import polars as pl
import pytest

from loadstone.tokens.vocabulary import builtin_file

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-llama" / "bin" / "python"
RECIPES = (HERE / "tiny.py", HERE / "requirements.txt")
START_S = 60
_open = build_opener(ProxyHandler({})).open


class Llama(NamedTuple):
    """A running server."""

    address: str
    log: Path

    def ask(self, path: str, body: Any = None) -> bytes:
        """The body of a GET, or of a POST of `body` as JSON."""
        data = None if body is None else json.dumps(body).encode()
        with _open(Request(f"http://{self.address}{path}", data), timeout=10) as response:
            return response.read()

    def token_ids(self, text: str) -> list[int]:
        """What the server makes of a text."""
        return json.loads(self.ask("/tokenize", {"content": text}))["tokens"]

    def counted(self) -> dict[str, int]:
        """The server's own counts since its start, once nothing is under way."""
        while (told := self._metrics())["requests_processing"] or told["requests_deferred"]:
            time.sleep(0.05)
        return {
            "requests": self.log.read_text("utf-8", "replace").count("| processing task,"),
            "prompt_tokens": told["prompt_tokens_total"] + told["prompt_tokens_cached_total"],
            "cached_tokens": told["prompt_tokens_cached_total"],
            "output_tokens": told["tokens_predicted_total"],
        }

    def _metrics(self) -> dict[str, int]:
        rows = re.findall(r"^llamacpp:(\w+) (\S+)$", self.ask("/metrics").decode(), re.MULTILINE)
        return {name: int(float(value)) for name, value in rows}


class Run(NamedTuple):
    """A finished run of `loadstone profile`, and by how much the server's counts rose meanwhile."""

    code: int
    said: str
    folder: Path
    counted: dict[str, int]

    @property
    def report(self) -> dict[str, Any]:
        return json.loads((self.folder / "report.json").read_text())

    @property
    def log(self) -> dict[str, Any]:
        return json.loads((self.folder / "run.json").read_text())

    @property
    def bodies(self) -> list[dict[str, Any]]:
        sessions = json.loads((self.folder / "inputs.json").read_text())["data"]
        return [body for session in sessions for body in session["payloads"]]

    @property
    def every_request(self) -> pl.DataFrame:
        """Warm-up and measured ones."""
        return pl.read_parquet(self.folder / "requests.parquet")

    @property
    def requests(self) -> pl.DataFrame:
        """The measured ones."""
        return self.every_request.filter(pl.col("phase") == "measured")

    @property
    def outcomes(self) -> dict[str, int]:
        """How many ended in each outcome that occurred."""
        return {name: count for name, count in self.report["outcomes"]["counts"].items() if count}


@pytest.fixture(scope="session")
def tiny_model(pytestconfig) -> Path:
    """The model file; made once for a recipe and a vocabulary, then kept in pytest's cache."""
    if not PYTHON.exists():
        pytest.skip("needs llama.cpp in .venv-llama; `make real` makes it")
    recipe = b"".join(path.read_bytes() for path in (*RECIPES, builtin_file()))
    model = pytestconfig.cache.mkdir("tiny-model") / f"{hashlib.sha256(recipe).hexdigest()[:16]}.gguf"
    if not model.exists():
        draft = model.with_suffix(f".{os.getpid()}")
        subprocess.run([PYTHON, HERE / "tiny.py", builtin_file(), draft], check=True, timeout=60)
        draft.replace(model)
    return model


@pytest.fixture(scope="session")
def llama(tiny_model, tmp_path_factory):
    """One server for all these tests."""
    log = tmp_path_factory.mktemp("llama") / "server.log"
    server = Llama(f"127.0.0.1:{_free_port()}", log)
    command = [PYTHON, HERE / "llama.py", tiny_model, server.address.rpartition(":")[2]]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file, stderr=file)
    try:
        _wait_until_healthy(server, process)
        yield server
    finally:
        process.send_signal(signal.SIGKILL)  # it only serves: there is nothing that it could save
        process.communicate()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def _wait_until_healthy(server: Llama, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            server.ask("/health")
            return
        except (URLError, OSError):
            time.sleep(0.1)
    pytest.fail(f"llama.cpp did not start:\n{server.log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def profile(llama, tmp_path_factory):
    """Runs `loadstone profile WORDS...` against the server."""

    def run(*words: str) -> Run:
        folder = tmp_path_factory.mktemp("run") / "run"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LOADSTONE")}
        command = [sys.executable, "-m", "loadstone", "profile", "--url", llama.address, *words]
        before = llama.counted()
        done = subprocess.run(
            [*command, "--artifact-dir", str(folder)],
            env={**kept, "COLUMNS": "100", "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
        )
        after = llama.counted()
        return Run(done.returncode, done.stdout, folder, {name: after[name] - before[name] for name in after})

    return run
