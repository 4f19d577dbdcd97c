"""The time of a step: the datasheet's floor exactly, laws that hold for any work, and series equal to steps bit for bit."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loadstone.errors import UsageError
from loadstone.roofline import gpus, models, weights
from loadstone.roofline.case import settled
from loadstone.roofline.communication import (
    all_reduce_s,
    copies,
    layers_s,
    link_bytes_s,
    logits_s,
    most_bytes_s,
)
from loadstone.roofline.cost import ARITHMETIC, VECTORISED, Roofline, arithmetic, check_split
from loadstone.roofline.gpu import Gpu
from loadstone.roofline.setup import FLOOR, Efficiency, Parallel, Precision
from loadstone.roofline.work import Work, decodes, prompt, together

GIGA = 1e9
H100 = gpus.find("h100")
PEAKS = msgspec.structs.replace(FLOOR, latency=1.0, least=False)
"""The datasheet's peaks with the default estimates of all else."""
SPLITS = [
    Parallel(),
    Parallel(tensor=2),
    Parallel(pipeline=3),
    Parallel(tensor=2, pipeline=2),
    Parallel(tensor=2, data=2, expert=True),
    Parallel(data=8, expert=True),
]
FIELDS = [name for name in Work.__slots__ if not name.startswith("prefill_")]

model_names = st.sampled_from(sorted(models.MODELS))
gpu_names = st.sampled_from(sorted(gpus.GPUS))
precisions = st.builds(
    Precision, weights=st.sampled_from(sorted(ARITHMETIC)), kv=st.sampled_from(["bf16", "fp8", "fp32"])
)
efficiencies = st.builds(
    Efficiency,
    bandwidth=st.floats(0.05, 1),
    compute=st.floats(0.05, 1),
    step_s=st.floats(0, 0.01),
    layer_s=st.floats(0, 1e-4),
    sequence_s=st.floats(0, 1e-4),
    link=st.floats(0.1, 1),
    latency=st.floats(0, 3),
    least=st.booleans(),
)


@st.composite
def works(draw):
    """Work of decodes and of chunks of prompts, the sums of which are consistent."""
    batch = draw(st.integers(0, 2000))
    context = draw(st.integers(1, 200_000))
    window = draw(st.integers(1, 5000))
    work = decodes(batch, context, window)
    if draw(st.booleans()) or not batch:
        chunk = prompt(draw(st.integers(1, 20_000)), draw(st.integers(0, 100_000)), window)
        for name in Work.__slots__:
            setattr(work, name, getattr(work, name) + getattr(chunk, name))
    return work


@st.composite
def costs(draw, splits=SPLITS):
    """A cost of any model on any device."""
    try:
        return Roofline(
            models.find(draw(model_names)),
            gpus.find(draw(gpu_names)),
            draw(precisions),
            draw(st.sampled_from(splits)),
            draw(efficiencies),
            others=draw(st.floats(0, 1)),
        )
    except UsageError:
        assume(False)


def cost(model="llama-3.1-8b", gpu="h100", efficiency=FLOOR, kv="bf16", precision="bf16", **parallel):
    return Roofline(
        models.find(model),
        gpus.find(gpu),
        Precision(weights=precision, kv=kv),
        Parallel(**parallel),
        efficiency,
    )


# ---- the datasheet's floor -----------------------------------------------------------------------------


def test_one_sequence_on_an_h100_takes_once_through_the_weights():
    parts = weights.parts(models.find("llama-3.1-8b"), "bf16")
    streamed = parts.always_bytes + parts.output_bytes
    found = cost().parts(decodes(1, 1))
    assert found.linear_memory == pytest.approx(streamed / 3.35e12, rel=1e-15)
    assert found.total == pytest.approx((streamed + 131_072) / 3.35e12, rel=1e-15)
    assert cost().step_ns(decodes(1, 1)) == round((streamed + 131_072) / 3.35e12 * 1e9) == 4_480_591
    assert found.bound == "weights"


def test_each_token_of_context_adds_its_keys_and_values():
    found = cost().parts(decodes(3, 1000))
    assert found.attention_memory == pytest.approx(3000 * 131_072 / 3.35e12)
    assert cost(kv="fp8").parts(decodes(3, 1000)).attention_memory == pytest.approx(
        found.attention_memory / 2
    )


