"""In which type a model's weights are stored, by what its `config.json` says of quantization and `dtype`.

One rule: what is not known is refused, since half the time of a step depends on it. Knows no sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from loadstone.roofline.hf_keys import Config
from loadstone.roofline.setup import Weights
from loadstone.roofline.shape import Part

TYPES: dict[str, Weights] = {
    "bfloat16": "bf16",
    "float16": "bf16",
    "half": "bf16",
    "float32": "bf16",
    "float8_e4m3fn": "fp8",
}
"""What `dtype` calls each type; files in float32 are served in 16 bits unless one asks otherwise, as vLLM does."""
DTYPES = ("dtype", "torch_dtype")
IGNORED = ("ignore", "modules_to_not_convert", "exclude_modules", "exclude")
"""Where the names of what is not quantized stand."""
MODULES: dict[Part, tuple[str, ...]] = {
    "attention": ("self_attn.o_proj", "self_attn.dense", "attention.o_proj"),
    "shared": ("mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj"),
    "dense": ("mlp.down_proj", "feed_forward.w2"),
}
"""A matrix of each part that is named when the part is, by what the families call it."""
LAYERS = ("model.layers.{}.{}", "model.language_model.layers.{}.{}", "language_model.model.layers.{}.{}")
"""What a matrix of a layer is called in all."""
GIVE_TYPE = "Take it out of the file and say in which type the weights are."


def weights_type(it: Config) -> Weights:
    """The type in which the weights are stored: by their quantization, else by `dtype`; bf16 where nothing is said."""
    key, quantization = it.first(("quantization_config", "compression_config"))
    if isinstance(quantization, Mapping):
        return quantized_type(it, quantization)
    if quantization is not None:
        raise it.wrong(key, f"is {quantization!r:.40} and no object", GIVE_TYPE)
    key, value = it.first(DTYPES)
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
        return integers(it, method, quantization.get("bits", quantization.get("w_bit")), alone=True)
    if method == "bitsandbytes":
        return "int4" if quantization.get("load_in_4bit") else "int8"
    if method == "compressed-tensors":
        return compressed(it, quantization)
    if method.startswith("modelopt"):
        return modelopt(it, str(quantization.get("quant_algo", method)).upper())
    if method == "quark":
        return quark(it, quantization)
    raise it.wrong("quantization_config", f"has the unknown quant_method {method!r}", GIVE_TYPE)


def modelopt(it: Config, algorithm: str) -> Weights:
    """The type of weights that NVIDIA's Model Optimizer made, by the name of its algorithm."""
    known: dict[str, Weights] = {
        "NVFP4": "fp4",
        "MXFP4": "mxfp4",
        "FP8": "fp8",
        "W4A16": "int4",
        "FP4": "fp4",
    }
    found = next((weights for name, weights in known.items() if name in algorithm), None)
    if found is None:
        raise it.wrong(
            "quantization_config", f"has the unknown quant_algo {algorithm!r} of modelopt", GIVE_TYPE
        )
    return found


def integers(it: Config, method: str, bits: object, *, alone: bool = False) -> Weights:
    """The type of weights that are whole numbers of so many bits, activations being so too or weights `alone`."""
    if bits == 4:
        return "int4"
    if bits == 8:
        return "w8a16" if alone else "int8"
    raise it.wrong("quantization_config", f"has {bits!r} bits with {method}; known are 4 and 8", GIVE_TYPE)


def compressed(it: Config, quantization: Mapping[str, Any]) -> Weights:
    """The type of compressed-tensors, by the first of its groups that has weights."""
    groups = quantization.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if isinstance(weights, Mapping):
            alone = group.get("input_activations") is None
            if weights.get("type") != "float":
                return integers(it, "compressed-tensors", weights.get("num_bits"), alone=alone)
            if weights.get("num_bits") == 8:
                return "w8a16" if alone else "fp8"
            if weights.get("num_bits") == 4 and weights.get("group_size") == 32:
                return "mxfp4"
            if weights.get("num_bits") == 4:
                return "nvfp4a16" if alone else "fp4"
    raise it.wrong(
        "quantization_config", "has no config_groups whose weights have a known type and num_bits", GIVE_TYPE
    )


def quark(it: Config, quantization: Mapping[str, Any]) -> Weights:
    """The type of weights that Quark made, by the type of all layers."""
    every = quantization.get("global_quant_config")
    weight = every.get("weight") if isinstance(every, Mapping) else None
    kind = str(weight.get("dtype")) if isinstance(weight, Mapping) else "none"
    alone = isinstance(every, Mapping) and every.get("input_tensors") is None
    if kind.startswith("fp8"):
        return "w8a16" if alone else "fp8"
    if kind == "fp4":
        return "mxfp4"
    if kind == "int4" or kind == "int8":
        return integers(it, "quark", int(kind[-1]), alone=alone)
    raise it.wrong(
        "quantization_config", f"has the unknown weight dtype {kind!r} in global_quant_config", GIVE_TYPE
    )


def plain_parts(it: Config, layers: int, dense_layers: int, experts: int) -> tuple[Part, ...]:
    """The parts whose matrices the quantization leaves out, in most of the layers that have them."""
    quantization = it.config.get("quantization_config") or it.config.get("compression_config")
    if not isinstance(quantization, Mapping):
        return ()
    lists = (quantization[key] for key in IGNORED if isinstance(quantization.get(key), list))
    left_out = [pattern(it, name) for names in lists for name in names if isinstance(name, str)]
    spans: dict[Part, range] = {
        "attention": range(layers),
        "dense": range(dense_layers if experts else layers),
    }
    if experts:
        spans["shared"] = range(dense_layers, layers)
    return tuple(
        part
        for part, span in spans.items()
        if span and 2 * sum(is_left_out(left_out, MODULES[part], layer) for layer in span) > len(span)
    )


def is_left_out(left_out: list[Callable[[str], object]], modules: tuple[str, ...], layer: int) -> bool:
    """Whether one of the matrices of a part is left out in a layer."""
    names = [form.format(layer, module) for form in LAYERS for module in modules]
    return any(matches(name) for matches in left_out for name in names)


def pattern(it: Config, word: str) -> Callable[[str], object]:
    """What a name of a module that is left out stands for: itself and all below it.

    `re:` begins an expression (compressed-tensors), `*` is anything (Model Optimizer, transformers), and a word without
    layers is one of any layer.
    """
    try:
        if word.startswith("re:"):
            return re.compile(word.removeprefix("re:")).match
        form = ".*".join(map(re.escape, word.split("*")))
        return re.compile(rf"(?:^|\.){form}(?:\.|$)").search
    except re.error as error:
        raise it.wrong(
            "quantization_config", f"leaves out {word!r}, which is no expression: {error}", GIVE_TYPE
        ) from None
