from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import UsageError
from loadstone.roofline.hf_config import shape_of
from loadstone.roofline.models import MODELS
from loadstone.roofline.shape import Latent, Shape
from loadstone.roofline.weights import (
    active_parameters,
    matrices,
    parts,
    total_parameters,
    weight_bytes,
)

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 128256,
}
QWEN3_MOE: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "max_position_embeddings": 40960,
    "max_window_layers": 48,
    "mlp_only_layers": [],
    "moe_intermediate_size": 768,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "sliding_window": None,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
DEEPSEEK: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "first_k_dense_replace": 3,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163840,
    "moe_intermediate_size": 2048,
    "moe_layer_freq": 1,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
    "torch_dtype": "bfloat16",
    "v_head_dim": 128,
    "vocab_size": 129280,
}
GPT_OSS: dict[str, Any] = {
    "model_type": "gpt_oss",
    "experts_per_token": 4,
    "head_dim": 64,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "max_position_embeddings": 131072,
    "num_attention_heads": 64,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
    "sliding_window": 128,
    "tie_word_embeddings": False,
    "vocab_size": 201088,
}
GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_inner": None,
    "n_layer": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}
FALCON: dict[str, Any] = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "multi_query": True,
    "new_decoder_architecture": False,
    "num_attention_heads": 71,
    "num_hidden_layers": 32,
    "torch_dtype": "bfloat16",
    "vocab_size": 65024,
}
LLAMA4: dict[str, Any] = {
    "model_type": "llama4",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "llama4_text",
        "attention_chunk_size": 8192,
        "head_dim": 128,
        "hidden_size": 5120,
        "interleave_moe_layer_step": 1,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "max_position_embeddings": 10485760,
        "num_attention_heads": 40,
        "num_experts_per_tok": 1,
        "num_hidden_layers": 48,
        "num_key_value_heads": 8,
        "num_local_experts": 16,
        "vocab_size": 202048,
    },
    "vision_config": {"hidden_size": 1408, "num_hidden_layers": 34},
}


def shape(config: dict[str, Any], **changes: Any) -> Shape:
    """The shape of a config with some keys changed; ... takes a key out."""
    changed = {key: value for key, value in {**config, **changes}.items() if value is not ...}
    return shape_of(changed, "it")


def refusal(config: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(UsageError) as caught:
        shape(config, **changes)
    return str(caught.value)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (LLAMA, "llama-3.1-8b"),
        (QWEN3_MOE, "qwen3-30b-a3b"),
        (DEEPSEEK, "deepseek-v3"),
        (GPT_OSS, "gpt-oss-20b"),
    ],
)
def test_the_table_has_what_the_configs_say(config: dict[str, Any], name: str) -> None:
    known = MODELS[name]
    assert shape(config) == msgspec.structs.replace(known, name="it", source="config.json of it")


def test_a_llama() -> None:
    assert shape(LLAMA) == Shape(
        name="it",
        layers=32,
        hidden=4096,
        vocabulary=128256,
        heads=32,
        kv_heads=8,
        head_dim=128,
        ffn=14336,
        max_model_len=131072,
        source="config.json of it",
    )


def test_a_mixture_whose_every_layer_has_experts() -> None:
    it = shape(QWEN3_MOE)
    assert (it.ffn, it.dense_layers) == (0, 0)
    assert (it.experts, it.experts_per_token, it.expert_ffn, it.shared_ffn) == (128, 8, 768, 0)
    assert (it.window, it.windowed_layers) == (None, 0)


def test_latent_attention_dense_layers_and_a_shared_expert() -> None:
    it = shape(DEEPSEEK)
    assert it.latent == Latent(kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128, query_rank=1536)
    assert (it.head_dim, it.ffn, it.dense_layers, it.shared_ffn, it.weights) == (192, 18432, 3, 2048, "fp8")
    assert total_parameters(it) == 671_026_279_424


def test_latent_attention_without_compressed_queries() -> None:
    assert shape(DEEPSEEK, q_lora_rank=None).latent == Latent(
        kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128, query_rank=None
    )


