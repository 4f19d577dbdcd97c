"""From options to engines."""

from __future__ import annotations

import msgspec
import pytest

from loadstone.errors import UsageError
from loadstone.roofline.calibration import FORMAT, Calibration, Reached, write
from loadstone.roofline.case import Asked
from loadstone.roofline.gpus import find
from loadstone.roofline.setup import Efficiency
from loadstone.roofline.work import Work, decodes, prompt
from loadstone.sim.build import deployment
from loadstone.sim.case import case_of, modelled
from loadstone.sim.engine import Engine, Limits
from loadstone.sim.options import SimOptions
from loadstone.sim.sequence import Sequence

LLAMA = {"gpu": "h100", "model": "llama-3.1-8b"}


def engine(**options) -> Engine[Sequence]:
    built = deployment(SimOptions(**options))
    assert len(built.engines) == 1
    return built.engines[0]


def limits(**options) -> Limits:
    return engine(**options).limits


def first_step_ns(prompt_tokens: int, **options) -> int:
    one = engine(**options)
    one.add(Sequence(prompt_tokens, 2))
    end_ns = one.begin(0)
    assert end_ns is not None
    return end_ns


# ---- without a device ---------------------------------------------------------------------------------------


def test_without_a_device_steps_take_the_times_given() -> None:
    assert (
        first_step_ns(100, step_ms=2, step_us_per_sequence=3, prefill_us_per_token=0.5)
        == 2_000_000 + 3_000 + 50_000
    )


def test_without_a_device_there_are_defaults_of_its_own() -> None:
    assert limits() == Limits(256, 8192, 65_536, 16, None, draft_share=0.05)


def test_every_limit_is_taken_over() -> None:
    assert limits(
        max_num_seqs=3,
        max_num_batched_tokens=70,
        num_gpu_blocks_override=50,
        block_size=8,
        max_model_len=300,
        enable_chunked_prefill=False,
        long_prefill_token_threshold=9,
        scheduler_reserve_full_isl=False,
        scheduling_policy="priority",
        enable_prefix_caching=False,
        num_speculative_tokens=2,
        acceptance_rates="0.9+0.5",
        draft_cost=0.25,
        seed=7,
    ) == Limits(3, 70, 50, 8, 300, False, 9, False, True, False, (0.9, 0.5), 0.25, False, 7)


def test_a_smaller_step_holds_fewer_sequences() -> None:
    assert limits(max_num_batched_tokens=100).max_num_seqs == 100
    assert limits(max_num_batched_tokens=100, num_speculative_tokens=3).max_num_seqs == 25


def test_more_drafts_than_a_step_has_tokens_for_are_refused_by_their_name() -> None:
    with pytest.raises(
        UsageError,
        match=r"^num_speculative_tokens = 100: with its drafts one request takes 101 tokens a step.*is 100\.",
    ):
        limits(max_num_batched_tokens=100, num_speculative_tokens=100)
    assert limits(max_num_batched_tokens=101, num_speculative_tokens=100).max_num_seqs == 1


def test_a_device_without_a_model_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"^gpu = h100: which model runs on it is not said; give one: model="
    ):
        deployment(SimOptions(gpu="h100"))
    with pytest.raises(UsageError, match=r"^--gpu nope: not known"):
        deployment(SimOptions(gpu="nope"))


def test_more_sequences_than_a_step_has_tokens_for_are_refused() -> None:
    with pytest.raises(UsageError, match=r"max_num_seqs = 26: that many take 104 tokens a step.*is 100"):
        engine(max_num_seqs=26, max_num_batched_tokens=100, num_speculative_tokens=3)


# ---- a model on a device ------------------------------------------------------------------------------------


def test_a_device_has_the_defaults_of_vllm_for_its_memory() -> None:
    found = limits(**LLAMA)
    assert (found.max_num_seqs, found.max_num_batched_tokens, found.max_model_len) == (1024, 8192, 131_072)
    assert 20_000 < found.blocks < 30_000, "about 55 GB of 128 KiB a token"
    assert limits(**LLAMA, num_gpu_blocks_override=77).blocks == 77
    assert limits(**LLAMA, gpu_memory_utilization=0.6).blocks < found.blocks


def test_a_step_takes_what_the_roofline_says() -> None:
    cost = engine(**LLAMA)._cost
    one = engine(**LLAMA)
    one.add(Sequence(100, 2))
    assert one.begin(0) == cost.step_ns(prompt(100))
    one.finish()
    assert one.begin(0) == cost.step_ns(decodes(1, 101))
    faster = first_step_ns(100, **LLAMA, quantization="fp8")
    assert faster < cost.step_ns(prompt(100))


