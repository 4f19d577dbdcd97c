"""OpenAI chat completions: `/v1/chat/completions`, as vLLM, SGLang, llama.cpp and others serve it.

Output is content, reasoning (`reasoning_content` or `reasoning`; some servers send both with the same text),
a refusal, or the name and arguments of a tool call. A delta with none of them brings no token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from loadstone.endpoints import Ask, Example, Reply, Usage, _choices, _end, _error, _request
from loadstone.plan.turn import Turn

SUMMARY = "OpenAI chat completions"
PATH = "/v1/chat/completions"
STREAMS = True
TOKEN_IDS = False
END_MARK = _end.DONE


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct, gc=False):
    function: _Function | None = None


class _Message(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall | None] | None = None
    function_call: _Function | None = None


class _Choice(msgspec.Struct, gc=False):
    index: _choices.Number | None = None
    delta: _Message | None = None
    message: _Message | None = None
    finish_reason: str | None = None


class Event(_error.Fields, gc=False):
    """A chunk of a stream."""

    choices: list[_Choice] | None = None
    usage: Any = None
    metrics: Any = None
    timings: Any = None


Answer = Event


def body(turns: Sequence[Turn], ask: Ask) -> dict[str, Any]:
    """The request: every text is a user's message, a raw turn is a message in its own words."""
    messages = [dict(turn.raw) if turn.raw else {"role": "user", "content": turn.text} for turn in turns]
    limit = "max_tokens" if ask.legacy_max_tokens else "max_completion_tokens"
    return _request.completed({"model": ask.model, "messages": messages}, ask, limit, turns[-1].max_tokens)


_CALLED = rb'\{[^{}\r\n]*?"(?:name|arguments)"\s*:\s*"[^"]'
_BEGUN = re.compile(
    rb'"(?:content|reasoning_content|reasoning|refusal)"\s*:\s*"[^"]'
    rb'|"function_call"\s*:\s*' + _CALLED + rb"|"
    rb'"tool_calls"\s*:\s*\[\s*\{[^{}\r\n]*?"function"\s*:\s*' + _CALLED
)
"""No gap in it reaches beyond a brace, so that none is searched twice: it takes time linear in the bytes."""


def begun(data: bytes) -> bool:
    """Whether a delta in `data` is not empty."""
    return _BEGUN.search(data) is not None


def ended(data: bytes) -> bool:
    """Whether `data` holds `[DONE]`."""
    return _end.done(data)


def fold(events: Iterable[Event]) -> Reply:
    """The meaning of a stream's chunks."""
    gathering = _choices.Gathering(_take_delta)
    reply = gathering.reply
    text, thought, output = reply.text.append, reply.reasoning.append, reply.output.append
    first_answer = None
    for position, event in enumerate(events):
        choices = event.choices
        if choices is not None and len(choices) == 1 and event.usage is None and event.error is None:
            # Nearly every chunk is a piece of one channel and nothing else: told apart here, it costs no call.
            choice = choices[0]
            delta = choice.delta
            if (
                delta is not None
                and choice.finish_reason is None
                and delta.tool_calls is None
                and delta.function_call is None
                and not choice.index
            ):
                reasoning = delta.reasoning_content or delta.reasoning
                if delta.content and not reasoning:
                    text(delta.content)
                    output(position)
                    if first_answer is None:
                        first_answer = position
                    continue
                if reasoning and not delta.content and not delta.refusal:
                    thought(reasoning)
                    output(position)
                    continue
        gathering.add(position, event)
    return gathering.done(first_answer)


def whole(answer: Event) -> Reply:
    """The meaning of an unstreamed body."""
    return _choices.whole(answer, _take_message)


def _take_delta(choice: _Choice, reply: Reply) -> int:
    return _take(choice, choice.delta, reply)


def _take_message(choice: _Choice, reply: Reply) -> int:
    return _take(choice, choice.message, reply)


def _take(choice: _Choice, message: _Message | None, reply: Reply) -> int:
    """A `_choices.Take` of the message or the piece of one that a choice holds."""
    if choice.finish_reason:
        _end.finish(reply, choice.finish_reason)
    if message is None:
        return 0
    brought = 0
    text = message.content or message.refusal
    if text:
        reply.text.append(text)
        brought = _choices.ANSWER
    thought = message.reasoning_content or message.reasoning
    if thought:
        reply.reasoning.append(thought)
        brought |= _choices.THOUGHT
    if message.tool_calls or message.function_call:
        pieces = [piece for function in _functions(message) if (piece := _spelled(function))]
        reply.tool_calls += pieces
        brought |= _choices.ANSWER if pieces else 0
    return brought


def _functions(message: _Message) -> list[_Function | None]:
    return [*(call.function for call in message.tool_calls or () if call), message.function_call]


def _spelled(function: _Function | None) -> str:
    """A tool call, or a piece of one, as the tokens that it is made of: name and arguments."""
    if function is None:
        return ""
    given = function.arguments or ""
    return (function.name or "") + (given if isinstance(given, str) else _error.as_json(given))


_HELLO = (Turn(text="Say hello.", max_tokens=8),)
_MESSAGES = [{"role": "user", "content": "Say hello."}]
_STREAMED = {
    "model": "m",
    "messages": _MESSAGES,
    "max_completion_tokens": 8,
    "stream": True,
    "stream_options": {"include_usage": True},
}

