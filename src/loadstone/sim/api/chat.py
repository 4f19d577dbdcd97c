"""`/v1/chat/completions`: messages in, a message out, its reasoning in a field of its own, or a tool that is called."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from loadstone.sim.api import logprobs, messages, request, speech
from loadstone.sim.api.asked import Asked, Choice
from loadstone.sim.api.choices import Choices
from loadstone.sim.api.errors import decode, refuse, unsupported
from loadstone.sim.api.messages import Message
from loadstone.sim.api.tools import Function, Tool, Wanted
from loadstone.sim.options import SimOptions


class ChatCall(request.Call, kw_only=True):
    """The body of a request."""

    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    max_tokens: request.TokenCount | None = None
    max_completion_tokens: request.TokenCount | None = None
    logprobs: bool | None = None
    top_logprobs: request.Alternatives | None = None
    tools: list[Any] | None = None
    tool_choice: Wanted | None = None
    echo: bool | None = None


_CALL = msgspec.json.Decoder(ChatCall)


def ask(body: bytes, options: SimOptions) -> Asked:
    """What a body asks for. Raises `ApiError`."""
    call = decode(_CALL, body)
    if call.echo:
        unsupported("echo", True)
    if call.top_logprobs and not call.logprobs:
        refuse("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs")
    functions = [_function(tool) for tool in call.tools or ()]
    prompt = messages.of_tools(call.tools) + messages.tokens(call.messages)
    return request.asked(
        call,
        options,
        "chat",
        prompt,
        " ".join(prompt).encode(),
        call.max_completion_tokens or call.max_tokens,
        reasons=True,
        logprobs=(call.top_logprobs or 0) if call.logprobs else None,
        functions=functions,
        wanted=call.tool_choice,
    )


def _function(tool: Any) -> Function:
    try:
        return msgspec.convert(tool, Tool).function
    except msgspec.ValidationError as error:
        refuse(f"tools: {error}", "tools")


class ChatAnswer(Choices):
    """The spelling of chat."""

    kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"

    def __init__(self, asked: Asked, answer_id: str, created: int) -> None:
        super().__init__(asked, answer_id, created)
        thought = b',"delta":{"%b":"' % asked.reasoning_field.encode()
        self._around = ((b',"delta":{"content":"', b'"}'), (thought, b'"}'))

    def opening(self) -> bytes:
        """The role of each choice."""
        role = b',"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}\n\n'
        return b"".join(
            b"data: %b%d%b" % (self._begin, number, role) for number in range(len(self.asked.choices))
        )

    def words(self, thinks: bool) -> tuple[bytes, bytes]:
        """What stands around a word."""
        return self._around[thinks]

    def content(self, text: str) -> dict[str, Any]:
        """Text of a delta."""
        return {"delta": {"content": text}}

    def reasoning(self, text: str) -> dict[str, Any]:
        """Reasoning of a delta."""
        return {"delta": {self.asked.reasoning_field: text}}

    def nothing(self) -> dict[str, Any]:
        """The last delta."""
        return {"delta": {}}

    def call(self, number: int, index: int, arguments: str) -> dict[str, Any]:
        """A called tool: its first delta names it."""
        tool = self.asked.choices[number].call
        if index or tool is None:
            return {"delta": {"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}}
        return {"delta": {"tool_calls": [{"index": 0, **self._called(number, tool.name, arguments)}]}}

    def message(self, number: int, choice: Choice) -> dict[str, Any]:
        """The message of a choice."""
        said: str | None = speech.text(choice)
        message = {
            "role": "assistant",
            "content": said,
            self.asked.reasoning_field: speech.thought(choice) or None,
        }
        if choice.call:
            message["content"] = None
            called = self._called(number, choice.call.name, speech.arguments(choice))
            return {"message": {**message, "tool_calls": [called]}}
        return {"message": message}

    def logprobs(self, number: int, first: int, last: int) -> dict[str, Any] | None:
        """As chat has them."""
        alternatives = self.asked.logprobs
        if alternatives is None:
            return None
        choice = self.asked.choices[number]
        return logprobs.chat([speech.token(choice, index) for index in range(first, last)], alternatives)

    def _called(self, number: int, name: str, arguments: str) -> dict[str, Any]:
        call_id = f"call-{self.id.partition('-')[2]}-{number}"
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