def test_the_window_of_a_model_is_that_of_its_cost() -> None:
    assert engine(gpu="h100", model="gpt-oss-20b")._cost.window == 128
    assert engine(**LLAMA)._cost.window is None


def test_a_model_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="Out of memory"):
        engine(gpu="h100", model="llama-3.1-70b")
    assert limits(gpu="h100", model="llama-3.1-70b", tensor_parallel_size=4).blocks > 10_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gpu": "h1000", "model": "llama-3.1-8b"}, "h1000"),
        ({"gpu": "h100", "model": "simm"}, "'simm' is not known"),
        ({**LLAMA, "tensor_parallel_size": 3}, "32 heads"),
        ({"num_speculative_tokens": 1, "acceptance_rates": "0.8+x"}, "between 0 and 1"),
        ({"num_speculative_tokens": 1, "acceptance_rates": "1.1"}, "between 0 and 1"),
        ({"num_speculative_tokens": 1, "acceptance_rates": ""}, "between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(options, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        engine(**options)


# ---- several ------------------------------------------------------------------------------------------------


def test_the_last_acceptance_rate_goes_on() -> None:
    assert limits(num_speculative_tokens=4, acceptance_rates="0.8+0.6").draft_rates == (0.8, 0.6, 0.6, 0.6)
    assert limits(num_speculative_tokens=1, acceptance_rates="0.8+0.6").draft_rates == (0.8,)
    assert limits(acceptance_rates="0.8").draft_rates == ()


def test_replicas_and_prefill_engines_are_alike_but_for_their_part() -> None:
    built = deployment(SimOptions(**LLAMA, data_parallel_size=3, prefill_replicas=2))
    assert [one.limits.prefill_only for one in built.all] == [False] * 3 + [True] * 2
    assert len({one.limits._replace(prefill_only=False) for one in built.all}) == 1


def test_a_kv_cache_travels_at_the_rate_given() -> None:
    built = deployment(SimOptions(**LLAMA, prefill_replicas=1, kv_transfer_gbps=100))
    one = Sequence(1000, 1)
    built.add(one)
    built.begin(0)
    prefill_ns = built.next_ns
    assert prefill_ns is not None
    built.finish(prefill_ns)
    token_bytes = 2 * 32 * 8 * 128 * 2  # keys and values, layers, KV heads, dimensions, bytes of bf16
    assert built.next_ns == prefill_ns + round(1000 * token_bytes * 8 / 100)


def test_a_work_object_is_not_shared_between_engines() -> None:
    built = deployment(SimOptions(data_parallel_size=2))
    assert isinstance(built.engines[0].last_work, Work)
    assert built.engines[0].last_work is not built.engines[1].last_work


# ---- the case that it is ------------------------------------------------------------------------------------


def test_the_engine_and_what_it_is_compared_with_are_of_the_same_case() -> None:
    options = SimOptions(**LLAMA, num_speculative_tokens=3, quantization="fp32")
    case = case_of(options)
    assert case is not None
    assert (case.draft_tokens, case.precision.weights, case.precision.kv) == (3, "fp32", "fp32")
    step_ns = case.roofline(Efficiency()).step_ns(prompt(5000))
    assert first_step_ns(5000, **LLAMA, quantization="fp32", max_num_batched_tokens=8192) == step_ns


def test_a_calibration_of_one_device_lends_another_its_efficiency_alone(tmp_path) -> None:
    slow = msgspec.structs.replace(find("cpu"), bandwidth=1e9)
    made = Calibration(
        format=FORMAT, made="2026-12-01T00:00:00Z", loadstone_version="0", runs=(), hardware=slow,
        setup=Asked(gpu="cpu", model="qwen3-0.6b"),
        reached=Reached(bandwidth=0.5, compute=0.5, step_s=0.0, layer_s=0.0, sequence_s=0.0, link=0.5),
        told={}, rms_percent=0.0, worst_percent=0.0, points=(),
    )  # fmt: skip
    write(made, tmp_path / "cal.toml")
    path = str(tmp_path / "cal.toml")
    for named, bandwidth in ((None, 1e9), ("cpu-2-core", 1e9), ("h100", find("h100").bandwidth)):
        found = modelled(SimOptions(gpu=named, model="qwen3-0.6b", calibration=path))
        assert found is not None
        assert (found[0].gpu.bandwidth, found[1].bandwidth) == (bandwidth, 0.5)
