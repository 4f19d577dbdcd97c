"""The one typed tree behind the config file, the flags, the docs table and the JSON schema.

Every leaf is a field with a type, a default and an `option(...)` or `rare(...)`: its flags and help. A file's keys are
the paths of this tree (`load.concurrency = 8`). To add a setting, add a field: flag, file key, checks of
type and range, help, docs and schema follow. Knows no values but the defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec

from loadstone.config import values

ENGINE = "sim:"
"""The address that means: start the built-in engine."""
MOST = 1_000_000_000
"""No number may be greater, where a leaf says nothing else: it is a slip of the hand, and times in ns would leave
64 bits."""
TOKENS = 10_000_000


def option(
    flags: str,
    help: str,
    *,
    group: str | None = None,
    form: str | None = None,
    hint: str = "",
    secret: bool = False,
    most: int = MOST,
    parts: str | None = None,
    read: Callable[[Sequence[str]], Any] | None = None,
    rare: bool = False,
) -> msgspec.Meta:
    """Describes one leaf. `flags` are separated by spaces; the first is the name shown.

    `group` is its heading in help (None: its section's title); `form` stands for the value in help; `hint` is what
    to do when the value is refused; `secret` keeps the value out of messages; `most` is the greatest number allowed,
    where the type does not say it; `parts` names the kind of registry part to choose from; `read` turns the texts
    given on the command line into a value; `rare` keeps it out of `--help` (`--help-all` has it).
    """
    extra = {
        "flags": tuple(flags.split()),
        "group": group,
        "form": form,
        "hint": hint,
        "secret": secret,
        "most": most,
        "parts": parts,
        "read": read,
        "rare": rare,
    }
    return msgspec.Meta(description=help, extra=extra)


def rare(flags: str, help: str, **more: Any) -> msgspec.Meta:
    """An `option` that few need."""
    return option(flags, help, rare=True, **more)


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A branch of the tree."""


Positive = Annotated[float, msgspec.Meta(gt=0)]
NonNegative = Annotated[float, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[float, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]
CountOrZero = Annotated[int, msgspec.Meta(ge=0)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class EndpointConfig(Section, frozen=True, kw_only=True):
    """The server under test and how it is spoken to."""

    url: Annotated[
        tuple[str, ...] | str,
        option(
            "--url -u --base-url",
            "Server address; scheme and /v1 may be left out. sim: starts the built-in engine. Repeatable.",
            form="URL",
            read=values.one_or_more,
            secret=True,
        ),
    ] = "localhost:8000"
    virtual: Annotated[
        bool,
        rare(
            "--virtual",
            "With sim: compute the run on a virtual clock instead of waiting for it; the report says so.",
        ),
    ] = False
    url_strategy: Annotated[
        Literal["round-robin", "random", "weighted", "least-in-flight"] | None,
        rare(
            "--url-strategy",
            "Which of several servers a conversation goes to; default: round-robin, or weighted when weights are given.",
        ),
    ] = None
    url_weights: Annotated[
        tuple[Positive, ...],
        rare("--url-weights", "A weight for each --url, such as 3,1.", form="W,W...", read=values.numbers),
    ] = ()
    model: Annotated[
        str | None,
        option(
            "--model -m --model-names",
            "Model name, or several as A,B; default: the first one the server lists.",
            form="NAME",
        ),
    ] = None
    model_strategy: Annotated[
        Literal["round-robin", "random", "weighted"] | None,
        rare(
            "--model-selection-strategy",
            "Which of several models a conversation asks; default: round-robin, or weighted when weights are given.",
        ),
    ] = None
    model_weights: Annotated[
        tuple[Positive, ...],
        rare("--model-weights", "A weight for each model, such as 3,1.", form="W,W...", read=values.numbers),
    ] = ()
    type: Annotated[str, option("--endpoint-type", "API shape.", parts="endpoints")] = "chat"
    path: Annotated[
        str | None,
        rare(
            "--endpoint --custom-endpoint",
            "Path instead of the endpoint type's own.",
            form="PATH",
            secret=True,
        ),
    ] = None
    streaming: Annotated[bool, option("--streaming", "Ask for a stream; needed for TTFT and ITL.")] = False
    api_key: Annotated[
        str | None,
        option(
            "--api-key",
            "Sent as a bearer token, never stored. Better: the variable LOADSTONE_API_KEY.",
            form="KEY",
            secret=True,
        ),
    ] = None
    api_key_file: Annotated[
        str | None,
        rare(
            "--api-key-file",
            "Read the key from this file or pipe, white space at its ends left out.",
            form="FILE",
        ),
    ] = None
    headers: Annotated[
        tuple[str, ...],
        option("--header -H", "Extra request header; repeatable.", form="NAME:VALUE", secret=True),
    ] = ()
    session_headers: Annotated[
        tuple[str, ...],
        rare(
            "--session-header",
            "Send the conversation's id in this header (X-Session-ID, X-Session-Affinity, ...); repeatable.",
            form="NAME",
        ),
    ] = ()
    session_end_header: Annotated[
        str | None,
        rare(
            "--session-end-header",
            "Send this header with the last request of every conversation.",
            form="NAME:VALUE",
            secret=True,
        ),
    ] = None
    extra_inputs: Annotated[
        dict[str, Any],
        option(
            "--extra-inputs",
            "Extra request field, as JSON (ignore_eos:true), or an object of them; repeatable.",
            form="NAME:VALUE",
            read=values.fields,
        ),
    ] = {}
    legacy_max_tokens: Annotated[
        bool, rare("--use-legacy-max-tokens", "chat: send max_tokens instead of max_completion_tokens.")
    ] = False
    usage_per_chunk: Annotated[
        bool, rare("--per-chunk-usage", "Ask for running token counts in every chunk (vLLM, SGLang).")
    ] = False
    insecure: Annotated[bool, rare("--insecure", "Accept any TLS certificate.")] = False
    ca: Annotated[
        str | None,
        rare(
            "--ca --ca-certificate", "PEM file of authorities to trust in place of the system's.", form="FILE"
        ),
    ] = None
    client_certificate: Annotated[
        str | None,
        rare(
            "--client-certificate --cert",
            "PEM file with our own certificate, and the key unless that is apart.",
            form="FILE",
        ),
    ] = None
    client_key: Annotated[
        str | None, rare("--client-key --key", "PEM file with the key of our certificate.", form="FILE")
    ] = None
    server_name: Annotated[
        str | None,
        rare(
            "--server-name --sni",
            "Name to ask for in TLS and to check the certificate against; default: the host.",
            form="NAME",
        ),
    ] = None
    proxy: Annotated[
        str | None,
        rare(
            "--proxy",
            "HTTP proxy; https goes through it by CONNECT. http_proxy and its like are not heeded.",
            form="URL",
            secret=True,
        ),
    ] = None
    connection_reuse: Annotated[
        Literal["pooled", "never", "sticky-user-sessions"],
        rare(
            "--connection-reuse-strategy",
            "pooled: any connection kept alive; never: a new one a request; sticky-user-sessions: one a conversation.",
        ),
    ] = "pooled"
    connect_timeout_s: Annotated[
        Positive, rare("--connect-timeout-seconds", "Limit for TCP and TLS together.")
    ] = 10.0
    first_token_timeout_s: Annotated[
        Positive, rare("--first-token-timeout-seconds", "Limit from send to the first output token.")
    ] = 600.0
    idle_timeout_s: Annotated[
        Positive,
        rare(
            "--idle-timeout-seconds",
            "Limit for a pause within an answer, once it has begun; noticed within a tenth of it, at most a second.",
        ),
    ] = 300.0
    timeout_s: Annotated[
        Positive, rare("--request-timeout-seconds", "Limit from send to the end of the answer.")
    ] = 1800.0
    max_response_bytes: Annotated[
        Count,
        rare(
            "--max-response-bytes",
            "An answer may be so long, as received and after decompression.",
            most=1 << 31,
        ),
    ] = 64 << 20

    @property
    def urls(self) -> tuple[str, ...]:
        """Every server address, in the order given."""
        return (self.url,) if isinstance(self.url, str) else self.url

    @property
    def models(self) -> tuple[str, ...]:
        """Every model asked for, in the order given; empty when the server is to name one."""
        return tuple(name.strip() for name in (self.model or "").split(",") if name.strip())


class ServerConfig(Section, frozen=True, kw_only=True):
    """What is asked of the server beside the load, before, around and after it."""

    wait_for_model_s: Annotated[
        NonNegative,
        option(
            "--wait-for-model-timeout",
            "Before anything else wait this long for an answer.",
        ),
    ] = 0.0
    wait_for_model_mode: Annotated[
        Literal["inference", "models", "both"],
        rare(
            "--wait-for-model-mode",
            "What it has to answer: a request for one token, the list of its models with this one, or both.",
        ),
    ] = "inference"
    wait_for_model_interval_s: Annotated[
        Positive, rare("--wait-for-model-interval", "Ask it this often, s.")
    ] = 5.0
    strict: Annotated[
        bool,
        rare("--strict", "Stop when the server refuses a request field, instead of leaving it out."),
    ] = False
    reset_kv_cache: Annotated[
        bool, rare("--reset-kv-cache", "Have the server empty its prefix cache before the load.")
    ] = False
    reset_kv_cache_path: Annotated[
        str,
        rare(
            "--reset-kv-cache-path",
            "Where that is asked for, by POST (SGLang: /flush_cache).",
            form="PATH",
            secret=True,
        ),
    ] = "/reset_prefix_cache"
    reset_kv_cache_timeout_s: Annotated[
        Positive, rare("--reset-kv-cache-timeout-seconds", "Limit for the answer to it.")
    ] = 30.0
    profiler: Annotated[
        bool,
        rare("--server-profiler --profile", "Have the server's profiler run while the load is measured."),
    ] = False
    profiler_start_path: Annotated[
        str,
        rare("--server-profiler-start-path", "Where its start is asked for.", form="PATH", secret=True),
    ] = "/start_profile"
    profiler_stop_path: Annotated[
        str, rare("--server-profiler-stop-path", "Where its end is asked for.", form="PATH", secret=True)
    ] = "/stop_profile"
    roofline: Annotated[
        str | None,
        rare(
            "--roofline",
            "What the servers run, to compare with: gpu=h100,model=llama-3.1-8b,... or a calibration file.",
            form="KEY=VALUE,...|FILE",
        ),
    ] = None
    metrics: Annotated[
        bool,
        rare("--no-server-metrics", "Leave the servers' Prometheus pages unread."),
    ] = True
    metrics_urls: Annotated[
        tuple[str, ...],
        rare(
            "--server-metrics",
            "Also read this Prometheus page while the run lasts, beside /metrics of every --url; repeatable.",
            form="URL",
            secret=True,
        ),
    ] = ()
    metrics_interval_s: Annotated[
        Annotated[float, msgspec.Meta(ge=0.1)],
        rare("--server-metrics-interval", "Read every page this often, s.", most=3600),
    ] = 1.0


class InputConfig(Section, frozen=True, kw_only=True):
    """What is asked: lengths of prompts and answers."""

    isl_mean: Annotated[
        AtLeastOne,
        option(
            "--isl --synthetic-input-tokens-mean --isl-mean --prompt-input-tokens-mean --input-len --random-input-len",
            "Mean prompt length, tokens.",
            most=TOKENS,
        ),
    ] = 550.0
    isl_stddev: Annotated[
        NonNegative,
        option(
            "--isl-stddev --synthetic-input-tokens-stddev --prompt-input-tokens-stddev",
            "Its standard deviation (normal, cut at 1).",
            most=TOKENS,
        ),
    ] = 0.0
    osl_mean: Annotated[
        AtLeastOne | None,
        option(
            "--osl --output-tokens-mean --osl-mean --prompt-output-tokens-mean --output-len --random-output-len",
            "Mean output length asked for, tokens; default: the server's own limit.",
            most=TOKENS,
        ),
    ] = None
    osl_stddev: Annotated[
        NonNegative,
        option(
            "--osl-stddev --output-tokens-stddev --prompt-output-tokens-stddev",
            "Its standard deviation (normal, cut at 1).",
            most=TOKENS,
        ),
    ] = 0.0
    isl_includes_template: Annotated[
        bool,
        rare(
            "--isl-includes-template",
            "Take the chat template's tokens, measured by the preflight, off the prompt length.",
        ),
    ] = False
    file: Annotated[
        str | None,
        option(
            "--input-file",
            "JSONL: input_length, output_length, session_id, timestamp, delay (ms).",
            form="FILE",
        ),
    ] = None
    turns_mean: Annotated[
        AtLeastOne,
        option(
            "--conversation-turn-mean --session-turns-mean",
            "Mean turns of a conversation.",
            most=10_000,
        ),
    ] = 1.0
    turns_stddev: Annotated[
        NonNegative,
        rare(
            "--conversation-turn-stddev --session-turns-stddev",
            "Its standard deviation (normal, cut at 1).",
            most=10_000,
        ),
    ] = 0.0
    think_mean_ms: Annotated[
        NonNegative,
        rare(
            "--conversation-turn-delay-mean --session-turn-delay-mean",
            "Mean think time between an answer and the next turn, ms.",
        ),
    ] = 0.0
    think_stddev_ms: Annotated[
        NonNegative,
        rare(
            "--conversation-turn-delay-stddev --session-turn-delay-stddev",
            "Its standard deviation (normal, cut at 0).",
        ),
    ] = 0.0
    think_ratio: Annotated[
        NonNegative,
        rare(
            "--conversation-turn-delay-ratio --session-delay-ratio", "Every think time is multiplied by this."
        ),
    ] = 1.0
    entries: Annotated[
        Count | None,
        rare(
            "--num-dataset-entries",
            "Number of different prompts, reused in turn; default: every request has its own.",
        ),
    ] = None
    token_ids: Annotated[bool, rare("--prompt-token-ids", "completions: send prompts as token ids.")] = False
    seed: Annotated[
        Seed | None,
        option(
            "--random-seed --seed", "The same seed gives the same requests; default: a fresh one, printed."
        ),
    ] = None
    tokenizer: Annotated[
        str,
        option(
            "--tokenizer",
            "builtin, a tokenizer.json or its folder, or none (lengths approximate).",
            form="NAME",
        ),
    ] = "builtin"


Strategy = Literal["linear", "exponential"]
_ARRIVALS, _RAMPS, _PHASES, _STOPS = "Arrivals", "Ramps", "Warm-up and cooldown", "Stops"


class LoadConfig(Section, frozen=True, kw_only=True):
    """The shape of the load and when it stops."""

    concurrency: Annotated[
        Count | None,
        option(
            "--concurrency --max-concurrency",
            "Requests in flight at most; 1 when no rate is given. With a rate: a cap; the wait for a slot is counted.",
            most=100_000,
        ),
    ] = None
    prefill_concurrency: Annotated[
        Count | None,
        rare(
            "--prefill-concurrency",
            "Requests at most that wait for their first token; needs --streaming.",
            most=100_000,
        ),
    ] = None
    drain_queue: Annotated[
        bool,
        rare(
            "--drain-queue",
            "Send what was due and waits for a slot when the time is over; default: it is not sent.",
        ),
    ] = False
    request_rate: Annotated[
        Positive | Literal["inf"] | None,
        option(
            "--request-rate",
            "Requests per second, whatever the server does (open loop); inf: everything at once.",
            group=_ARRIVALS,
            hint="For a closed loop set --concurrency; to send everything at once give inf.",
            most=1_000_000,
        ),
    ] = None
    arrival_pattern: Annotated[
        Literal["constant", "poisson", "gamma"] | None,
        option(
            "--arrival-pattern --request-rate-mode",
            "Gaps between arrivals; default: poisson, or gamma when a smoothness is given.",
            group=_ARRIVALS,
        ),
    ] = None
    arrival_smoothness: Annotated[
        Positive | None,
        option(
            "--arrival-smoothness --burstiness --vllm-burstiness",
            "Shape of gamma gaps: below 1 bursty, 1 is poisson, above 1 even.",
            group=_ARRIVALS,
            most=1_000_000,
        ),
    ] = None
    conditioned: Annotated[
        bool,
        rare(
            "--conditioned-arrivals",
            "Stretch the arrivals so that the last one of N is due at N/rate exactly, as vllm bench does.",
            group=_ARRIVALS,
        ),
    ] = False
    request_rate_series: Annotated[
        tuple[tuple[NonNegative, NonNegative], ...],
        option(
            "--request-rate-series",
            "Points of a rate that changes linearly between them: 0:1,60:20, or JSON.",
            group=_ARRIVALS,
            form="S:RATE,...",
            read=values.points,
        ),
    ] = ()
    fixed_schedule: Annotated[
        bool,
        option("--fixed-schedule", "Send at the timestamps of --input-file.", group=_ARRIVALS),
    ] = False
    fixed_schedule_auto_offset: Annotated[
        bool,
        rare("--fixed-schedule-auto-offset", "Begin with the first timestamp, not at 0.", group=_ARRIVALS),
    ] = False
    fixed_schedule_start_ms: Annotated[
        NonNegative | None,
        rare(
            "--fixed-schedule-start-offset",
            "Leave out earlier timestamps, and begin with this one, ms.",
            group=_ARRIVALS,
            most=1_000_000_000_000_000,
        ),
    ] = None
    fixed_schedule_end_ms: Annotated[
        NonNegative | None,
        rare(
            "--fixed-schedule-end-offset",
            "Leave out later timestamps, ms.",
            group=_ARRIVALS,
            most=1_000_000_000_000_000,
        ),
    ] = None
    user_centric_rate: Annotated[
        Positive | None,
        rare(
            "--user-centric-rate",
            "Requests per second of --num-users together; each sends a turn every users/rate seconds.",
            group=_ARRIVALS,
            most=1_000_000,
        ),
    ] = None
    users: Annotated[
        Count | None,
        rare("--num-users", "Users at a time, with --user-centric-rate.", group=_ARRIVALS, most=1_000_000),
    ] = None
    request_rate_ramp_s: Annotated[
        Positive | None,
        option("--request-rate-ramp-duration", "Take this long to reach --request-rate.", group=_RAMPS),
    ] = None
    request_rate_ramp_start: Annotated[
        NonNegative | None,
        rare(
            "--request-rate-ramp-start",
            "Rate to begin with, above or below; default: 0 (exponential: a tenth).",
            group=_RAMPS,
            most=1_000_000,
        ),
    ] = None
    request_rate_ramp_strategy: Annotated[
        Strategy, rare("--request-rate-ramp-strategy", "Course of that ramp.", group=_RAMPS)
    ] = "linear"
    concurrency_ramp_s: Annotated[
        Positive | None,
        option("--concurrency-ramp-duration", "Take this long to reach --concurrency.", group=_RAMPS),
    ] = None
    concurrency_ramp_start: Annotated[
        Count | None,
        rare(
            "--concurrency-ramp-start",
            "Slots to begin with, above or below; default: 1.",
            group=_RAMPS,
            most=100_000,
        ),
    ] = None
    concurrency_ramp_strategy: Annotated[
        Strategy, rare("--concurrency-ramp-strategy", "Course of that ramp.", group=_RAMPS)
    ] = "linear"
    prefill_concurrency_ramp_s: Annotated[
        Positive | None,
        rare(
            "--prefill-concurrency-ramp-duration",
            "Take this long to reach --prefill-concurrency.",
            group=_RAMPS,
        ),
    ] = None
    prefill_concurrency_ramp_start: Annotated[
        Count | None,
        rare(
            "--prefill-concurrency-ramp-start",
            "Prefill slots to begin with, above or below; default: 1.",
            group=_RAMPS,
            most=100_000,
        ),
    ] = None
    prefill_concurrency_ramp_strategy: Annotated[
        Strategy, rare("--prefill-concurrency-ramp-strategy", "Course of that ramp.", group=_RAMPS)
    ] = "linear"
    index_ramp_strategy: Annotated[
        Strategy | None,
        rare(
            "--ramp-up-strategy",
            "vllm bench's ramp: the rate changes with the number of the request, not with time.",
            group=_RAMPS,
        ),
    ] = None
    index_ramp_start: Annotated[
        Positive | None,
        rare("--ramp-up-start-rps", "Its rate at the first request.", group=_RAMPS, most=1_000_000),
    ] = None
    index_ramp_end: Annotated[
        Positive | None,
        rare("--ramp-up-end-rps", "Its rate at the last request.", group=_RAMPS, most=1_000_000),
    ] = None
    request_count: Annotated[
        Count | None,
        option(
            "--request-count --num-requests",
            "Requests to send; max(50, 2 x concurrency) when nothing else stops the run.",
            group=_STOPS,
        ),
    ] = None
    sessions: Annotated[
        Count | None,
        rare(
            "--num-sessions --num-conversations --conversation-num",
            "Conversations to begin; each that has begun goes on to its last turn.",
            group=_STOPS,
        ),
    ] = None
    duration_s: Annotated[
        Positive | None,
        option("--benchmark-duration --duration", "Send for this long.", group=_STOPS),
    ] = None
    grace_s: Annotated[
        NonNegative | None,
        rare(
            "--benchmark-grace-period",
            "After the duration, wait this long for answers under way; default: 30.",
            group=_STOPS,
        ),
    ] = None
    failed_request_threshold: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=1)] | None,
        rare(
            "--failed-request-threshold --max-error-rate",
            "Give up above this share of failures in the last 100 (at first 20); 1: never. Default: 0.5, with sim:fault 1.",
            group=_STOPS,
            form="SHARE",
        ),
    ] = None
    stop_when: Annotated[
        dict[str, Positive],
        option(
            "--stop-when",
            "Stop when a mean is known to so many percent (95 %): request_latency:2.",
            group=_STOPS,
            form="METRIC:PERCENT",
            read=values.limits,
            most=100,
        ),
    ] = {}
    cancellation_percent: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=100)],
        rare("--request-cancellation-rate", "Cancel so many percent of the requests.", form="PERCENT"),
    ] = 0.0
    cancellation_delay_s: Annotated[
        NonNegative, rare("--request-cancellation-delay", "So long after they were sent, s.")
    ] = 0.0
    warmup_request_count: Annotated[
        CountOrZero,
        option(
            "--warmup-request-count --num-warmup-requests --num-warmups",
            "Requests sent before the measurement, in the same shape of load.",
            group=_PHASES,
        ),
    ] = 0
    warmup_sessions: Annotated[
        Count | None,
        rare("--num-warmup-sessions", "Conversations of the warm-up, instead of requests.", group=_PHASES),
    ] = None
    warmup_duration_s: Annotated[
        Positive | None, option("--warmup-duration", "Warm up for this long.", group=_PHASES)
    ] = None
    warmup_grace_s: Annotated[
        NonNegative | None,
        rare(
            "--warmup-grace-period",
            "After that, wait this long for answers under way; default: for all of them.",
            group=_PHASES,
        ),
    ] = None
    warmup_concurrency: Annotated[
        Count | None,
        rare("--warmup-concurrency", "Default: --concurrency.", group=_PHASES, most=100_000),
    ] = None
    warmup_prefill_concurrency: Annotated[
        Count | None,
        rare("--warmup-prefill-concurrency", "Default: --prefill-concurrency.", group=_PHASES, most=100_000),
    ] = None
    warmup_request_rate: Annotated[
        Positive | None,
        rare("--warmup-request-rate", "Default: --request-rate.", group=_PHASES, most=1_000_000),
    ] = None
    warmup_arrival_pattern: Annotated[
        Literal["constant", "poisson", "gamma"] | None,
        rare("--warmup-arrival-pattern", "Default: --arrival-pattern.", group=_PHASES),
    ] = None
    warmup_concurrency_ramp_s: Annotated[
        Positive | None,
        rare("--warmup-concurrency-ramp-duration", "Ramp of the warm-up; default: none.", group=_PHASES),
    ] = None
    warmup_prefill_concurrency_ramp_s: Annotated[
        Positive | None,
        rare(
            "--warmup-prefill-concurrency-ramp-duration", "Ramp of the warm-up; default: none.", group=_PHASES
        ),
    ] = None
    warmup_request_rate_ramp_s: Annotated[
        Positive | None,
        rare("--warmup-request-rate-ramp-duration", "Ramp of the warm-up; default: none.", group=_PHASES),
    ] = None
    warmup_handover: Annotated[
        Literal["drained", "seamless"],
        rare(
            "--warmup-handover",
            "Measure once all answers of the warm-up have ended, or while the last ones still come.",
            group=_PHASES,
        ),
    ] = "drained"
    cooldown_duration_s: Annotated[
        Positive | None,
        option(
            "--cooldown-duration",
            "Keep the load up this much longer, unmeasured.",
            group=_PHASES,
        ),
    ] = None
    cooldown_request_count: Annotated[
        CountOrZero,
        rare("--cooldown-request-count", "The same by requests.", group=_PHASES),
    ] = 0
    phases: Annotated[
        tuple[dict[str, Any], ...],
        rare(
            "",
            "In a file: [[load.phases]], each with a name, kind, handover, and the keys of [load] that differ in it.",
            group=_PHASES,
            read=values.tables,
        ),
    ] = ()
    workers: Annotated[
        Count | None,
        rare(
            "--workers --workers-max",
            "Load-generating processes; default: by cores and concurrency.",
            most=256,
        ),
    ] = None


