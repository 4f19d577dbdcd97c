"""What the built-in engine can be told: the flags of `loadstone simulate` and the keys of `--url sim:...`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from loadstone.config import ENGINE, MASK, Count, CountOrZero, Seed, option
from loadstone.config.secrets import named_like_secret
from loadstone.errors import UsageError, did_you_mean

Milliseconds = Annotated[float, msgspec.Meta(gt=0, le=3.6e6)]
Microseconds = Annotated[float, msgspec.Meta(ge=0, le=3.6e9)]
"""Bounded by an hour: an endless step is an engine that hangs, which is not meant."""
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]

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
    null: Annotated[
        bool, option("--null", help="No engine: answer at once, to measure the client.", group="Server")
    ] = False
    prefill_us_per_token: Annotated[
        Microseconds, option("--prefill-us-per-token", help="Time for each prompt token.", group="Engine")
    ] = 20.0
    step_ms: Annotated[Milliseconds, option("--step-ms", help="Fixed time of one step.", group="Engine")] = (
        10.0
    )
    step_us_per_sequence: Annotated[
        Microseconds,
        option(
            "--step-us-per-sequence",
            help="Time a step takes longer for each running request.",
            group="Engine",
        ),
    ] = 20.0
    max_num_seqs: Annotated[
        Count,
        option("--max-num-seqs", help="Requests that run together at most; others wait.", group="Engine"),
    ] = 256
    default_max_tokens: Annotated[
        Count,
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
    seed: Annotated[
        Seed, option("--seed", help="Where answers end when nothing makes them go on.", group="Answers")
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
    if options.fault:
        _check(options.fault)
    return options


def _check(faults: Sequence[str]) -> None:
    from loadstone.sim.faults.choice import mix  # a run without faults need not know them

    mix(faults)
