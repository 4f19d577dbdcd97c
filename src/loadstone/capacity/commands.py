"""The command lines to copy: how each replica is started, and how one looks closer at the fleet here."""

from __future__ import annotations

import shlex
from typing import get_args

import msgspec

from loadstone.capacity.answer import Way
from loadstone.capacity.candidates import max_num_seqs
from loadstone.capacity.search import Question
from loadstone.config import ENGINE
from loadstone.figures import figures
from loadstone.roofline import models
from loadstone.roofline.setup import Weights
from loadstone.roofline.weights import weights_of
from loadstone.sim.options import SimOptions

CONFIG = "config.json of "
"""Before the Hugging Face id, in the source of a known model's shape."""
A_MODEL = "MODEL"
"""Stands for a model of which only the config is known."""
VLLM = {**dict.fromkeys(get_args(Weights)), "fp8": "fp8"}
"""What `--quantization` makes of weights in bf16 as they are loaded; None: a copy of the model in that type is needed."""
CHAT = {
    **{
        f"meta-llama/Llama-3.{size}": f"meta-llama/Llama-3.{size}-Instruct"
        for size in ("1-8B", "1-70B", "1-405B", "2-1B", "2-3B")
    },
    "mistralai/Mixtral-8x7B-v0.1": "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "mistralai/Mistral-7B-v0.3": "mistralai/Mistral-7B-Instruct-v0.3",
    "HuggingFaceTB/SmolLM2-135M": "HuggingFaceTB/SmolLM2-135M-Instruct",
}
"""Of models that only go on with a text: the one of the same sizes that answers, which is what a load asks."""
MOST_REQUESTS = 20_000
EACH = 500
"""Requests for each replica in a closer look."""


def model_id(word: str) -> str:
    """The model as `vllm serve` takes it."""
    if "/" in word and not word.startswith((".", "/", "~")) and word.count("/") == 1:
        return word
    source = models.find(word).source
    found = source.removeprefix(CONFIG)
    return CHAT.get(found, found) if source.startswith(CONFIG) else A_MODEL


def serve(options: SimOptions) -> list[str]:
    """`vllm serve` for one replica, by word and pairs of words."""
    word = options.hf_config_path or options.model
    flags = [
        "vllm serve " + shlex.quote(model_id(word)),
        f"--tensor-parallel-size {options.tensor_parallel_size}",
    ]
    if options.pipeline_parallel_size > 1:
        flags.append(f"--pipeline-parallel-size {options.pipeline_parallel_size}")
    if options.enable_expert_parallel:
        flags.append("--enable-expert-parallel")
    as_stored = options.quantization == weights_of(models.find(word))
    if options.quantization and not as_stored and VLLM[options.quantization]:
        flags.append(f"--quantization {VLLM[options.quantization]}")
    flags += [
        f"--max-num-batched-tokens {options.max_num_batched_tokens}",
        f"--max-num-seqs {max_num_seqs(options)}",
        f"--max-model-len {options.max_model_len}",
        f"--gpu-memory-utilization {options.gpu_memory_utilization:g}",
    ]
    if options.kv_cache_dtype != "auto":
        flags.append(f"--kv-cache-dtype {options.kv_cache_dtype}")
    if not options.enable_prefix_caching:
        flags.append("--no-enable-prefix-caching")
    if not options.enable_chunked_prefill:
        flags.append("--no-enable-chunked-prefill")
    if options.long_prefill_token_threshold:
        flags.append(f"--long-prefill-token-threshold {options.long_prefill_token_threshold}")
    if options.block_size != SimOptions().block_size:
        flags.append(f"--block-size {options.block_size}")
    return flags


def needs_a_copy(options: SimOptions) -> bool:
    """Whether the weights are of a type that `vllm serve` does not make by itself from the model named."""
    stored = weights_of(models.find(options.hf_config_path or options.model))
    return bool(options.quantization and options.quantization != stored and not VLLM[options.quantization])


def closer(way: Way, question: Question) -> list[str]:
    """`loadstone profile` of the whole fleet on the virtual clock; of one replica where experts are spread."""
    replicas = 1 if way.capacity.options.enable_expert_parallel else way.replicas
    options = msgspec.structs.replace(way.capacity.options, data_parallel_size=replicas, model="sim")
    default = SimOptions()
    keys = [
        f"{name}={_word(value)}"
        for name in SimOptions.__struct_fields__
        if (value := getattr(options, name)) != getattr(default, name)
    ]
    asked = question.workload
    flags = [
        "loadstone profile --virtual --streaming",
        "--url " + shlex.quote(ENGINE + ",".join(keys)),
        f"--request-rate {figures(question.rate * replicas / way.replicas).replace(',', '')}",
        f"--request-count {min(max(2 * EACH, EACH * replicas), MOST_REQUESTS)}",
        f"--isl {asked.isl}",
        *([f"--isl-stddev {asked.isl_stddev}"] if asked.isl_stddev else []),
        f"--osl {asked.osl}",
        *([f"--osl-stddev {asked.osl_stddev}"] if asked.osl_stddev else []),
    ]
    flags.append("--extra-inputs ignore_eos:true")  # else answers end earlier by chance
    if asked.smoothness != 1:
        flags.append(f"--arrival-pattern gamma --arrival-smoothness {asked.smoothness:g}")
    return flags


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