class SloConfig(Section, frozen=True, kw_only=True):
    """What the run, and each request of it, has to keep."""

    objectives: Annotated[
        tuple[str, ...],
        option(
            "--slo",
            'What has to hold, with a verdict: "ttft.p99<500ms,error_rate<0.1%"; without a statistic it is one of --goodput.',
            form='"METRIC.STAT<LIMIT,..."',
            read=values.objectives,
        ),
    ] = ()
    abort: Annotated[
        bool,
        rare("--slo-abort", "End the load as soon as an objective of --slo is missed for certain."),
    ] = False
    goodput: Annotated[
        dict[str, NonNegative],
        option(
            "--goodput",
            'Limits of each request: "ttft:200 tpot:40".',
            form='"METRIC:VALUE ..."',
            read=values.limits,
        ),
    ] = {}
    stall_ms: Annotated[
        Positive,
        rare("--stall-threshold", "A pause between two tokens longer than this is a stall, ms.", form="MS"),
    ] = 1000.0
    reading_speed: Annotated[
        Positive,
        rare(
            "--reading-speed",
            "How fast a reader reads who begins at the first token, tokens/s: 238 words a minute (Brysbaert 2019), 4/3 tokens each.",
        ),
    ] = 5.3


class CostConfig(Section, frozen=True, kw_only=True):
    """What the hardware under test costs, for the cost of what it brought."""

    gpu_hour_price: Annotated[
        Positive | None,
        rare(
            "--gpu-hour-price",
            "USD that one device costs an hour; the report then has costs per token.",
            form="USD",
        ),
    ] = None
    gpus: Annotated[
        Positive | None,
        rare("--gpus", "Devices that serve the load; default: as many as --roofline says.", form="N"),
    ] = None