def test_a_prompt_takes_its_products():
    parts = weights.parts(models.find("llama-3.1-8b"), "bf16")
    found = cost().parts(prompt(8192))
    assert found.linear_compute == pytest.approx(
        (8192 * parts.linear_flops + parts.output_flops) / 989.4e12, rel=1e-12
    )
    assert found.attention_compute == pytest.approx(4 * 32 * 32 * 128 * 8192 * 8193 / 2 / 989.4e12)
    assert found.bound == "compute"
    output_memory = parts.output_bytes / 3.35e12
    assert found.total == pytest.approx(
        8192 * parts.linear_flops / 989.4e12 + output_memory + found.attention_compute
    )


def test_efficiencies_stretch_and_overheads_add():
    floor = cost().parts(decodes(10, 500))
    real = cost(
        efficiency=Efficiency(bandwidth=0.5, compute=0.25, step_s=0.001, layer_s=1e-4, sequence_s=1e-5)
    )
    found = real.parts(decodes(10, 500))
    assert found.linear_memory == pytest.approx(2 * floor.linear_memory)
    assert found.linear_compute == pytest.approx(4 * floor.linear_compute)
    assert found.overhead == pytest.approx(0.001 + 32 * 1e-4 + 10 * 1e-5)
    assert found.total == pytest.approx(
        2 * floor.linear_memory + 2 * floor.attention_memory + 0.0043, rel=1e-9
    )


@pytest.mark.parametrize(
    ("work", "gpu", "model", "bound"),
    [
        (decodes(1, 100), "h100", "llama-3.1-8b", "weights"),
        (decodes(200, 8000), "h100", "llama-3.1-8b", "kv"),
        (prompt(4000), "h100", "llama-3.1-8b", "compute"),
        (decodes(64, 100), "cpu", "qwen3-0.6b", "compute"),
    ],
)
def test_what_binds(work, gpu, model, bound):
    assert cost(model, gpu).parts(work).bound == bound


def test_overhead_and_links_bind_too():
    slow = Efficiency(step_s=1.0)
    assert cost(efficiency=slow).parts(decodes(1, 1)).bound == "overhead"
    assert cost("qwen3-0.6b", "h100-pcie", PEAKS, tensor=8).parts(decodes(1, 1)).bound == "communication"


# ---- arithmetic ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "stored", "multiplied"),
    [
        ("h100", "bf16", "bf16"),
        ("h100", "fp8", "fp8"),
        ("a100", "fp8", "bf16"),
        ("a100", "int8", "int8"),
        ("h100", "int4", "bf16"),
        ("b200", "mxfp4", "bf16"),
        ("b200", "fp4", "fp4"),
        ("h100", "fp4", "bf16"),
        ("h100", "fp32", "fp32"),
        ("cpu", "bf16", "fp32"),
        ("cpu-xeon-8480", "bf16", "bf16"),
    ],
)
def test_weights_are_multiplied_in_the_nearest_arithmetic_that_there_is(gpu, stored, multiplied):
    assert arithmetic(gpus.find(gpu), stored) == multiplied


def test_hardware_without_an_arithmetic_is_refused():
    odd = Gpu(name="odd", title="", memory_bytes=1, bandwidth=1.0, flops={"int8": 1.0})
    with pytest.raises(UsageError, match=r"odd has no arithmetic for bf16 weights\. It has: int8"):
        arithmetic(odd, "bf16")


def test_attention_stays_bf16_when_weights_are_fp8():
    wide, narrow = cost().parts(prompt(1000)), cost(precision="fp8").parts(prompt(1000))
    assert narrow.attention_compute == wide.attention_compute
    assert narrow.linear_compute < 0.6 * wide.linear_compute


# ---- experts, windows, latent attention ----------------------------------------------------------------


def test_one_token_streams_the_experts_that_it_chose_and_many_all():
    sparse = cost("qwen3-30b-a3b", efficiency=PEAKS)
    one, many = sparse.parts(decodes(1, 1)), sparse.parts(decodes(2000, 1))
    assert one.linear_memory == pytest.approx(experts_s("qwen3-30b-a3b", 8))
    assert many.linear_memory == pytest.approx(experts_s("qwen3-30b-a3b", 128))


