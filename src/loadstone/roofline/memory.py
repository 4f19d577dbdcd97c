"""Where a device's memory goes: weights, activations, what the driver keeps, and the rest for the KV cache.

The rest is memory x utilization - weights - activations - other, as vLLM works it out when it starts. Activations follow a
formula that was fitted to its logs (`activation_bytes`). Knows no fragmentation and no models with images or sound.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from loadstone.errors import UsageError
from loadstone.roofline.cost import check_split
from loadstone.roofline.gpu import Gpu
from loadstone.roofline.setup import Parallel, Precision, Weights
from loadstone.roofline.shape import Shape
from loadstone.roofline.weights import BITS, held_bytes, kv_layer_bytes, parts, stage_layers

GIB = 2**30
UTILIZATION = 0.92
"""vLLM's default of `--gpu-memory-utilization`."""
BLOCK_TOKENS = 16
"""vLLM's default of `--block-size` on GPUs."""
SAMPLER_BYTES = 38.2
"""Of one entry of the vocabulary for one sequence, while the next tokens are drawn: logits in two types, sorted copies."""
HIDDEN_BYTES = 2.7
"""Of one number of the hidden states that are kept beside it."""
CONTEXT_BYTES = round(0.13 * GIB)
"""What CUDA keeps beside PyTorch's memory on one device (llm-d-benchmark: 0.13 or 0.14 GiB)."""
COLLECTIVE_BYTES = round(0.42 * GIB)
"""What communication keeps beside it for each other device (llm-d-benchmark: 0.55 GiB in all with two devices; from the
178,880 tokens that vllm-project/vllm issue 21348 logs with four H100 about 1.6 GiB follow)."""
PEERS = 7
"""Other devices that buffers are kept for at most; an assumption."""
GRAPH_BYTES = round(0.4 * GIB)
"""CUDA graphs; an assumption, since logs show -0.9 to 2.4 GiB: their pool shares memory with activations."""


class Flags(NamedTuple):
    """The limits of a step."""

    max_num_batched_tokens: int
    max_num_seqs: int


def default_flags(gpu: Gpu, devices: int = 1) -> Flags:
    """What `vllm serve` takes where the flags are not given.

    16384 tokens and 1024 sequences with 160 GiB or more, 8192 and 1024 with 70 GiB or more but not on A100, else 2048 and
    256; on processors 2048 and 128 times their number. Source: `EngineArgs` of vLLM 0.32, for its API server.
    """
    if gpu.cpu:
        return Flags(2048 * devices, 128 * devices)
    if gpu.memory_bytes >= 160 * GIB:
        return Flags(16384, 1024)
    if gpu.memory_bytes >= 70 * GIB and "a100" not in gpu.name:
        return Flags(8192, 1024)
    return Flags(2048, 256)