EXAMPLES = (
    Example(
        name="streamed: an empty role delta, two tokens, usage at the end",
        turns=_HELLO,
        ask=Ask(model="m", streaming=True),
        request=_STREAMED,
        response=(
            b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
            b'data: {"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}\n\n'
            b'data: {"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}\n\n'
            b'data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":2,"total_tokens":13,'
            b'"prompt_tokens_details":{"cached_tokens":4}}}\n\n'
            b"data: [DONE]\n\n"
        ),
        reply=Reply(
            output=[1, 2],
            choices=1,
            first_answer=1,
            text=["Hel", "lo"],
            finish_reason="stop",
            usage=Usage(prompt_tokens=11, completion_tokens=2, cached_tokens=4),
            ended=True,
        ),
    ),
    Example(
        name="streamed: reasoning first, running usage in every chunk, a limit by its old name",
        turns=_HELLO,
        ask=Ask(
            model="m",
            streaming=True,
            legacy_max_tokens=True,
            usage_per_chunk=True,
            extra={"min_tokens": 8, "seed": None},
        ),
        request={
            "model": "m",
            "messages": _MESSAGES,
            "max_tokens": 8,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "min_tokens": 8,
        },
        response=(
            b'data: {"choices":[{"delta":{"reasoning_content":"Hm","reasoning":"Hm"}}],'
            b'"usage":{"prompt_tokens":11,"completion_tokens":1}}\r\n\r\n'
            b": still here\r\n\r\n"
            b'data: {"choices":[{"delta":{"reasoning":"\xe2\x80\xa6 so"}}],'
            b'"usage":{"prompt_tokens":11,"completion_tokens":4}}\r\n\r\n'
            b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"length"}],"usage":{"prompt_tokens":11,'
            b'"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":4}}}\r\n\r\n'
            b"data: [DONE]\r\n\r\n"
        ),
        reply=Reply(
            output=[0, 1, 2],
            choices=1,
            first_answer=2,
            text=["Hi"],
            reasoning=["Hm", "\u2026 so"],
            finish_reason="length",
            usage=Usage(prompt_tokens=11, completion_tokens=5, reasoning_tokens=4),
            tokens_after=[1, 4, 5],
            ended=True,
        ),
    ),
    Example(
        name="streamed: a tool call in pieces among nulls, nothing said of usage",
        turns=_HELLO,
        ask=Ask(model="m", streaming=True),
        request=_STREAMED,
        response=(
            b'data: {"choices":null,"usage":null}\n\n'
            b'data: {"choices":[{"delta":null,"finish_reason":null}]}\n\n'
            b'data: {"choices":[{"delta":{"content":null,"tool_calls":[{"index":0,"id":"c1","type":"function",'
            b'"function":{"name":"greet","arguments":""}}]}}]}\n\n'
            b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}]}\n\n'
            b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}\n\n'
            b'data: {"choices":[{"delta":{"tool_calls":null},"finish_reason":"tool_calls"}]}\n\n'
            b"data: [DONE]\n\n"
        ),
        reply=Reply(
            output=[2, 4],
            choices=1,
            first_answer=2,
            tool_calls=["greet", "{}"],
            finish_reason="tool_calls",
            ended=True,
        ),
    ),
    Example(
        name="streamed: an error after the first token",
        turns=_HELLO,
        ask=Ask(model="m", streaming=True),
        request=_STREAMED,
        response=(
            b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n'
            b'data: {"error":{"message":"out of memory","type":"server_error","code":500}}\n\n'
        ),
        reply=Reply(output=[0], choices=1, first_answer=0, text=["Hel"], error="out of memory (500)"),
    ),
    Example(
        name="streamed: two choices in turns, once in one event",
        turns=_HELLO,
        ask=Ask(model="m", streaming=True, extra={"n": 2}),
        request={**_STREAMED, "n": 2},
        response=(
            b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
            b'data: {"choices":[{"index":1,"delta":{"content":"Good"}}]}\n\n'
            b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}},{"index":1,"delta":{"content":" day"}}]}\n\n'
            b'data: {"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}\n\n'
            b'data: {"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}\n\n'
            b'data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":4}}\n\n'
            b"data: [DONE]\n\n"
        ),
        reply=Reply(
            output=[1, 2, 2, 4],
            choice=[1, 0, 1, 0],
            choices=2,
            first_answer=1,
            text=["Hel", "lo", "Good", " day"],
            finish_reason="stop",
            usage=Usage(prompt_tokens=11, completion_tokens=4),
            ended=True,
        ),
    ),
    Example(
        name="whole: two choices, one of them with reasoning",
        turns=(Turn(raw={"role": "system", "content": "Be brief."}), *_HELLO),
        ask=Ask(model="m", extra={"n": 2, "max_completion_tokens": 4}),
        request={
            "model": "m",
            "messages": [{"role": "system", "content": "Be brief."}, *_MESSAGES],
            "max_completion_tokens": 4,
            "stream": False,
            "n": 2,
        },
        response=(
            b'{"choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"Hm","content":"Hi"},'
            b'"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":"Hello"},'
            b'"finish_reason":"stop"}],"usage":{"prompt_tokens":14,"completion_tokens":3}}'
        ),
        reply=Reply(
            text=["Hi", "Hello"],
            choices=2,
            reasoning=["Hm"],
            finish_reason="stop",
            usage=Usage(prompt_tokens=14, completion_tokens=3),
            ended=True,
        ),
    ),
)