def experts_s(model, experts):
    """Streaming the weights with so many experts a layer."""
    parts = weights.parts(models.find(model), "bf16")
    routed = parts.expert_layers * experts * parts.expert_bytes
    return (parts.always_bytes + parts.output_bytes + routed) / 3.35e12


@pytest.mark.parametrize("batch", [1, 8, 512])
def test_in_the_floor_all_tokens_choose_the_same_experts(batch):
    found = cost("qwen3-30b-a3b").parts(decodes(batch, 1))
    assert found.linear_memory == pytest.approx(experts_s("qwen3-30b-a3b", 8))
    assert found.linear_compute == pytest.approx(
        cost("qwen3-30b-a3b", efficiency=PEAKS).parts(decodes(batch, 1)).linear_compute
    )


def test_in_the_floor_no_device_has_more_experts_than_its_even_share_of_one_tokens():
    shape = models.find("deepseek-v3")
    parts = weights.parts(shape, "fp8", Parallel(tensor=3, expert=True))
    assert (parts.chosen, parts.experts) == (8 / 3, 86)
    assert parts.chosen < parts.distinct_experts(1) == pytest.approx(8 * 86 / 256)


def test_what_fills_up_mxfp4_experts_is_read_and_multiplied_but_not_in_the_floor():
    parts = weights.parts(models.find("gpt-oss-20b"), "mxfp4")
    assert parts.padding == 3072 / 2880
    lone = {"model": "gpt-oss-20b", "precision": "mxfp4"}
    expected, floor = (cost(efficiency=one, **lone).parts(decodes(1, 1)) for one in (PEAKS, FLOOR))
    read = 24 * 4 * parts.expert_bytes
    assert expected.linear_memory - floor.linear_memory == pytest.approx(read * 192 / 2880 / 3.35e12)
    products = 4 * parts.expert_flops
    assert expected.linear_compute - floor.linear_compute == pytest.approx(products * 192 / 2880 / 989.4e12)


def test_windowed_layers_read_no_more_than_their_window():
    near, far = (cost("gpt-oss-20b").parts(decodes(1, n, 128)).attention_memory for n in (128, 1280))
    assert far / near == pytest.approx((10 + 1) / 2)


def test_only_a_model_with_windowed_layers_has_a_window():
    assert cost("gpt-oss-20b").window == 128
    assert cost("llama-3.1-8b").window is None


def test_latent_attention_absorbs_for_decodes_and_unpacks_for_prompts():
    shape, deep = models.find("deepseek-v3"), cost("deepseek-v3", "h200", tensor=8)
    absorbed = shape.layers * weights.pair_flops(shape, absorbed=True) / 8 / 989.4e12
    assert deep.parts(decodes(10, 5000)).attention_compute == pytest.approx(50_000 * absorbed)
    unpacked = 61 * 2 * 128 * (192 + 128) / 8 / 989.4e12
    unpack = 61 * 2 * 128 * 512 * (128 + 128) / 8 / 989.4e12
    whole, behind = prompt(8192), prompt(4096, 4096)
    # the matrix that unpacks a prompt's own tokens is one of those that all tokens go through
    assert deep.parts(whole).attention_compute == pytest.approx(whole.pairs * unpacked)
    assert deep.parts(behind).attention_compute == pytest.approx(behind.pairs * unpacked + 4096 * unpack)
    short = prompt(10, 4096)
    assert deep.parts(short).attention_compute == pytest.approx(short.pairs * absorbed)


def test_a_latent_prompt_beside_decodes_is_unpacked_and_they_are_absorbed():
    deep = cost("deepseek-v3", "h200", tensor=8)
    others, whole = decodes(64, 5000), prompt(8192)
    apart = deep.parts(others).attention_compute + deep.parts(whole).attention_compute
    assert deep.parts(together(others, whole)).attention_compute == pytest.approx(apart)


def test_every_device_reads_the_whole_latent_cache():
    one, eight = (cost("deepseek-v3", "h200", tensor=n).parts(decodes(8, 4000)) for n in (1, 8))
    assert eight.attention_memory == one.attention_memory
    assert eight.attention_compute == pytest.approx(one.attention_compute / 8)


