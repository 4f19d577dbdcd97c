"""What a datasheet says of an accelerator. Dense figures only: what vendors print for sparse matrices is twice as much."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Compute = Literal["fp32", "bf16", "fp8", "int8", "fp4"]
"""In which arithmetic matrices are multiplied."""
BytesPerSecond = Annotated[float, msgspec.Meta(ge=1e8, le=1e18)]
Flops = Annotated[float, msgspec.Meta(ge=1e8, le=1e21)]
"""Bounds far beyond any hardware, within which no time of a step is 0 or endless."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One accelerator, or for CPUs one socket. Figures are per device."""

    name: str
    """As in `--gpu`: lower case, such as `h100-sxm`."""
    title: str
    """As people write it: H100 SXM5 80 GB."""
    memory_bytes: Annotated[int, msgspec.Meta(gt=0, le=1 << 60)]
    """What CUDA, ROCm or the operating system says there is, which `--gpu-memory-utilization` is a share of; not what is
    printed on the box."""
    cpu: bool = False
    """It is a processor: no CUDA graphs, and other defaults of vLLM's flags."""
    bandwidth: BytesPerSecond
    """Peak of its memory, bytes/s."""
    flops: Annotated[dict[Compute, Flops], msgspec.Meta(min_length=1)]
    """Peak FLOP/s by arithmetic, dense; one that is missing is not in the hardware."""
    link_bandwidth: BytesPerSecond | None = None
    """To the other devices of the node, bytes/s in one direction, all links together (PCIe where it has
    nothing better); None: not known."""
    bridge_bandwidth: BytesPerSecond | None = None
    """Between two devices that a bridge joins, bytes/s in one direction; not every machine has them, so only the floor
    takes it. None: there are no bridges."""
    mesh: bool = False
    """Each device has a link of its own to each other one of the node (AMD), so that fewer devices use fewer links."""
    link_latency_s: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """What one collective operation takes however small it is."""
    network_bandwidth: BytesPerSecond | None = None
    """To other nodes, bytes/s a device in one direction; None: not known."""
    node_devices: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 8
    """As many share a node's links."""
    usd_hour: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None = None
    """A representative on-demand price of one device; None: none was found."""
    sources: dict[str, str] = {}
    """Where each figure comes from, by the field's name."""
