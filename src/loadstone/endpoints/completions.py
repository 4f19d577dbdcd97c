"""OpenAI text completions: `/v1/completions`. The prompt is text or token ids, taken as it is, without a chat template."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from loadstone.endpoints import Ask, Example, Reply, Usage, _choices, _end, _error, _request
from loadstone.plan.turn import Turn

SUMMARY = "OpenAI text completions"
PATH = "/v1/completions"
STREAMS = True
TOKEN_IDS = True
END_MARK = _end.DONE


class _Choice(msgspec.Struct, gc=False):
    index: _choices.Number | None = None
    text: str | None = None
    finish_reason: str | None = None


class Event(_error.Fields, gc=False):
    """A chunk of a stream."""

    choices: list[_Choice] | None = None
    usage: Any = None
    metrics: Any = None
    timings: Any = None


Answer = Event


def body(turns: Sequence[Turn], ask: Ask) -> dict[str, Any]:
    """The request: one prompt, all turns so far a line each; the fields of a raw last turn are taken over as they are."""
    request = {"model": ask.model, "prompt": _prompt(turns)}
    request.update(turns[-1].raw or {})
    return _request.completed(request, ask, "max_tokens", turns[-1].max_tokens)


def _prompt(turns: Sequence[Turn]) -> str | list[int] | None:
    """Texts joined by a newline, token ids by nothing; a conversation has one or the other. None: neither."""
    if turns[-1].token_ids is not None:
        return [token for turn in turns for token in turn.token_ids or ()]
    return "\n".join(turn.text for turn in turns if turn.text is not None) or None


_BEGUN = re.compile(rb'"text"\s*:\s*"[^"]')


def begun(data: bytes) -> bool:
    """Whether a text in `data` is not empty."""
    return _BEGUN.search(data) is not None


def ended(data: bytes) -> bool:
    """Whether `data` holds `[DONE]`."""
    return _end.done(data)


def fold(events: Iterable[Event]) -> Reply:
    """The meaning of a stream's chunks."""
    gathering = _choices.Gathering(_take)
    text, output = gathering.reply.text.append, gathering.reply.output.append
    first_answer = None
    for position, event in enumerate(events):
        choices = event.choices
        if choices is not None and len(choices) == 1 and event.usage is None and event.error is None:
            # Nearly every chunk is a piece of text and nothing else: told apart here, it costs no call.
            choice = choices[0]
            if choice.text and choice.finish_reason is None and not choice.index:
                text(choice.text)
                output(position)
                if first_answer is None:
                    first_answer = position
                continue
        gathering.add(position, event)
    return gathering.done(first_answer)


def whole(answer: Event) -> Reply:
    """The meaning of an unstreamed body."""
    return _choices.whole(answer, _take)


def _take(choice: _Choice, reply: Reply) -> int:
    """A `_choices.Take`."""
    if choice.finish_reason:
        _end.finish(reply, choice.finish_reason)
    if not choice.text:
        return 0
    reply.text.append(choice.text)
    return _choices.ANSWER


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
            choices=1,
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
            choices=1,
            text=["x"],
            finish_reason="stop",
            usage=Usage(prompt_tokens=3, completion_tokens=1),
            ended=True,
        ),
    ),
)
