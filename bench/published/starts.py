"""What vLLM said of its memory when it started, beside our formula."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from bench.published.points import points
from loadstone.roofline import gpus, memory, models
from loadstone.roofline.memory import GIB, GRAPH_BYTES, Flags, OutOfMemory
from loadstone.roofline.setup import Parallel, Precision, Weights
from loadstone.roofline.shape import Shape
from loadstone.roofline.weights import weights_of

FILE = Path(__file__).parent / "starts.toml"


class Start(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One start of vLLM."""

    id: str
    source: str
    gpu: str
    model: str
    weights: Weights | None = None
    tensor: int = 1
    utilization: float = 0.9
    seqs: int = 1024
    batched: int = 8192
    max_model_len: int | None = None
    logged: dict[str, float]
    note: str = ""


class Starts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    sources: dict[str, str]
    starts: tuple[Start, ...]


class Held(NamedTuple):
    """What our formula says of one start, GiB a device; None where it says that nothing is left for the KV cache."""

    start: Start
    weights_gib: float | None
    activation_gib: float | None
    kv_gib: float | None
    kv_tokens: float | None

    @property
    def error(self) -> float | None:
        """By which share the KV cache is larger; None where either has none."""
        logged = self.start.logged
        if self.kv_gib is None or logged.get("kv_gib", 1.0) <= 0:
            return None
        if "kv_gib" in logged:
            return self.kv_gib / logged["kv_gib"] - 1
        assert self.kv_tokens is not None, "it has a KV cache"
        return self.kv_tokens / logged["kv_tokens"] - 1


@cache
def starts() -> Starts:
    """All of them."""
    return msgspec.convert(tomllib.loads(FILE.read_text("utf-8")), Starts)


def shape_of(name: str) -> Shape:
    """The shape of a model of the table, or of one that stands beside the points."""
    config = points().configs.get(name)
    if config is None:
        return models.find(name)
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.json"
        path.write_text(json.dumps(config))
        return models.find(str(path))


def held(start: Start) -> Held:
    """Our formula for one start. CUDA graphs are left out, since vLLM has taken them off from 0.21 on only."""
    shape = shape_of(start.model)
    try:
        found = memory.memory(
            shape,
            gpus.find(start.gpu),
            Precision(weights=start.weights or weights_of(shape)),
            Parallel(tensor=start.tensor),
            utilization=start.utilization,
            flags=Flags(start.batched, start.seqs),
            max_model_len=start.max_model_len or 16,
        )
    except OutOfMemory:
        return Held(start, None, None, None, None)
    kv_bytes = found.kv_bytes + GRAPH_BYTES
    return Held(
        start,
        found.weight_bytes / GIB,
        found.activation_bytes / GIB,
        kv_bytes / GIB,
        kv_bytes / found.token_bytes,
    )
