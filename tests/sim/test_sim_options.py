from __future__ import annotations

import msgspec
import pytest
from msgspec import inspect

from loadstone import config
from loadstone.errors import UsageError
from loadstone.sim.options import SimOptions, check_given, from_url


def test_a_bare_scheme_is_the_defaults() -> None:
    assert from_url("sim:") == SimOptions()


def test_keys_are_typed() -> None:
    options = from_url("sim:step_ms=5, max-num-seqs=3,null=true,reasoning=all,model=m")
    assert options == SimOptions(step_ms=5.0, max_num_seqs=3, null=True, reasoning="all", model="m")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sim:stepms=5", "sim: there is no option 'stepms'. Did you mean step_ms?"),
        ("sim:step_ms", "sim: 'step_ms' is not KEY=VALUE; write for example sim:step_ms=5,model=m."),
        ("sim:fault=eof,fault=reset", "sim: 'fault' is given twice; join several with +: fault=eof+reset."),
        ("sim:step-ms=5,step_ms=6", "sim: 'step_ms' is given twice; give it once."),
        ("sim:step_ms=fast", "sim: step_ms: Expected `float`, got `str`."),
        ("sim:step_ms=0", "sim: step_ms: Expected `float` > 0.0."),
        ("sim:step_ms=inf", "sim: step_ms: Expected `float` <= 3600000.0."),
        ("sim:step_ms=nan", "sim: step_ms: Expected `float` > 0.0."),
        ("sim:port=70000", "sim: port: Expected `int` <= 65535."),
        ("sim:reasoning=some", "sim: reasoning: Invalid enum value 'some'."),
        ("sim:model=", "sim: 'model' is empty; give it a value, or leave it out."),
        ("sim:gpu= ,model=m", "sim: 'gpu' is empty; give it a value, or leave it out."),
        ("sim:block_size=100000000000000000000", "sim: block_size: Expected `int` <= 65536."),
        ("sim:default_max_tokens=1000001", "sim: default_max_tokens: Expected `int` <= 1000000."),
        ("sim:data_parallel_size=1025", "sim: data_parallel_size: Expected `int` <= 1024."),
        ("sim:prefill_replicas=1025", "sim: prefill_replicas: Expected `int` <= 1024."),
        ("sim:num_speculative_tokens=257", "sim: num_speculative_tokens: Expected `int` <= 256."),
        ("sim:kv_transfer_gbps=1e-300", "sim: kv_transfer_gbps: Expected `float` >= 0.001."),
        ("sim:prefill_us_per_token=1e7", "sim: prefill_us_per_token: Expected `float` <= 1000000.0."),
    ],
)
def test_wrong_options_get_one_sentence(url: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        from_url(url)
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "gpu=h100,step_ms=10",
            "sim: step_ms has no effect: the model on its gpu says how long steps take; leave it out.",
        ),
        (
            "gpu=h100,prefill_us_per_token=1,step_us_per_sequence=2",
            "sim: step_us_per_sequence, prefill_us_per_token have no effect: the model on its gpu says how long steps take;"
            " leave them out.",
        ),
        (
            "calibration=c.toml,tensor_parallel_size=4,quantization=fp8,hf_config_path=llama-3.1-70b",
            "sim: hf_config_path, quantization, tensor_parallel_size have no effect: a calibration alone stands for the"
            " model and the devices that it was measured on; name a gpu as well, or leave them out.",
        ),
        ("calibration=c.toml,step_ms=5", "sim: step_ms has no effect: a calibration alone"),
        (
            "tensor-parallel-size=1",
            "sim: tensor_parallel_size has no effect: there is no device; name a gpu as well, or",
        ),
        ("gpu_memory_utilization=0.9", "sim: gpu_memory_utilization has no effect: there is no device"),
        ("prefill_replicas=1,kv_transfer_gbps=9", "sim: kv_transfer_gbps has no effect: there is no device"),
    ],
)
def test_what_has_no_effect_is_refused(keys: str, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        from_url(f"sim:{keys}")
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    "keys",
    [
        "gpu=h100,calibration=c.toml,tensor_parallel_size=4,quantization=fp8,gpu_memory_utilization=0.8",
        "calibration=c.toml,gpu_memory_utilization=0.8,kv_transfer_gbps=9,data_parallel_size=2,num_speculative_tokens=2",
        "step_ms=5,data_parallel_size=2,num_gpu_blocks_override=9",
    ],
)
def test_what_has_one_is_taken(keys: str) -> None:
    from_url(f"sim:{keys}")


def test_flags_that_were_given_are_named_as_flags() -> None:
    options = SimOptions(gpu="h100")
    check_given({"gpu": "h100", "max_num_seqs": 3}, options)
    with pytest.raises(UsageError, match=r"^--step-ms has no effect: the model on its gpu"):
        check_given({"gpu": "h100", "step_ms": 10.0}, options)


def bounds(leaf: config.Option) -> list[int | float | None]:
    """The greatest number that a leaf's own type allows; none for a leaf without numbers."""
    return [core.le for core in leaf.cores if isinstance(core, inspect.IntType | inspect.FloatType)]


NUMBERS = [leaf for leaf in config.leaves(SimOptions) if bounds(leaf)]


def test_every_number_has_a_bound() -> None:
    assert len(NUMBERS) == 24
    assert all(most is not None for leaf in NUMBERS for most in bounds(leaf))


@pytest.mark.parametrize("leaf", NUMBERS, ids=lambda leaf: leaf.path)
def test_an_address_and_a_flag_have_the_same_bounds(leaf: config.Option) -> None:
    (most,) = bounds(leaf)
    assert most is not None
    for number in (most, most * 10 + 1):
        try:
            flag = config.from_flags(SimOptions, [leaf], {leaf.path: [str(number)]})
        except UsageError:
            flag = None
        try:
            address = msgspec.convert({leaf.path: str(number)}, SimOptions, strict=False)
        except msgspec.ValidationError:
            address = None
        assert (
            flag
            == address
            == (msgspec.structs.replace(SimOptions(), **{leaf.path: number}) if number == most else None)
        )


@pytest.mark.parametrize("names", ["", ",", " , ", " "])
def test_a_model_has_a_name(names: str) -> None:
    with pytest.raises(UsageError, match=r"^model = .* has no name in it; give one, or several as A,B\.$"):
        SimOptions(model=names)


def test_faults_are_joined_in_an_address() -> None:
    assert from_url("sim:fault=eof+reset").fault == ("eof", "reset")


@pytest.mark.parametrize("url", ["sim:api_key:hunter2", "sim:api-key=a,hunter2"])
def test_a_key_that_was_given_wrongly_is_not_shown(url: str) -> None:
    with pytest.raises(UsageError, match=r"^sim: \*\*\* is not KEY=VALUE"):
        from_url(url)