# ---- several devices -----------------------------------------------------------------------------------


def test_tensor_parallel_devices_share_weights_products_and_cache():
    one, four = (cost("llama-3.1-70b", efficiency=PEAKS, tensor=n).parts(decodes(16, 1000)) for n in (1, 4))
    assert four.linear_memory == pytest.approx(one.linear_memory / 4, rel=1e-3)
    assert four.linear_compute == pytest.approx(one.linear_compute / 4)
    assert four.attention_memory == pytest.approx(one.attention_memory / 4)
    size = 16 * 8192 * 2
    logits = 16 * 128_256 * 2
    assert four.communication == pytest.approx(
        80 * 2 * (2 * 3 / 4 * size / 450e9 + 4e-6) + 3 / 4 * logits / 450e9 + 4e-6
    )
    assert one.communication == 0


def test_in_the_floor_each_byte_is_sent_once_without_a_beginning():
    found = cost("llama-3.1-70b", tensor=4).parts(decodes(16, 1000))
    assert found.communication == pytest.approx(80 * 2 * 16 * 8192 * 2 / 450e9)
    stages = cost("llama-3.1-70b", tensor=4, pipeline=2).parts(decodes(16, 1000))
    assert stages.communication == pytest.approx((80 * 2 + 1 / 4) * 8 * 8192 * 2 / 450e9)


def test_latency_is_a_multiple_of_the_devices():
    twice = msgspec.structs.replace(PEAKS, latency=2.0)
    one, two = (
        cost("qwen3-0.6b", efficiency=reached, tensor=2).parts(decodes(1, 1)).communication
        for reached in (PEAKS, twice)
    )
    assert two - one == pytest.approx((28 * 2 + 1) * 4e-6)


def test_more_devices_than_kv_heads_keep_copies():
    eight, sixteen = (cost("llama-3.1-70b", "gb200", tensor=n).parts(decodes(16, 1000)) for n in (8, 16))
    assert sixteen.attention_memory == eight.attention_memory
    assert sixteen.attention_compute == pytest.approx(eight.attention_compute / 2)


def test_pipeline_stages_take_micro_batches():
    one, four = (cost("llama-3.1-70b", efficiency=PEAKS, pipeline=n).parts(decodes(64, 1000)) for n in (1, 4))
    assert four.linear_memory == one.linear_memory
    assert four.linear_compute == pytest.approx(one.linear_compute / 4)
    assert four.attention_memory == pytest.approx(one.attention_memory / 4)
    assert four.communication == pytest.approx(3 * (16 * 8192 * 2 / 450e9 + 4e-6))


def test_one_sequence_gains_nothing_from_stages():
    one, four = (cost("llama-3.1-70b", pipeline=n).parts(decodes(1, 1000)) for n in (1, 4))
    assert four.total == pytest.approx(one.total + four.communication)


def test_replicas_that_share_experts_stream_their_own_and_exchange_tokens():
    shape = models.find("deepseek-v3")
    lone = cost("deepseek-v3", "h200", PEAKS, precision="fp8")
    shared = cost("deepseek-v3", "h200", PEAKS, precision="fp8", data=8, expert=True)
    work = decodes(64, 1000)
    assert shared.parts(work).linear_memory < lone.parts(work).linear_memory / 4
    assert shared.parts(work).linear_compute == pytest.approx(lone.parts(work).linear_compute)
    sent = 64 * copies(8, 8) * 7168 * 2
    expected = (shape.layers - shape.dense_layers) * 2 * (sent / 450e9 + 4e-6)
    assert shared.parts(work).communication == pytest.approx(expected)


def test_experts_serve_the_tokens_of_the_other_replicas_which_may_be_idle():
    deep, h200, eight = models.find("deepseek-v3"), gpus.find("h200"), Parallel(data=8, expert=True)
    part = weights.parts(deep, "fp8", eight)
    work = decodes(64, 1000)

    def linear(others):
        return Roofline(deep, h200, Precision(weights="fp8"), eight, PEAKS, others=others).parts(work)

    own = part.linear_flops / 1978.9e12 + (part.plain_flops + part.output_flops) / 989.4e12
    for others, routed in ((0.0, 64), (0.5, 64 * 4.5), (1.0, 512)):
        expert = part.distinct_experts(1) * part.expert_flops / 1978.9e12
        assert linear(others).linear_compute == pytest.approx(64 * own + routed * expert)
        held = part.expert_layers * part.distinct_experts(routed) * part.expert_bytes
        assert linear(others).linear_memory == pytest.approx(
            (part.always_bytes + part.output_bytes + held) / 4.8e12
        )


