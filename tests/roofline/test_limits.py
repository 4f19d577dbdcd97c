"""Closed formulas against the printed table of section 8.3 of the reference, and searches against all batches."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.roofline import gpus, models
from loadstone.roofline.cost import Roofline
from loadstone.roofline.limits import (
    b_sat,
    b_sat_at,
    floor_s,
    kv_limited_batch,
    largest_batch,
    last_true,
    limits,
    moe_b_sat,
    prefill_s,
    s_crit,
    saturation,
    throughput_ceiling,
    tpot_batch,
)
from loadstone.roofline.memory import memory
from loadstone.roofline.setup import FLOOR, Efficiency, Parallel, Precision
from loadstone.roofline.work import decodes

STREAMED = 7.5e9
"""Parameters of an 8B model without its table of embeddings."""
KV_BYTES = 131_072
"""Of Llama-3.1-8B in bf16."""

TABLE = {
    "a100-80gb-sxm": (153, 7.36, 748),
    "a100-40gb": (201, 9.65, None),
    "a100-80gb-pcie": (161, 7.75, None),
    "h100-pcie": (378, 7.50, 303),
    "h100-sxm": (295, 4.48, 387),
    "h100-nvl": (214, 3.85, 535),
    "h200": (206, 3.12, 555),
    "b200": (281, 1.88, 407),
    "gb200": (312, 1.88, 366),
    "mi300x": (247, 2.83, 464),
    "mi325x": (218, 2.50, 525),
    "mi355x": (315, 1.88, 364),
}
"""Section 8.3: B_sat in bf16, the floor of an 8B model in ms, the critical context of Llama-3.1-8B."""

H100 = gpus.find("h100")
PEAK, BANDWIDTH = H100.flops["bf16"], H100.bandwidth


def cost(model="llama-3.1-8b", gpu="h100", weights="bf16", efficiency=FLOOR, **parallel):
    return Roofline(
        models.find(model), gpus.find(gpu), Precision(weights=weights), Parallel(**parallel), efficiency
    )


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_the_reference(name):
    saturated, floor_ms, critical = TABLE[name]
    gpu = gpus.find(name)
    peak, bandwidth = gpu.flops["bf16"], gpu.bandwidth
    assert round(b_sat(peak, bandwidth)) == saturated
    assert round(floor_s(2 * STREAMED, bandwidth) * 1e3, 2) == floor_ms
    if critical is not None:
        assert round(s_crit(STREAMED, peak, bandwidth, KV_BYTES)) == critical


def test_narrower_weights_saturate_sooner_unless_the_arithmetic_is_faster_too():
    whole = b_sat(PEAK, BANDWIDTH)
    assert b_sat(H100.flops["fp8"], BANDWIDTH, 1.0) == pytest.approx(whole, rel=1e-3)
    assert b_sat(PEAK, BANDWIDTH, 1.0) == whole / 2
    assert b_sat(PEAK, BANDWIDTH, 0.5) == whole / 4


def test_all_experts_are_streamed_for_the_products_of_a_few():
    assert moe_b_sat(PEAK, BANDWIDTH, 671e9, 37e9) == pytest.approx(671 / 37 * b_sat(PEAK, BANDWIDTH))


def at(context):
    return b_sat_at(
        context,
        streamed_bytes=2 * STREAMED,
        parameters=STREAMED,
        peak=PEAK,
        bandwidth=BANDWIDTH,
        kv_bytes=KV_BYTES,
    )


def test_the_kv_cache_puts_saturation_off_and_at_the_critical_context_for_good():
    critical = s_crit(STREAMED, PEAK, BANDWIDTH, KV_BYTES)
    assert at(0) == pytest.approx(b_sat(PEAK, BANDWIDTH))
    assert at(critical / 2) == pytest.approx(2 * b_sat(PEAK, BANDWIDTH))
    assert math.isfinite(at(critical * 0.999))
    assert at(critical * 1.001) == math.inf


def test_on_the_h200_reading_the_cache_of_1024_tokens_takes_longer_than_products():
    gpu = gpus.find("h200")
    assert 1024 * KV_BYTES / gpu.bandwidth * 1e6 == pytest.approx(28.0, abs=0.05)
    assert 2 * STREAMED / gpu.flops["bf16"] * 1e6 == pytest.approx(15.2, abs=0.05)
    ceiling = throughput_ceiling(
        1024, parameters=STREAMED, peak=gpu.flops["bf16"], bandwidth=gpu.bandwidth, kv_bytes=KV_BYTES
    )
    assert ceiling == pytest.approx(35_760, abs=10)


def test_memory_or_an_objective_limits_the_batch():
    assert kv_limited_batch(50e9, 1024, KV_BYTES) == 372
    given_20_ms = {"streamed_bytes": 15e9, "bandwidth": BANDWIDTH, "kv_bytes": KV_BYTES}
    assert tpot_batch(0.020, 1024, **given_20_ms) == 387
    assert tpot_batch(0.004, 1024, **given_20_ms) == 0


def test_a_prompt_takes_products_with_weights_and_half_a_square_of_pairs():
    pair = 4 * 32 * 32 * 128
    assert prefill_s(1, parameters=8e9, pair_flops=pair, peak=1e15) == (16e9 + pair) / 1e15
    assert prefill_s(8192, parameters=8e9, pair_flops=pair, peak=1e15) == pytest.approx(0.1486663, abs=1e-7)


# ---- of a real cost ------------------------------------------------------------------------------------


def test_the_limits_of_a_dense_model_are_the_formulas():
    found = limits(cost(), 256)
    assert found.b_sat == pytest.approx(b_sat(PEAK, BANDWIDTH), rel=1e-3)
    assert found.s_crit == pytest.approx(s_crit(7.504e9, PEAK, BANDWIDTH, KV_BYTES), rel=1e-3)
    assert found.b_sat_at == pytest.approx(found.b_sat / (1 - 256 / found.s_crit))
    assert found.tokens_s == pytest.approx(PEAK / (2 * 7.504e9), rel=1e-3)
    assert found.kv_batch is None


def test_devices_that_share_weights_saturate_at_the_same_batch():
    alone, eight = limits(cost("llama-3.1-70b"), 512), limits(cost("llama-3.1-70b", tensor=8), 512)
    assert eight.b_sat == pytest.approx(alone.b_sat, rel=1e-3)  # each streams all norms
    assert eight.s_crit == pytest.approx(alone.s_crit)
    assert eight.tokens_s == pytest.approx(8 * alone.tokens_s)


def test_pipeline_stages_share_products_and_cache_but_each_micro_batch_streams_all():
    alone, four = limits(cost("llama-3.1-70b"), 512), limits(cost("llama-3.1-70b", pipeline=4), 512)
    assert four.b_sat == pytest.approx(4 * alone.b_sat)
    assert four.s_crit == pytest.approx(alone.s_crit)


def test_where_half_the_layers_have_a_window_the_context_counts_only_in_the_others():
    found = cost("gpt-oss-120b", weights="mxfp4")
    critical = found.rates.s_crit()
    assert critical > 128
    assert found.rates.kv_s(critical) == pytest.approx(found.rates.token_s)
    assert limits(found, math.ceil(critical)).b_sat_at == math.inf


def test_the_batch_that_memory_holds_is_that_of_whole_blocks():
    shape = models.find("llama-3.1-8b")
    held = memory(shape, H100, Precision())
    assert limits(cost(), 1000, held).kv_batch == held.blocks // 63


@pytest.mark.parametrize(
    ("model", "gpu", "weights"),
    [
        ("llama-3.1-8b", "h100", "bf16"),
        ("qwen3-30b-a3b", "h200", "fp8"),
        ("gpt-oss-20b", "mi300x", "mxfp4"),
    ],
)
@pytest.mark.parametrize("tpot_ms", [1, 5, 20, 60])
def test_the_largest_batch_keeps_the_objective_and_the_next_one_does_not(model, gpu, weights, tpot_ms):
    real = cost(model, gpu, weights, Efficiency())
    batch = largest_batch(real, tpot_ms / 1e3, 1500)
    if batch:
        assert real.step_ns(decodes(batch, 1500, real.window)) <= tpot_ms * 1e6
    assert real.step_ns(decodes(batch + 1, 1500, real.window)) > tpot_ms * 1e6


def test_where_memory_binds_the_search_finds_what_the_formula_says():
    real = cost()
    formula = tpot_batch(
        0.020,
        2000,
        streamed_bytes=real.rates.weights_s * BANDWIDTH,
        bandwidth=BANDWIDTH,
        kv_bytes=KV_BYTES,
    )
    assert largest_batch(real, 0.020, 2000) == formula


def test_the_search_knows_a_ceiling():
    assert largest_batch(cost(), 10.0, 16, at_most=300) == 300
    assert saturation(cost(), 16, at_most=100) is None


def test_the_cost_saturates_where_the_formula_says():
    assert saturation(cost(), 1) == math.ceil(limits(cost(), 1).b_sat)
    assert saturation(cost(weights="int4"), 1) == math.ceil(limits(cost(weights="int4"), 1).b_sat)


@given(st.integers(0, 300), st.integers(1, 200))
def test_bisection_finds_the_last(last, at_most):
    assert last_true(lambda n: n <= last, at_most) == min(last, at_most)
