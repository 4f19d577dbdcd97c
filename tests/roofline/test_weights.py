from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import UsageError
from loadstone.roofline.models import MODELS
from loadstone.roofline.setup import Parallel, Weights
from loadstone.roofline.shape import Latent, Shape
from loadstone.roofline.weights import (
    BITS,
    KV_BYTES,
    active_parameters,
    held_bytes,
    kv_layer_bytes,
    kv_token_bytes,
    matrices,
    pair_flops,
    parts,
    stage_layers,
    total_parameters,
    weight_bytes,
    weights_of,
)

GIB = 2**30
LLAMA = MODELS["llama-3.1-8b"]
DEEPSEEK = MODELS["deepseek-v3"]
OSS = MODELS["gpt-oss-120b"]
QWEN = MODELS["qwen3-235b-a22b"]


@pytest.mark.parametrize(
    ("name", "published"),
    [
        # what Hugging Face counts in the safetensors files of each model; tied output matrices once
        ("qwen3-0.6b", 596_049_920),
        ("qwen3-1.7b", 1_720_574_976),
        ("qwen3-4b", 4_022_468_096),
        ("qwen3-8b", 8_190_735_360),
        ("qwen3-14b", 14_768_307_200),
        ("qwen3-32b", 32_762_123_264),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("qwen3-235b-a22b", 235_093_634_560),
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("llama-3.2-1b", 1_235_814_400),
        ("llama-3.2-3b", 3_212_749_824),
        ("mixtral-8x7b", 46_702_792_704),
        ("mistral-7b", 7_248_023_552),
        ("qwen2.5-7b", 7_615_616_512),
        ("qwen2.5-32b", 32_763_876_352),
        ("qwen2.5-72b", 72_706_203_648),
        ("smollm2-135m", 134_515_008),
        # README_WEIGHTS.md of deepseek-ai/DeepSeek-V3, without the module for multi-token prediction
        ("deepseek-v3", 671e9),
        # table 1 of the gpt-oss model card (arXiv 2508.10925)
        ("gpt-oss-20b", 20.91e9),
        ("gpt-oss-120b", 116.83e9),
    ],
)
def test_parameters_are_the_published_ones(name: str, published: float) -> None:
    assert total_parameters(MODELS[name]) == pytest.approx(published, rel=0.0005)


def test_models_without_biases_and_other_trifles_are_counted_exactly() -> None:
    assert total_parameters(MODELS["llama-3.1-405b"]) == 405_853_388_800
    assert total_parameters(MODELS["mixtral-8x7b"]) == 46_702_792_704


@pytest.mark.parametrize(
    ("name", "published", "within"),
    [
        # README_WEIGHTS.md of DeepSeek-V3: 36.7 B; its paper rounds to 37 B
        ("deepseek-v3", 36.7e9, 0.005),
        # table 1 of the gpt-oss model card
        ("gpt-oss-20b", 3.61e9, 0.005),
        ("gpt-oss-120b", 5.13e9, 0.005),
        # table 2 of the Qwen3 report (arXiv 2505.09388), rounded there
        ("qwen3-235b-a22b", 22e9, 0.025),
        ("qwen3-30b-a3b", 3e9, 0.025),
        # the Mixtral paper (arXiv 2401.04088), rounded there
        ("mixtral-8x7b", 13e9, 0.025),
    ],
)
def test_active_parameters_are_the_published_ones(name: str, published: float, within: float) -> None:
    assert active_parameters(MODELS[name]) == pytest.approx(published, rel=within)


def test_qwen_counts_the_embeddings_as_active_too() -> None:
    assert active_parameters(QWEN) + matrices(QWEN).embedding == pytest.approx(22e9, rel=0.01)


def test_all_but_the_embeddings_of_a_dense_model_is_active() -> None:
    assert active_parameters(LLAMA) == 8_030_261_248 - 128256 * 4096


def test_a_tied_output_matrix_is_counted_once() -> None:
    small = MODELS["llama-3.2-1b"]
    assert total_parameters(small) == active_parameters(small)


