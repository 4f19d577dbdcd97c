"""The server that knows the truth, and a real one."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.against.tools import QUIET
from bench.client import BenchFailed

MODEL = "tiny"
START_LIMIT_S = 240


@contextmanager
def vllm(python: str, model: str, log: Path) -> Iterator[int]:
    """`vllm serve` on this machine's processors with random weights: the port it listens at. Raises `BenchFailed`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [
        python, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--served-model-name", MODEL,
        "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--load-format", "dummy",
        "--max-model-len", "4096", "--max-num-seqs", "64", "--enforce-eager",
    ]  # fmt: skip
    few = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **QUIET, **few, "TORCHDYNAMO_DISABLE": "1"}
    with log.open("w+") as out, subprocess.Popen(command, stdout=out, stderr=out, env=environment) as server:
        try:
            _wait(server, port, log)
            yield port
        finally:
            server.terminate()
            server.wait()


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + START_LIMIT_S
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise BenchFailed(f"vLLM's server did not start:\n{log.read_text()[-3000:]}")