class RunsConfig(Section, frozen=True, kw_only=True):
    """How often the whole run is done, one after the other."""

    count: Annotated[
        Count,
        option(
            "--num-profile-runs --num-runs",
            "How often to do the whole run.",
            most=100,
        ),
    ] = 1
    cooldown_s: Annotated[
        NonNegative, rare("--profile-run-cooldown-seconds", "Wait between two runs.", most=86_400)
    ] = 0.0
    vary_seed: Annotated[
        bool,
        rare(
            "--vary-seed-per-trial",
            "Run n has the seed + n - 1; without it every run sends the same prompts, which a prefix cache then holds.",
        ),
    ] = True
    warmup_once: Annotated[
        bool,
        rare("--profile-run-disable-warmup-after-first", "Warm up before the first run only."),
    ] = False
    stop_when: Annotated[
        dict[str, Positive],
        rare(
            "--stop-runs-when",
            "Do no more runs when a mean over them is known to so many percent (95 %): request_latency:2.",
            form="METRIC[.STAT]:PERCENT",
            read=values.limits,
            most=100,
        ),
    ] = {}
    interleave: Annotated[
        str | None,
        rare(
            "--interleave",
            "A second server: do each run on both in turn (A B A B), which cancels drift, and compare them.",
            form="URL",
        ),
    ] = None


