"""What devices that share a model tell each other in one step, in seconds.

A collective takes a fixed time and the bytes each device sends at the rate of its links. Nothing is taken to overlap with
computing, and a collective that leaves the node goes at the rate of the network. With `Efficiency.least` each function
gives a bound that no hardware and no algorithm gets below.
"""

from __future__ import annotations

from loadstone.errors import UsageError
from loadstone.roofline.gpu import Gpu
from loadstone.roofline.setup import Efficiency, Parallel
from loadstone.roofline.shape import Shape
from loadstone.roofline.weights import dense_layers, expert_layers


def link_bytes_s(gpu: Gpu, together: int, span: int | None = None) -> float:
    """Bytes/s that one device sends to `together` devices, itself included, that lie within `span` neighbouring ones.

    In a mesh a device has a link of its own to each other one, so that fewer devices use fewer links.
    UsageError: nothing is known of the links that are needed.
    """
    if (span or together) > gpu.node_devices:
        if gpu.network_bandwidth is None:
            raise UsageError(
                f"{gpu.name}: {span or together} devices do not fit in a node of {gpu.node_devices}, and nothing is known"
                " of its network. Use fewer devices, or give network_bandwidth in a TOML file of your own (--gpu FILE)."
            )
        return gpu.network_bandwidth
    if gpu.link_bandwidth is None:
        raise UsageError(
            f"{gpu.name}: nothing is known of links to other devices. Use one device, or give link_bandwidth in a TOML"
            " file of your own (--gpu FILE)."
        )
    if gpu.mesh:
        return gpu.link_bandwidth * (together - 1) / (gpu.node_devices - 1)
    return gpu.link_bandwidth


def most_bytes_s(gpu: Gpu, together: int, span: int | None = None) -> float:
    """The same at most: all devices of a node share what leaves it, and pairs have a bridge where there can be one.

    Two pairs then have the links of both their devices for what goes from one to the other.
    """
    rate = link_bytes_s(gpu, together, span)
    if (span or together) > gpu.node_devices:
        return rate * gpu.node_devices
    if gpu.bridge_bandwidth is None:
        return rate
    return max(rate, gpu.bridge_bandwidth) if together == 2 else 2 * rate


def all_reduce_s(gpu: Gpu, devices: int, size: float, reached: Efficiency) -> float:
    """Sum of `size` bytes over devices: 2(g-1)/g x size / bandwidth + latency; 0 for one device.

    Source: the ring's lower bound (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009) 117). At the least each
    device sends every byte once, to a switch that adds up (NVIDIA NVLink SHARP).
    """
    if devices == 1:
        return 0.0
    latency = gpu.link_latency_s * reached.latency
    if reached.least:
        return size / (most_bytes_s(gpu, devices) * reached.link) + latency
    sent = 2 * (devices - 1) / devices * size
    return sent / (link_bytes_s(gpu, devices) * reached.link) + latency


def copies(experts: int, devices: int) -> float:
    """To how many other devices a token with so many experts goes: (n-1)(1 - (1 - 1/n)^k), about k when there are many."""
    return (devices - 1) * (1.0 - (1.0 - 1.0 / devices) ** experts)


def all_to_all_s(
    gpu: Gpu, shape: Shape, parallel: Parallel, tokens: float, width: int, reached: Efficiency
) -> float:
    """One dispatch of tokens to the devices that have their experts, or one combine; each device sends its share.

    `tokens` are those of one data-parallel replica, which its tensor-parallel devices send between them. At the least
    every token's experts are where it is.
    """
    devices = parallel.tensor * parallel.data
    goes_to = 0.0 if reached.least else copies(shape.experts_per_token, devices)
    sent = tokens / parallel.tensor * goes_to * shape.hidden * width
    return sent / (link_bytes_s(gpu, devices) * reached.link) + gpu.link_latency_s * reached.latency


def hand_over_s(gpu: Gpu, parallel: Parallel, size: float, reached: Efficiency) -> float:
    """`size` bytes from one pipeline stage to the next; at the least its tensor-parallel devices send a share each."""
    latency = gpu.link_latency_s * reached.latency
    span = parallel.tensor * parallel.pipeline
    if reached.least:
        return size / parallel.tensor / (most_bytes_s(gpu, 2, span) * reached.link) + latency
    return size / (link_bytes_s(gpu, 2, span) * reached.link) + latency


def layers_s(
    shape: Shape, gpu: Gpu, parallel: Parallel, tokens: float, *, width: int, reached: Efficiency
) -> float:
    """What the layers spend on links in one step of `tokens` tokens (of one micro-batch, where there are stages).

    Tensor parallel: two all-reduces a layer. Experts shared by data-parallel replicas: dispatch and combine instead of the
    second one. Pipeline: a hand-over between stages. `width` is the bytes of one activation.
    """
    size = tokens * shape.hidden * width
    reduce = all_reduce_s(gpu, parallel.tensor, size, reached)
    total = (shape.layers + dense_layers(shape)) * reduce
    if parallel.data > 1:
        exchange = all_to_all_s(gpu, shape, parallel, tokens, width, reached)
        total += expert_layers(shape) * 2 * exchange
    else:
        total += expert_layers(shape) * reduce
    if parallel.pipeline > 1:
        total += (parallel.pipeline - 1) * hand_over_s(gpu, parallel, size, reached)
    return total


def logits_s(
    shape: Shape, gpu: Gpu, parallel: Parallel, sequences: float, *, width: int, reached: Efficiency
) -> float:
    """Bringing together the logits of `sequences` sequences: each device has its share of the vocabulary.

    (g-1)/g x sequences x vocabulary numbers a device. At the least nothing: each may look for the greatest among its own.
    """
    devices = parallel.tensor
    if devices == 1 or not sequences or reached.least:
        return 0.0
    sent = (devices - 1) / devices * sequences * shape.vocabulary * width
    return sent / (link_bytes_s(gpu, devices) * reached.link) + gpu.link_latency_s * reached.latency
