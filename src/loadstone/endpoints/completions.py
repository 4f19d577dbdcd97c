"""OpenAI text completions: `/v1/completions`. The prompt is text or token ids, taken as it is, without a chat template."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from loadstone.endpoints import Ask, Example, Reply, Usage, _end, _error, _request, _usage
from loadstone.plan.turn import Turn

SUMMARY = "OpenAI text completions"
PATH = "/v1/completions"
STREAMS = True
TOKEN_IDS = True
END_MARK = _end.DONE


class _Choice(msgspec.Struct, gc=False):
    text: str | None = None
    finish_reason: str | None = None


class Event(_error.Fields, gc=False):
    """A chunk of a stream."""

    choices: list[_Choice] | None = None
    usage: _usage.RawUsage | None = None


Answer = Event


def body(turns: Sequence[Turn], ask: Ask) -> dict[str, Any]:
    """The request: one prompt, or a list of them; the fields of a raw last turn are taken over as they are."""
    prompts = [list(turn.token_ids) if turn.token_ids is not None else turn.text for turn in turns]
    request = {"model": ask.model, "prompt": prompts[0] if len(prompts) == 1 else prompts}
    request.update(turns[-1].raw or {})
    return _request.completed(request, ask, "max_tokens", turns[-1].max_tokens)


_BEGUN = re.compile(rb'"text"\s*:\s*"[^"]')


def begun(data: bytes) -> bool:
    """Whether a text in `data` is not empty."""
    return _BEGUN.search(data) is not None


def ended(data: bytes) -> bool:
    """Whether `data` holds `[DONE]`."""
    return _end.done(data)


def fold(events: Sequence[Event]) -> Reply:
    """The meaning of a stream's chunks."""
    reply = Reply()
    counts: list[int | None] = []
    usage = None
    for position, event in enumerate(events):
        if _take(event.choices or (), reply):
            reply.output.append(position)
            counts.append(None if event.usage is None else _usage.completion_tokens(event.usage))
        if event.usage is not None:
            usage = event.usage
        if event.choices is None or event.error:
            reply.error = reply.error or _error.in_band(event, event.choices is not None)
    reply.first_answer = reply.output[0] if reply.output else None
    reply.usage = _usage.normalised(usage)
    reply.tokens_after = _usage.running(counts)
    return reply


def whole(answer: Event) -> Reply:
    """The meaning of an unstreamed body."""
    reply = Reply(usage=_usage.normalised(answer.usage), ended=bool(answer.choices))
    _take(answer.choices or (), reply)
    reply.error = reply.error or _error.in_band(answer, answer.choices is not None)
    return reply


def _take(choices: Sequence[_Choice], reply: Reply) -> bool:
    """Adds what the choices of one chunk or body brought; whether there was any text."""
    brought = False
    for choice in choices:
        if choice.text:
            reply.text.append(choice.text)
            brought = True
        if choice.finish_reason:
            _end.finish(reply, choice.finish_reason)
    return brought


EXAMPLES = (
    Example(
        name="streamed: text prompt, usage in the last chunk with text",
        turns=(Turn(text="Once upon", max_tokens=2),),
        ask=Ask(model="m", streaming=True, extra={"ignore_eos": True}),
        request={
            "model": "m",
            "prompt": "Once upon",
            "max_tokens": 2,
            "stream": True,
            "stream_options": {"include_usage": True},
            "ignore_eos": True,
        },
        response=(
            b'data: {"choices":[{"index":0,"text":"","finish_reason":null}]}\n\n'
            b'data: {"choices":[{"index":0,"text":" a","finish_reason":null}]}\n\n'
            b'data: {"choices":[{"index":0,"text":" time","finish_reason":"length"}],'
            b'"usage":{"input_tokens":2,"output_tokens":2}}\n\n'
            b"data: [DONE]\n\n"
        ),
        reply=Reply(
            output=[1, 2],
            first_answer=1,
            text=[" a", " time"],
            finish_reason="length",
            usage=Usage(prompt_tokens=2, completion_tokens=2),
            ended=True,
        ),
    ),
    Example(
        name="streamed: an error as a string",
        turns=(Turn(token_ids=(1, 2, 3)),),
        ask=Ask(model="m", streaming=True, extra={"stream_options": None}),
        request={"model": "m", "prompt": [1, 2, 3], "stream": True},
        response=b'data: {"error":"overloaded"}\n\ndata: [DONE]\n\n',
        reply=Reply(error="overloaded", ended=True),
    ),
    Example(
        name="whole: token ids in, text out",
        turns=(Turn(token_ids=(1, 2, 3), max_tokens=1),),
        ask=Ask(model="m"),
        request={"model": "m", "prompt": [1, 2, 3], "max_tokens": 1, "stream": False},
        response=b'{"choices":[{"text":"x","finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}',
        reply=Reply(
            text=["x"],
            finish_reason="stop",
            usage=Usage(prompt_tokens=3, completion_tokens=1),
            ended=True,
        ),
    ),
)