class OutputConfig(Section, frozen=True, kw_only=True):
    """Where results go and what is kept."""

    folder: Annotated[
        str | None,
        option(
            "--artifact-dir --output-artifact-dir",
            "Run folder; default: artifacts/<model>-<endpoint>-<load>-<time>.",
            form="FOLDER",
        ),
    ] = None
    force: Annotated[bool, option("--force", "Replace an earlier run in that folder.")] = False
    keep: Annotated[Literal["faults", "all", "none"], rare("--keep", "Whose raw response bytes to keep.")] = (
        "faults"
    )
    check_tokens: Annotated[
        Literal["sample", "all", "none"],
        rare(
            "--check-tokens",
            "Count whole answers with the tokenizer beside the server's usage: all, none, or a sample, the first 20 and every 50th.",
        ),
    ] = "sample"
    slice_duration_s: Annotated[
        Positive | None,
        rare(
            "--slice-duration", "Also tell the numbers of every slice of the measured time that is this long."
        ),
    ] = None
    inputs_json: Annotated[bool, rare("--inputs-json", "Write every request body to inputs.json.")] = True
    ui: Annotated[
        Literal["simple", "plain", "none"] | None,
        option(
            "--ui --ui-type",
            "Progress on stderr: a line, lines, troubles.",
        ),
    ] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], rare("--log-level", "Detail of loadstone.log.")
    ] = "info"


class Config(Section, frozen=True, kw_only=True):
    """A run, whole."""

    endpoint: Annotated[EndpointConfig, msgspec.Meta(title="Endpoint")] = EndpointConfig()
    server: Annotated[ServerConfig, msgspec.Meta(title="Server")] = ServerConfig()
    input: Annotated[InputConfig, msgspec.Meta(title="Input")] = InputConfig()
    load: Annotated[LoadConfig, msgspec.Meta(title="Load")] = LoadConfig()
    slo: Annotated[SloConfig, msgspec.Meta(title="Objectives")] = SloConfig()
    cost: Annotated[CostConfig, msgspec.Meta(title="Cost")] = CostConfig()
    runs: Annotated[RunsConfig, msgspec.Meta(title="Repeated runs")] = RunsConfig()
    output: Annotated[OutputConfig, msgspec.Meta(title="Output")] = OutputConfig()
