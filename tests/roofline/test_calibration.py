from __future__ import annotations

import tomllib

import msgspec
import pytest

from loadstone.errors import UsageError
from loadstone.roofline.calibration import FORMAT, Calibration, Measured, Reached, Told, read, text, write
from loadstone.roofline.case import Asked, Case, asked, asked_of, case, settled
from loadstone.roofline.gpus import find
from loadstone.roofline.setup import Efficiency

MADE = Calibration(
    format=FORMAT,
    made="2026-12-01T00:00:00Z",
    loadstone_version="0",
    runs=("a", "b"),
    setup=Asked(gpu="h100", model="llama-3.1-8b", tensor_parallel_size=2),
    reached=Reached(bandwidth=0.71, compute=0.5, step_s=0.0, layer_s=4e-5, sequence_s=1e-5, link=0.5),
    told={"bandwidth": Told(prior=0.8, used=0.71, value=0.71, error=0.01), "compute": Told(prior=0.5, used=0.5, reason="No step.")},
    rms_percent=1.5,
    worst_percent=3.0,
    points=(
        Measured(
            kind="decode", sequences=4, tokens=500, samples=99, measured_s=0.01, model_s=0.0101,
            error_percent=1.0, run="a",
        ),
    ),
)  # fmt: skip


def test_what_is_written_is_read(tmp_path):
    write(MADE, tmp_path / "deep" / "cal.toml")
    assert read(tmp_path / "deep" / "cal.toml") == MADE
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["cal.toml"]


def test_it_has_efficiencies_and_a_case():
    assert MADE.efficiency == Efficiency(
        bandwidth=0.71, compute=0.5, step_s=0.0, layer_s=4e-5, sequence_s=1e-5, link=0.5
    )
    assert MADE.case().words == "llama-3.1-8b bf16 on 2 x h100-sxm"


def test_hardware_of_its_own_goes_before_the_name():
    slow = msgspec.structs.replace(find("h100"), bandwidth=1e12)
    assert msgspec.structs.replace(MADE, hardware=slow).case().gpu.bandwidth == 1e12


def test_what_is_not_known_has_no_key():
    told = tomllib.loads(text(MADE))["told"]
    assert told["compute"] == {"prior": 0.5, "used": 0.5, "reason": "No step."}
    assert "hardware" not in tomllib.loads(text(MADE))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = [", "is no TOML"),
        ("format = 2", "is no calibration of this version"),
        ("", "is no calibration of this version"),
        (text(MADE).replace("bandwidth = 0.71", "bandwidth = -1"), "is damaged"),
        (text(MADE).replace('kind = "decode"', 'kind = "x"'), "is damaged"),
        (
            text(MADE).replace("num_speculative_tokens = 0", "num_speculative_tokens = 99999999999"),
            "cal.toml: setup num_speculative_tokens = 99999999999: must be at most 1,000",
        ),
        (
            text(MADE).replace("data_parallel_size = 1", "data_parallel_size = -4"),
            "data_parallel_size = -4: must be 1 or more",
        ),
    ],
)
def test_what_is_no_calibration_is_refused(tmp_path, content, message):
    (tmp_path / "cal.toml").write_text(content)
    with pytest.raises(UsageError, match=message):
        read(tmp_path / "cal.toml")


def test_a_file_that_never_ends_is_not_read_to_its_end():
    with pytest.raises(UsageError, match="/dev/zero: cannot be read: it is longer than 4 MiB"):
        read("/dev/zero")


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read(tmp_path / "none.toml")


def test_a_place_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write(MADE, tmp_path / "file" / "cal.toml")


def test_a_case_is_settled_from_words_or_a_file(tmp_path):
    write(MADE, tmp_path / "cal.toml")
    words = "gpu=h100,model=llama-3.1-8b,tensor-parallel-size=2"
    assert settled(words, None) == settled(str(tmp_path / "cal.toml"), None)


def test_the_model_of_the_endpoint_is_taken_where_none_is_named():
    assert asked("gpu=a100", "m").model == "m"
    assert asked("gpu=a100,model=x", "m").model == "x"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("gpu", "is not KEY=VALUE"),
        ("gpu=h100,modl=x", "Did you mean model"),
        ("gpu=h100,gpu=a100", "given twice"),
        ("model=x", "names no gpu"),
        ("gpu=h100", "names no model"),
        ("gpu=h100,model=m,tensor_parallel_size=x", "tensor_parallel_size: Expected `int`"),
        ("gpu=h100,model=m,tensor_parallel_size=0", "must be 1 or more"),
        ("gpu=h100,model=m,num_speculative_tokens=-1", "must be 0 or more"),
        ("gpu=h100,model=m,quantization=fp9", "Invalid enum value"),
    ],
)
def test_words_that_name_no_case_are_refused(words, message):
    with pytest.raises(UsageError, match=message):
        asked(words, None)


def test_a_case_survives_json():
    case = settled("gpu=mi300x,data_parallel_size=8,enable_expert_parallel=true", "deepseek-v3")
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(case)), Case) == case
    assert (case.parallel.data, case.replicas, case.parallel.devices) == (8, 8, 8)


def test_replicas_of_a_dense_model_are_engines_of_their_own():
    case = settled("gpu=h100,data_parallel_size=4,enable_expert_parallel=true", "llama-3.1-8b")
    assert (case.parallel.data, case.replicas, case.words) == (
        1, 4, "llama-3.1-8b bf16 on h100-sxm, 4 engines",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "kv"),
    [
        ("gpu=h100,model=llama-3.1-8b", "bf16"),
        ("gpu=h100,model=llama-3.1-8b,quantization=fp32", "fp32"),
        ("gpu=h100,model=llama-3.1-8b,quantization=fp32,kv_cache_dtype=bf16", "bf16"),
        ("gpu=h100,model=llama-3.1-8b,quantization=fp8", "bf16"),
        ("gpu=h100,model=llama-3.1-8b,kv_cache_dtype=fp8", "fp8"),
    ],
)
def test_a_kv_cache_that_nobody_asked_for_is_of_the_activations_type(words, kv):
    assert settled(words, None).precision.kv == kv


@pytest.mark.parametrize(
    "words",
    [
        "gpu=h100,model=Qwen/Qwen3-8B-FP8,tensor_parallel_size=2,data_parallel_size=3",
        "gpu=h200,model=deepseek-v3,data_parallel_size=8,enable_expert_parallel=true,kv_cache_dtype=fp8",
        "gpu=a100,model=llama-3.1-8b,num_speculative_tokens=3",
    ],
)
def test_a_case_knows_the_words_for_it(words):
    known = settled(words, None)
    again = asked_of(known)
    assert again is not None
    assert case(again).words == known.words
    assert (case(again).parallel, case(again).replicas, case(again).draft_tokens) == (
        known.parallel, known.replicas, known.draft_tokens,
    )  # fmt: skip


def test_hardware_and_models_without_a_name_have_no_words():
    known = settled("gpu=h100,model=llama-3.1-8b", None)
    slow = msgspec.structs.replace(known, gpu=msgspec.structs.replace(known.gpu, bandwidth=1e12))
    deep = msgspec.structs.replace(known, shape=msgspec.structs.replace(known.shape, layers=33))
    assert asked_of(slow) is None
    assert asked_of(deep) is None
