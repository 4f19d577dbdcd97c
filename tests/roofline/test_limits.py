"""Limits of the cost at the datasheet against the printed table of section 8.3 of the reference, and against the cost itself."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from loadstone.errors import UsageError
from loadstone.roofline import gpus, models
from loadstone.roofline.cost import Roofline
from loadstone.roofline.limits import LARGEST_BATCH, last_true, limits
from loadstone.roofline.setup import FLOOR, Efficiency, Parallel, Precision
from loadstone.roofline.weights import active_parameters, total_parameters
from loadstone.roofline.work import decodes

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
PEAKS = msgspec.structs.replace(FLOOR, latency=1.0, least=False)
H100 = gpus.find("h100")


def cost(model="llama-3.1-8b", gpu="h100", weights="bf16", efficiency=FLOOR, **parallel):
    return Roofline(
        models.find(model), gpus.find(gpu), Precision(weights=weights), Parallel(**parallel), efficiency
    )


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_the_reference(name):
    saturated, floor_ms, critical = TABLE[name]
    found = limits(cost(gpu=name), 1)
    # printed to three digits, and for 7.5 billion parameters streamed, where Llama-3.1-8B has 7.504
    assert found.b_sat == pytest.approx(saturated, rel=0.004)
    assert found.floor_s * 1e3 == pytest.approx(floor_ms, rel=0.004)
    if critical is not None:
        assert found.s_crit == pytest.approx(critical, rel=0.004)


def test_the_formulas_to_the_last_digit():
    found, gpu = limits(cost(), 256), H100
    streamed = 2 * active_parameters(models.find("llama-3.1-8b"))
    multiplied = active_parameters(models.find("llama-3.1-8b")) - 65 * 4096  # norms are read, not multiplied
    assert found.b_sat == pytest.approx(
        streamed / gpu.bandwidth / (2 * multiplied / gpu.flops["bf16"]), rel=1e-12
    )
    assert found.s_crit == pytest.approx(
        2 * multiplied * gpu.bandwidth / (gpu.flops["bf16"] * 131_072), rel=1e-12
    )
    assert found.floor_s == pytest.approx((streamed + 256 * 131_072) / gpu.bandwidth, rel=1e-12)


def test_on_the_h200_reading_the_cache_of_1024_tokens_takes_longer_than_products():
    rates = cost(gpu="h200").rates
    assert rates.attention_s(1024) * 1e6 == pytest.approx(28.0, abs=0.05)
    assert rates.token_s * 1e6 == pytest.approx(15.2, abs=0.05)
    assert limits(cost(gpu="h200"), 1024).compute_from is None
    assert limits(cost(gpu="h200"), 256).compute_from is not None


def test_narrower_weights_saturate_sooner_unless_the_arithmetic_is_faster_too():
    whole = limits(cost("llama-3.1-405b"), 1).b_sat
    assert limits(cost("llama-3.1-405b", weights="fp8"), 1).b_sat == pytest.approx(whole, rel=0.01)
    assert limits(cost("llama-3.1-405b", weights="w8a16"), 1).b_sat == pytest.approx(whole / 2, rel=0.01)


def test_all_experts_are_streamed_for_the_products_of_a_few_but_in_the_floor_no_more_than_those():
    shape = models.find("qwen3-30b-a3b")
    streamed = total_parameters(shape) - shape.vocabulary * shape.hidden
    dense = limits(cost(), 1).b_sat
    expected = limits(cost("qwen3-30b-a3b", efficiency=PEAKS), 1).b_sat
    assert expected == pytest.approx(streamed / active_parameters(shape) * dense, rel=0.001)
    assert limits(cost("qwen3-30b-a3b"), 1).b_sat == pytest.approx(dense, rel=0.001)


def test_devices_that_share_weights_saturate_at_the_same_batch():
    alone, eight = limits(cost("llama-3.1-70b"), 512), limits(cost("llama-3.1-70b", tensor=8), 512)
    assert eight.b_sat == pytest.approx(alone.b_sat, rel=1e-3)  # each streams all norms
    assert eight.s_crit == pytest.approx(alone.s_crit)


def test_pipeline_stages_share_products_and_cache_but_each_micro_batch_streams_all():
    alone, four = limits(cost("llama-3.1-70b"), 512), limits(cost("llama-3.1-70b", pipeline=4), 512)
    assert four.b_sat == pytest.approx(4 * alone.b_sat)
    assert four.s_crit == pytest.approx(alone.s_crit)


def test_where_half_the_layers_have_a_window_the_context_counts_only_in_the_others():
    found = cost("gpt-oss-120b", weights="mxfp4")
    critical = found.rates.s_crit()
    assert critical > 128
    assert found.rates.attention_s(critical) == pytest.approx(found.rates.token_s)
    assert limits(found, math.ceil(critical)).compute_from is None


def test_latent_attention_that_is_bound_by_compute_has_no_critical_context():
    # 2 x 128 x 1088 FLOPs for 1152 bytes: 242 FLOP/B, more than H200's 206 and less than H100's 295
    bound = cost("deepseek-v3", "h200", "fp8", efficiency=PEAKS, data=8, expert=True)
    assert bound.rates.pairs == pytest.approx(2 * 128 * 1088 / 1152 / (989.4 / 4.8))
    found = limits(bound, 20_000)
    assert found.s_crit == math.inf
    assert bound.parts(decodes(found.compute_from, 20_000)).bound == "compute"
    reading = cost("deepseek-v3", "h100", "fp8", efficiency=PEAKS, data=8, expert=True)
    assert limits(reading, 20_000).s_crit < 20_000
    assert limits(reading, 20_000).compute_from is None


@st.composite
def costs(draw):
    try:
        return Roofline(
            models.find(draw(st.sampled_from(sorted(models.MODELS)))),
            gpus.find(draw(st.sampled_from(sorted(gpus.GPUS)))),
            Precision(weights=draw(st.sampled_from(["bf16", "fp8", "int4"]))),
            draw(
                st.sampled_from(
                    [
                        Parallel(),
                        Parallel(tensor=4),
                        Parallel(pipeline=3, tensor=2),
                        Parallel(data=8, expert=True),
                    ]
                )
            ),
            draw(st.sampled_from([FLOOR, PEAKS, Efficiency()])),
        )
    except UsageError:
        assume(False)


@settings(max_examples=200)
@given(costs(), st.integers(1, 100_000), st.integers(1, LARGEST_BATCH))
def test_no_batch_exceeds_the_ceiling_and_a_great_one_comes_to_it(found, context, batch):
    ceiling = limits(found, context).tokens_s

    def tokens_s(batch):
        step_s = found.parts(decodes(batch, context, found.window)).total
        return found.parallel.data * batch / step_s

    assert tokens_s(batch) <= ceiling * (1 + 1e-9)
    assert tokens_s(1 << 30) == pytest.approx(ceiling, rel=1e-3)


@settings(max_examples=200)
@given(costs(), st.integers(1, 100_000), st.integers(1, LARGEST_BATCH))
def test_from_one_batch_on_most_of_a_step_is_products_and_beyond_the_critical_context_of_none(
    found, context, batch
):
    ends = limits(found, context)
    least = ends.compute_from or LARGEST_BATCH + 1
    if abs(batch - least) > 2 * found.parallel.pipeline:  # micro-batches are of whole sequences
        bound = found.parts(decodes(batch, context, found.window)).bound
        assert (bound == "compute") == (batch >= least)
    if context > ends.s_crit * 1.001:
        assert ends.compute_from is None


@given(st.integers(0, 300), st.integers(1, 200))
def test_bisection_finds_the_last(last, at_most):
    assert last_true(lambda n: n <= last, at_most) == min(last, at_most)
