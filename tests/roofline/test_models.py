from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import UsageError
from loadstone.roofline.models import ALIASES, MODELS, find
from loadstone.roofline.setup import Weights

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "max_position_embeddings": 2048,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 1000,
}


def written(folder: Path, name: str = "config.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(json.dumps(CONFIG))
    return file


def refusal(name: str) -> str:
    with pytest.raises(UsageError) as caught:
        find(name)
    return str(caught.value)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("qwen3-0.6b", "qwen3-0.6b"),
        ("Qwen3-0.6B", "qwen3-0.6b"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("Qwen/Qwen3-8B-Base", "qwen3-8b"),
        ("Qwen/Qwen3-235B-A22B", "qwen3-235b-a22b"),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", "qwen3-235b-a22b-2507"),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", "qwen3-30b-a3b-2507"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3.1-405B", "llama-3.1-405b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.1-70b"),
        ("llama-3.3-70b", "llama-3.1-70b"),
        ("unsloth/Llama-3.2-1B-Instruct", "llama-3.2-1b"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-V3-Base", "deepseek-v3"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"),
        ("Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b"),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "smollm2-135m"),
    ],
)
def test_names_of_a_model(asked: str, name: str) -> None:
    assert find(asked) == MODELS[name]


@pytest.mark.parametrize(
    ("asked", "name", "weights"),
    [
        ("Qwen/Qwen3-8B-FP8", "qwen3-8b", "fp8"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b", "int4"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "qwen2.5-7b", "w8a16"),
        ("RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic", "llama-3.1-70b", "fp8"),
        ("nvidia/Llama-3.3-70B-Instruct-NVFP4", "llama-3.1-70b", "fp4"),
        ("unsloth/gpt-oss-20b-BF16", "gpt-oss-20b", "bf16"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "qwen3-30b-a3b-2507", "fp8"),
    ],
)
def test_a_copy_of_a_model_in_another_type(asked: str, name: str, weights: str) -> None:
    it = find(asked)
    assert (it.name, it.weights) == (name, weights)


@given(st.sampled_from([*MODELS, *ALIASES]), st.sampled_from(["", "org/"]), st.booleans())
def test_every_name_is_found_however_it_is_written(name: str, organisation: str, upper: bool) -> None:
    asked = organisation + name
    assert find(asked.upper() if upper else asked).name in MODELS


def test_every_model_is_consistent() -> None:
    for name, it in MODELS.items():
        assert it.name == name == name.lower()
        assert it.source.startswith("config.json of ")
        assert it.weights in get_args(Weights)
        assert it.heads % it.kv_heads == 0
        assert (it.experts > 0) == (it.experts_per_token > 0) == (it.expert_ffn > 0)
        assert (it.window is not None) == (it.windowed_layers > 0)


def test_the_id_of_every_source_is_a_name_of_its_model() -> None:
    for it in MODELS.values():
        assert find(it.source.removeprefix("config.json of ")) is it


def test_a_slip_is_answered_with_the_nearest_name() -> None:
    assert "Did you mean llama-3.1-8b?" in refusal("meta-llama/Lama-3.1-8B")
    assert "Did you mean deepseek-v3?" in refusal("deepseek-v33")


def test_an_unknown_model_is_answered_with_all_names_and_the_way_out() -> None:
    message = refusal("my-model")
    assert message.startswith("model: 'my-model' is not known. Known: qwen3-0.6b, qwen3-1.7b, ")
    assert message.endswith("smollm2-135m. Or give the path of its config.json.")


@pytest.mark.parametrize(
    "other",
    ["deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "mistralai/Mistral-7B-v0.1", "Qwen/Qwen3-Next-80B-A3B"],
)
def test_a_model_of_other_sizes_is_not_taken_for_one_of_the_table(other: str) -> None:
    assert "is not known" in refusal(other)


def test_the_path_of_a_config_or_of_its_folder(tmp_path: Path) -> None:
    file = written(tmp_path / "Tiny-1M")
    it = find(str(file))
    assert (it.name, it.hidden, it.layers, it.source) == ("tiny-1m", 64, 2, str(file))
    assert find(str(file.parent)) == it
    assert find(f"{file.parent}/") == it


def test_a_file_of_another_name_names_the_model(tmp_path: Path) -> None:
    assert find(str(written(tmp_path, "Mine.json"))).name == "mine"


def test_a_folder_of_the_hugging_face_cache_is_called_after_its_model(tmp_path: Path) -> None:
    file = written(tmp_path / "models--Org--Tiny-1M" / "snapshots" / "0123abcd")
    assert find(str(file.parent)).name == "tiny-1m"


def test_a_folder_called_like_a_model_is_reached_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "qwen3-8b")
    monkeypatch.chdir(tmp_path)
    assert find("qwen3-8b") is MODELS["qwen3-8b"]
    assert find("./qwen3-8b").hidden == 64


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    missing = tmp_path / "config.json"
    assert refusal(str(missing)).startswith(f"model: {missing}: cannot be read: No such file")
    assert refusal(str(tmp_path)).startswith(f"model: {missing}: cannot be read: No such file")
    missing.write_text("{")
    assert refusal(str(missing)).startswith(f"model: {missing}: is no JSON: ")
    missing.write_bytes(b"\xff\xfe{}\xff")
    assert refusal(str(missing)).startswith(f"model: {missing}: is no JSON: ")
    missing.write_text("[]")
    assert "it is no object but list" in refusal(str(missing))
    missing.write_text("{}")
    assert "num_hidden_layers is missing" in refusal(str(missing))
    for levels, said in ((100_000, "it is nested too deep"), (990, "")):
        missing.write_text('{"text_config":' * levels + "{}" + "}" * levels)
        assert said in refusal(str(missing))
    missing.write_bytes(b" " * (5 << 20))
    assert "it is longer than 4 MiB" in refusal(str(missing))