@pytest.mark.parametrize(("name", "gib"), [("gpt-oss-20b", 12.8), ("gpt-oss-120b", 60.8)])
def test_mxfp4_weighs_what_the_published_files_weigh(name: str, gib: float) -> None:
    assert weight_bytes(MODELS[name], "mxfp4") / GIB == pytest.approx(gib, rel=0.01)


def test_bf16_weighs_two_bytes_a_parameter() -> None:
    assert weight_bytes(LLAMA, "bf16") == 2 * 8_030_261_248
    assert weight_bytes(LLAMA, "fp32") == 4 * 8_030_261_248


@pytest.mark.parametrize(
    ("weights", "bits"), [("fp8", 8), ("int8", 8), ("int4", 4.15625), ("mxfp4", 4.25), ("fp4", 4.5)]
)
def test_quantization_spares_embeddings_output_matrix_and_norms(weights: Weights, bits: float) -> None:
    spared = 2 * 128256 * 4096 + 65 * 4096
    assert weight_bytes(LLAMA, weights) == (total_parameters(LLAMA) - spared) * bits / 8 + 2 * spared


def test_fp8_spares_routers() -> None:
    bf16 = weight_bytes(QWEN, "bf16")
    spared = 2 * 151936 * 4096 + (2 * 94 + 1) * 4096 + 94 * 128 * 4096
    assert bf16 - weight_bytes(QWEN, "fp8") == total_parameters(QWEN) - spared


def test_mxfp4_leaves_the_attention_of_a_mixture_bf16() -> None:
    it = parts(OSS, "mxfp4")
    attention = 36 * 2880 * 64 * (2 * 64 + 2 * 8)
    router = 36 * 128 * 2880
    assert it.always_bytes == 2 * (attention + router + 73 * 2880)
    assert (it.linear_flops, it.plain_flops) == (0, 2 * (attention + router))
    assert parts(OSS, "fp8").linear_flops == 2 * attention


def test_the_type_of_a_shape() -> None:
    assert (weights_of(DEEPSEEK), weights_of(OSS), weights_of(LLAMA)) == ("fp8", "mxfp4", "bf16")
    with pytest.raises(
        UsageError, match=r"llama-3\.1-8b: unknown type of weights 'int3'\. Known: fp32, bf16"
    ):
        weights_of(msgspec.structs.replace(LLAMA, weights="int3"))


@pytest.mark.parametrize(
    ("name", "kv", "token_bytes"),
    [
        ("llama-3.1-8b", "bf16", 131_072),
        ("llama-3.1-8b", "fp8", 65_536),
        ("llama-3.1-70b", "bf16", 327_680),
        ("deepseek-v3", "bf16", 70_272),
        ("qwen3-235b-a22b", "bf16", 192_512),
        ("gpt-oss-120b", "bf16", 73_728),
        ("smollm2-135m", "fp32", 46_080),
    ],
)
def test_what_a_token_keeps_in_the_kv_cache(name: str, kv: str, token_bytes: int) -> None:
    assert kv_token_bytes(MODELS[name], kv) == token_bytes  # type: ignore[arg-type]


@pytest.mark.parametrize(("tensor", "heads"), [(1, 8), (2, 4), (8, 1), (16, 1)])
def test_kv_heads_are_split_until_there_is_one_on_each_device(tensor: int, heads: int) -> None:
    assert kv_layer_bytes(LLAMA, "bf16", tensor) == 2 * heads * 128 * 2


def test_latent_keys_and_values_are_on_every_device() -> None:
    assert kv_layer_bytes(DEEPSEEK, "bf16", 8) == kv_layer_bytes(DEEPSEEK, "bf16") == (512 + 64) * 2


def test_attention_flops_of_a_pair() -> None:
    assert pair_flops(LLAMA) == pair_flops(LLAMA, absorbed=True) == 4 * 32 * 128
    assert pair_flops(DEEPSEEK) == 2 * 128 * (192 + 128)
    assert pair_flops(DEEPSEEK, absorbed=True) == 2 * 128 * (576 + 512)


def test_a_dense_model_streams_the_same_for_any_number_of_tokens() -> None:
    it = parts(LLAMA, "bf16")
    assert it.always_bytes + it.output_bytes == 2 * active_parameters(LLAMA)
    assert it.output_bytes == 2 * 128256 * 4096
    assert it.distinct_experts(8192) == it.expert_bytes == it.chosen == 0


