"""The one typed tree behind the config file, the flags, the docs table and the JSON schema.

Every leaf is a field with a type, a default and an `option(...)`: its flags, help and group.
A file's keys are the paths of this tree (`load.concurrency = 8`). Unknown keys and values out of
range are `UsageError`s that name the nearest key. Imports neither numpy nor polars, and nothing
that does: `--help` is made from this file.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec


def option(*flags: str, help: str, group: str, more: bool = False) -> msgspec.Meta:
    """Describes one leaf: its long flags (the first one is the name shown), help text and group.

    `more` hides it from `--help` (it stays in `--help-all`).
    """
    return msgspec.Meta(description=help, extra={"flags": flags, "group": group, "more": more})


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=False):
    """A branch of the tree."""


Json = Any
Positive = Annotated[float, msgspec.Meta(gt=0)]
NonNegative = Annotated[float, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[float, msgspec.Meta(ge=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]
CountOrZero = Annotated[int, msgspec.Meta(ge=0)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class EndpointConfig(_Section, frozen=True, kw_only=True):
    """The server under test and how it is spoken to."""

    url: Annotated[
        str, option("--url", help="Server address; sim: starts the built-in engine.", group="Endpoint")
    ] = "localhost:8000"
    model: Annotated[
        str | None,
        option(
            "--model",
            "--model-names",
            help="Model name; default: the first one the server lists.",
            group="Endpoint",
        ),
    ] = None
    type: Annotated[str, option("--endpoint-type", help="API shape.", group="Endpoint")] = "chat"
    path: Annotated[
        str | None,
        option(
            "--endpoint",
            "--custom-endpoint",
            help="Path instead of the endpoint type's own.",
            group="Endpoint",
            more=True,
        ),
    ] = None
    streaming: Annotated[
        bool, option("--streaming", help="Ask for a stream; needed for TTFT and ITL.", group="Endpoint")
    ] = False
    api_key: Annotated[
        str | None,
        option(
            "--api-key",
            help="Sent as a bearer token; never stored. Also LOADSTONE_API_KEY.",
            group="Endpoint",
        ),
    ] = None
    headers: Annotated[
        tuple[str, ...],
        option("--header", "-H", help="Extra header NAME:VALUE; repeatable.", group="Endpoint"),
    ] = ()
    extra_inputs: Annotated[
        dict[str, Json],
        option(
            "--extra-inputs",
            help="Extra request field NAME:JSON or a JSON object; repeatable.",
            group="Endpoint",
        ),
    ] = {}
    legacy_max_tokens: Annotated[
        bool,
        option(
            "--use-legacy-max-tokens",
            help="chat: send max_tokens instead of max_completion_tokens.",
            group="Endpoint",
            more=True,
        ),
    ] = False
    usage_per_chunk: Annotated[
        bool,
        option(
            "--per-chunk-usage",
            help="Ask for running token counts in every chunk (vLLM, SGLang).",
            group="Endpoint",
            more=True,
        ),
    ] = False
    insecure: Annotated[
        bool, option("--insecure", help="Accept any TLS certificate.", group="Endpoint", more=True)
    ] = False
    connect_timeout_s: Annotated[
        Positive,
        option(
            "--connect-timeout-seconds", help="Limit for TCP and TLS together.", group="Endpoint", more=True
        ),
    ] = 10.0
    first_token_timeout_s: Annotated[
        Positive,
        option(
            "--first-token-timeout-seconds",
            help="Limit from send to the first output token.",
            group="Endpoint",
            more=True,
        ),
    ] = 600.0
    timeout_s: Annotated[
        Positive,
        option(
            "--request-timeout-seconds", help="Limit from send to the end of the answer.", group="Endpoint"
        ),
    ] = 1800.0


class InputConfig(_Section, frozen=True, kw_only=True):
    """What is asked: lengths of prompts and answers."""

    isl_mean: Annotated[
        AtLeastOne,
        option(
            "--synthetic-input-tokens-mean",
            "--isl",
            "--isl-mean",
            "--prompt-input-tokens-mean",
            help="Mean prompt length, tokens.",
            group="Input",
        ),
    ] = 550.0
    isl_stddev: Annotated[
        NonNegative,
        option(
            "--synthetic-input-tokens-stddev",
            "--isl-stddev",
            "--prompt-input-tokens-stddev",
            help="Its standard deviation (normal, cut at 1).",
            group="Input",
        ),
    ] = 0.0
    osl_mean: Annotated[
        AtLeastOne | None,
        option(
            "--output-tokens-mean",
            "--osl",
            "--osl-mean",
            "--prompt-output-tokens-mean",
            help="Mean output length asked for, tokens; default: the server's own limit.",
            group="Input",
        ),
    ] = None
    osl_stddev: Annotated[
        NonNegative,
        option(
            "--output-tokens-stddev",
            "--osl-stddev",
            "--prompt-output-tokens-stddev",
            help="Its standard deviation (normal, cut at 1).",
            group="Input",
        ),
    ] = 0.0
    isl_includes_template: Annotated[
        bool,
        option(
            "--isl-includes-template",
            help="Take the chat template's tokens, measured by the preflight, off the prompt length.",
            group="Input",
            more=True,
        ),
    ] = False
    entries: Annotated[
        Count | None,
        option(
            "--num-dataset-entries",
            help="Number of different prompts; they are reused in turn when it is passed. Default: every request has its own.",
            group="Input",
            more=True,
        ),
    ] = None
    token_ids: Annotated[
        bool,
        option(
            "--prompt-token-ids", help="completions: send prompts as token ids.", group="Input", more=True
        ),
    ] = False
    seed: Annotated[
        Seed | None,
        option(
            "--random-seed",
            "--seed",
            help="The same seed gives the same requests; default: a fresh one, printed.",
            group="Input",
        ),
    ] = None
    tokenizer: Annotated[
        str,
        option(
            "--tokenizer",
            help="builtin, a local tokenizer.json or its folder, or none (lengths approximate).",
            group="Input",
        ),
    ] = "builtin"


class LoadConfig(_Section, frozen=True, kw_only=True):
    """The shape of the load and when it stops."""

    concurrency: Annotated[
        Count | None,
        option(
            "--concurrency",
            "--max-concurrency",
            help="Requests in flight at most; 1 when no rate is given. With a rate: a cap, waiting is counted.",
            group="Load",
        ),
    ] = None
    request_rate: Annotated[
        Positive | None,
        option(
            "--request-rate", help="Requests per second, whatever the server does (open loop).", group="Load"
        ),
    ] = None
    arrival_pattern: Annotated[
        Literal["constant", "poisson", "gamma"] | None,
        option(
            "--arrival-pattern",
            "--request-rate-mode",
            help="Gaps of the arrivals; default poisson.",
            group="Load",
        ),
    ] = None
    arrival_smoothness: Annotated[
        Positive | None,
        option(
            "--arrival-smoothness",
            "--burstiness",
            "--vllm-burstiness",
            help="Shape of gamma gaps: below 1 bursty, 1 is poisson, above 1 even.",
            group="Load",
        ),
    ] = None
    request_count: Annotated[
        Count | None,
        option(
            "--request-count",
            "--num-requests",
            help="Requests to send; max(50, 2 x concurrency) when nothing else stops the run.",
            group="Load",
        ),
    ] = None
    duration_s: Annotated[
        Positive | None,
        option("--benchmark-duration", "--duration", help="Send for this many seconds.", group="Load"),
    ] = None
    grace_s: Annotated[
        NonNegative | None,
        option(
            "--benchmark-grace-period",
            help="After the duration, wait this long for answers under way; default 30.",
            group="Load",
            more=True,
        ),
    ] = None
    warmup_request_count: Annotated[
        CountOrZero,
        option(
            "--warmup-request-count",
            "--num-warmups",
            help="Requests sent before the measurement, at its concurrency.",
            group="Load",
        ),
    ] = 0
    workers: Annotated[
        Count | None,
        option(
            "--workers",
            "--workers-max",
            help="Load-generating processes; default: by cores and concurrency.",
            group="Load",
            more=True,
        ),
    ] = None


class SloConfig(_Section, frozen=True, kw_only=True):
    """Objectives one request has to meet."""

    goodput: Annotated[
        dict[str, float],
        option(
            "--goodput",
            help='Limits "METRIC:VALUE ..." in display units, e.g. "time_to_first_token:200".',
            group="Objectives",
        ),
    ] = {}


class OutputConfig(_Section, frozen=True, kw_only=True):
    """Where results go and what is kept."""

    folder: Annotated[
        str | None,
        option(
            "--artifact-dir",
            "--output-artifact-dir",
            help="Run folder; default artifacts/<model>-<endpoint>-<load>-<time>.",
            group="Output",
        ),
    ] = None
    force: Annotated[
        bool, option("--force", help="Replace an earlier run in that folder.", group="Output")
    ] = False
    keep: Annotated[
        Literal["faults", "all", "none"],
        option("--keep", help="Raw response bytes to keep.", group="Output", more=True),
    ] = "faults"
    inputs_json: Annotated[
        bool,
        option(
            "--inputs-json/--no-inputs-json",
            help="Write every request body to inputs.json.",
            group="Output",
            more=True,
        ),
    ] = True
    ui: Annotated[
        Literal["simple", "none"] | None,
        option(
            "--ui",
            "--ui-type",
            help="Progress on stderr; default simple in a terminal, else plain lines.",
            group="Output",
        ),
    ] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        option("--log-level", help="Detail of loadstone.log.", group="Output", more=True),
    ] = "info"


class Config(_Section, frozen=True, kw_only=True):
    """A run, whole."""

    endpoint: EndpointConfig = EndpointConfig()
    input: InputConfig = InputConfig()
    load: LoadConfig = LoadConfig()
    slo: SloConfig = SloConfig()
    output: OutputConfig = OutputConfig()