def test_windows_in_every_other_layer() -> None:
    it = shape(GPT_OSS)
    assert (it.window, it.windowed_layers, it.expert_ffn, it.weights) == (128, 12, 2880, "mxfp4")
    assert shape(GPT_OSS, layer_types=...) == it


def test_the_oldest_names() -> None:
    it = shape(GPT2)
    assert (it.layers, it.hidden, it.heads, it.kv_heads, it.head_dim) == (12, 768, 12, 12, 64)
    assert (it.ffn, it.gated, it.tied_embeddings, it.max_model_len) == (3072, False, True, 1024)
    positions = 1024 * 768
    assert total_parameters(it) + positions == pytest.approx(124_439_808, rel=0.001)  # 0.1 %: biases


def test_queries_that_share_one_kv_head() -> None:
    it = shape(FALCON)
    assert (it.kv_heads, it.ffn, it.gated, it.max_model_len) == (1, 18176, False, 2048)
    # 7,217,189,760 in the files of tiiuae/falcon-7b, which hold the tied output matrix a second time
    assert total_parameters(it) + 65024 * 4544 == pytest.approx(7_217_189_760, rel=0.001)


def test_kv_heads_of_falcons_second_architecture() -> None:
    assert shape(FALCON, new_decoder_architecture=True, num_attention_heads=64, hidden_size=8192, num_kv_heads=8).kv_heads == 8  # fmt: skip


def test_a_model_that_also_sees_is_its_part_that_writes() -> None:
    it = shape(LLAMA4)
    assert (it.layers, it.hidden, it.experts, it.experts_per_token, it.weights) == (48, 5120, 16, 1, "bf16")
    assert (it.shared_ffn, it.expert_ffn, it.window, it.windowed_layers) == (8192, 8192, 8192, 36)
    # 109 B in all with its eyes, 17 B active: meta-llama/Llama-4-Scout-17B-16E
    assert total_parameters(it) == pytest.approx(108e9, rel=0.01)
    assert active_parameters(it) + 202048 * 5120 == pytest.approx(17e9, rel=0.02)


def test_every_other_layer_of_llama_4_maverick_has_experts() -> None:
    text = {**LLAMA4["text_config"], "interleave_moe_layer_step": 2, "num_local_experts": 128}
    it = shape(LLAMA4, text_config=text)
    assert (it.dense_layers, it.ffn) == (24, 16384)
    assert total_parameters(it) == pytest.approx(400e9, rel=0.01)


def test_what_is_said_once_for_all_parts_holds_for_the_one_that_writes() -> None:
    quantized = {"quant_method": "awq", "bits": 4}
    it = shape({"text_config": {**LLAMA, "tie_word_embeddings": None}}, tie_word_embeddings=True, quantization_config=quantized)  # fmt: skip
    assert (it.tied_embeddings, it.weights) == (True, "int4")


@pytest.mark.parametrize(
    ("changes", "dense_layers"),
    [
        ({"mlp_only_layers": [0, 5]}, 2),
        ({"decoder_sparse_step": 2}, 24),
        ({"first_k_dense_replace": 1}, 1),
        ({"moe_layer_freq": 3}, 32),
        ({"moe_layer_freq": [0] * 3 + [1] * 45}, 3),
        ({"mlp_layer_types": ["dense"] + ["sparse"] * 47}, 1),
    ],
)
def test_layers_without_experts(changes: dict[str, Any], dense_layers: int) -> None:
    it = shape(QWEN3_MOE, **changes)
    assert (it.dense_layers, it.ffn) == (dense_layers, 6144)


def test_a_mixture_without_a_layer_of_experts_is_dense() -> None:
    it = shape(QWEN3_MOE, first_k_dense_replace=48)
    assert (it.experts, it.experts_per_token, it.expert_ffn, it.dense_layers, it.ffn) == (0, 0, 0, 0, 6144)