def test_a_case_without_an_efficiency_is_the_floor_of_one_replica_alone():
    placed = settled("gpu=h200,model=deepseek-v3,data_parallel_size=8,enable_expert_parallel=true", None)
    split = (placed.shape, placed.gpu, placed.precision, placed.parallel)
    for efficiency, others in ((None, 0.0), (FLOOR, 1.0)):
        expected = Roofline(*split, FLOOR, others=others).parts(prompt(4096))
        assert placed.roofline(efficiency).parts(prompt(4096)) == expected
    assert placed.roofline().parts(prompt(4096)).communication == 0


def test_a_token_goes_to_about_as_many_devices_as_it_has_experts_when_there_are_many():
    assert copies(8, 1) == 0
    assert copies(1, 2) == 0.5
    assert copies(8, 2) == pytest.approx(1, abs=0.01)
    assert copies(8, 4096) == pytest.approx(8, rel=0.01)


def test_fewer_devices_of_a_mesh_use_fewer_links():
    assert [link_bytes_s(gpus.find("mi300x"), n) / GIGA for n in (2, 4, 8)] == [64, 192, 448]
    assert [link_bytes_s(H100, n) / GIGA for n in (2, 4, 8)] == [450, 450, 450]


def test_beyond_a_node_the_network_binds():
    assert link_bytes_s(H100, 16) == 50 * GIGA
    assert link_bytes_s(gpus.find("gb200"), 64) == 900 * GIGA
    assert link_bytes_s(gpus.find("h100-nvl"), 4) == 64 * GIGA


def test_an_all_reduce_sends_each_byte_almost_twice():
    half = Efficiency(link=0.5)
    assert all_reduce_s(H100, 1, 1e9, PEAKS) == 0
    assert all_reduce_s(H100, 8, 1e9, PEAKS) == pytest.approx(2 * 7 / 8 * 1e9 / 450e9 + 4e-6)
    assert all_reduce_s(H100, 8, 1e9, half) == pytest.approx(2 * 7 / 4 * 1e9 / 450e9 + 4e-6)
    assert all_reduce_s(H100, 8, 1e9, FLOOR) == 1e9 / 450e9


def test_at_most_pairs_have_bridges_and_a_node_shares_its_network():
    pcie = gpus.find("h100-pcie")
    assert [most_bytes_s(pcie, n) / GIGA for n in (2, 4, 16)] == [300, 128, 400]
    assert [most_bytes_s(H100, n) / GIGA for n in (2, 8, 16)] == [450, 450, 400]
    assert all_reduce_s(pcie, 2, 1e9, FLOOR) == 1e9 / 300e9
    assert all_reduce_s(pcie, 2, 1e9, PEAKS) == pytest.approx(1e9 / 64e9 + 46.5e-6)


def test_each_device_sends_its_share_of_the_logits():
    shape, eight = models.find("llama-3.1-8b"), Parallel(tensor=8)
    sent = 7 / 8 * 256 * 128_256 * 2
    assert logits_s(shape, H100, eight, 256, width=2, reached=PEAKS) == pytest.approx(sent / 450e9 + 4e-6)
    assert logits_s(shape, H100, eight, 256, width=2, reached=FLOOR) == 0
    assert logits_s(shape, H100, eight, 0, width=2, reached=PEAKS) == 0
    assert logits_s(shape, H100, Parallel(), 256, width=2, reached=PEAKS) == 0


def test_stages_in_two_nodes_hand_over_by_the_network():
    shape, two = models.find("llama-3.1-405b"), Parallel(tensor=8, pipeline=2)
    inside = layers_s(shape, H100, Parallel(tensor=8), 100, width=2, reached=PEAKS)
    size = 100 * shape.hidden * 2
    found = layers_s(shape, H100, two, 100, width=2, reached=PEAKS)
    assert found == pytest.approx(inside + size / 50e9 + 4e-6)