def test_one_token_streams_its_own_experts() -> None:
    it = parts(DEEPSEEK, "bf16")
    assert it.distinct_experts(1) == pytest.approx(8)
    routed = it.expert_layers * it.chosen * it.expert_bytes
    assert it.chosen == 8
    assert it.always_bytes + it.output_bytes + routed == pytest.approx(2 * active_parameters(DEEPSEEK))


@pytest.mark.parametrize(("tokens", "distinct"), [(0, 0), (1, 8), (2, 15.75), (32, 163.314), (4096, 256)])
def test_distinct_experts_of_a_batch(tokens: int, distinct: float) -> None:
    assert parts(DEEPSEEK, "fp8").distinct_experts(tokens) == pytest.approx(distinct, abs=0.001)


def test_experts_are_read_for_the_tokens_of_all_devices() -> None:
    it = parts(DEEPSEEK, "fp8", Parallel(data=8, expert=True))
    assert (it.experts, it.chosen) == (32, 1)
    assert it.distinct_experts(256) == pytest.approx(32 * (1 - (1 - 8 / 256) ** 256))


def test_flops_of_a_token_are_twice_its_matrices() -> None:
    for shape in (LLAMA, DEEPSEEK, OSS, QWEN):
        it = parts(shape, "bf16")
        flops = it.linear_flops + it.plain_flops + it.chosen * it.expert_flops + it.output_flops
        assert flops == pytest.approx(2 * (active_parameters(shape) - matrices(shape).norms), rel=1e-12)


def test_tensor_parallel_devices_share_all_but_routers_and_norms() -> None:
    one, four = parts(QWEN, "bf16"), parts(QWEN, "bf16", Parallel(tensor=4))
    common = 2 * (94 * 128 * 4096 + 189 * 4096)
    assert four.always_bytes == (one.always_bytes - common) / 4 + common
    assert (four.expert_bytes, four.experts) == (one.expert_bytes / 4, 128)
    assert (four.output_bytes, four.expert_flops) == (one.output_bytes / 4, one.expert_flops / 4)


def test_expert_parallel_devices_have_whole_experts_and_the_same_bytes() -> None:
    tensor = parts(QWEN, "bf16", Parallel(tensor=4))
    expert = parts(QWEN, "bf16", Parallel(tensor=4, expert=True))
    assert (expert.expert_bytes, expert.experts) == (4 * tensor.expert_bytes, 32)
    assert expert.distinct_experts(1) * expert.expert_flops == pytest.approx(8 * tensor.expert_flops)
    assert held_bytes(QWEN, "bf16", Parallel(tensor=4, expert=True)) == held_bytes(
        QWEN, "bf16", Parallel(tensor=4)
    )


def test_experts_that_do_not_share_out_evenly_count_on_the_device_that_has_most() -> None:
    assert parts(DEEPSEEK, "fp8", Parallel(tensor=3, expert=True)).experts == 86


def test_the_compressions_of_latent_attention_are_on_every_device() -> None:
    one = parts(DEEPSEEK, "bf16").linear_flops
    eight = parts(DEEPSEEK, "bf16", Parallel(tensor=8)).linear_flops
    copied = 61 * 7168 * (1536 + 512 + 64)
    assert eight == pytest.approx(one / 8 + 2 * copied * 7 / 8)


@pytest.mark.parametrize(
    ("layers", "pipeline", "dealt"),
    [
        (32, 1, [32]),
        (32, 4, [8, 8, 8, 8]),
        (61, 4, [15, 15, 16, 15]),
        (126, 4, [31, 32, 32, 31]),
        (35, 3, [12, 12, 11]),
        (3, 2, [2, 1]),
    ],
)
def test_layers_left_over_go_before_the_last_stage(layers: int, pipeline: int, dealt: list[int]) -> None:
    assert stage_layers(layers, pipeline) == dealt


def test_the_heaviest_pipeline_stage() -> None:
    layer = (8_030_261_248 - 2 * 128256 * 4096 - 4096) // 32
    assert held_bytes(LLAMA, "bf16", Parallel(pipeline=2)) == 2 * (16 * layer + 128256 * 4096 + 4096)


