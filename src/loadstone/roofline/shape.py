"""The shape of a model: the sizes of its matrices, which is all that its speed depends on."""

from __future__ import annotations

from typing import Literal

import msgspec

Part = Literal["attention", "shared", "dense"]
"""What a layer has beside routed experts: attention, experts that every token goes through, a feed-forward part."""


class Latent(msgspec.Struct, frozen=True, kw_only=True):
    """Multi-head latent attention (DeepSeek): keys and values are kept as one compressed vector a token and layer."""

    kv_rank: int
    """Width of that vector (kv_lora_rank)."""
    rope_dim: int
    """Width of the key's part with its position, kept beside it (qk_rope_head_dim)."""
    nope_dim: int
    """A head's width without position (qk_nope_head_dim)."""
    value_dim: int
    """A head's width of values (v_head_dim)."""
    query_rank: int | None
    """Width to which queries are compressed (q_lora_rank); None: they are not."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A decoder-only transformer. Sizes are those of its `config.json`."""

    name: str
    """As in `--model`: lower case, such as `llama-3.1-8b`."""
    layers: int
    hidden: int
    vocabulary: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    """Width between the matrices of a dense layer's feed-forward part; 0 where every layer has experts."""
    gated: bool = True
    """Feed-forward parts have three matrices (SwiGLU), not two."""
    tied_embeddings: bool = False
    """The output matrix is the embedding table."""
    latent: Latent | None = None
    experts: int = 0
    """Routed experts of a layer; 0: a dense model."""
    experts_per_token: int = 0
    expert_ffn: int = 0
    shared_ffn: int = 0
    """Width of the experts that every token goes through, all together."""
    dense_layers: int = 0
    """Of a model with experts: layers that have none."""
    window: int | None = None
    """Tokens that a windowed layer attends to at most; None: every layer attends to all."""
    windowed_layers: int = 0
    weights: str = "bf16"
    """The type in which its weights are published, as in `setup.Weights`."""
    plain_parts: tuple[Part, ...] = ()
    """Parts of its layers that are published as bf16 although the others are quantized."""
    max_model_len: int
    """The longest context it was made for, tokens."""
    source: str
    """Where these sizes come from."""
