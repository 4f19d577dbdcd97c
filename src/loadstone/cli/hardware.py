"""The accelerators and models that are known, as a page for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from loadstone.figures import brief, figures
from loadstone.roofline.gpu import Compute
from loadstone.roofline.gpus import GPUS
from loadstone.roofline.models import MODELS
from loadstone.roofline.weights import (
    active_parameters,
    kv_token_bytes,
    total_parameters,
    weight_bytes,
    weights_of,
)
from loadstone.terminal import fit, right, wrap

GIB = 2**30
ROOMY = 100
"""Cells from which on units are written out."""
OTHERS = "Any other one (L40S, RTX 4090, ...): --gpu FILE.toml with name, title, memory_bytes, bandwidth and flops."
OTHER_MODELS = "Any other one: --model with the path of its config.json, or of the folder that holds it."
ARITHMETIC: tuple[Compute, ...] = ("bf16", "fp8", "fp4")


def listing(width: int, *, sources: bool = False) -> str:
    """Both tables; with `sources` where each figure is from."""
    lines = [*_gpus(width), *wrap(OTHERS, width, "  "), "", *_models(width), *wrap(OTHER_MODELS, width, "  ")]
    if sources:
        lines += ["", *_gpu_sources(width), "", *_model_sources(width)]
    return "\n".join(lines)


def as_json() -> str:
    """All that is known of both, sources included, in bytes, bytes/s and FLOP/s; `null` is not known."""
    known = {"gpus": list(GPUS.values()), "models": list(MODELS.values())}
    return msgspec.json.format(msgspec.json.encode(known), indent=2).decode()


def _gpus(width: int) -> Iterator[str]:
    heads = ("GPU", "GiB", "TB/s", *(f"{name} TFLOP/s" for name in ARITHMETIC), "link GB/s", "$/h", "")
    rows = [
        (
            gpu.name,
            brief(gpu.memory_bytes / GIB),
            figures(gpu.bandwidth / 1e12),
            *(figures(peak / 1e12 if (peak := gpu.flops.get(name)) else None) for name in ARITHMETIC),
            figures(gpu.link_bandwidth / 1e9 if gpu.link_bandwidth else None),
            "-" if gpu.usd_hour is None else f"{gpu.usd_hour:.2f}",
            gpu.title,
        )
        for gpu in GPUS.values()
    ]
    return _table(heads, rows, width)


def _models(width: int) -> Iterator[str]:
    heads = ("model", "parameters", "active", "weights", "GiB", "KV kB/token", "context", "")
    rows = [
        (
            shape.name,
            figures(total_parameters(shape)).replace("G", "B"),
            figures(active_parameters(shape)).replace("G", "B"),
            shape.weights,
            figures(weight_bytes(shape, weights_of(shape)) / GIB),
            figures(kv_token_bytes(shape, "bf16") / 1e3),
            f"{shape.max_model_len:,}",
            f"{shape.experts_per_token} of {shape.experts} experts" if shape.experts else "",
        )
        for shape in MODELS.values()
    ]
    return _table(heads, rows, width)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Columns side by side: the first and the last at the left, numbers at the right.

    Where there is no room the last one is left out, or what is still too long cut.
    """
    if width < ROOMY:
        heads = [head.replace(" TFLOP/s", " TF/s") for head in heads]
    widths = [max(len(line[i]) for line in (heads, *rows)) for i in range(len(heads))]
    with_last = sum(widths) + 2 * len(widths) <= width + 2
    for first, *cells, last in (heads, *rows):
        told = "  ".join(right(cell, wide) for cell, wide in zip(cells, widths[1:], strict=False))
        yield fit(f"{first.ljust(widths[0])}  {told}  {last if with_last else ''}".rstrip(), width)


def _gpu_sources(width: int) -> Iterator[str]:
    for gpu in GPUS.values():
        yield gpu.name
        for field, source in gpu.sources.items():
            yield from wrap(f"{field}: {source}", width, "    ", "  ")


def _model_sources(width: int) -> Iterator[str]:
    for shape in MODELS.values():
        yield from wrap(f"{shape.name}: {shape.source}", width, "    ")
