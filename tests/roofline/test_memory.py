"""Where memory goes: vLLM's start-up logs within the stated error, its defaults, and messages that say what helps."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loadstone.errors import Exit, UsageError
from loadstone.roofline import gpus, models
from loadstone.roofline.memory import (
    GIB,
    GRAPH_BYTES,
    Flags,
    OutOfMemory,
    activation_bytes,
    default_flags,
    memory,
    token_bytes,
)
from loadstone.roofline.setup import Parallel, Precision
from loadstone.roofline.weights import weights_of

H100 = gpus.find("h100")

LOGS = [
    ("llama-3.1-8b", "bf16", 1, 131_072, 14.99, 4.76, 51.38),
    ("llama-3.1-70b", "fp8", 2, 131_072, 33.88, 4.84, 32.00),
    ("qwen3-32b", "bf16", 1, 16_000, 61.03, 5.64, 4.45),
    ("qwen3-0.6b", "bf16", 1, 32_000, 1.12, 5.56, 64.45),
    ("gpt-oss-20b", "mxfp4", 1, 131_072, 13.47, 7.38, 50.28),
]
"""GiB a device of weights, activations and KV cache in llm-d-benchmark's starts of vLLM V1 on H100, utilization 0.9."""


def held(model, gpu="h100", stored=None, kv="bf16", utilization=0.9, **options):
    shape = models.find(model)
    split = {name: options.pop(name) for name in ("tensor", "pipeline", "data", "expert") if name in options}
    precision = Precision(weights=stored or weights_of(shape), kv=kv)
    return memory(shape, gpus.find(gpu), precision, Parallel(**split), utilization=utilization, **options)


@pytest.mark.parametrize(("model", "stored", "tensor", "longest", "weight", "activation", "kv"), LOGS)
def test_the_logs_of_starts(model, stored, tensor, longest, weight, activation, kv):
    found = held(model, stored=stored, tensor=tensor, max_model_len=longest)
    assert found.weight_bytes / GIB == pytest.approx(weight, rel=0.01)
    assert found.activation_bytes / GIB == pytest.approx(activation, rel=0.005)
    # these versions did not yet take CUDA graphs off
    assert (found.kv_bytes + GRAPH_BYTES) / GIB == pytest.approx(kv, rel=0.015)


def test_gpt_oss_120b_does_not_start_on_one_h100_unless_more_of_its_memory_is_used():
    # logged: -2.14 GiB with 0.9 (vllm-project/vllm issue 23278), 3.33 GiB with 0.95 (llm-d-benchmark)
    with pytest.raises(OutOfMemory, match="nothing is left"):
        held("gpt-oss-120b", stored="mxfp4", max_model_len=16)
    found = held("gpt-oss-120b", stored="mxfp4", utilization=0.95, max_model_len=16)
    assert found.weight_bytes / GIB == pytest.approx(64.38, rel=0.005)
    assert (found.kv_bytes + GRAPH_BYTES) / GIB == pytest.approx(3.33, abs=0.15)


def test_the_cache_of_a_large_model_with_experts_on_four_devices():
    found = held("qwen3-235b-a22b", stored="fp8", tensor=4, max_model_len=32_768)
    assert found.kv_tokens == pytest.approx(178_880, rel=0.1)  # vllm-project/vllm issue 21348
    assert found.token_bytes == 94 * 2 * 1 * 128 * 2


def test_what_is_used_is_shared_out():
    found = held("llama-3.1-8b", utilization=0.92)
    parts = found.weight_bytes + found.activation_bytes + found.other_bytes + found.kv_bytes
    assert parts == found.usable_bytes == int(found.total_bytes * 0.92)
    assert found.blocks == int(found.kv_bytes / (131_072 * 16))
    assert found.kv_tokens == found.blocks * 16


def test_sequences_begin_blocks_of_their_own():
    found = held("llama-3.1-8b")
    assert found.largest_batch(16) == found.largest_batch(1) == found.blocks
    assert found.largest_batch(17) == found.blocks // 2
    assert found.largest_batch(1600) == found.blocks // 100


def test_a_few_sequences_leave_the_feed_forward_parts_as_the_peak():
    shape = models.find("llama-3.1-8b")
    few = activation_bytes(shape, "bf16", 1, Flags(8192, 8))
    assert few == 8192 * (2 * 4096 + 3 * 14336) * 2
    assert activation_bytes(shape, "bf16", 4, Flags(8192, 8)) < few
    assert activation_bytes(shape, "fp32", 1, Flags(8192, 8)) == 2 * few


def test_devices_share_the_cache_as_far_as_there_are_heads():
    shape = models.find("llama-3.1-70b")
    each = [token_bytes(shape, Precision(), Parallel(tensor=n), 1000) for n in (1, 4, 8, 16)]
    assert each == [327_680, 81_920, 40_960, 40_960]
    assert token_bytes(shape, Precision(kv="fp8"), Parallel(tensor=8), 1000) == 20_480


