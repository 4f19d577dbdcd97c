"""The shape of a model from its Hugging Face `config.json`, whatever its family calls things.

One rule: what is missing or absurd is refused by the name of its key, never guessed, except where the family's own code
has a default. Reads no files and knows no model by name, only families (`model_type`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadstone.errors import UsageError
from loadstone.roofline.setup import Weights
from loadstone.roofline.shape import Latent, Shape

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num")
FFN = ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
VOCABULARY = ("vocab_size", "padded_vocab_size")
POSITIONS = (
    "max_position_embeddings",
    "n_positions",
    "max_sequence_length",
    "seq_length",
    "max_seq_len",
    "n_ctx",
)
EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
EXPERTS_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_k", "moe_topk")
SHARED_EXPERTS = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
SHARED_FFN = ("shared_expert_intermediate_size", "shared_intermediate_size")
LANGUAGE = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where a model that also sees or hears keeps the part that writes."""
OUTER = ("quantization_config", "compression_config", "torch_dtype", "dtype", "tie_word_embeddings")
"""What such a model says once for all its parts."""

TWO_MATRICES = frozenset(
    (
        "arcee",
        "bloom",
        "codegen",
        "falcon",
        "gpt2",
        "gpt_bigcode",
        "gpt_neo",
        "gpt_neox",
        "gptj",
        "mpt",
        "nemotron",
        "opt",
        "persimmon",
        "phi",
        "starcoder2",
    )
)
"""Families whose feed-forward parts have no gate, by their code in transformers."""
FOURFOLD = frozenset(("bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gptj", "mpt"))
"""Families whose feed-forward parts are four times as wide as the model unless they say otherwise."""
TIED = frozenset(
    (
        "bloom",
        "cohere",
        "cohere2",
        "falcon",
        "gemma",
        "gemma2",
        "gemma3",
        "gemma3_text",
        "gpt2",
        "gpt_bigcode",
        "gpt_neo",
        "mpt",
        "opt",
        "starcoder2",
    )
)
"""Families whose output matrix is the embedding table unless they say otherwise."""
WINDOW_EVERY = {"gemma2": 2, "gpt_oss": 2, "cohere2": 4, "llama4_text": 4, "gemma3": 6, "gemma3_text": 6}
"""Of so many layers of a family one attends to all tokens, where its config does not list them."""
NOT_TRANSFORMERS = (
    "attn_layer_period",
    "block_configs",
    "hybrid_override_pattern",
    "linear_num_value_heads",
    "mamba_d_state",
    "ssm_cfg",
    "ssm_state_size",
    "state_size",
)
"""Keys of models whose layers differ in kind: state spaces, linear attention, or searched layer by layer."""
TYPES: dict[str, Weights] = {
    "bfloat16": "bf16",
    "float16": "bf16",
    "half": "bf16",
    "float32": "fp32",
    "float8_e4m3fn": "fp8",
}
GIVE_TYPE = "Take it out of the file and say in which type the weights are."
ONLY = "The roofline knows decoder-only transformers; use another model."
LARGEST = 1 << 24
"""No size of a model is above it; a longest context may be."""