class OutOfMemory(UsageError):
    """A model does not fit: what is needed, what there is, and which flags help."""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """One device's memory while it serves, bytes: that of the pipeline stage that has most weights."""

    total_bytes: int
    usable_bytes: int
    """The share of it that is used."""
    weight_bytes: int
    activation_bytes: int
    """Their peak in the largest step."""
    other_bytes: int
    """CUDA, communication, graphs."""
    token_bytes: float
    """KV cache of one token on this device; where layers have a window, the mean over a context of `max_model_len`."""
    full_bytes: float
    """That of a token in the layers that attend to all of them."""
    window_bytes: float
    """That in layers with a window."""
    window: int | None
    """Tokens that these keep; None: there are no such layers."""
    block_tokens: int
    blocks: int
    """KV cache blocks that fit, each with the mean KV cache of its tokens."""

    @property
    def kv_bytes(self) -> int:
        """What is left for the KV cache."""
        return self.usable_bytes - self.weight_bytes - self.activation_bytes - self.other_bytes

    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV cache holds."""
        return self.blocks * self.block_tokens

    def largest_batch(self, context: int) -> int:
        """Sequences of so many tokens whose KV cache fits; each begins a block of its own.

        Where layers have a window this counts what they keep of this context, not the mean over `max_model_len`.
        """
        blocks = max(-(-context // self.block_tokens), 1)
        if self.window is None:
            return self.blocks // blocks
        tokens = blocks * self.block_tokens
        kept = tokens * self.full_bytes + min(tokens, self.window) * self.window_bytes
        return max(int(self.kv_bytes / kept), 0)


def activation_bytes(shape: Shape, weights: Weights, tensor: int, flags: Flags) -> int:
    """The peak of activations on one of `tensor` devices in the largest step: the greater of two moments, each an estimate.

    Sampling: sequences x vocabulary x 38.2 B + tokens x hidden x 2.7 B, however many devices there are, since logits are
    gathered. Fitted to the starts of five models in llm-d/llm-d-benchmark (config_explorer,
    empirical-vllm-memory-results.md; vLLM V1, H100, 8192 tokens, 1024 sequences):

        model                  logged GiB   formula
        Qwen3-0.6B             5.56         5.56
        Llama-3.1-8B           4.76         4.76
        Qwen3-32B              5.64         5.64
        Llama-3.3-70B FP8      4.84         4.85
        gpt-oss-20b, 120b      7.38         7.39

    A feed-forward part: tokens x k x (hidden + 3 x width / tensor) + 2 x tokens x hidden numbers, k = 1 without experts.
    """
    tokens, sequences = flags
    width = 4 if weights == "fp32" else 2
    sampling = (
        min(sequences, tokens) * shape.vocabulary * SAMPLER_BYTES + tokens * shape.hidden * HIDDEN_BYTES
    )
    dense = 3 * (shape.ffn + shape.shared_ffn) / tensor
    routed = shape.experts_per_token * (shape.hidden + 3 * shape.expert_ffn / tensor)
    feed_forward = tokens * (2 * shape.hidden + max(dense, routed)) * width
    return round(max(sampling, feed_forward))


def loaded_bytes(shape: Shape, weights: Weights, parallel: Parallel) -> int:
    """Weight bytes of the device that holds most, as they lie in memory: mxfp4 experts are filled up there."""
    held = held_bytes(shape, weights, parallel)
    part = parts(shape, weights, parallel)
    layers = max(stage_layers(shape.layers, parallel.pipeline)) / shape.layers
    more = part.expert_layers * layers * part.experts * part.expert_bytes * (part.padding - 1.0)
    return held + round(more)


def token_bytes(shape: Shape, precision: Precision, parallel: Parallel, context: int) -> float:
    """KV cache of one token on one device, mean over a context: windowed layers keep no more than their window.

    So does vLLM report the size of such a cache (vllm-project/vllm issue 51041).
    """
    full, windowed = kept_bytes(shape, precision, parallel)
    return full + windowed * min(1.0, (shape.window or context) / max(context, 1))


def kept_bytes(shape: Shape, precision: Precision, parallel: Parallel) -> tuple[float, float]:
    """KV cache of one token on one device, in the layers that attend to all tokens and in those with a window."""
    one = kv_layer_bytes(shape, precision.kv, parallel.tensor)
    stage = max(stage_layers(shape.layers, parallel.pipeline)) / shape.layers
    windowed = shape.windowed_layers if shape.window is not None else 0
    return one * stage * (shape.layers - windowed), one * stage * windowed


def memory(
    shape: Shape,
    gpu: Gpu,
    precision: Precision,
    parallel: Parallel | None = None,
    *,
    utilization: float = UTILIZATION,
    flags: Flags | None = None,
    max_model_len: int | None = None,
    block_tokens: int = BLOCK_TOKENS,
) -> Memory:
    """How the memory of one device is shared out.

    `flags`: None takes vLLM's defaults for the device; `max_model_len`: None takes the model's. OutOfMemory: not even one
    block is left for the KV cache, or not enough for one sequence of `max_model_len`.
    """
    parallel = parallel or Parallel()
    check_split(shape, parallel)
    flags = flags or default_flags(gpu, parallel.tensor * parallel.pipeline)
    longest = max_model_len or shape.max_model_len
    other = CONTEXT_BYTES + GRAPH_BYTES + min(parallel.devices - 1, PEERS) * COLLECTIVE_BYTES
    each = token_bytes(shape, precision, parallel, longest)
    full, windowed = kept_bytes(shape, precision, parallel)
    found = Memory(
        total_bytes=gpu.memory_bytes,
        usable_bytes=int(gpu.memory_bytes * utilization),
        weight_bytes=loaded_bytes(shape, precision.weights, parallel),
        activation_bytes=activation_bytes(shape, precision.weights, parallel.tensor, flags),
        other_bytes=0 if gpu.cpu else other,
        token_bytes=each,
        full_bytes=full,
        window_bytes=windowed,
        window=shape.window if windowed else None,
        block_tokens=block_tokens,
        blocks=0,
    )
    found = replace(found, blocks=max(int(found.kv_bytes / (each * block_tokens)), 0))
    if not found.blocks:
        raise OutOfMemory(no_room(shape, gpu, precision, parallel, found, flags))
    if found.kv_tokens < longest:
        raise OutOfMemory(too_long(shape, gpu, precision, found, longest))
    return found


def no_room(
    shape: Shape, gpu: Gpu, precision: Precision, parallel: Parallel, found: Memory, flags: Flags
) -> str:
    """The message where nothing is left for the KV cache."""
    helps = []
    split = fitting_split(shape, gpu, precision, parallel, found)
    if split is not None:
        helps.append(split)
    if BITS[precision.weights] >= 8:
        helps.append("--quantization int4" if BITS[precision.weights] == 8 else "--quantization fp8 or int4")
    if found.weight_bytes < found.usable_bytes:
        helps.append(
            f"a lower --max-num-seqs (now {flags.max_num_seqs}) or --max-num-batched-tokens (now"
            f" {flags.max_num_batched_tokens})"
        )
        helps.append("a higher --gpu-memory-utilization")
    helps.append("a --gpu with more memory")
    return (
        f"Out of memory: on each {gpu.name} the weights of {shape.name} ({precision.weights}) take"
        f" {gib(found.weight_bytes)} GiB, activations {gib(found.activation_bytes)} and the rest"
        f" {gib(found.other_bytes)}, and of {gib(found.total_bytes)} GiB {gib(found.usable_bytes)} may be used: nothing is left"
        f" for the KV cache. Use {', '.join(helps[:-1])}{' or ' if helps[:-1] else ''}{helps[-1]}."
    )


def too_long(shape: Shape, gpu: Gpu, precision: Precision, found: Memory, longest: int) -> str:
    """The message where not even one sequence of the longest kind fits."""
    smaller = "" if precision.kv == "fp8" else " --kv-cache-dtype fp8,"
    return (
        f"Out of memory: one sequence of {longest:,} tokens of {shape.name} needs {gib(longest * found.token_bytes)} GiB of"
        f" KV cache on each {gpu.name}, and {gib(found.kv_bytes)} GiB are left, which hold {found.kv_tokens:,} tokens."
        f" Use --max-model-len {found.kv_tokens} or less,{smaller} a higher --gpu-memory-utilization, a lower"
        " --max-num-seqs or a higher --tensor-parallel-size."
    )


def fitting_split(
    shape: Shape, gpu: Gpu, precision: Precision, parallel: Parallel, found: Memory
) -> str | None:
    """The flag for the least further split with which weights leave a tenth of the memory used; None: there is none.

    Tensor parallel within a node, then pipeline stages over nodes.
    """
    room = 0.9 * found.usable_bytes - found.activation_bytes - found.other_bytes
    tensors = range(parallel.tensor + 1, min(shape.heads, gpu.node_devices) + 1)
    splits = [("--tensor-parallel-size", n, replace(parallel, tensor=n)) for n in tensors]
    stages = range(parallel.pipeline + 1, shape.layers + 1)
    splits += [("--pipeline-parallel-size", n, replace(parallel, pipeline=n)) for n in stages]
    for flag, number, split in splits:
        if splits_evenly(shape, split) and loaded_bytes(shape, precision.weights, split) <= room:
            return f"{flag} {number}"
    return None


def splits_evenly(shape: Shape, parallel: Parallel) -> bool:
    """Whether a model can be split so."""
    try:
        check_split(shape, parallel)
    except UsageError:
        return False
    return True


def gib(size: float) -> str:
    """Bytes in GiB, for a sentence."""
    return f"{size / GIB:.1f}"