def test_a_pipeline_stage_keeps_the_cache_of_its_layers():
    shape = models.find("llama-3.1-70b")
    assert token_bytes(shape, Precision(), Parallel(pipeline=2), 1000) == 163_840
    assert token_bytes(shape, Precision(), Parallel(pipeline=3), 1000) == pytest.approx(327_680 * 27 / 80)


def test_windowed_layers_keep_their_window():
    shape = models.find("gpt-oss-20b")
    short, long = (token_bytes(shape, Precision(), Parallel(), n) for n in (128, 128_000))
    assert short == 24 * 2 * 8 * 64 * 2
    assert long == pytest.approx(short / 2, rel=0.002)


@pytest.mark.parametrize("context", [100, 1152, 50_000])
def test_the_batch_of_a_context_is_the_same_whatever_the_longest_one(context):
    short = held("gpt-oss-20b", stored="mxfp4", max_model_len=context)
    long = held("gpt-oss-20b", stored="mxfp4", max_model_len=131_072)
    assert short.largest_batch(context) == long.largest_batch(context)
    blocks = -(-context // 16) * 16
    each = 12 * 2 * 8 * 64 * 2
    kept = blocks * each + min(blocks, 128) * each
    assert long.largest_batch(context) == long.kv_bytes // kept


@pytest.mark.parametrize(
    ("gpu", "devices", "flags"),
    [
        ("b200", 1, (16384, 1024)),
        ("mi300x", 1, (16384, 1024)),
        ("h100", 1, (8192, 1024)),
        ("h200", 8, (8192, 1024)),
        ("a100", 1, (2048, 256)),
        ("a100-40gb", 1, (2048, 256)),
        ("cpu", 1, (2048, 128)),
        ("cpu-xeon-8480", 2, (4096, 256)),
    ],
)
def test_the_defaults_of_vllm_by_device(gpu, devices, flags):
    assert default_flags(gpus.find(gpu), devices) == flags


def test_a_processor_has_neither_graphs_nor_cuda():
    assert held("qwen3-0.6b", "cpu-xeon-8480").other_bytes == 0


def test_weights_that_do_not_fit_say_what_helps():
    with pytest.raises(OutOfMemory) as told:
        held("llama-3.1-70b")
    assert str(told.value) == (
        "Out of memory: on each h100-sxm the weights of llama-3.1-70b (bf16) take 131.4 GiB, activations 4.8 and the rest"
        " 0.5, and of 79.2 GiB 71.3 may be used: nothing is left for the KV cache. Use --tensor-parallel-size 4,"
        " --quantization fp8 or int4 or a --gpu with more memory."
    )
    assert told.value.exit is Exit.USAGE


def test_what_is_too_large_for_a_node_is_told_to_use_stages():
    with pytest.raises(OutOfMemory, match="Use --pipeline-parallel-size 2, --quantization fp8 or int4 or"):
        held("llama-3.1-405b", tensor=8)


def test_weights_that_nearly_fit_are_told_to_use_smaller_steps_too():
    with pytest.raises(OutOfMemory, match=r"a lower --max-num-seqs \(now 1024\) or .* --gpu-memory-util"):
        held("llama-3.1-70b", stored="fp8")


def test_a_context_that_does_not_fit_is_told_the_longest_that_does():
    with pytest.raises(OutOfMemory, match="one sequence of 40,960 tokens") as told:
        held("qwen3-32b")
    longest = int(str(told.value).partition("--max-model-len ")[2].split()[0])
    assert held("qwen3-32b", max_model_len=longest).kv_tokens == longest
    with pytest.raises(OutOfMemory):
        held("qwen3-32b", max_model_len=longest + 1)


def test_a_cache_that_is_fp8_already_is_not_told_to_be():
    with pytest.raises(OutOfMemory, match="--kv-cache-dtype fp8"):
        held("qwen3-32b")
    with pytest.raises(OutOfMemory, match="or less, a higher --gpu-memory-utilization"):
        held("qwen3-32b", kv="fp8", max_model_len=10**6)


@given(
    st.sampled_from(sorted(models.MODELS)),
    st.sampled_from(sorted(gpus.GPUS)),
    st.sampled_from([1, 2, 4, 8]),
    st.floats(0.3, 0.95),
)
def test_more_devices_hold_no_less(model, gpu, tensor, utilization):
    options = {"utilization": utilization, "max_model_len": 256}
    try:
        alone = held(model, gpu, **options)
        split = held(model, gpu, tensor=tensor, **options)
    except UsageError:
        assume(False)
    assert split.weight_bytes <= alone.weight_bytes
    assert split.token_bytes <= alone.token_bytes