@pytest.mark.parametrize(
    ("changes", "shared"),
    [
        ({"shared_expert_intermediate_size": 5632}, 5632),
        ({"n_shared_experts": 2}, 1536),
        ({"n_shared_experts": 0}, 0),
        ({"shared_intermediate_size": 1024}, 1024),
    ],
)
def test_shared_experts(changes: dict[str, Any], shared: int) -> None:
    assert shape(QWEN3_MOE, **changes).shared_ffn == shared


@pytest.mark.parametrize(
    ("changes", "windowed"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, (4096, 32)),
        ({"model_type": "mistral", "sliding_window": None}, (None, 0)),
        ({"sliding_window": 131072}, (None, 0)),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": False}, (None, 0)),
        ({"model_type": "qwen2", "sliding_window": 4096}, (None, 0)),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28}, (4096, 4)),
        ({"model_type": "gemma2", "sliding_window": 4096}, (4096, 16)),
        ({"model_type": "gemma3_text", "sliding_window": 1024}, (1024, 27)),
        ({"model_type": "cohere2", "sliding_window": 4096, "sliding_window_pattern": 8}, (4096, 28)),
        ({"sliding_window": 4096, "layer_types": ["full_attention"] * 32}, (None, 0)),
    ],
)  # fmt: skip
def test_windows(changes: dict[str, Any], windowed: tuple[int | None, int]) -> None:
    it = shape(LLAMA, **changes)
    assert (it.window, it.windowed_layers) == windowed


def group(*, alone: bool = False, **weights: Any) -> dict[str, Any]:
    """A group of compressed-tensors whose activations are quantized like its weights, or the weights alone."""
    one = {"weights": weights, "input_activations": None if alone else weights, "targets": ["Linear"]}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": one}}


def quark(kind: str, *, alone: bool = False) -> dict[str, Any]:
    every = {"weight": {"dtype": kind}, "input_tensors": None if alone else {"dtype": kind}}
    return {"quant_method": "quark", "global_quant_config": every}


