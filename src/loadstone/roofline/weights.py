"""What a model weighs: its parameters, the bytes one device holds and streams, FLOPs and KV bytes of one token.

Everything follows from the sizes of matrices; biases, learned positions and the norms of queries and keys are left out.
Knows no device and no time.
"""

from __future__ import annotations

import math

import msgspec

from loadstone.errors import UsageError
from loadstone.roofline.setup import KvType, Parallel, Weights
from loadstone.roofline.shape import Part, Shape

BITS: dict[Weights, float] = {
    "fp32": 32.0,
    "bf16": 16.0,
    "fp8": 8.0,
    "int8": 8.0,
    "w8a16": 8.0,
    "int4": 4.0 + (16 + 4) / 128,
    "mxfp4": 4.0 + 8 / 32,
    "fp4": 4.0 + 8 / 16,
    "nvfp4a16": 4.0 + 8 / 16,
}
"""Bits that one quantized parameter takes, its share of scales included.

int4: groups of 128 with an fp16 scale and a 4-bit zero point (AWQ, GPTQ). mxfp4: blocks of 32 with one byte (OCP
Microscaling Formats v1.0, 5.2). fp4: NVFP4, blocks of 16 with an fp8 scale. The scales of fp8 and int8, one for a channel
or for a block of 128 x 128, are less than 0.1 % and left out.
"""
KV_BYTES: dict[KvType, int] = {"fp32": 4, "bf16": 2, "fp8": 1}
"""Bytes of one number in the KV cache."""


def weights_of(shape: Shape) -> Weights:
    """The type in which a model's weights are published. UsageError: its shape names none that is known."""
    for known in BITS:
        if known == shape.weights:
            return known
    raise UsageError(f"{shape.name}: unknown type of weights {shape.weights!r}. Known: {', '.join(BITS)}.")


def plain_bytes(weights: Weights) -> int:
    """Bytes of one parameter of the parts that no scheme quantizes: embeddings, output matrix, routers, norms."""
    return 4 if weights == "fp32" else 2


def plain_parts(shape: Shape, weights: Weights) -> frozenset[Part]:
    """The parts of a layer that stay bf16, whatever its other weights are: as the model was published.

    With mxfp4 in a model with experts those alone are mxfp4, which says the `modules_to_not_convert` of
    openai/gpt-oss-120b's config.json.
    """
    published = frozenset(shape.plain_parts) if weights == shape.weights else frozenset()
    return published | {"attention", "shared"} if weights == "mxfp4" and shape.experts else published


PADDED_HIDDEN = 256
"""Of mxfp4 experts vLLM fills the hidden size up to a multiple of this (vllm/model_executor/layers/quantization/mxfp4.py).

So gpt-oss, 2880 wide, weighs 64.38 GiB (llm-d-benchmark) where its files have 60.8. Marlin fills the other side up as well,
to 128: 65.97 GiB (vllm-project/vllm issue 23278). Which kernels are taken hangs on the version; that is left out.
"""


def expert_padding(shape: Shape, weights: Weights) -> float:
    """By how much an expert is larger in memory than in its file: hidden size filled up / hidden size, for mxfp4.

    Kernels know nothing of it, so what is filled up is read and multiplied as well; the floor leaves it out.
    """
    if weights != "mxfp4" or not shape.experts:
        return 1.0
    return 1.0 + -shape.hidden % PADDED_HIDDEN / shape.hidden


