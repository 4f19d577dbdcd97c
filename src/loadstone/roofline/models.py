"""Shapes of public models, by name. Any other model comes from its `config.json`.

One rule: sizes are those of the model's own `config.json` on Hugging Face, whose id is the source.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from loadstone.errors import UsageError, did_you_mean
from loadstone.roofline import small_file
from loadstone.roofline.hf_config import shape_of
from loadstone.roofline.setup import Weights
from loadstone.roofline.shape import Latent, Shape


def dense(
    hf_id: str,
    layers: int,
    hidden: int,
    heads: tuple[int, int, int],
    ffn: int,
    vocabulary: int,
    max_model_len: int,
    tied_embeddings: bool = False,
) -> Shape:
    """A model without experts; `heads` are those of queries, those of keys and values, and the width of one."""
    return Shape(
        name="",
        layers=layers,
        hidden=hidden,
        vocabulary=vocabulary,
        heads=heads[0],
        kv_heads=heads[1],
        head_dim=heads[2],
        ffn=ffn,
        tied_embeddings=tied_embeddings,
        max_model_len=max_model_len,
        source=f"config.json of {hf_id}",
    )


def mixture(
    hf_id: str,
    layers: int,
    hidden: int,
    heads: tuple[int, int, int],
    experts: tuple[int, int, int],
    vocabulary: int,
    max_model_len: int,
) -> Shape:
    """A model with experts in every layer; `experts` are how many there are, how many a token goes through, their width."""
    return msgspec.structs.replace(
        dense(hf_id, layers, hidden, heads, 0, vocabulary, max_model_len),
        experts=experts[0],
        experts_per_token=experts[1],
        expert_ffn=experts[2],
    )


def gpt_oss(hf_id: str, layers: int, experts: int) -> Shape:
    """Every other layer attends to 128 tokens; experts are published as mxfp4, all else as bf16."""
    return msgspec.structs.replace(
        mixture(hf_id, layers, 2880, (64, 8, 64), (experts, 4, 2880), 201088, 131072),
        window=128,
        windowed_layers=layers // 2,
        weights="mxfp4",
    )


def deepseek_v3(hf_id: str) -> Shape:
    """Three layers without experts, one shared expert in the others, latent attention; published as fp8.

    Its module for multi-token prediction is a draft model of its own and not counted.
    """
    return msgspec.structs.replace(
        mixture(hf_id, 61, 7168, (128, 128, 192), (256, 8, 2048), 129280, 163840),
        ffn=18432,
        dense_layers=3,
        shared_ffn=2048,
        latent=Latent(kv_rank=512, rope_dim=64, nope_dim=128, value_dim=128, query_rank=1536),
        weights="fp8",
    )


TABLE = {
    "qwen3-0.6b": dense("Qwen/Qwen3-0.6B", 28, 1024, (16, 8, 128), 3072, 151936, 40960, True),
    "qwen3-1.7b": dense("Qwen/Qwen3-1.7B", 28, 2048, (16, 8, 128), 6144, 151936, 40960, True),
    "qwen3-4b": dense("Qwen/Qwen3-4B", 36, 2560, (32, 8, 128), 9728, 151936, 40960, True),
    "qwen3-8b": dense("Qwen/Qwen3-8B", 36, 4096, (32, 8, 128), 12288, 151936, 40960),
    "qwen3-14b": dense("Qwen/Qwen3-14B", 40, 5120, (40, 8, 128), 17408, 151936, 40960),
    "qwen3-32b": dense("Qwen/Qwen3-32B", 64, 5120, (64, 8, 128), 25600, 151936, 40960),
    "qwen3-30b-a3b": mixture("Qwen/Qwen3-30B-A3B", 48, 2048, (32, 4, 128), (128, 8, 768), 151936, 40960),
    "qwen3-235b-a22b": mixture("Qwen/Qwen3-235B-A22B", 94, 4096, (64, 4, 128), (128, 8, 1536), 151936, 40960),
    "qwen3-4b-2507": dense("Qwen/Qwen3-4B-Instruct-2507", 36, 2560, (32, 8, 128), 9728, 151936, 262144, True),
    "qwen3-30b-a3b-2507": mixture(
        "Qwen/Qwen3-30B-A3B-Instruct-2507", 48, 2048, (32, 4, 128), (128, 8, 768), 151936, 262144
    ),
    "qwen3-235b-a22b-2507": mixture(
        "Qwen/Qwen3-235B-A22B-Instruct-2507", 94, 4096, (64, 4, 128), (128, 8, 1536), 151936, 262144
    ),
    "llama-3.1-8b": dense("meta-llama/Llama-3.1-8B", 32, 4096, (32, 8, 128), 14336, 128256, 131072),
    "llama-3.1-70b": dense("meta-llama/Llama-3.1-70B", 80, 8192, (64, 8, 128), 28672, 128256, 131072),
    "llama-3.1-405b": dense("meta-llama/Llama-3.1-405B", 126, 16384, (128, 8, 128), 53248, 128256, 131072),
    "llama-3.2-1b": dense("meta-llama/Llama-3.2-1B", 16, 2048, (32, 8, 64), 8192, 128256, 131072, True),
    "llama-3.2-3b": dense("meta-llama/Llama-3.2-3B", 28, 3072, (24, 8, 128), 8192, 128256, 131072, True),
    "deepseek-v3": deepseek_v3("deepseek-ai/DeepSeek-V3"),
    "gpt-oss-20b": gpt_oss("openai/gpt-oss-20b", 24, 32),
    "gpt-oss-120b": gpt_oss("openai/gpt-oss-120b", 36, 128),
    "mixtral-8x7b": mixture(
        "mistralai/Mixtral-8x7B-v0.1", 32, 4096, (32, 8, 128), (8, 2, 14336), 32000, 32768
    ),
    "mistral-7b": dense("mistralai/Mistral-7B-v0.3", 32, 4096, (32, 8, 128), 14336, 32768, 32768),
    "qwen2.5-7b": dense("Qwen/Qwen2.5-7B-Instruct", 28, 3584, (28, 4, 128), 18944, 152064, 32768),
    "qwen2.5-32b": dense("Qwen/Qwen2.5-32B-Instruct", 64, 5120, (40, 8, 128), 27648, 152064, 32768),
    "qwen2.5-72b": dense("Qwen/Qwen2.5-72B-Instruct", 80, 8192, (64, 8, 128), 29568, 152064, 32768),
    "smollm2-135m": dense("HuggingFaceTB/SmolLM2-135M", 30, 576, (9, 3, 64), 1536, 49152, 8192, True),
}
"""Layers, width, heads (queries, keys and values, width), feed-forward width or experts, vocabulary, longest context."""
MODELS: dict[str, Shape] = {name: msgspec.structs.replace(shape, name=name) for name, shape in TABLE.items()}
"""Every model that is known by name."""
ALIASES = {
    "llama-3.3-70b": "llama-3.1-70b",
    "deepseek-r1": "deepseek-v3",
    "deepseek-v3-0324": "deepseek-v3",
    "deepseek-v3.1": "deepseek-v3",
    "deepseek-r1-0528": "deepseek-v3",
    "mixtral-8x7b-v0.1": "mixtral-8x7b",
    "mistral-7b-v0.3": "mistral-7b",
    "mixtral-8x7b-instruct-v0.1": "mixtral-8x7b",
    "mistral-7b-instruct-v0.3": "mistral-7b",
    "qwen3-4b-thinking-2507": "qwen3-4b-2507",
    "qwen3-4b-instruct-2507": "qwen3-4b-2507",
    "qwen3-30b-a3b-thinking-2507": "qwen3-30b-a3b-2507",
    "qwen3-30b-a3b-instruct-2507": "qwen3-30b-a3b-2507",
    "qwen3-235b-a22b-thinking-2507": "qwen3-235b-a22b-2507",
    "qwen3-235b-a22b-instruct-2507": "qwen3-235b-a22b-2507",
}
"""Other names of the same sizes: what a model is called after its organisation on Hugging Face, lower case."""
TUNED = ("-instruct", "-chat", "-base", "-it", "-hf")
"""Endings that say how a model was trained, and nothing of its sizes."""
STORED: dict[str, Weights] = {
    "-bf16": "bf16",
    "-fp8": "fp8",
    "-fp8-dynamic": "fp8",
    "-awq": "int4",
    "-awq-int4": "int4",
    "-gptq-int4": "int4",
    "-gptq-int8": "w8a16",
    "-nvfp4": "fp4",
    "-nvfp4a16": "nvfp4a16",
    "-quantized.w8a16": "w8a16",
    "-mxfp4": "mxfp4",
}
"""Endings that say in which type the weights of this copy are."""


def find(name_or_path: str) -> Shape:
    """The shape of a model.

    `name_or_path` is a name of the table, a Hugging Face id with or without its organisation and such endings as
    `-Instruct` or `-FP8`, or the path of a `config.json` or of a folder that holds one. UsageError: nothing is
    known by that name, or the file cannot be used.
    """
    known = by_name(name_or_path)
    if known is not None:
        return known
    path = Path(name_or_path).expanduser()
    if path.is_dir() or path.suffix == ".json":
        return from_file(path)
    near = did_you_mean(plain(name_or_path), {**MODELS, **ALIASES})
    raise UsageError(
        f"model: {name_or_path!r} is not known. {near or 'Known: ' + ', '.join(MODELS) + '.'}"
        " Or give the path of its config.json."
    )


def plain(name: str) -> str:
    """A name in lower case without its organisation."""
    return name.rstrip("/").rpartition("/")[2].lower().removeprefix("meta-")


def by_name(name: str) -> Shape | None:
    """A model of the table, by any of its names; None: there is none."""
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        return None
    short, weights = plain(name), None
    for ending in sorted(STORED, key=len, reverse=True):
        if short.endswith(ending):
            short, weights = short.removesuffix(ending), STORED[ending]
            break
    candidates = (short, *(short.removesuffix(ending) for ending in TUNED))
    found = next((ALIASES.get(word, word) for word in candidates if ALIASES.get(word, word) in MODELS), None)
    if found is None:
        return None
    return msgspec.structs.replace(MODELS[found], weights=weights) if weights else MODELS[found]


def from_file(path: Path) -> Shape:
    """The shape that a `config.json`, or the one in a folder, describes; it is called after its folder."""
    file = path / "config.json" if path.is_dir() else path
    deep = UsageError(f"model: {file}: is no config.json: it is nested too deep. Give the model's own one.")
    try:
        config = json.loads(small_file.read(file))
    except OSError as error:
        raise UsageError(
            f"model: {file}: cannot be read: {error.strerror}. Give a config.json or its folder."
        ) from None
    except ValueError as error:
        raise UsageError(f"model: {file}: is no JSON: {error}. Give the model's own config.json.") from None
    except RecursionError:
        raise deep from None
    name = called(file)
    try:
        shape = shape_of(config, name)
    except RecursionError:
        raise deep from None
    return msgspec.structs.replace(shape, source=shape.source.replace(f"config.json of {name}", str(file), 1))


def called(file: Path) -> str:
    """What a model is called by the place of its `config.json`: its folder, in a Hugging Face cache that of the model."""
    folder = file.resolve().parent
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name.rpartition("--")[2].lower()
    return (folder.name or file.stem).lower() if file.name == "config.json" else file.stem.lower()
