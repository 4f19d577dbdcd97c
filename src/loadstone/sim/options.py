"""What the built-in engine can be told: the flags of `loadstone simulate` and the keys of `--url sim:...`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal

import msgspec

from loadstone.config import ENGINE, MASK, Seed, option
from loadstone.config.secrets import named_like_secret
from loadstone.errors import UsageError, did_you_mean
from loadstone.roofline.setup import KvType, Weights
from loadstone.sim.lengths import MOST_TOKENS

Milliseconds = Annotated[float, msgspec.Meta(gt=0, le=3.6e6)]
"""Bounded by an hour: an endless step is an engine that hangs, which is not meant."""
Microseconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
"""Bounded by a second for a token or a request: a step has many, and moments in ns have to fit 64 bits."""
Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Gigabits = Annotated[float, msgspec.Meta(ge=1e-3, le=1e6)]
"""Per second."""
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]
CountOrZero = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
"""More is a slip of the hand; the flags of every verb have this bound."""
AnswerTokens = Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)]
Drafts = Annotated[int, msgspec.Meta(ge=0, le=256)]
Engines = Annotated[int, msgspec.Meta(ge=1, le=1024)]
EnginesOrNone = Annotated[int, msgspec.Meta(ge=0, le=1024)]
"""Bounded, because each has a KV cache and counts of its own: a thousand take a second to make and 40 MB."""
Dimensions = Annotated[int, msgspec.Meta(ge=1, le=65_536)]
BlockTokens = Annotated[int, msgspec.Meta(ge=1, le=65_536)]
"""An engine notes something for each place in a block."""
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]

LINEAR = ("step_ms", "step_us_per_sequence", "prefill_us_per_token")
"""What steps take where no device says it."""
MODEL = (
    "hf_config_path", "quantization", "kv_cache_dtype", "tensor_parallel_size", "pipeline_parallel_size",
    "enable_expert_parallel",
)  # fmt: skip
"""Which model there is, and how it is spread over devices."""
DEVICE = ("gpu_memory_utilization", "kv_transfer_gbps")
"""Of devices, and of what is on them."""
JOINS = "+"
"""Joins several faults in an address, where a comma separates keys."""


class SimOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One built-in engine and its server."""

    host: Annotated[str, option("--host", help="Address to listen on.", group="Server")] = "127.0.0.1"
    port: Annotated[Port, option("--port", help="Port to listen on; 0: any free one.", group="Server")] = 0
    model: Annotated[
        str, option("--model", help="The model name it answers to, or several as A,B.", group="Server")
    ] = "sim"
    api_key: Annotated[
        str | None, option("--api-key", help="Refuse requests without this bearer token.", group="Server")
    ] = None
    truth: Annotated[
        str | None,
        option(
            "--truth", help="Write what really happened to this file, a JSON line a request.", group="Server"
        ),
    ] = None
    steps: Annotated[
        str | None,
        option(
            "--steps",
            help="Write when each step began and its tokens were sent to this file.",
            group="Server",
        ),
    ] = None
    enable_request_id_headers: Annotated[
        bool,
        option(
            "--enable-request-id-headers",
            help="Answers bear the X-Request-Id of their request.",
            group="Server",
        ),
    ] = False
    network_us: Annotated[
        Microseconds | None,
        option(
            "--network-us",
            help="With --virtual: the way between client and server, in each direction; default: 100.",
            group="Server",
        ),
    ] = None
    null: Annotated[
        bool, option("--null", help="No engine: answer at once, to measure the client.", group="Server")
    ] = False
    gpu: Annotated[
        str | None,
        option(
            "--gpu",
            help="Accelerator whose speed and memory the engine has (loadstone roofline --list); without one, steps take"
            " the times below.",
            group="Hardware",
        ),
    ] = None
    hf_config_path: Annotated[
        str | None,
        option(
            "--hf-config-path",
            help="Shape of the model: a known name or a config.json; default: the model's name.",
            group="Hardware",
        ),
    ] = None
    calibration: Annotated[
        str | None,
        option(
            "--calibration", help="Efficiencies from loadstone roofline --fit: its file.", group="Hardware"
        ),
    ] = None
    quantization: Annotated[
        Weights | None,
        option("--quantization", help="Type of the weights; default: as published.", group="Hardware"),
    ] = None
    kv_cache_dtype: Annotated[
        Literal["auto"] | KvType,
        option(
            "--kv-cache-dtype", help="Type of the KV cache; auto: that of the activations.", group="Hardware"
        ),
    ] = "auto"
    tensor_parallel_size: Annotated[
        Count, option("--tensor-parallel-size", help="Devices that share every matrix.", group="Hardware")
    ] = 1
    pipeline_parallel_size: Annotated[
        Count, option("--pipeline-parallel-size", help="Groups that share the layers.", group="Hardware")
    ] = 1
    data_parallel_size: Annotated[
        Engines, option("--data-parallel-size", help="Engines behind one router.", group="Hardware")
    ] = 1
    enable_expert_parallel: Annotated[
        bool,
        option(
            "--enable-expert-parallel",
            help="Spread the experts over all devices, data parallel ones too.",
            group="Hardware",
        ),
    ] = False
    prefill_us_per_token: Annotated[
        Microseconds,
        option("--prefill-us-per-token", help="Without --gpu: time for each prompt token.", group="Engine"),
    ] = 20.0
    step_ms: Annotated[
        Milliseconds, option("--step-ms", help="Without --gpu: fixed time of one step.", group="Engine")
    ] = 10.0
    step_us_per_sequence: Annotated[
        Microseconds,
        option(
            "--step-us-per-sequence",
            help="Without --gpu: time a step takes longer for each running request.",
            group="Engine",
        ),
    ] = 20.0
    max_num_seqs: Annotated[
        Count | None,
        option(
            "--max-num-seqs",
            help="Requests that run together at most; default: as vLLM, by the device (256 without --gpu).",
            group="Engine",
        ),
    ] = None
    max_num_batched_tokens: Annotated[
        Count | None,
        option(
            "--max-num-batched-tokens",
            help="Tokens of one step at most; default: as vLLM, by the device (8192 without --gpu).",
            group="Engine",
        ),
    ] = None
    max_model_len: Annotated[
        Count | None,
        option(
            "--max-model-len",
            help="Longest prompt and answer together; default: the model's (without --gpu: as fits).",
            group="Engine",
        ),
    ] = None
    enable_chunked_prefill: Annotated[
        bool,
        option(
            "--enable-chunked-prefill", help="Split prompts over steps; no-: whole ones only.", group="Engine"
        ),
    ] = True
    long_prefill_token_threshold: Annotated[
        CountOrZero,
        option(
            "--long-prefill-token-threshold",
            help="Longest chunk of a prompt; 0: as the tokens of a step allow.",
            group="Engine",
        ),
    ] = 0
    scheduler_reserve_full_isl: Annotated[
        bool,
        option(
            "--scheduler-reserve-full-isl",
            help="Take nobody in whose whole prompt does not fit the KV cache; no-: its first chunk is enough.",
            group="Engine",
        ),
    ] = True
    scheduling_policy: Annotated[
        Literal["fcfs", "priority"],
        option(
            "--scheduling-policy",
            help="Order of waiting requests: arrival, or their field priority.",
            group="Engine",
        ),
    ] = "fcfs"
    block_size: Annotated[
        BlockTokens, option("--block-size", help="Tokens of one KV cache block.", group="Memory")
    ] = 16
    gpu_memory_utilization: Annotated[
        Share, option("--gpu-memory-utilization", help="Share of the device's memory to use.", group="Memory")
    ] = 0.92
    num_gpu_blocks_override: Annotated[
        Count | None,
        option(
            "--num-gpu-blocks-override",
            help="KV cache blocks; default: what the memory holds (without --gpu: 65536).",
            group="Memory",
        ),
    ] = None
    enable_prefix_caching: Annotated[
        bool,
        option("--enable-prefix-caching", help="Reuse the KV cache of equal beginnings.", group="Memory"),
    ] = True
    num_speculative_tokens: Annotated[
        Drafts,
        option(
            "--num-speculative-tokens", help="Draft tokens of a step; 0: no speculation.", group="Speculation"
        ),
    ] = 0
    acceptance_rates: Annotated[
        str,
        option(
            "--acceptance-rates",
            help="Chance that a draft token is accepted when those before it were, by position: 0.8+0.7; the last one"
            " goes on.",
            group="Speculation",
        ),
    ] = "0.8"
    draft_cost: Annotated[
        Share,
        option(
            "--draft-cost",
            help="A draft token's time as a share of a step that decodes one token for each request.",
            group="Speculation",
        ),
    ] = 0.05
    router: Annotated[
        Literal["round-robin", "least-loaded", "prefix-affine"],
        option("--router", help="Which engine a request goes to.", group="Deployment"),
    ] = "round-robin"
    prefill_replicas: Annotated[
        EnginesOrNone,
        option(
            "--prefill-replicas",
            help="Engines that only take in prompts and hand the KV cache on; 0: every engine does both.",
            group="Deployment",
        ),
    ] = 0
    kv_transfer_gbps: Annotated[
        Gigabits,
        option(
            "--kv-transfer-gbps", help="Rate of handing a KV cache on, Gbit/s a request.", group="Deployment"
        ),
    ] = 200.0
    startup_s: Annotated[
        Seconds,
        option(
            "--startup-s",
            help="Time in which it refuses connections, as a server that loads its weights.",
            group="Deployment",
        ),
    ] = 0.0
    output_tokens: Annotated[
        str,
        option(
            "--output-tokens",
            help="Where answers end: even (up to the limit asked for), N, normal:MEAN+STD, lognormal:MEDIAN+SIGMA or"
            " exponential:MEAN; never above the limit.",
            group="Answers",
        ),
    ] = "even"
    default_max_tokens: Annotated[
        AnswerTokens,
        option("--default-max-tokens", help="Longest answer when a request names no limit.", group="Answers"),
    ] = 256
    reasoning: Annotated[
        CountOrZero | Literal["all"],
        option(
            "--reasoning",
            help="Leading tokens of a chat answer that are reasoning: N or all.",
            group="Answers",
        ),
    ] = 0
    reasoning_field: Annotated[
        Literal["reasoning_content", "reasoning"],
        option("--reasoning-field", help="What chat calls its reasoning.", group="Answers"),
    ] = "reasoning_content"
    tool_calls: Annotated[
        bool,
        option("--tool-calls", help="Call a tool also where the request leaves that open.", group="Answers"),
    ] = False
    embedding_dimensions: Annotated[
        Dimensions, option("--embedding-dimensions", help="Numbers of an embedding.", group="Answers")
    ] = 1024
    seed: Annotated[
        Seed,
        option(
            "--seed",
            help="Of all that is left to chance: where answers end, which drafts are accepted, which requests get a fault.",
            group="Answers",
        ),
    ] = 0
    fault: Annotated[
        tuple[str, ...],
        option(
            "--fault",
            help="Answer like this (may repeat), or a share of the requests; all: every fault mixed.",
            group="Faults",
            form="NAME[:SHARE]",
        ),
    ] = ()
    fault_preflight: Annotated[
        bool,
        option("--fault-preflight", help="Preflight requests get faults too; else never.", group="Faults"),
    ] = False

    def __post_init__(self) -> None:
        if not self.models:
            raise UsageError(f"model = {self.model!r} has no name in it; give one, or several as A,B.")

    @property
    def models(self) -> tuple[str, ...]:
        """Every model it answers to, all in the same way."""
        return tuple(name.strip() for name in self.model.split(",") if name.strip())