@pytest.mark.parametrize(
    ("quantization", "weights"),
    [
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4"),
        ({"quant_method": "awq", "w_bit": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "w8a16"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
        ({"quant_method": "modelopt_fp4"}, "fp4"),
        ({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"}, "int4"),
        (quark("fp8_e4m3"), "fp8"),
        (quark("fp8_e4m3", alone=True), "w8a16"),
        (quark("fp4"), "mxfp4"),
        (quark("int4"), "int4"),
        (quark("int8"), "int8"),
        (quark("int8", alone=True), "w8a16"),
        (group(num_bits=8, type="float"), "fp8"),
        (group(num_bits=8, type="float", alone=True), "w8a16"),
        (group(num_bits=8, type="int"), "int8"),
        (group(num_bits=8, type="int", alone=True), "w8a16"),
        (group(num_bits=4, type="int", group_size=128), "int4"),
        (group(num_bits=4, type="float", group_size=16), "fp4"),
        (group(num_bits=4, type="float", group_size=16, alone=True), "nvfp4a16"),
        (group(num_bits=4, type="float", group_size=32), "mxfp4"),
    ],
)
def test_quantized_weights(quantization: dict[str, Any], weights: str) -> None:
    assert shape(LLAMA, quantization_config=quantization).weights == weights


@pytest.mark.parametrize(
    ("changes", "weights"),
    [
        ({}, "bf16"),
        ({"torch_dtype": "float16"}, "bf16"),
        ({"torch_dtype": ...}, "bf16"),
        ({"torch_dtype": "float32"}, "bf16"),
        ({"torch_dtype": ..., "dtype": "torch.bfloat16"}, "bf16"),
        ({"dtype": "float32"}, "bf16"),
    ],
)
def test_weights_that_are_not_quantized(changes: dict[str, Any], weights: str) -> None:
    assert shape(LLAMA, **changes).weights == weights


def test_files_in_float32_are_served_in_16_bits_which_is_said() -> None:
    assert shape(LLAMA).source == "config.json of it"
    assert shape(LLAMA, torch_dtype="float32").source == (
        "config.json of it; float32 is served as bf16 (--quantization fp32: as it is)"
    )


INT4_EXPERTS = {
    "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
    "quant_method": "compressed-tensors",
}


@pytest.mark.parametrize(
    ("left_out", "parts"),
    [
        ({"ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*"]}, ("attention", "shared")),
        ({"ignore": ["re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]}, ("dense",)),
        ({"ignore": [f"model.layers.{n}.self_attn*" for n in range(61)]}, ("attention",)),
        ({"modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}, ("attention",)),
        ({"modules_to_not_convert": ["self_attn"]}, ("attention",)),
        (
            {"ignore": [f"language_model.model.layers.{n}.self_attn.o_proj" for n in range(61)]},
            ("attention",),
        ),
        ({"ignore": [f"model.layers.{n}.self_attn.o_proj" for n in range(30)]}, ()),
        ({"ignore": [f"model.layers.{n}.mlp.gate" for n in range(61)]}, ()),
        ({"ignore": ["lm_head"]}, ()),
        ({}, ()),
    ],
)
def test_parts_that_are_left_out_of_the_quantization(
    left_out: dict[str, Any], parts: tuple[str, ...]
) -> None:
    it = shape(DEEPSEEK, quantization_config={**INT4_EXPERTS, **left_out})
    assert set(it.plain_parts) == set(parts)


def test_what_stays_bf16_is_held_and_streamed_as_bf16() -> None:
    everything = shape(DEEPSEEK, quantization_config=INT4_EXPERTS)
    experts = shape(DEEPSEEK, quantization_config={**INT4_EXPERTS, "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*"]})  # fmt: skip
    part = matrices(experts)
    more = (61 * part.attention + 58 * part.shared) * (16 - 4.15625) / 8
    assert weight_bytes(experts, "int4") - weight_bytes(everything, "int4") == pytest.approx(more)
    flops = parts(experts, "int4").plain_flops - parts(everything, "int4").plain_flops
    assert flops == pytest.approx(2 * (61 * part.attention + 58 * part.shared))
    streamed = parts(experts, "int4").always_bytes - parts(everything, "int4").always_bytes
    assert streamed == pytest.approx(more)
    assert weight_bytes(experts, "fp8") == weight_bytes(everything, "fp8")  # another copy is another file


def test_a_name_that_is_no_expression_is_refused() -> None:
    message = refusal(LLAMA, quantization_config={**INT4_EXPERTS, "ignore": ["re:("]})
    assert "leaves out 're:(', which is no expression" in message


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"head_dim": 64}, (32, 8, 64)),
        ({"head_dim": None}, (32, 8, 128)),
        ({"num_key_value_heads": None}, (32, 32, 128)),
        ({"num_key_value_heads": ..., "multi_query_group_num": 2}, (32, 2, 128)),
    ],
)
def test_heads(changes: dict[str, Any], parts: tuple[int, int, int]) -> None:
    it = shape(LLAMA, **changes)
    assert (it.heads, it.kv_heads, it.head_dim) == parts


@pytest.mark.parametrize(
    ("changes", "gated"),
    [
        ({}, True),
        ({"model_type": "starcoder2", "hidden_act": "gelu_pytorch_tanh"}, False),
        ({"model_type": "gemma2", "hidden_act": "gelu_pytorch_tanh"}, True),
        ({"model_type": "phi"}, False),
        ({"model_type": "phi3"}, True),
        ({"model_type": "gpt_neox"}, False),
        ({"hidden_act": "relu2"}, False),
    ],
)
def test_whether_feed_forward_parts_are_gated(changes: dict[str, Any], gated: bool) -> None:
    assert shape(LLAMA, **changes).gated is gated


@pytest.mark.parametrize(
    ("model_type", "tied"), [("gemma2", True), ("llama", False), ("qwen2", False), ("starcoder2", True)]
)
def test_tied_embeddings_where_nothing_is_said(model_type: str, tied: bool) -> None:
    assert shape(LLAMA, model_type=model_type, tie_word_embeddings=...).tied_embeddings is tied


@pytest.mark.parametrize(
    ("scaling", "longest"),
    [
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        ({"type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32768}, 262144),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 131072),
        ({"rope_type": "yarn", "factor": 4.0}, 131072),
        ({"type": "linear", "factor": 4.0}, 524288),
        ({"type": "dynamic", "factor": 2.0}, 262144),
        ({"rope_type": "longrope", "factor": 4.0}, 131072),
        ({"rope_type": "linear", "factor": 1e308}, 1 << 40),
        ({"type": "mrope", "mrope_section": [16, 24, 24]}, 131072),
        ({"rope_type": "yarn", "factor": float("nan"), "original_max_position_embeddings": 32768}, 131072),
    ],
)
def test_stretched_positions(scaling: dict[str, Any], longest: int) -> None:
    assert shape(LLAMA, rope_scaling=scaling).max_model_len == longest


@pytest.mark.parametrize(
    "key", ["num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size", "intermediate_size", "max_position_embeddings"]
)  # fmt: skip
def test_a_missing_size_is_named(key: str) -> None:
    message = refusal(LLAMA, **{key: ...})
    assert message.startswith(f"config.json of it: {key} is missing")
    assert message.endswith("Add it to the file.")


@pytest.mark.parametrize("absurd", [0, -1, True, "4096", 1.5, float("nan"), [4096], 1 << 30])
def test_an_absurd_size_is_named(absurd: object) -> None:
    message = refusal(LLAMA, hidden_size=absurd)
    assert message == (
        f"config.json of it: hidden_size is {absurd!r}, which is not a whole number from 1 to 16777216."
        " Correct the file."
    )


def test_a_size_may_be_written_as_a_float() -> None:
    assert shape(LLAMA, hidden_size=4096.0) == shape(LLAMA)


@pytest.mark.parametrize(
    ("config", "changes", "words"),
    [
        (LLAMA, {"num_key_value_heads": 5}, "num_key_value_heads is 5, which does not divide 32 heads"),
        (LLAMA, {"num_attention_heads": 24}, "head_dim is missing, and 24 heads do not divide hidden_size 4096"),
        (LLAMA, {"is_encoder_decoder": True}, "is_encoder_decoder is true"),
        (LLAMA, {"attn_type_list": [0, 1] * 16}, "attn_type_list has layers of linear attention"),
        (DEEPSEEK, {"index_topk": 2048}, "index_topk is set: its attention reads a choice of the tokens"),
        (QWEN3_MOE, {"parallel_attn_mlp_res": True}, "parallel_attn_mlp_res is set"),
        (LLAMA, {"num_kv_shared_layers": 10}, "num_kv_shared_layers is set"),
        (LLAMA, {"model_type": "mamba"}, "model_type is mamba, whose layers are not all attention"),
        (LLAMA, {"quantization_config": 5}, "quantization_config is 5 and no object"),
        (LLAMA, {"num_hidden_layers": 10_000_000}, "num_hidden_layers is 10000000, which is not a whole number from 1 to 4096"),
        (LLAMA, {"model_type": "bert"}, "model_type is bert, which encodes and decodes nothing"),
        (LLAMA, {"architectures": ["Qwen2ForSequenceClassification"]}, "which writes no answer"),
        (LLAMA, {"quantization_config": {"quant_method": "modelopt", "quant_algo": "W3"}}, "the unknown quant_algo 'W3'"),
        (LLAMA, {"mamba_d_state": 128}, "mamba_d_state belongs to a model whose layers are not all attention"),
        (LLAMA, {"layer_types": ["linear_attention"] * 32}, "layer_types has linear_attention"),
        (LLAMA, {"layer_types": ["full_attention"] * 31}, "layer_types has 31 entries for 32 layers"),
        (LLAMA, {"layer_types": ["sliding_attention"] * 32}, "sliding_window is missing, but 32 of layer_types"),
        (LLAMA, {"torch_dtype": "complex64"}, "torch_dtype is 'complex64'"),
        (LLAMA, {"quantization_config": {"quant_method": "aqlm"}}, "the unknown quant_method 'aqlm'"),
        (LLAMA, {"quantization_config": {"quant_method": "gptq", "bits": 3}}, "has 3 bits with gptq"),
        (LLAMA, {"quantization_config": {"quant_method": "quark"}}, "the unknown weight dtype 'none'"),
        (LLAMA, {"quantization_config": {"quant_method": "compressed-tensors"}}, "has no config_groups"),
        (QWEN3_MOE, {"num_experts_per_tok": 129}, "num_experts_per_tok is 129, but there are 128 experts"),
        (QWEN3_MOE, {"num_experts_per_tok": ...}, "num_experts_per_tok is missing"),
        (QWEN3_MOE, {"mlp_only_layers": 3}, "mlp_only_layers is 3 and no list"),
        (QWEN3_MOE, {"moe_layer_freq": [1]}, "moe_layer_freq has 1 entries for 48 layers"),
        (DEEPSEEK, {"v_head_dim": ...}, "v_head_dim is missing"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(config: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    message = refusal(config, **changes)
    assert message.startswith("config.json of it: ")
    assert words in message


def test_a_config_that_is_no_object() -> None:
    with pytest.raises(UsageError, match="it is no object but list"):
        shape_of([], "it")  # type: ignore[arg-type]


def test_keys_that_say_nothing_unusual_are_read_over() -> None:
    plain = {"attn_type_list": [1] * 32, "num_kv_shared_layers": 0, "architectures": ["LlamaForCausalLM"]}
    assert shape(LLAMA, **plain) == shape(LLAMA)


def test_what_gemma_3_leaves_out_is_that_of_its_family() -> None:
    text = {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024,
    }  # fmt: skip
    it = shape({"model_type": "gemma3", "text_config": text, "torch_dtype": "bfloat16"})
    assert (it.heads, it.kv_heads, it.head_dim, it.vocabulary) == (8, 4, 256, 262208)
    assert (it.window, it.windowed_layers, it.max_model_len) == (1024, 29, 131072)
    # 4.3 B with its eyes of 0.4 B: google/gemma-3-4b-it
    assert total_parameters(it) == pytest.approx(3.88e9, rel=0.001)


def test_windows_may_be_written_as_letters() -> None:
    it = shape(LLAMA, model_type="exaone4", sliding_window=4096, sliding_window_pattern="LLLG")
    assert (it.window, it.windowed_layers) == (4096, 24)


def test_sizes_of_parts_may_stand_in_tables_of_their_own() -> None:
    it = shape(
        {
            "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768, "vocab_size": 100352,
            "ffn_config": {"moe_num_experts": 16, "moe_top_k": 4, "ffn_hidden_size": 10752},
            "attn_config": {"kv_n_heads": 8},
        }
    )  # fmt: skip
    assert (it.kv_heads, it.experts, it.experts_per_token, it.expert_ffn) == (8, 16, 4, 10752)
    # 132 B in all, 36 B active: databricks/dbrx-instruct
    assert total_parameters(it) == pytest.approx(132e9, rel=0.005)
    assert active_parameters(it) == pytest.approx(36e9, rel=0.01)


VALUES = st.none() | st.booleans() | st.integers(-2, 100) | st.floats() | st.text(max_size=3)
ANYTHING = VALUES | st.lists(VALUES, max_size=3) | st.dictionaries(st.text(max_size=3), VALUES, max_size=2)


@given(st.data())
def test_a_damaged_config_makes_a_shape_or_a_refusal(data: st.DataObject) -> None:
    config = data.draw(st.sampled_from([LLAMA, QWEN3_MOE, DEEPSEEK, GPT_OSS, GPT2, FALCON, LLAMA4]))
    keys = st.sampled_from([*sorted(config), "layer_types", "rope_scaling", "text_config", "moe_layer_freq"])
    damage = data.draw(st.dictionaries(keys, ANYTHING, min_size=1, max_size=3))
    try:
        it = shape(config, **damage)
    except UsageError:
        return
    assert 0 < active_parameters(it) <= total_parameters(it)
