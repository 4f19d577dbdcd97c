"""What requests for text have in common, whatever their path: limits, choices, stop strings, tools."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec

from loadstone.plan.seeds import derive
from loadstone.sim import lengths
from loadstone.sim.api import stops, tools
from loadstone.sim.api.asked import Asked, Choice, Finish, Kind
from loadstone.sim.api.errors import known_model, refuse, unsupported
from loadstone.sim.api.logprobs import MOST_ALTERNATIVES
from loadstone.sim.keys import Tokens
from loadstone.sim.options import SimOptions
from loadstone.sim.words import WORDS

MOST_CHOICES = 128
MOST_STOPS = 16
LONGEST_STOP = 256
"""Characters."""

MOST_LOGPROBS = 1 << 18
"""Tokens and alternatives of an answer in one piece, which is spelt in one go."""

TokenCount = Annotated[int, msgspec.Meta(ge=1, le=lengths.MOST_TOKENS)]
Fewest = Annotated[int, msgspec.Meta(ge=0, le=lengths.MOST_TOKENS)]
Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Alternatives = Annotated[int, msgspec.Meta(ge=0, le=MOST_ALTERNATIVES)]
Stop = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_STOP)]
TokenId = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class StreamOptions(msgspec.Struct):
    """What a stream has besides the text."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class Call(msgspec.Struct, kw_only=True):
    """The fields that every request for text may have. Others are ignored: sampling changes nothing here."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    min_tokens: Fewest | None = None
    ignore_eos: bool | None = None
    seed: Number | None = None
    priority: Number | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=MOST_CHOICES)] | None = None
    stop: Stop | Annotated[list[Stop], msgspec.Meta(max_length=MOST_STOPS)] | None = None
    best_of: int | None = None
    use_beam_search: bool | None = None
    prompt_logprobs: int | None = None
    response_format: Any = None


def asked(
    call: Call,
    options: SimOptions,
    kind: Kind,
    prompt: Tokens,
    raw: bytes,
    most: int | None,
    *,
    reasons: bool = False,
    logprobs: int | None = None,
    functions: list[tools.Function] | None = None,
    wanted: tools.Wanted | None = None,
    details: Any = None,
) -> Asked:
    """What a request for text comes to. Raises `ApiError`.

    `raw` is what the draws depend on; `most` the longest answer asked for; `reasons`: there may be reasoning.
    """
    model = known_model(call.model, options)
    _check(call, options)
    limit = _limit(len(prompt), most, options)
    fewest = call.min_tokens or 0
    if fewest > limit:
        refuse(f"min_tokens = {fewest} is above max_tokens = {limit}", "min_tokens")
    draw = zlib.crc32(raw)
    if call.seed is not None:
        draw = zlib.crc32(b"%d" % call.seed, draw)
    stop = call.stop or ()
    texts = (stop,) if isinstance(stop, str) else tuple(stop)
    tool = tools.called(functions or [], wanted, draw, options.tool_calls)
    floor = limit if call.ignore_eos else fewest
    count = call.n or 1
    draws = [draw] if count == 1 else [draw, *(zlib.crc32(b"%d" % k, draw) for k in range(1, count))]
    reasoning = options.reasoning if reasons else 0
    choices = [_choice(options, prompt, drawn, floor, limit, reasoning) for drawn in draws]
    if tool:
        choices = [
            choice._replace(call=tool, finish="tool_calls")
            if choice.reasoning_tokens < choice.output_tokens
            else choice
            for choice in choices
        ]
    elif texts:
        choices = [_stopped(choice, texts, fewest) for choice in choices]
    wishes = call.stream_options
    usage = bool(wishes and wishes.include_usage)
    found = Asked(
        kind,
        model,
        tuple(choices),
        len(prompt),
        limit,
        bool(call.stream),
        usage,
        usage and bool(wishes and wishes.continuous_usage_stats),
        () if tool else texts,
        logprobs,
        options.reasoning_field,
        call.priority or 0,
        options.block_size if options.enable_prefix_caching else 0,
        details,
    )
    check_logprobs(found)
    return found


def _check(call: Call, options: SimOptions) -> None:
    """Refuses what this server does not play."""
    if call.best_of is not None and call.best_of != (call.n or 1):
        unsupported("best_of", call.best_of)
    if call.use_beam_search:
        unsupported("use_beam_search", True)
    if call.prompt_logprobs is not None:
        unsupported("prompt_logprobs", call.prompt_logprobs)
    if call.response_format is not None and call.response_format != {"type": "text"}:
        unsupported("response_format", call.response_format)
    if call.priority and options.scheduling_policy != "priority":
        refuse(
            f"Got priority {call.priority} but Priority scheduling is not enabled: start the server with"
            " --scheduling-policy priority",
            "priority",
        )


def check_logprobs(asked: Asked) -> None:
    """Raises `ApiError` where an answer in one piece would have too many."""
    if asked.logprobs is None or asked.stream:
        return
    count = asked.output_tokens * (1 + asked.logprobs)
    if count > MOST_LOGPROBS:
        refuse(
            f"{count} log probabilities in one piece are more than {MOST_LOGPROBS}; set stream, or ask for fewer",
            "logprobs",
        )


def _limit(prompt_tokens: int, most: int | None, options: SimOptions) -> int:
    """The longest answer; without a wish the default one, or what room there is. vLLM's words for what is too long."""
    room = room_tokens(prompt_tokens, options)
    if room is None:
        return most or options.default_max_tokens
    if most is not None and most > room:
        refuse(
            f"'max_tokens' or 'max_completion_tokens' is too large: {most}. This model's maximum context length is"
            f" {options.max_model_len} tokens and your request has {prompt_tokens} input tokens"
            f" ({most} > {options.max_model_len} - {prompt_tokens}).",
            "max_tokens",
        )
    return most or min(options.default_max_tokens, room)


def room_tokens(prompt_tokens: int, options: SimOptions) -> int | None:
    """What the model's length leaves behind a prompt, at least 1; None: it has no end. Raises `ApiError`."""
    most = options.max_model_len
    if most is None:
        return None
    if prompt_tokens >= most:
        refuse(
            f"This model's maximum context length is {most} tokens. However, your request has {prompt_tokens} input"
            " tokens. Please reduce the length of the input messages.",
            "input_tokens",
        )
    return most - prompt_tokens


def _choice(
    options: SimOptions, prompt: Tokens, draw: int, floor: int, limit: int, reasoning: int | Literal["all"]
) -> Choice:
    drawn = (
        limit
        if floor >= limit
        else lengths.parse(options.output_tokens)(_seed(options.seed), draw, floor, limit)
    )
    finish: Finish = "length" if drawn == limit else "stop"
    thoughts = drawn if reasoning == "all" else min(reasoning, drawn)
    return Choice(prompt, drawn, draw % len(WORDS), finish, thoughts, draw=draw)


@lru_cache(maxsize=16)
def _seed(seed: int) -> int:
    return derive(seed, "answer")


def _stopped(choice: Choice, texts: tuple[str, ...], fewest: int) -> Choice:
    """The choice as stop strings leave it. They are looked for behind the reasoning."""
    thoughts = choice.reasoning_tokens
    found = stops.cut(
        choice.start_word + thoughts, choice.output_tokens - thoughts, texts, max(fewest - thoughts, 0)
    )
    if found is None:
        return choice
    return choice._replace(
        output_tokens=thoughts + found.tokens, finish="stop", stop=found.stop, chars=found.chars
    )
