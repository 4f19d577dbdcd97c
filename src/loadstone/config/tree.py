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
        str,
        option(
            "--url -u --base-url",
            "Server address; scheme and /v1 may be left out. sim: starts the built-in engine.",
            form="URL",
            secret=True,
        ),
    ] = "localhost:8000"
    model: Annotated[
        str | None,
        option(
            "--model -m --model-names", "Model name; default: the first one the server lists.", form="NAME"
        ),
    ] = None
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
        option(
            "--api-key-file",
            "Read the key from this file or pipe, white space at its ends left out.",
            form="FILE",
        ),
    ] = None
    headers: Annotated[
        tuple[str, ...],
        option("--header -H", "Extra request header; repeatable.", form="NAME:VALUE", secret=True),
    ] = ()
    extra_inputs: Annotated[
        dict[str, Any],
        option(
            "--extra-inputs",
            "Extra request field, its value read as JSON (ignore_eos:true), or a JSON object of them; repeatable.",
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
        Positive, option("--request-timeout-seconds", "Limit from send to the end of the answer.")
    ] = 1800.0
    max_response_bytes: Annotated[
        Count,
        rare(
            "--max-response-bytes",
            "An answer may be so long, as received and after decompression.",
            most=1 << 31,
        ),
    ] = 64 << 20


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
            "builtin, a local tokenizer.json or its folder, or none (lengths approximate).",
            form="NAME",
        ),
    ] = "builtin"


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
    request_rate: Annotated[
        Positive | None,
        option(
            "--request-rate",
            "Requests per second, whatever the server does (open loop).",
            hint="For a closed loop set --concurrency; to send everything at once, as high as --request-count.",
            most=1_000_000,
        ),
    ] = None
    arrival_pattern: Annotated[
        Literal["constant", "poisson", "gamma"] | None,
        option(
            "--arrival-pattern --request-rate-mode",
            "Gaps between arrivals; default: poisson, or gamma when a smoothness is given.",
        ),
    ] = None
    arrival_smoothness: Annotated[
        Positive | None,
        option(
            "--arrival-smoothness --burstiness --vllm-burstiness",
            "Shape of gamma gaps: below 1 bursty, 1 is poisson, above 1 even.",
            most=1_000_000,
        ),
    ] = None
    request_count: Annotated[
        Count | None,
        option(
            "--request-count --num-requests",
            "Requests to send; max(50, 2 x concurrency) when nothing else stops the run.",
        ),
    ] = None
    duration_s: Annotated[
        Positive | None, option("--benchmark-duration --duration", "Send for this long.")
    ] = None
    grace_s: Annotated[
        NonNegative | None,
        rare(
            "--benchmark-grace-period",
            "After the duration, wait this long for answers under way; default: 30.",
        ),
    ] = None
    failed_request_threshold: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=1)] | None,
        option(
            "--failed-request-threshold --max-error-rate",
            "Give up when more than this share of the last 100 requests (20 at first) failed; 1: never. Default: 0.5.",
            form="SHARE",
        ),
    ] = None
    warmup_request_count: Annotated[
        CountOrZero,
        option(
            "--warmup-request-count --num-warmup-requests --num-warmups",
            "Requests sent before the measurement, in the same shape of load.",
        ),
    ] = 0
    workers: Annotated[
        Count | None,
        rare(
            "--workers --workers-max",
            "Load-generating processes; default: by cores and concurrency.",
            most=256,
        ),
    ] = None


class SloConfig(Section, frozen=True, kw_only=True):
    """Objectives one request has to meet."""

    goodput: Annotated[
        dict[str, NonNegative],
        option(
            "--goodput",
            'Limits in the units of the summary: "time_to_first_token:200 inter_token_latency:20".',
            form='"METRIC:VALUE ..."',
            read=values.limits,
        ),
    ] = {}


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
    inputs_json: Annotated[bool, rare("--inputs-json", "Write every request body to inputs.json.")] = True
    ui: Annotated[
        Literal["simple", "plain", "none"] | None,
        option(
            "--ui --ui-type",
            "Progress on stderr: simple redraws a line, plain adds lines, none only tells troubles; default: by its kind.",
        ),
    ] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], rare("--log-level", "Detail of loadstone.log.")
    ] = "info"


class Config(Section, frozen=True, kw_only=True):
    """A run, whole."""

    endpoint: Annotated[EndpointConfig, msgspec.Meta(title="Endpoint")] = EndpointConfig()
    input: Annotated[InputConfig, msgspec.Meta(title="Input")] = InputConfig()
    load: Annotated[LoadConfig, msgspec.Meta(title="Load")] = LoadConfig()
    slo: Annotated[SloConfig, msgspec.Meta(title="Objectives")] = SloConfig()
    output: Annotated[OutputConfig, msgspec.Meta(title="Output")] = OutputConfig()
