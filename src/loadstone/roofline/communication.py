"""What devices that share a model tell each other in one step, in seconds.

A collective takes a fixed time and the bytes each device sends at the rate of its links. Nothing is taken to overlap with
computing, and a collective that leaves the node goes at the rate of the network.
"""

from __future__ import annotations

from loadstone.errors import UsageError
from loadstone.roofline.gpu import Gpu
from loadstone.roofline.setup import Parallel
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


def all_reduce_s(gpu: Gpu, devices: int, size: float, link: float = 1.0) -> float:
    """Sum of `size` bytes over devices: 2(g-1)/g x size / bandwidth + latency; 0 for one device.

    Source: the ring's lower bound (Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009) 117).
    """
    if devices == 1:
        return 0.0
    sent = 2 * (devices - 1) / devices * size
    return sent / (link_bytes_s(gpu, devices) * link) + gpu.link_latency_s


def copies(experts: int, devices: int) -> float:
    """To how many other devices a token with so many experts goes: (n-1)(1 - (1 - 1/n)^k), about k when there are many."""
    return (devices - 1) * (1.0 - (1.0 - 1.0 / devices) ** experts)


def all_to_all_s(gpu: Gpu, shape: Shape, parallel: Parallel, tokens: float, width: int, link: float) -> float:
    """One dispatch of tokens to the devices that have their experts, or one combine; each device sends its share.

    `tokens` are those of one data-parallel replica, which its tensor-parallel devices send between them.
    """
    devices = parallel.tensor * parallel.data
    sent = tokens / parallel.tensor * copies(shape.experts_per_token, devices) * shape.hidden * width
    return sent / (link_bytes_s(gpu, devices) * link) + gpu.link_latency_s


def communication_s(
    shape: Shape, gpu: Gpu, parallel: Parallel, tokens: float, *, width: int = 2, link: float = 1.0
) -> float:
    """What one step of `tokens` tokens (of one micro-batch, where there are stages) spends on links.

    Tensor parallel: two all-reduces a layer. Experts shared by data-parallel replicas: dispatch and combine instead of the
    second one. Pipeline: a hand-over between stages. `width` is the bytes of one activation, `link` the share of the
    links' peak that is reached.
    """
    size = tokens * shape.hidden * width
    reduce = all_reduce_s(gpu, parallel.tensor, size, link)
    total = (shape.layers + dense_layers(shape)) * reduce
    if parallel.data > 1:
        exchange = all_to_all_s(gpu, shape, parallel, tokens, width, link)
        total += expert_layers(shape) * 2 * exchange
    else:
        total += expert_layers(shape) * reduce
    if parallel.pipeline > 1:
        bandwidth = link_bytes_s(gpu, 2, parallel.tensor * parallel.pipeline) * link
        total += (parallel.pipeline - 1) * (size / bandwidth + gpu.link_latency_s)
    return total
