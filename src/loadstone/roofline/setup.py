"""How a model is run on devices: number types, the ways of splitting it, and how near to the datasheet it comes."""

from __future__ import annotations

from typing import Literal

import msgspec

Weights = Literal["fp32", "bf16", "fp8", "int8", "w8a16", "int4", "mxfp4", "fp4", "nvfp4a16"]
"""How weights are stored. int4 and mxfp4 are multiplied as bf16 (W4A16), fp4 as fp4 where there is such hardware.

w8a16 are weights of 8 bits, nvfp4a16 those of fp4, whose activations are not quantized: they are multiplied as bf16.
"""
KvType = Literal["fp32", "bf16", "fp8"]


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """Number types."""

    weights: Weights = "bf16"
    kv: KvType = "bf16"


class Parallel(msgspec.Struct, frozen=True, kw_only=True):
    """How many devices share a model, and how. `data` are replicas of attention; with `expert` they share the experts.

    Without `expert`, data-parallel replicas of a model are engines of their own, and `data` is 1 here.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: bool = False

    @property
    def devices(self) -> int:
        """Devices in all."""
        return self.tensor * self.pipeline * self.data


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """How near real steps come to the peaks, and what they take on top. 1 and 0 are the datasheet's floor.

    The defaults were fitted, in round numbers, to twenty published runs of vLLM with small batches on A100, H100 and H200, and
    tried on eighty others: docs/roofline-validation.md has each with its error. They leave a root mean square of 7.5 %; no
    other round numbers do better by a whole percent. For another setup they are assumptions until they are fitted
    (`loadstone roofline --fit`).
    """

    bandwidth: float = 0.8
    """Share of the memory's peak that is reached while weights and KV cache are read."""
    compute: float = 0.5
    """Share of the peak FLOP/s that matrix products reach."""
    step_s: float = 0.0
    """Scheduling of a step, whatever is in it."""
    layer_s: float = 60e-6
    """What each layer adds: launches, the small kernels between matrices, and the start of its collectives."""
    sequence_s: float = 20e-6
    """What each sequence of a step adds: sampling, its tokens' way out."""
    link: float = 0.5
    """Share of the links' peak that collective operations reach."""
    latency: float = 1.0
    """Multiple of the device's `link_latency_s` that each collective operation takes on top."""
    least: bool = False
    """Whether what a step depends on besides, and nobody knows, is taken at its least: every token chooses the same experts,
    and a collective operation sends each byte once. Such a time is a bound and no estimate."""


FLOOR = Efficiency(
    bandwidth=1.0, compute=1.0, step_s=0.0, layer_s=0.0, sequence_s=0.0, link=1.0, latency=0.0, least=True
)
"""The datasheet: no real step is faster."""
