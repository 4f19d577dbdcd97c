"""The OpenAI API as JSON: what a request asks for, and how an answer is spelled. Pure; no sockets, no clock.

Prompt tokens are counted without a tokenizer: the words of all messages and `MESSAGE_TOKENS` more for each
message (what a chat template adds); the words of a text prompt; the ids of a prompt of token ids.

An answer ends by itself at a length drawn from the seed and the prompt, below the limit asked for
(finish_reason "stop"). With `ignore_eos` it goes on to the limit ("length"), and never ends below `min_tokens`.
"""

from __future__ import annotations

import zlib
from http import HTTPStatus
from typing import Annotated, Any, Literal, NamedTuple, NoReturn

import msgspec

from loadstone.plan.seeds import stream
from loadstone.sim.options import SimOptions
from loadstone.sim.words import WORDS, WORDS_BYTES, passage

MESSAGE_TOKENS = 4
DONE = b"data: [DONE]\n\n"
_PLACE = "@"  # where the text of a delta goes, in a template that is split once for each answer

Finish = Literal["stop", "length"]


class ApiError(Exception):
    """A request that is refused, with the status and the words of the refusal."""

    def __init__(self, status: HTTPStatus, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.param = param

    def body(self) -> bytes:
        """The error as the API spells it."""
        facts = {"message": self.message, "type": self.kind, "param": self.param, "code": int(self.status)}
        return msgspec.json.encode({"error": facts})


def _refuse(message: str, param: str | None = None) -> NoReturn:
    raise ApiError(HTTPStatus.BAD_REQUEST, "BadRequestError", message, param)


# ---- requests ----


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False
    continuous_usage_stats: bool = False


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Part] | None = None

    def texts(self) -> list[str]:
        if isinstance(self.content, list):
            return [part.text for part in self.content]
        return [self.content or ""]


MAX_TOKENS = 1_000_000
TokenCount = Annotated[int, msgspec.Meta(ge=1, le=MAX_TOKENS)]


class _Call(msgspec.Struct, kw_only=True):
    model: str
    stream: bool = False
    stream_options: _StreamOptions | None = None
    max_tokens: TokenCount | None = None
    max_completion_tokens: TokenCount | None = None
    min_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    ignore_eos: bool = False
    n: Literal[1] | None = None


class _ChatCall(_Call, kw_only=True):
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]


class _CompletionCall(_Call, kw_only=True):
    prompt: str | list[int | str | list[int]]


class Asked(NamedTuple):
    """A request, reduced to what decides its answer."""

    chat: bool
    stream: bool
    usage_at_end: bool
    usage_in_chunks: bool
    prompt_tokens: int
    output_tokens: int
    reasoning_tokens: int
    """How many of the output tokens, from the first on, are reasoning."""
    finish: Finish
    start_word: int
    limit_tokens: int
    """The longest answer asked for."""
    model: str


def chat(body: bytes, options: SimOptions) -> Asked:
    """What a body of `/v1/chat/completions` asks for. Raises `ApiError`."""
    call = _decode(_CHAT, body, options)
    texts = [text for message in call.messages for text in message.texts()]
    words = sum(len(text.split()) for text in texts)
    prompt = "\n".join(texts).encode(errors="surrogatepass")
    return _asked(call, options, prompt, words + MESSAGE_TOKENS * len(call.messages), chat=True)


def completions(body: bytes, options: SimOptions) -> Asked:
    """What a body of `/v1/completions` asks for. Raises `ApiError`."""
    call = _decode(_COMPLETION, body, options)
    prompt = _single(call.prompt)
    if isinstance(prompt, str):
        raw, tokens = prompt.encode(errors="surrogatepass"), len(prompt.split())
    else:
        raw, tokens = msgspec.json.encode(prompt), len(prompt)
    return _asked(call, options, raw, tokens, chat=False)


_CHAT = msgspec.json.Decoder(_ChatCall)
_COMPLETION = msgspec.json.Decoder(_CompletionCall)


