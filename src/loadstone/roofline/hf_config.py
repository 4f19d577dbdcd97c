"""The shape of a model from its Hugging Face `config.json`, whatever its family calls things.

One rule: what is missing or absurd is refused by the name of its key, never guessed, except where the family's own code
has a default. Reads no files and knows no model by name, only families (`model_type`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from loadstone.errors import UsageError
from loadstone.roofline.hf_keys import Config
from loadstone.roofline.hf_quantization import DTYPES, plain_parts, weights_type
from loadstone.roofline.shape import Latent, Shape

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model")
HEADS = ("num_attention_heads", "n_head", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "kv_n_heads")
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
EXPERTS_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_k", "moe_topk", "moe_top_k")  # fmt: skip
SHARED_EXPERTS = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
SHARED_FFN = ("shared_expert_intermediate_size", "shared_intermediate_size")
LANGUAGE = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where a model that also sees or hears keeps the part that writes."""
NESTED = ("attn_config", "ffn_config")
"""Where DBRX and MPT keep the sizes of parts."""
OUTER = ("quantization_config", "compression_config", "torch_dtype", "dtype", "tie_word_embeddings")
"""What such a model says once for all its parts."""

TWO_MATRICES = frozenset(("arcee", "bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "mpt", "nemotron", "opt", "persimmon", "phi", "starcoder2"))  # fmt: skip
"""Families whose feed-forward parts have no gate, by their code in transformers."""
FOURFOLD = frozenset(("bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gptj", "mpt"))  # fmt: skip
"""Families whose feed-forward parts are four times as wide as the model unless they say otherwise."""
TIED = frozenset(("bloom", "cohere", "cohere2", "falcon", "gemma", "gemma2", "gemma3", "gemma3_text", "gpt2", "gpt_bigcode", "gpt_neo", "mpt", "opt", "starcoder2"))  # fmt: skip
"""Families whose output matrix is the embedding table unless they say otherwise."""
WINDOW_EVERY = {"gemma2": 2, "gpt_oss": 2, "cohere2": 4, "llama4_text": 4, "gemma3": 6, "gemma3_text": 6}
"""Of so many layers of a family one attends to all tokens, where its config does not list them."""
GEMMA_3 = {
    "vocab_size": 262208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
}
DEFAULTS = {"gemma3_text": GEMMA_3}
"""Sizes that a family's files leave out, by its code in transformers (`Gemma3TextConfig`)."""
DEFAULT_POSITIONS = {"bloom": 2048, "falcon": 2048}
"""The longest context of families whose files need not name it."""
STRETCHED = ("llama3", "longrope", "su")
"""Kinds of stretched positions whose files give the length that they come to."""
LONGEST = 1 << 40
"""No context is longer."""
MOST_LAYERS = 4096
"""No model is deeper; layers are looked at one by one."""
NOT_TRANSFORMERS = (
    "attn_layer_period",
    "block_configs",
    "hybrid_override_pattern",
    "linear_attn_config",
    "linear_num_value_heads",
    "lru_width",
    "mamba_d_state",
    "mamba_num_heads",
    "ssm_cfg",
    "ssm_state_size",
    "state_size",
)
"""Keys of models whose layers differ in kind: state spaces, linear attention, or searched layer by layer."""
OTHER_FAMILIES = frozenset(("bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "lfm2", "lfm2_moe", "mamba", "mamba2", "nemotron_h", "plamo2", "qwen3_next", "recurrent_gemma", "retnet", "rwkv", "rwkv5", "rwkv6", "rwkv7", "xlstm", "zamba", "zamba2"))  # fmt: skip
"""Families of such models, whatever keys their files have."""
OTHER_WISE = {
    "index_topk": "is set: its attention reads a choice of the tokens (DeepSeek sparse attention)",
    "num_kv_shared_layers": "is set: some of its layers keep no keys and values of their own",
    "parallel_attn_mlp_res": "is set: its layers have a dense part beside their experts",
}
"""Keys that, where they are neither 0 nor false, change what a layer reads or computes in a way that is not known here."""
ENCODERS = frozenset(("albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "ernie", "esm", "longformer", "modernbert", "mpnet", "nomic_bert", "roberta", "xlm-roberta"))  # fmt: skip
"""Families that answer with vectors or labels and decode nothing."""
NO_ANSWER = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
"""Endings of architectures that do so."""
ONLY = "The roofline knows decoder-only transformers; use another model."


def shape_of(config: Mapping[str, Any], name: str) -> Shape:
    """The shape that a `config.json` describes.

    `name` is what messages and reports call the model. UsageError: a size is missing or absurd, or the model is not a
    decoder-only transformer.
    """
    if not isinstance(config, Mapping):
        raise UsageError(f"config.json of {name}: it is no object but {type(config).__name__}.")
    it = Config(whole(language_part(config)), name)
    refuse_other_kinds(it)
    layers, hidden, heads = it.needed(*LAYERS, most=MOST_LAYERS), it.needed(*HIDDEN), it.needed(*HEADS)
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
        gated=it.family not in TWO_MATRICES and it.config.get("hidden_act") != "relu2",
        tied_embeddings=it.flag("tie_word_embeddings", it.family in TIED),
        latent=latent,
        experts=experts,
        experts_per_token=per_token,
        expert_ffn=expert_ffn,
        shared_ffn=shared_ffn(it, expert_ffn) if experts else 0,
        dense_layers=dense_layers,
        window=window,
        windowed_layers=windowed_layers,
        weights=weights_type(it),
        plain_parts=plain_parts(it, layers, dense_layers, experts),
        max_model_len=longest,
        source=f"config.json of {name}{remark(it)}",
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


def whole(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config with the sizes that it keeps in parts of its own, and those that its family leaves out."""
    inner = [part for key in NESTED if isinstance(part := config.get(key), Mapping)]
    given = {key: value for key, value in config.items() if value is not None}
    defaults = DEFAULTS.get(str(config.get("model_type", "")).lower(), {})
    return {**defaults, **{key: value for part in inner for key, value in part.items()}, **given}


def refuse_other_kinds(it: Config) -> None:
    """UsageError: the model has encoders or writes nothing, or has layers that are not attention to all that came before."""
    if it.config.get("is_encoder_decoder"):
        raise it.wrong("is_encoder_decoder", "is true", ONLY)
    key, value = it.first(NOT_TRANSFORMERS)
    if value is not None:
        raise it.wrong(key, "belongs to a model whose layers are not all attention", ONLY)
    if it.family in OTHER_FAMILIES:
        raise it.wrong("model_type", f"is {it.family}, whose layers are not all attention", ONLY)
    kinds = it.config.get("attn_type_list")
    if isinstance(kinds, list) and any(kind != 1 for kind in kinds):
        raise it.wrong("attn_type_list", "has layers of linear attention", ONLY)
    for key, what in OTHER_WISE.items():
        if it.config.get(key):
            raise it.wrong(key, what, ONLY)
    if it.family in ENCODERS:
        raise it.wrong("model_type", f"is {it.family}, which encodes and decodes nothing", ONLY)
    architectures = it.config.get("architectures")
    if isinstance(architectures, list) and any(str(one).endswith(NO_ANSWER) for one in architectures):
        raise it.wrong("architectures", f"is {architectures[0]}, which writes no answer", ONLY)


def remark(it: Config) -> str:
    """What is taken otherwise than the file has it: float32 as bf16."""
    stored = str(it.first(DTYPES)[1]).removeprefix("torch.")
    return "; float32 is served as bf16 (--quantization fp32: as it is)" if stored == "float32" else ""


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
    every = it.size("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval") or 1
    only = it.config.get("mlp_only_layers") or []
    if not isinstance(only, list):
        raise it.wrong("mlp_only_layers", f"is {only!r} and no list of layers")
    listed = by_frequency(it, layers)
    return sum(
        layer < first or (layer + 1) % every != 0 or layer in only or not listed[layer]
        for layer in range(layers)
    )


def by_frequency(it: Config, layers: int) -> list[bool]:
    """Which layers have experts where they are listed or flagged one by one, or every so many have them."""
    for key in ("mlp_layer_types", "moe_layer_freq"):
        listed = it.config.get(key)
        if isinstance(listed, list):
            if len(listed) != layers:
                raise it.wrong(key, f"has {len(listed)} entries for {layers} layers")
            return [bool(entry) and entry != "dense" for entry in listed]
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
    """The longest context, tokens; stretched positions count as vLLM counts them.

    YaRN stretches the original length, other kinds that have a factor the length that is given; the lengths of Gemma 3,
    Llama 3 and Phi (longrope) are the stretched ones.
    """
    default = DEFAULT_POSITIONS.get(it.family)
    plain = it.size(*POSITIONS, most=LONGEST) or default or it.needed(*POSITIONS)
    scaling = it.config.get("rope_scaling") or it.config.get("rope_parameters")
    if not isinstance(scaling, Mapping) or it.family.startswith("gemma3"):
        return plain
    kind = scaling.get("rope_type", scaling.get("type"))
    factor, original = scaling.get("factor"), scaling.get("original_max_position_embeddings")
    if not isinstance(factor, int | float) or not math.isfinite(factor) or kind in STRETCHED:
        return plain
    begun = original if kind == "yarn" else plain
    if not isinstance(begun, int) or not 0 < begun <= LONGEST:
        return plain
    return max(plain, int(min(begun * factor, LONGEST)))


def windows(it: Config, layers: int, longest: int) -> tuple[int | None, int]:
    """How many tokens windowed layers attend to, and how many of the layers are windowed."""
    if not it.flag("use_sliding_window", not it.family.startswith("qwen")):
        return None, 0
    window = it.size("sliding_window", "attention_chunk_size", most=LONGEST)
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
        pattern = it.config.get("sliding_window_pattern")
        if isinstance(pattern, str) and pattern and not pattern.upper().strip("LG"):
            return window_of(
                window, sum(pattern.upper()[i % len(pattern)] == "L" for i in range(layers)), longest
            )
        every = it.size("sliding_window_pattern") or WINDOW_EVERY.get(it.family)
        count = layers - layers // every if every else layers
    return window_of(window, count, longest)


def window_of(window: int | None, count: int, longest: int) -> tuple[int | None, int]:
    """A window in so many layers, where there is one that a context can come out of."""
    return (window, count) if window is not None and count and window < longest else (None, 0)


def windowed_kinds(it: Config, kinds: list[Any], layers: int) -> int:
    """How many of the listed layers are windowed. UsageError: some are not attention, or the list is too long or short."""
    if len(kinds) != layers:
        raise it.wrong("layer_types", f"has {len(kinds)} entries for {layers} layers")
    windowed = {"sliding_attention", "chunked_attention"}
    if other := sorted({str(kind) for kind in kinds} - windowed - {"full_attention"}):
        raise it.wrong("layer_types", f"has {', '.join(other)}", ONLY)
    return sum(kind in windowed for kind in kinds)
