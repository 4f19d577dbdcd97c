"""What `loadstone plan` can be told: its flags, and what they mean together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, get_args

import msgspec

from loadstone.config import Seed, option
from loadstone.errors import UsageError, did_you_mean
from loadstone.roofline.setup import Weights

WEIGHTS = get_args(Weights)
MOST_RATE = 1e7
Percent = Annotated[float, msgspec.Meta(ge=0, le=90)]
Rate = Annotated[float, msgspec.Meta(gt=0, le=MOST_RATE)]


def words(texts: Sequence[str]) -> list[str]:
    """Words separated by commas, each once."""
    found = [word.strip() for text in texts for word in text.split(",")]
    return list(dict.fromkeys(filter(None, found)))


def _numbers(texts: Sequence[str]) -> list[str]:
    found = words(texts)
    for word in found:
        if not word.isascii() or not word.isdigit() or not 0 < int(word) <= 10_000_000:
            raise ValueError(f"{word} is not a whole number above 0; write for example 1,2,4.")
    return found


def _weights(texts: Sequence[str]) -> list[str]:
    found = words(texts)
    for word in found:
        if word not in WEIGHTS:
            raise ValueError(
                f"there is no {word}. {did_you_mean(word, WEIGHTS)} Known: {', '.join(WEIGHTS)}."
            )
    return found


def _prices(texts: Sequence[str]) -> list[str]:
    found = words(texts)
    for word in found:
        name, equals, price = word.partition("=")
        try:
            usd = float(price)
        except ValueError:
            usd = math.nan
        if not (name.strip() and equals and 0 <= usd < 1e6):
            raise ValueError(f"{word} is not GPU=USD; write for example h100=2.5,a100=1.2.")
    return found


def _objectives(texts: Sequence[str]) -> list[str]:
    return [",".join(texts)]


def _many(
    flags: str, help: str, read: Callable[[Sequence[str]], Any], form: str, **more: Any
) -> msgspec.Meta:
    return option(flags, help, read=read, form=form, **more)


class PlanOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question of capacity."""

    model: Annotated[
        str | None,
        option(
            "--model",
            help="A known name, a Hugging Face id, or a config.json.",
            group="Question",
            form="NAME",
        ),
    ] = None
    slo: Annotated[
        tuple[str, ...],
        _many(
            "--slo",
            "What has to hold: ttft.p99<500ms,itl.p99<40ms; also tpot and latency, p50 to p99_9, mean, max.",
            _objectives,
            "OBJECTIVE,...",
            group="Question",
        ),
    ] = ()
    rate: Annotated[
        Rate | None,
        option(
            "--rate --request-rate", help="Requests a second, all together.", group="Question", form="NUMBER"
        ),
    ] = None
    workload: Annotated[
        str,
        option(
            "--workload",
            help="chat, sharegpt, summary, rag, reasoning; or isl=512,osl=128 with isl_stddev, osl_stddev, prefix, prefixes,"
            " smoothness; or a configuration file of profile.",
            group="Question",
            form="WORKLOAD",
        ),
    ] = "chat"
    headroom: Annotated[
        Percent,
        option(
            "--headroom", help="Percent of the fleet that is kept free.", group="Question", form="PERCENT"
        ),
    ] = 0.0
    gpu: Annotated[
        tuple[str, ...],
        _many(
            "--gpu",
            "Kinds of devices to choose from; default: all of which a price is known (loadstone roofline --list).",
            words,
            "NAME,...",
            group="Choices",
        ),
    ] = ()
    tensor_parallel_size: Annotated[
        tuple[str, ...],
        _many(
            "--tensor-parallel-size -tp",
            "Devices that share every matrix; default: 1,2,4,8.",
            _numbers,
            "N,...",
            group="Choices",
        ),
    ] = ()
    pipeline_parallel_size: Annotated[
        tuple[str, ...],
        _many(
            "--pipeline-parallel-size -pp",
            "Groups that share the layers; default: 1.",
            _numbers,
            "N,...",
            group="Choices",
        ),
    ] = ()
    quantization: Annotated[
        tuple[str, ...],
        _many(
            "--quantization",
            f"Types of the weights, of {', '.join(WEIGHTS)}; default: as published.",
            _weights,
            "TYPE,...",
            group="Choices",
        ),
    ] = ()
    max_num_batched_tokens: Annotated[
        tuple[str, ...],
        _many(
            "--max-num-batched-tokens",
            "Tokens of one step at most; default: 128 to 16384, doubling.",
            _numbers,
            "N,...",
            group="Choices",
        ),
    ] = ()
    price: Annotated[
        tuple[str, ...],
        _many(
            "--price",
            "USD a device and hour, in place of the known price: h100=2.5.",
            _prices,
            "GPU=USD,...",
            group="Choices",
        ),
    ] = ()
    random_seed: Annotated[
        Seed,
        option("--random-seed --seed", help="Of arrivals and lengths.", group="Search"),
    ] = 0
    processes: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=1024)],
        option("--processes", help="Processes that search; 0: as many as usable cores.", group="Search"),
    ] = 0
    json: Annotated[bool, option("--json", help="Print JSON.", group="Output")] = False
    output: Annotated[
        str | None,
        option(
            "--output -o",
            help="Write the answer (.json) or the figure of its curve (.png, .svg, .html) too.",
            group="Output",
            form="FILE",
        ),
    ] = None


ENGINE = (
    "calibration",
    "kv_cache_dtype",
    "enable_expert_parallel",
    "max_num_seqs",
    "max_model_len",
    "enable_chunked_prefill",
    "long_prefill_token_threshold",
    "block_size",
    "gpu_memory_utilization",
    "num_gpu_blocks_override",
    "enable_prefix_caching",
    "num_speculative_tokens",
    "acceptance_rates",
    "draft_cost",
    "router",
)
"""The engine's own flags that hold for every setup; one number of blocks for all kinds of devices is of use for one."""


def needed(options: PlanOptions) -> tuple[str, float, str]:
    """Model, rate and objectives. UsageError: one is not given."""
    if options.model is None:
        raise UsageError("plan: --model is missing; write for example --model llama-3.1-8b.")
    if options.rate is None:
        raise UsageError("plan: --rate is missing: how many requests a second? Write for example --rate 100.")
    if not options.slo:
        raise UsageError(
            'plan: --slo is missing: what has to hold? Write for example --slo "ttft.p99<500ms,itl.p99<40ms".'
        )
    return options.model, options.rate, ",".join(options.slo)


def prices(texts: Sequence[str]) -> dict[str, float]:
    """USD a device and hour, by the names they were given for. UsageError: one is given twice."""
    found: dict[str, float] = {}
    for text in texts:
        name, _, usd = (part.strip() for part in text.partition("="))
        if name in found:
            raise UsageError(f"--price: {name} is given twice; give it once.")
        found[name] = float(usd)
    return found