class Config:
    """A `config.json` that is asked for sizes by all the names they have."""

    def __init__(self, config: Mapping[str, Any], name: str) -> None:
        self.config = config
        self.name = name
        self.family = str(config.get("model_type", "")).lower()

    def wrong(self, key: str, what: str, advice: str = "Correct the file.") -> UsageError:
        """The refusal of one key."""
        return UsageError(f"config.json of {self.name}: {key} {what}. {advice}")

    def first(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        """The first of these keys that has a value, and the value; else the first key and None."""
        return next(
            ((key, self.config[key]) for key in keys if self.config.get(key) is not None), (keys[0], None)
        )

    def size(self, *keys: str, least: int = 1, most: int = LARGEST) -> int | None:
        """A size by any of its names; None where there is none. UsageError: it is no whole number, or absurd."""
        key, value = self.first(keys)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(key, f"is {value!r}, which is not a whole number from {least} to {most}")
        return value

    def needed(self, *keys: str, most: int = LARGEST) -> int:
        """A size that there must be."""
        size = self.size(*keys, most=most)
        if size is None:
            others = f" (or {', '.join(keys[1:])})" if keys[1:] else ""
            raise self.wrong(keys[0], f"is missing{others}", "Add it to the file.")
        return size


def shape_of(config: Mapping[str, Any], name: str) -> Shape:
    """The shape that a `config.json` describes.

    `name` is what messages and reports call the model. UsageError: a size is missing or absurd, or the model is not a
    decoder-only transformer.
    """
    if not isinstance(config, Mapping):
        raise UsageError(f"config.json of {name}: it is no object but {type(config).__name__}.")
    it = Config(language_part(config), name)
    refuse_other_kinds(it)
    layers, hidden, heads = it.needed(*LAYERS), it.needed(*HIDDEN), it.needed(*HEADS)
    experts = it.size(*EXPERTS, least=0) or 0
    experts = 0 if experts == 1 else experts
    dense_layers = count_dense(it, layers) if experts else 0
    per_token = it.needed(*EXPERTS_PER_TOKEN) if experts else 0
    if per_token > experts:
        raise it.wrong(it.first(EXPERTS_PER_TOKEN)[0], f"is {per_token}, but there are {experts} experts")
    if experts and dense_layers == layers:
        experts = per_token = dense_layers = 0
    expert_ffn = (it.size("moe_intermediate_size") or it.needed(*FFN)) if experts else 0
    longest = longest_context(it)
    window, windowed_layers = windows(it, layers, longest)
    latent = latent_of(it)
    return Shape(
        name=name,
        layers=layers,
        hidden=hidden,
        vocabulary=it.needed(*VOCABULARY),
        heads=heads,
        kv_heads=kv_heads_of(it, heads),
        head_dim=latent.nope_dim + latent.rope_dim if latent else head_dim_of(it, hidden, heads),
        ffn=0 if experts and not dense_layers else dense_ffn(it, hidden),
        gated=it.family not in TWO_MATRICES,
        tied_embeddings=bool(it.config.get("tie_word_embeddings", it.family in TIED)),
        latent=latent,
        experts=experts,
        experts_per_token=per_token,
        expert_ffn=expert_ffn,
        shared_ffn=shared_ffn(it, expert_ffn) if experts else 0,
        dense_layers=dense_layers,
        window=window,
        windowed_layers=windowed_layers,
        weights=weights_type(it),
        max_model_len=longest,
        source=f"config.json of {name}",
    )


def language_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that writes of a model that also sees or hears; the whole of any other."""
    for key in LANGUAGE:
        inner = config.get(key)
        if isinstance(inner, Mapping):
            said_once = {outer: config[outer] for outer in OUTER if config.get(outer) is not None}
            return language_part(
                {**said_once, **{own: value for own, value in inner.items() if value is not None}}
            )
    return config


def refuse_other_kinds(it: Config) -> None:
    """UsageError: the model has encoders, or layers that are not attention."""
    if it.config.get("is_encoder_decoder"):
        raise it.wrong("is_encoder_decoder", "is true", ONLY)
    key, value = it.first(NOT_TRANSFORMERS)
    if value is not None:
        raise it.wrong(
            key, "belongs to a model whose layers are not all attention; there is no roofline for it here"
        )


def head_dim_of(it: Config, hidden: int, heads: int) -> int:
    """Width of a head: as it is given, else the model's width shared among the heads."""
    given = it.size("head_dim", "kv_channels")
    if given is None and hidden % heads:
        raise it.wrong("head_dim", f"is missing, and {heads} heads do not divide hidden_size {hidden}")
    return given or hidden // heads


def kv_heads_of(it: Config, heads: int) -> int:
    """KV heads: as given, one where queries share one (`multi_query`), else as many as there are heads."""
    one = it.config.get("multi_query") and not it.config.get("new_decoder_architecture")
    kv_heads = 1 if one else it.size(*KV_HEADS) or heads
    if heads % kv_heads:
        raise it.wrong(it.first(KV_HEADS)[0], f"is {kv_heads}, which does not divide {heads} heads")
    return kv_heads


def dense_ffn(it: Config, hidden: int) -> int:
    """Width of a feed-forward part without experts."""
    own = it.size("intermediate_size_mlp") if it.family == "llama4_text" else None
    given = own or it.size(*FFN)
    if given is None and it.family in FOURFOLD:
        return 4 * hidden
    return given or it.needed(*FFN)


def shared_ffn(it: Config, expert_ffn: int) -> int:
    """Width of all shared experts together: given, or so many of a routed expert's width."""
    if it.family == "llama4_text":
        return expert_ffn
    return it.size(*SHARED_FFN, least=0) or (it.size(*SHARED_EXPERTS, least=0) or 0) * expert_ffn


def count_dense(it: Config, layers: int) -> int:
    """Layers without experts, in a model with experts."""
    first = it.size("first_k_dense_replace", "moe_layer_start_index", least=0) or 0
    every = it.size("decoder_sparse_step", "interleave_moe_layer_step", least=1) or 1
    only = it.config.get("mlp_only_layers") or ()
    listed = by_frequency(it, layers)
    return sum(
        layer < first or (layer + 1) % every != 0 or layer in only or not listed[layer]
        for layer in range(layers)
    )


def by_frequency(it: Config, layers: int) -> list[bool]:
    """Which layers have experts by `moe_layer_freq`: a flag for each of them, or every so many."""
    frequency = it.config.get("moe_layer_freq")
    if isinstance(frequency, list):
        if len(frequency) != layers:
            raise it.wrong("moe_layer_freq", f"has {len(frequency)} entries for {layers} layers")
        return [bool(flag) for flag in frequency]
    every = it.size("moe_layer_freq") or 1
    return [layer % every == 0 for layer in range(layers)]


def latent_of(it: Config) -> Latent | None:
    """The sizes of latent attention; None where keys and values are kept whole."""
    rank = it.size("kv_lora_rank")
    if rank is None:
        return None
    return Latent(
        kv_rank=rank,
        rope_dim=it.needed("qk_rope_head_dim"),
        nope_dim=it.needed("qk_nope_head_dim"),
        value_dim=it.needed("v_head_dim"),
        query_rank=it.size("q_lora_rank"),
    )


def longest_context(it: Config) -> int:
    """The longest context, tokens; stretched positions (YaRN) count as vLLM counts them: original x factor."""
    plain = it.needed(*POSITIONS, most=1 << 40)
    scaling = it.config.get("rope_scaling") or it.config.get("rope_parameters")
    if not isinstance(scaling, Mapping) or scaling.get("rope_type", scaling.get("type")) != "yarn":
        return plain
    factor, original = scaling.get("factor"), scaling.get("original_max_position_embeddings")
    if not isinstance(factor, int | float) or not isinstance(original, int):
        return plain
    return max(plain, int(original * factor))


def windows(it: Config, layers: int, longest: int) -> tuple[int | None, int]:
    """How many tokens windowed layers attend to, and how many of the layers are windowed."""
    default = not it.family.startswith("qwen")
    if not it.config.get("use_sliding_window", default):
        return None, 0
    window = it.size("sliding_window", "attention_chunk_size", most=1 << 40)
    kinds = it.config.get("layer_types")
    if isinstance(kinds, list):
        count = windowed_kinds(it, kinds, layers)
        if count and window is None:
            raise it.wrong(
                "sliding_window",
                f"is missing, but {count} of layer_types have a window",
                "Add it to the file.",
            )
    elif it.family.startswith("qwen"):
        count = max(layers - (it.size("max_window_layers", least=0) or 0), 0)
    else:
        every = it.size("sliding_window_pattern") or WINDOW_EVERY.get(it.family)
        count = layers - layers // every if every else layers
    return (window, count) if window is not None and count and window < longest else (None, 0)


def windowed_kinds(it: Config, kinds: list[Any], layers: int) -> int:
    """How many of the listed layers are windowed. UsageError: some are not attention, or the list is too long or short."""
    if len(kinds) != layers:
        raise it.wrong("layer_types", f"has {len(kinds)} entries for {layers} layers")
    windowed = {"sliding_attention", "chunked_attention"}
    if other := sorted({str(kind) for kind in kinds} - windowed - {"full_attention"}):
        raise it.wrong("layer_types", f"has {', '.join(other)}", ONLY)
    return sum(kind in windowed for kind in kinds)


def weights_type(it: Config) -> Weights:
    """The type in which the weights are stored: by their quantization, else by `dtype`; bf16 where nothing is said."""
    quantization = it.first(("quantization_config", "compression_config"))[1]
    if isinstance(quantization, Mapping):
        return quantized_type(it, quantization)
    key, value = it.first(("dtype", "torch_dtype"))
    if value is None:
        return "bf16"
    known = TYPES.get(str(value).removeprefix("torch."))
    if known is None:
        raise it.wrong(key, f"is {value!r}; known are {', '.join(TYPES)}", "Write one of them.")
    return known


def quantized_type(it: Config, quantization: Mapping[str, Any]) -> Weights:
    """The type of quantized weights, by the name of the method and its bits."""
    method = str(quantization.get("quant_method", "")).lower()
    if method in {"fp8", "fbgemm_fp8"}:
        return "fp8"
    if method == "mxfp4":
        return "mxfp4"
    if method in {"awq", "gptq", "auto-round", "gptq_marlin", "awq_marlin"}:
        return integers(it, method, quantization.get("bits", quantization.get("w_bit")))
    if method == "bitsandbytes":
        return "int4" if quantization.get("load_in_4bit") else "int8"
    if method == "compressed-tensors":
        return compressed(it, quantization)
    if method.startswith("modelopt"):
        algorithm = str(quantization.get("quant_algo", method)).upper()
        return "fp4" if "FP4" in algorithm else "fp8"
    if method == "quark":
        return quark(it, quantization)
    raise it.wrong("quantization_config", f"has the unknown quant_method {method!r}", GIVE_TYPE)


def integers(it: Config, method: str, bits: object) -> Weights:
    """The type of weights that are whole numbers of so many bits."""
    if bits == 4:
        return "int4"
    if bits == 8:
        return "int8"
    raise it.wrong("quantization_config", f"has {bits!r} bits with {method}; known are 4 and 8", GIVE_TYPE)


def compressed(it: Config, quantization: Mapping[str, Any]) -> Weights:
    """The type of compressed-tensors, by the first of its groups that has weights."""
    groups = quantization.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            if weights.get("type") != "float":
                return integers(it, "compressed-tensors", weights.get("num_bits"))
            if weights.get("num_bits") == 8:
                return "fp8"
            if weights.get("num_bits") == 4:
                return "mxfp4" if weights.get("group_size") == 32 else "fp4"
    raise it.wrong(
        "quantization_config", "has no config_groups whose weights have a known type and num_bits", GIVE_TYPE
    )


def quark(it: Config, quantization: Mapping[str, Any]) -> Weights:
    """The type of weights that Quark made, by the type of all layers."""
    every = quantization.get("global_quant_config")
    weight = every.get("weight") if isinstance(every, Mapping) else None
    kind = str(weight.get("dtype")) if isinstance(weight, Mapping) else "none"
    if kind.startswith("fp8"):
        return "fp8"
    if kind == "fp4":
        return "mxfp4"
    if kind == "int4" or kind == "int8":
        return integers(it, "quark", int(kind[-1]))
    raise it.wrong(
        "quantization_config", f"has the unknown weight dtype {kind!r} in global_quant_config", GIVE_TYPE
    )