def from_url(url: str) -> SimOptions:
    """The options in `sim:` or `sim:step_ms=5,model=m`. Raises `UsageError` naming the nearest key."""
    values: dict[str, Any] = {}
    for pair in url.removeprefix(ENGINE).split(","):
        if not pair.strip():
            continue
        key, value = _pair(pair, named_like_secret(url))
        if not value:
            raise UsageError(f"{ENGINE} {key!r} is empty; give it a value, or leave it out.")
        if key in values:
            advice = (
                f"join several with {JOINS}: fault=eof{JOINS}reset." if key == "fault" else "give it once."
            )
            raise UsageError(f"{ENGINE} {key!r} is given twice; {advice}")
        values[key] = value
    return _convert(values)


def _pair(pair: str, secret: bool) -> tuple[str, str]:
    """Key and value. `secret`: there is a secret in the address, of which `pair` may be a part."""
    key, equals, value = (part.strip() for part in pair.partition("="))
    if not equals:
        shown = MASK if secret else repr(pair)
        raise UsageError(f"{ENGINE} {shown} is not KEY=VALUE; write for example {ENGINE}step_ms=5,model=m.")
    return key.replace("-", "_"), value


def _convert(values: dict[str, Any]) -> SimOptions:
    known = SimOptions.__struct_fields__
    for key in values:
        if key not in known:
            advice = f"{did_you_mean(key, known)} Known: {', '.join(known)}.".lstrip()
            raise UsageError(f"{ENGINE} there is no option {key!r}. {advice}")
    if "fault" in values:
        values = {**values, "fault": [name.strip() for name in values["fault"].split(JOINS)]}
    try:
        options = msgspec.convert(values, SimOptions, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        raise UsageError(f"{ENGINE} {where.rstrip('`')}: {what}.") from None
    check_given(values, options, ENGINE)
    if options.fault:
        _check(options.fault)
    return options


def check_given(given: Collection[str], options: SimOptions, where: str = "") -> None:
    """Raises `UsageError` for what was given and has no effect beside the rest. `given` has names of fields.

    `where` begins the sentence for an address; without one the names are those of flags.
    """
    names: tuple[str, ...]
    if options.gpu is not None:
        names, why = LINEAR, "the model on its gpu says how long steps take; leave {} out."
    elif options.calibration is not None:
        names = (*LINEAR, *MODEL)
        why = (
            "a calibration alone stands for the model and the devices that it was measured on; name a gpu as well, or"
            " leave {} out."
        )
    else:
        names, why = (*MODEL, *DEVICE), "there is no device; name a gpu as well, or leave {} out."
    idle = [name if where else "--" + name.replace("_", "-") for name in names if name in given]
    if idle:
        have, it = ("has", "it") if len(idle) == 1 else ("have", "them")
        raise UsageError(f"{where} {', '.join(idle)} {have} no effect: {why.format(it)}".lstrip())


def _check(faults: Sequence[str]) -> None:
    from loadstone.sim.faults.choice import mix  # a run without faults need not know them

    mix(faults)
