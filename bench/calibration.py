"""Whether a fit to a real server foretells loads that it has not seen.

Three concurrencies are fitted (`loadstone roofline --fit`), two between them are foretold by a computed run of the same load
with that calibration, and then held against what was measured. Needs a server that is running already, on this machine:

    BENCH_PORT=8100 BENCH_MODEL=small BENCH_CONFIG=small-model/config.json BENCH_WEIGHTS=fp32 python -m bench calibration
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from bench.client import BELIEVABLE, BenchFailed, profile
from bench.ground import Ground, Unmeasured
from bench.table import Item

REPEATS = 3
FITTED = (1, 8, 24)
FORETOLD = (4, 16)
WAVES, SHORT_WAVES = 6, 1
ISL, OSL = 128, 128
BAR_PERCENT = 15.0
FIGURES = (
    ("inter_token_latency", "p50"),
    ("time_per_output_token", "p50"),
    ("request_latency", "p50"),
    ("output_token_throughput", "mean"),
)


def measure(ground: Ground) -> list[Item]:
    port, model, config = (_given(name) for name in ("BENCH_PORT", "BENCH_MODEL", "BENCH_CONFIG"))
    weights = os.environ.get("BENCH_WEIGHTS", "bf16")
    measured = {
        concurrency: _measured(ground, int(port), model, concurrency) for concurrency in (*FITTED, *FORETOLD)
    }
    calibration = ground.path("calibration").with_suffix(".toml")
    _loadstone(
        "roofline", "--fit", *(str(measured[concurrency]) for concurrency in FITTED), "--gpu", "cpu",
        "--model", config, "--quantization", weights, "-o", str(calibration),
    )  # fmt: skip
    items = []
    for concurrency in FORETOLD:
        said = _report(measured[concurrency])
        foretold = _report(_foretold(ground, calibration, concurrency))
        for metric, stat in FIGURES:
            ratio = foretold["metrics"][metric][stat] / said["metrics"][metric][stat]
            name = f"calibration: {metric} {stat} at {concurrency}, foretold against measured"
            items.append(Item(name, "%", [100 * abs(ratio - 1)], BAR_PERCENT))
    return items


def _given(name: str) -> str:
    if name not in os.environ:
        raise Unmeasured(f"{name} names no server; see bench/calibration.py")
    return os.environ[name]


def _load(ground: Ground, concurrency: int) -> list[str]:
    requests = max(16, concurrency * (SHORT_WAVES if ground.short else WAVES))
    return [
        "--isl", str(ISL), "--osl", str(OSL), "--extra-inputs", "ignore_eos:true", "--concurrency", str(concurrency),
        "--request-count", str(requests), "--warmup-request-count", str(concurrency),
        "--random-seed", str(1000 * ground.repeat + concurrency),
    ]  # fmt: skip


def _measured(ground: Ground, port: int, model: str, concurrency: int) -> Path:
    folder = ground.path(f"calibration-{concurrency}")
    return profile(folder, port, *_load(ground, concurrency), model=model).folder


def _foretold(ground: Ground, calibration: Path, concurrency: int) -> Path:
    folder = ground.path(f"foretold-{concurrency}")
    _loadstone(
        "profile", "--virtual", "--url", f"sim:calibration={calibration},max_model_len=4096", "--streaming",
        "--artifact-dir", str(folder), "--ui", "none", *_load(ground, concurrency),
    )  # fmt: skip
    return folder


def _report(folder: Path) -> Any:
    return msgspec.json.decode((folder / "report.json").read_bytes())


def _loadstone(*words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "loadstone", *words], capture_output=True, text=True)
    if done.returncode not in BELIEVABLE:
        raise BenchFailed(f"loadstone {' '.join(words)}\nended with {done.returncode}:\n{done.stderr}")