def _decode(decoder: msgspec.json.Decoder[Any], body: bytes, options: SimOptions) -> Any:
    try:
        call = decoder.decode(body)
    except msgspec.ValidationError as error:
        _refuse(str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse(f"the body is not JSON: {error}")
    if call.model not in options.models:
        message = f"The model `{call.model}` does not exist."
        raise ApiError(HTTPStatus.NOT_FOUND, "NotFoundError", message, "model")
    return call


def _single(prompt: str | list[int | str | list[int]]) -> str | list[int]:
    """The one prompt of a request; a list of one prompt stands for it."""
    if isinstance(prompt, str):
        return prompt
    ids = [item for item in prompt if isinstance(item, int)]
    if ids and len(ids) == len(prompt):
        return ids
    if len(prompt) == 1 and not isinstance(prompt[0], int):
        return prompt[0]
    _refuse("prompt has to be one text or one list of token ids", "prompt")


def _asked(call: _Call, options: SimOptions, prompt: bytes, prompt_tokens: int, *, chat: bool) -> Asked:
    limit = call.max_completion_tokens or call.max_tokens or options.default_max_tokens
    if call.min_tokens > limit:
        _refuse(f"min_tokens = {call.min_tokens} is above max_tokens = {limit}", "min_tokens")
    draw = zlib.crc32(prompt)
    floor = limit if call.ignore_eos else call.min_tokens
    output_tokens = answer_tokens(options.seed, draw, floor, limit)
    wanted = call.stream_options or _StreamOptions()
    return Asked(
        chat=chat,
        stream=call.stream,
        usage_at_end=wanted.include_usage,
        usage_in_chunks=wanted.include_usage and wanted.continuous_usage_stats,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        reasoning_tokens=_reasoning_tokens(options, output_tokens) if chat else 0,
        finish="length" if output_tokens == limit else "stop",
        start_word=draw % len(WORDS),
        limit_tokens=limit,
        model=call.model,
    )


def answer_tokens(seed: int, draw: int, floor: int, limit: int) -> int:
    """Where an answer ends: evenly drawn from the floor (at least 1) up to below the limit; the limit if that is none."""
    floor = max(floor, 1)
    return limit if floor >= limit else stream(seed, f"answer:{draw}").randrange(floor, limit)


def _reasoning_tokens(options: SimOptions, output_tokens: int) -> int:
    return output_tokens if options.reasoning == "all" else min(options.reasoning, output_tokens)


# ---- answers ----


def models(options: SimOptions, created: int) -> bytes:
    """The body of `/v1/models`."""
    listed = [
        {"id": name, "object": "model", "created": created, "owned_by": "loadstone"}
        for name in options.models
    ]
    return msgspec.json.encode({"object": "list", "data": listed})


class Answer:
    """One answer, spelled piece by piece; `token(i)` is all that runs once a token."""

    def __init__(self, asked: Asked, answer_id: str, created: int, model: str) -> None:
        self._asked = asked
        kind = ("chat.completion" if asked.chat else "text_completion", ".chunk" if asked.chat else "")
        self._facts = {"id": answer_id, "object": kind[0], "created": created, "model": model}
        self.facts = {**self._facts, "object": "".join(kind)}
        """The fields that every event of the stream has."""
        self._thought, self._thought_end = self._around("reasoning_content")
        self._speech, self._speech_end = self._around("content")

    def opening(self) -> bytes:
        """What comes before the first token: chat names the role."""
        return self._choice({"delta": {"role": "assistant", "content": ""}}) if self._asked.chat else b""

    def token(self, index: int) -> bytes:
        """The event of the output token `index`."""
        asked = self._asked
        word = WORDS_BYTES[(asked.start_word + index) % len(WORDS)]
        thinks = index < asked.reasoning_tokens
        data = self._thought + word + self._thought_end if thinks else self._speech + word + self._speech_end
        if asked.usage_in_chunks:
            return b'%b,"usage":%b}\n\n' % (data, msgspec.json.encode(self.usage(index + 1)))
        return data + b"}\n\n"

    def closing(self) -> bytes:
        """What comes after the last token: why it ended, the usage if asked for, the end mark."""
        asked = self._asked
        last = self._choice({"delta": {}} if asked.chat else {"text": ""}, asked.finish)
        if asked.usage_at_end:
            last += _event({**self.facts, "choices": [], "usage": self.usage(asked.output_tokens)})
        return last + DONE

    def whole(self) -> bytes:
        """The body of an answer that is not streamed."""
        asked = self._asked
        thought = passage(asked.start_word, asked.reasoning_tokens)
        speech = passage(
            asked.start_word + asked.reasoning_tokens, asked.output_tokens - asked.reasoning_tokens
        )
        content: dict[str, Any] = {"text": speech}
        if asked.chat:
            message = {"role": "assistant", "content": speech, "reasoning_content": thought or None}
            content = {"message": message}
        choice = {"index": 0, **content, "logprobs": None, "finish_reason": asked.finish}
        return msgspec.json.encode(
            {**self._facts, "choices": [choice], "usage": self.usage(asked.output_tokens)}
        )

    def _around(self, field: str) -> tuple[bytes, bytes]:
        """The event of one token before and after its text, without the closing brace."""
        delta = {"delta": {field: _PLACE}} if self._asked.chat else {"text": _PLACE}
        before, _, after = self._choice(delta).rpartition(_PLACE.encode())
        return before, after.removesuffix(b"}\n\n")

    def _choice(self, content: dict[str, Any], finish: Finish | None = None) -> bytes:
        return _event(self.event(content, finish))

    def event(self, content: dict[str, Any], finish: str | None = None, index: int = 0) -> dict[str, Any]:
        """An event of the stream with one choice: its content and why it ended, if it did."""
        choice = {"index": index, **content, "logprobs": None, "finish_reason": finish}
        return {**self.facts, "choices": [choice]}

    def usage(self, tokens: int) -> dict[str, Any]:
        """The usage when so many tokens are out."""
        asked = self._asked
        usage: dict[str, Any] = {
            "prompt_tokens": asked.prompt_tokens,
            "total_tokens": asked.prompt_tokens + tokens,
            "completion_tokens": tokens,
        }
        if asked.reasoning_tokens:
            reasoning = min(tokens, asked.reasoning_tokens)
            usage["completion_tokens_details"] = {"reasoning_tokens": reasoning}
        return usage


def _event(data: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(data)