def test_the_two_ends_of_a_pipeline_have_a_tied_matrix_each() -> None:
    small = MODELS["llama-3.2-1b"]
    layer = (total_parameters(small) - 128256 * 2048 - 2048) // 16
    assert held_bytes(small, "bf16", Parallel(pipeline=2)) == 2 * (8 * layer + 128256 * 2048 + 2048)


def test_layers_without_experts_make_the_first_stage_lighter() -> None:
    stages = held_bytes(DEEPSEEK, "fp8", Parallel(pipeline=2))
    assert stages > weight_bytes(DEEPSEEK, "fp8") / 2


SIZES = st.integers(1, 64)
LATENTS = st.none() | st.builds(
    Latent, kv_rank=SIZES, rope_dim=SIZES, nope_dim=SIZES, value_dim=SIZES, query_rank=st.none() | SIZES
)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Any shape there can be, in small."""
    layers = draw(st.integers(1, 12))
    experts = draw(st.sampled_from([0, 4, 16]))
    kv_heads = draw(st.sampled_from([1, 2, 8]))
    return Shape(
        name="any",
        layers=layers,
        hidden=draw(SIZES),
        vocabulary=draw(SIZES),
        heads=kv_heads * draw(st.integers(1, 4)),
        kv_heads=kv_heads,
        head_dim=draw(SIZES),
        ffn=draw(SIZES),
        gated=draw(st.booleans()),
        tied_embeddings=draw(st.booleans()),
        latent=draw(LATENTS),
        experts=experts,
        experts_per_token=draw(st.integers(1, experts)) if experts else 0,
        expert_ffn=draw(SIZES) if experts else 0,
        shared_ffn=draw(st.integers(0, 64)) if experts else 0,
        dense_layers=draw(st.integers(0, layers)) if experts else 0,
        max_model_len=1024,
        source="drawn",
    )


TYPES = st.sampled_from(list(BITS))


@given(shapes(), TYPES)
def test_more_tokens_need_more_experts_and_never_more_than_there_are(shape: Shape, weights: Weights) -> None:
    it = parts(shape, weights)
    needed = [it.distinct_experts(tokens) for tokens in (0, 1, 2, 3, 10, 100, 10_000)]
    assert needed[0] == 0
    assert needed[1] == pytest.approx(it.chosen)
    assert all(less <= more for less, more in pairwise(needed))
    assert needed[-1] <= it.experts


@given(shapes(), TYPES)
def test_what_one_device_holds_is_the_sum_of_its_parts(shape: Shape, weights: Weights) -> None:
    it = parts(shape, weights)
    tied = it.output_bytes if shape.tied_embeddings else 0
    routed = it.expert_layers * it.experts * it.expert_bytes
    whole = it.embedding_bytes + it.output_bytes - tied + it.always_bytes + routed
    assert weight_bytes(shape, weights) == round(whole)


@given(shapes(), TYPES, st.sampled_from([1, 2, 4]), st.integers(1, 4), st.booleans())
def test_a_device_holds_between_its_share_and_all(
    shape: Shape, weights: Weights, tensor: int, pipeline: int, expert: bool
) -> None:
    pipeline = min(pipeline, shape.layers)
    held = held_bytes(shape, weights, Parallel(tensor=tensor, pipeline=pipeline, expert=expert))
    whole = weight_bytes(shape, weights)
    assert whole / (tensor * pipeline) - 1 <= held <= whole + 1


@given(shapes(), TYPES)
def test_fewer_bits_never_weigh_more(shape: Shape, weights: Weights) -> None:
    assert weight_bytes(shape, weights) <= weight_bytes(shape, "bf16" if BITS[weights] <= 16 else "fp32")


@given(shapes(), st.sampled_from(list(KV_BYTES)), st.sampled_from([1, 2, 4, 8]))
def test_kv_bytes_of_all_devices_are_never_less_than_those_of_one(shape: Shape, kv: str, tensor: int) -> None:
    one = kv_token_bytes(shape, kv)  # type: ignore[arg-type]
    each = kv_token_bytes(shape, kv, tensor)  # type: ignore[arg-type]
    assert one <= each * tensor
    assert each <= one