class Matrices(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters by part, in the order in which a token meets them."""

    embedding: int
    """The table of embeddings; a token reads one row of it."""
    attention: int
    """Projections of queries, keys, values and of the output, in one layer."""
    dense: int
    """The feed-forward part of a layer without experts."""
    router: int
    """What chooses the experts, in one layer."""
    shared: int
    """Experts of a layer that every token goes through."""
    expert: int
    """One routed expert of one layer."""
    norms: int
    """Norms of all layers and the last one."""
    output: int
    """The output matrix, also where it is the embedding table."""


def feed_forward(shape: Shape, width: int) -> int:
    """Parameters of a feed-forward part of this inner width: 3xhiddenxwidth when gated, else 2xhiddenxwidth."""
    return (3 if shape.gated else 2) * shape.hidden * width


def split_attention(shape: Shape, tensor: int = 1) -> float:
    """Parameters of one layer's attention that one of `tensor` devices has.

    Heads are split; there is at least one KV head on a device, and the compressions of latent attention are on all.
    """
    heads = shape.heads / tensor
    latent = shape.latent
    if latent is None:
        kv_heads = split_kv_heads(shape, tensor)
        return shape.hidden * shape.head_dim * (2 * heads + 2 * kv_heads)
    query = heads * (latent.nope_dim + latent.rope_dim)
    down = shape.hidden * (latent.kv_rank + latent.rope_dim)
    up = heads * latent.kv_rank * (latent.nope_dim + latent.value_dim)
    out = heads * latent.value_dim * shape.hidden
    if latent.query_rank is None:
        return shape.hidden * query + down + up + out
    return latent.query_rank * (shape.hidden + query) + down + up + out


def split_kv_heads(shape: Shape, tensor: int = 1) -> int:
    """KV heads on one of `tensor` devices: where there are fewer heads than devices, each has a copy of one."""
    return -(-shape.kv_heads // tensor)


def matrices(shape: Shape) -> Matrices:
    """The parameters of a model by part."""
    return Matrices(
        embedding=shape.vocabulary * shape.hidden,
        attention=round(split_attention(shape)),
        dense=feed_forward(shape, shape.ffn),
        router=shape.hidden * shape.experts,
        shared=feed_forward(shape, shape.shared_ffn),
        expert=feed_forward(shape, shape.expert_ffn) if shape.experts else 0,
        norms=(2 * shape.layers + 1) * shape.hidden,
        output=shape.vocabulary * shape.hidden,
    )


def dense_layers(shape: Shape) -> int:
    """Layers without experts."""
    return shape.dense_layers if shape.experts else shape.layers


def expert_layers(shape: Shape) -> int:
    """Layers with experts."""
    return shape.layers - dense_layers(shape)


def total_parameters(shape: Shape) -> int:
    """All parameters; the table that is also the output matrix counts once."""
    return parameters_with(
        shape, shape.experts, matrices(shape).embedding if not shape.tied_embeddings else 0
    )


def active_parameters(shape: Shape) -> int:
    """Parameters that one token is multiplied with: k of E experts, the output matrix, but no table of embeddings."""
    return parameters_with(shape, shape.experts_per_token, 0)


def parameters_with(shape: Shape, experts: int, embedding: int) -> int:
    """Parameters with so many routed experts a layer and a table of embeddings of that size."""
    part = matrices(shape)
    return (
        embedding
        + part.output
        + part.norms
        + shape.layers * part.attention
        + dense_layers(shape) * part.dense
        + expert_layers(shape) * (part.router + part.shared + experts * part.expert)
    )


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What the most loaded device of those that split a model's layers reads and computes in one step, by part.

    All layers count, those of every pipeline stage: one of `pipeline` devices has its stage's share of it.
    """

    embedding_bytes: float
    """The table of embeddings: held, not streamed. The row of it that a token reads is left out, as activations are."""
    always_bytes: float
    """Streamed in every step: attention, dense layers, shared experts, routers, norms."""
    output_bytes: float
    """The output matrix: streamed in every step that samples."""
    expert_bytes: float
    """This device's part of one routed expert of one layer."""
    experts: int
    """Routed experts of one layer of which this device has (a part)."""
    expert_layers: int
    chosen: float
    """Experts of one token on this device if they are dealt evenly: k, or with `expert` k / devices."""
    idle: float
    """Chance that one token leaves one expert alone: 1 - k/E; 1 in a dense model."""
    padding: float
    """By how much kernels read and multiply more of an expert than it has parameters: `expert_padding`."""
    linear_flops: float
    """Of one token that this device attends for, in the weights' arithmetic: attention, dense layers, shared experts."""
    plain_flops: float
    """The same, of matrices that are not quantized: routers, and with mxfp4 attention and shared experts."""
    expert_flops: float
    """One routed expert of every layer (this device's part of it), for one token, in the weights' arithmetic."""
    output_flops: float
    """Output matrix, for one sequence that samples; not quantized."""

    def distinct_experts(self, tokens: float) -> float:
        """Experts of a layer on this device that `tokens` tokens are expected to need: Ex(1 - (1 - k/E)^T).

        Every token chooses among all experts alike and for itself. Real routers have favourites, and tokens that are alike
        choose alike, so fewer may be streamed: at the least `chosen`.
        """
        return self.experts * (1.0 - math.pow(self.idle, tokens))


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one layer on one device, routed experts aside."""

    quantized: float
    plain: float
    """Those that are not quantized and take part in products."""
    norms: int


def layer(shape: Shape, weights: Weights, tensor: int, *, with_experts: bool) -> Layer:
    """One layer on one of `tensor` devices."""
    part = matrices(shape)
    sizes: dict[Part, float] = {"attention": split_attention(shape, tensor)}
    if with_experts:
        sizes["shared"] = part.shared / tensor
    else:
        sizes["dense"] = part.dense / tensor
    plain = plain_parts(shape, weights)
    return Layer(
        quantized=sum(size for name, size in sizes.items() if name not in plain),
        plain=(part.router if with_experts else 0)
        + sum(size for name, size in sizes.items() if name in plain),
        norms=2 * shape.hidden,
    )


def layer_bytes(one: Layer, weights: Weights) -> float:
    """Bytes of a layer, routed experts aside."""
    return one.quantized * BITS[weights] / 8 + (one.plain + one.norms) * plain_bytes(weights)


def parts(shape: Shape, weights: Weights, parallel: Parallel | None = None) -> Parts:
    """What one device of a split model reads and computes, so that a step's cost is a few products.

    Tensor-parallel devices split heads, widths and the vocabulary; routers, norms and the compressions of latent
    attention are on all of them. Experts are split in the same way, or with `expert` dealt whole to tensor x data devices.
    """
    parallel = parallel or Parallel()
    tensor = parallel.tensor
    part = matrices(shape)
    dense = layer(shape, weights, tensor, with_experts=False)
    mixed = layer(shape, weights, tensor, with_experts=True)
    denses, mixeds = dense_layers(shape), expert_layers(shape)
    sharing = tensor * parallel.data if parallel.expert else 1
    held = -(-shape.experts // sharing)
    expert = part.expert if parallel.expert else part.expert / tensor
    share = shape.experts_per_token / shape.experts if shape.experts else 0.0
    plain = plain_bytes(weights)
    return Parts(
        embedding_bytes=part.embedding * plain / tensor,
        always_bytes=denses * layer_bytes(dense, weights)
        + mixeds * layer_bytes(mixed, weights)
        + shape.hidden * plain,
        output_bytes=part.output * plain / tensor,
        expert_bytes=expert * BITS[weights] / 8,
        experts=held,
        expert_layers=mixeds,
        chosen=shape.experts_per_token / sharing if shape.experts else 0.0,
        idle=1.0 - share,
        padding=expert_padding(shape, weights),
        linear_flops=2 * (denses * dense.quantized + mixeds * mixed.quantized),
        plain_flops=2 * (denses * dense.plain + mixeds * mixed.plain),
        expert_flops=2 * mixeds * expert,
        output_flops=2 * part.output / tensor,
    )


def weight_bytes(shape: Shape, weights: Weights) -> int:
    """Bytes of all weights, as one device would hold them."""
    return held_bytes(shape, weights, Parallel())


def held_bytes(shape: Shape, weights: Weights, parallel: Parallel) -> int:
    """Weight bytes of the device that holds most: of the heaviest pipeline stage, whatever else splits the model.

    The first stage has the table of embeddings and the layers without experts, the last one the output matrix.
    """
    part = parts(shape, weights, parallel)
    dense = layer_bytes(layer(shape, weights, parallel.tensor, with_experts=False), weights)
    mixed = layer_bytes(layer(shape, weights, parallel.tensor, with_experts=True), weights)
    mixed += part.experts * part.expert_bytes
    stages = stage_layers(shape.layers, parallel.pipeline)
    heaviest, begin = 0.0, 0
    for number, layers in enumerate(stages):
        denses = min(max(dense_layers(shape) - begin, 0), layers)
        held = denses * dense + (layers - denses) * mixed
        first, last = number == 0, number == len(stages) - 1
        held += part.embedding_bytes if first else 0.0
        held += shape.hidden * plain_bytes(weights) if last else 0.0
        held += part.output_bytes if last and not (first and shape.tied_embeddings) else 0.0
        heaviest, begin = max(heaviest, held), begin + layers
    return round(heaviest)


def stage_layers(layers: int, pipeline: int) -> list[int]:
    """Layers of each pipeline stage as vLLM deals them: what is left over goes to the stages before the last one.

    Source: `get_pp_indices` of vllm/distributed/utils.py.
    """
    each, left = divmod(layers, pipeline)
    return [each + (1 if pipeline - 1 - left <= stage < pipeline - 1 else 0) for stage in range(pipeline)]


def pair_flops(shape: Shape, *, absorbed: bool = False) -> int:
    """Attention FLOPs of one query-key pair in one layer, all heads: 2xheadsx(width of keys + width of values).

    4xheadsxhead_dim without latent attention. With it, prompts are attended to with keys and values unpacked, decodes with
    the projections `absorbed` into the query, so that the kept vector is key and value.
    Source: DeepSeek-V2 (arXiv 2405.04434), 2.1.2.
    """
    latent = shape.latent
    if latent is None:
        return 4 * shape.heads * shape.head_dim
    if absorbed:
        return 2 * shape.heads * (2 * latent.kv_rank + latent.rope_dim)
    return 2 * shape.heads * (latent.nope_dim + latent.rope_dim + latent.value_dim)


def kv_layer_bytes(shape: Shape, kv: KvType, tensor: int = 1) -> int:
    """Bytes that one token keeps in the KV cache in one layer, on one of `tensor` devices.

    2xkv_headsxhead_dim numbers; with latent attention kv_rank + rope_dim, which every device has a copy of.
    """
    if shape.latent is not None:
        return (shape.latent.kv_rank + shape.latent.rope_dim) * KV_BYTES[kv]
    return 2 * split_kv_heads(shape, tensor) * shape.head_dim * KV_BYTES[kv]


def kv_token_bytes(shape: Shape, kv: KvType, tensor: int = 1) -> int:
    """Bytes that one token keeps in all layers; windowed layers give theirs back when it leaves the window."""
    return shape.layers * kv_layer_bytes(shape, kv, tensor)
