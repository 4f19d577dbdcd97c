"""In which type a model's weights are stored, by what its `config.json` says of quantization and `dtype`.

One rule: what is not known is refused, since half the time of a step depends on it. Knows no sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadstone.roofline.hf_keys import Config
from loadstone.roofline.setup import Weights

TYPES: dict[str, Weights] = {
    "bfloat16": "bf16",
    "float16": "bf16",
    "half": "bf16",
    "float32": "fp32",
    "float8_e4m3fn": "fp8",
}
"""What `dtype` calls each type."""
GIVE_TYPE = "Take it out of the file and say in which type the weights are."


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
