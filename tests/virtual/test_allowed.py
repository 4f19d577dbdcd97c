"""What an engine's address may ask for on the virtual clock: what has an effect, and nothing else."""

from __future__ import annotations

import pytest

from loadstone import config
from loadstone.errors import UsageError
from loadstone.sim.options import SimOptions
from loadstone.virtual import check

WITHOUT_EFFECT = {
    "host": "0.0.0.0",
    "port": 8000,
    "steps": "steps.txt",
    "null": "true",
    "startup_s": 3,
    "reasoning_field": "reasoning",
    "embedding_dimensions": 64,
    "enable_request_id_headers": "true",
    "fault": "eof",
    "fault_preflight": "true",
}
WITH_EFFECT = {
    "model", "api_key", "truth", "network_us", "gpu", "hf_config_path", "calibration", "quantization", "kv_cache_dtype",
    "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "enable_expert_parallel", "prefill_us_per_token",
    "step_ms", "step_us_per_sequence", "max_num_seqs", "max_num_batched_tokens", "max_model_len", "enable_chunked_prefill",
    "long_prefill_token_threshold", "scheduler_reserve_full_isl", "scheduling_policy", "block_size", "gpu_memory_utilization",
    "num_gpu_blocks_override", "enable_prefix_caching", "num_speculative_tokens", "acceptance_rates", "draft_cost", "router",
    "prefill_replicas", "kv_transfer_gbps", "output_tokens", "default_max_tokens", "reasoning", "tool_calls", "seed",
}  # fmt: skip
SETTINGS = {
    "endpoint.connect_timeout_s": 1,
    "server.wait_for_model_s": 5,
    "server.strict": True,
    "server.metrics": False,
    "server.metrics_interval_s": 2,
}


def settings(address, *sets):
    return config.load(None, {"endpoint.url": [address], "endpoint.virtual": ["true"]}, sets)


def test_every_key_of_an_address_has_an_effect_or_is_refused():
    assert set(SimOptions.__struct_fields__) == WITH_EFFECT | set(WITHOUT_EFFECT)


@pytest.mark.parametrize("key", WITHOUT_EFFECT)
def test_a_key_without_effect_is_refused_by_name(key):
    with pytest.raises(UsageError, match=f"^sim: {key}: .*leave"):
        check(settings(f"sim:{key}={WITHOUT_EFFECT[key]}"))


def test_what_is_given_as_it_is_anyway_is_no_mistake():
    check(settings("sim:host=127.0.0.1,port=0,step_ms=5"))


@pytest.mark.parametrize("path", SETTINGS)
def test_a_setting_without_effect_is_refused_by_name(path):
    value = str(SETTINGS[path]).lower()
    with pytest.raises(UsageError, match="has no effect with --virtual"):
        settings("sim:", f"{path}={value}")