@pytest.mark.parametrize(
    ("split", "why"),
    [
        (Parallel(tensor=3), "has 32 heads, which so many devices cannot share evenly. It can be 1, 2, 4"),
        (Parallel(pipeline=33), "has only 32 layers"),
        (Parallel(data=2), "engines of their own"),
        (Parallel(data=2, expert=True), "engines of their own"),
    ],
)
def test_a_split_that_cannot_be_is_refused(split, why):
    with pytest.raises(UsageError, match=why):
        check_split(models.find("llama-3.1-8b"), split)


def test_devices_that_nothing_links_are_refused_when_the_cost_is_made():
    with pytest.raises(UsageError, match="cpu-2-core: 2 devices do not fit in a node of 1"):
        cost("qwen3-0.6b", "cpu", tensor=2)
    lone = Gpu(name="lone", title="", memory_bytes=1, bandwidth=1.0, flops={"bf16": 1.0})
    with pytest.raises(UsageError, match="lone: nothing is known of links"):
        Roofline(models.find("qwen3-0.6b"), lone, Precision(), Parallel(tensor=2))


# ---- laws ----------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(costs(), works(), st.integers(1, 3 * VECTORISED), st.integers(0, 2000), st.integers(0, 2000))
def test_a_series_is_its_steps_bit_for_bit(found, work, steps, growth, window_growth):
    series = found.steps_ns(work, steps, growth, window_growth)
    single = []
    for _ in range(steps):
        single.append(found.step_ns(work))
        work.kv_tokens += growth
        work.pairs += growth
        work.window_kv_tokens += window_growth
        work.window_pairs += window_growth
    assert series == single
    assert all(type(step) is int for step in series)


def test_a_series_leaves_the_work_as_it_was():
    work = decodes(4, 100)
    for steps in (2, 2 * VECTORISED):
        cost().steps_ns(work, steps, 4, 4)
    assert work.kv_tokens == work.pairs == 400


@settings(max_examples=300)
@given(costs(), works())
def test_the_parts_add_up_to_the_step(found, work):
    parts = found.parts(work)
    assert abs(parts.total * 1e9 - found.step_ns(work)) <= 1 + parts.total * 1e9 * 1e-12
    least = max(parts.linear_memory, parts.linear_compute) + max(
        parts.attention_memory, parts.attention_compute
    )
    assert parts.total >= (least + parts.communication + parts.overhead) * (1 - 1e-12)
    assert found.step_ns(work) >= 1


@settings(max_examples=300)
@given(
    costs([split for split in SPLITS if split.pipeline == 1]),
    works(),
    st.sampled_from(FIELDS),
    st.integers(1, 5000),
)
def test_more_work_never_takes_less_time(found, work, field, more):
    before = found.step_ns(work)
    setattr(work, field, getattr(work, field) + more)
    assert found.step_ns(work) >= before


@settings(max_examples=200)
@given(costs(), st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 100_000))
def test_a_larger_batch_is_never_faster(found, batch, more, context):
    smaller, larger = decodes(batch, context, found.window), decodes(batch + more, context, found.window)
    assert found.step_ns(larger) >= found.step_ns(smaller)


@settings(max_examples=200)
@given(model_names, works(), st.sampled_from([2, 4, 8]))
def test_more_devices_read_and_compute_no_more(model, work, tensor):
    shape = models.find(model)
    try:
        split = Roofline(shape, H100, Precision(), Parallel(tensor=tensor), FLOOR).parts(work)
    except UsageError:
        assume(False)
    alone = Roofline(shape, H100, Precision(), Parallel(), FLOOR).parts(work)
    for part in ("linear_memory", "linear_compute", "attention_memory", "attention_compute"):
        assert getattr(split, part) <= getattr(alone, part) * (1 + 1e-12)


@settings(max_examples=200)
@given(costs(), works())
def test_no_efficiency_beats_the_floor(found, work):
    floor = Roofline(found.shape, found.gpu, found.precision, found.parallel, FLOOR, others=0.0)
    assert found.step_ns(work) >= floor.step_ns(work)


def test_no_work_costs_the_step_itself():
    assert cost(efficiency=Efficiency(step_s=0.0)).step_ns(Work()) >= 1
