"""`/v1/responses`: items in, items out; a stream of typed events, as OpenAI and vLLM name them.

The output is a reasoning item, if there is reasoning, and a message or a function call behind it. An answer that comes to
its limit is `incomplete`, but its last event is `response.completed`, as in vLLM. Nothing is stored.
"""

from __future__ import annotations

from itertools import count
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from loadstone.sim.api import messages, request, speech
from loadstone.sim.api.answer import Answer
from loadstone.sim.api.asked import Asked, Choice
from loadstone.sim.api.errors import decode, refuse, unsupported
from loadstone.sim.api.messages import Message, Part
from loadstone.sim.api.tools import Function, Wanted
from loadstone.sim.options import SimOptions
from loadstone.sim.words import WORDS, WORDS_BYTES


class Given(msgspec.Struct):
    """An item of the input: a message, earlier reasoning, a call, or what it came to."""

    type: str | None = None
    role: str | None = None
    content: str | list[Part] | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | list[Part] | None = None

    def texts(self) -> list[str | list[Part] | None]:
        """All that it says."""
        return [self.content, self.name, self.arguments, self.output]


class ResponseCall(request.Call, kw_only=True):
    """The body of a request."""

    input: str | Annotated[list[Given], msgspec.Meta(min_length=1)]
    instructions: str | None = None
    max_output_tokens: request.TokenCount | None = None
    tools: list[Any] | None = None
    tool_choice: Wanted | None = None
    previous_response_id: str | None = None
    background: bool | None = None
    top_logprobs: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    metadata: Any = None


_CALL = msgspec.json.Decoder(ResponseCall)
_SUPPORTED = "function"


def ask(body: bytes, options: SimOptions) -> Asked:
    """What a body asks for. Raises `ApiError`."""
    call = decode(_CALL, body)
    if call.previous_response_id is not None:
        refuse(
            "previous_response_id: this server stores no responses; send the whole conversation as input",
            "previous_response_id",
        )
    for name in ("background", "top_logprobs"):
        if getattr(call, name):
            unsupported(name, getattr(call, name))
    if call.n is not None and call.n > 1:
        unsupported("n", call.n)
    functions = [_function(tool) for tool in call.tools or ()]
    prompt = messages.of_tools(call.tools) + messages.tokens(_messages(call))
    return request.asked(
        call,
        options,
        "responses",
        prompt,
        " ".join(prompt).encode(),
        call.max_output_tokens,
        reasons=True,
        functions=functions,
        wanted=call.tool_choice,
        details=call,
    )


def _messages(call: ResponseCall) -> list[Message]:
    found = [] if call.instructions is None else [Message("system", call.instructions)]
    if isinstance(call.input, str):
        return [*found, Message("user", call.input)]
    for item in call.input:
        if item.type == "item_reference":
            unsupported("input", item.type)
        parts = [Part(text=text) for said in item.texts() if said for text in _texts(said)]
        found.append(Message(item.role or "user", parts))
    return found


def _texts(said: str | list[Part]) -> list[str]:
    return [said] if isinstance(said, str) else [part.text or "" for part in said]


def _function(tool: Any) -> Function:
    if not isinstance(tool, dict) or tool.get("type") != _SUPPORTED:
        unsupported("tools", tool)
    try:
        return msgspec.convert(tool, Function)
    except msgspec.ValidationError as error:
        refuse(f"tools: {error}", "tools")


class Item(NamedTuple):
    """An item of the output: its kind, its id, and which tokens are in it."""

    kind: Literal["reasoning", "message", "function_call"]
    id: str
    first: int
    last: int
    """The token behind it."""


_DELTAS = {
    "reasoning": "response.reasoning_text.delta",
    "message": "response.output_text.delta",
    "function_call": "response.function_call_arguments.delta",
}


class ResponseAnswer(Answer):
    """The spelling of responses. Its events are numbered, so each is spelt once, in order."""

    def __init__(self, asked: Asked, answer_id: str, created: int) -> None:
        super().__init__(asked, answer_id, created)
        self._choice = choice = asked.choices[0]
        self._items = _items(choice, answer_id.partition("_")[2])
        self._numbers = count()
        self._around = [self._delta(place) for place in range(len(self._items))]
        self._simple = not (asked.stops or choice.call)

    def opening(self) -> bytes:
        """The response, and the first item."""
        begun = self._response("in_progress")
        return (
            self._event("response.created", response=begun)
            + self._event("response.in_progress", response=begun)
            + self._opened(0)
        )

    def token(self, index: int, choice: int = 0) -> bytes:
        """A delta; before the first one of an item what ends the one before."""
        place = 0 if index < self._items[0].last else 1
        turn = self._closed(0) + self._opened(1) if place and index == self._items[1].first else b""
        said = self._choice
        if self._simple:
            word = WORDS_BYTES[(said.start_word + index) % len(WORDS)]
        else:
            word = msgspec.json.encode(speech.piece(said, self.asked.stops, index))[1:-1]
        before, middle, after = self._around[place]
        return b"%b%b%d%b%b%b" % (turn, before, next(self._numbers), middle, word, after)

    def closing(self) -> bytes:
        """What ends the last item, and the response with its usage."""
        ended = self._closed(len(self._items) - 1)
        return ended + self._event("response.completed", response=self._final())

    def whole(self) -> bytes:
        """The response."""
        return msgspec.json.encode(self._final())

    def usage(self, tokens: int) -> dict[str, Any]:
        """The usage in the words of this path."""
        asked = self.asked
        return {
            "input_tokens": asked.prompt_tokens,
            "input_tokens_details": {"cached_tokens": self.cached_tokens or 0},
            "output_tokens": tokens,
            "output_tokens_details": {"reasoning_tokens": min(tokens, self._choice.reasoning_tokens)},
            "total_tokens": asked.prompt_tokens + tokens,
        }

    # ---- events ----

    def _event(self, name: str, **fields: Any) -> bytes:
        data = msgspec.json.encode({"type": name, "sequence_number": next(self._numbers), **fields})
        return b"event: %b\ndata: %b\n\n" % (name.encode(), data)

    def _delta(self, place: int) -> tuple[bytes, bytes, bytes]:
        """What stands before the number of a delta's event, between it and the text, and behind the text."""
        item = self._items[place]
        name = _DELTAS[item.kind]
        begin = f'event: {name}\ndata: {{"type":"{name}","sequence_number":'
        index = "" if item.kind == "function_call" else ',"content_index":0'
        middle = f',"item_id":"{item.id}","output_index":{place}{index},"delta":"'
        after = '","logprobs":[]}\n\n' if item.kind == "message" else '"}\n\n'
        return begin.encode(), middle.encode(), after.encode()

    def _opened(self, place: int) -> bytes:
        item = self._items[place]
        added = self._event(
            "response.output_item.added", output_index=place, item=self._spelt(item, "in_progress")
        )
        if item.kind == "function_call":
            return added
        at = {"item_id": item.id, "output_index": place, "content_index": 0}
        return added + self._event("response.content_part.added", **at, part=_part(item, ""))

    def _closed(self, place: int) -> bytes:
        item = self._items[place]
        text = self._text(item)
        name = _DELTAS[item.kind].removesuffix("delta") + "done"
        at: dict[str, Any] = {"item_id": item.id, "output_index": place}
        if item.kind == "function_call":
            done = self._event(name, **at, arguments=text)
        else:
            at["content_index"] = 0
            more: dict[str, Any] = {"logprobs": []} if item.kind == "message" else {}
            done = self._event(name, **at, text=text, **more)
            done += self._event("response.content_part.done", **at, part=_part(item, text))
        status = self._status() if place == len(self._items) - 1 else "completed"
        ended = self._event("response.output_item.done", output_index=place, item=self._spelt(item, status))
        return done + ended

    # ---- the response ----

    def _text(self, item: Item) -> str:
        texts = {"reasoning": speech.thought, "message": speech.text, "function_call": speech.arguments}
        return texts[item.kind](self._choice)

    def _spelt(self, item: Item, status: str) -> dict[str, Any]:
        text = "" if status == "in_progress" else self._text(item)
        parts = [] if status == "in_progress" else [_part(item, text)]
        facts = {"id": item.id, "type": item.kind, "status": status}
        match item.kind:
            case "reasoning":
                return {**facts, "summary": [], "content": parts}
            case "message":
                return {**facts, "role": "assistant", "content": parts}
        call = self._choice.call
        return {
            **facts,
            "call_id": f"call_{item.id.partition('_')[2]}",
            "name": call.name if call else "",
            "arguments": text,
        }

    def _status(self) -> str:
        return "incomplete" if self._choice.finish == "length" else "completed"

    def _final(self) -> dict[str, Any]:
        status = self._status()
        last = len(self._items) - 1
        output = [
            self._spelt(item, status if place == last else "completed")
            for place, item in enumerate(self._items)
        ]
        return self._response(status, output, self.usage(self.asked.output_tokens))

    def _response(
        self, status: str, output: list[dict[str, Any]] | None = None, usage: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        call: ResponseCall = self.asked.details
        cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": cut,
            "instructions": call.instructions,
            "max_output_tokens": self.asked.limit_tokens,
            "model": self.asked.model,
            "output": output or [],
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": None,
            "store": False,
            "temperature": 1.0 if call.temperature is None else call.temperature,
            "text": {"format": {"type": "text"}},
            "tool_choice": call.tool_choice or "auto",
            "tools": call.tools or [],
            "top_p": 1.0 if call.top_p is None else call.top_p,
            "truncation": "disabled",
            "usage": usage,
            "metadata": call.metadata or {},
        }


def _items(choice: Choice, name: str) -> list[Item]:
    thoughts, tokens = choice.reasoning_tokens, choice.output_tokens
    found = [Item("reasoning", f"rs_{name}", 0, thoughts)] if thoughts else []
    if thoughts < tokens and choice.call:
        found.append(Item("function_call", f"fc_{name}", thoughts, tokens))
    elif thoughts < tokens:
        found.append(Item("message", f"msg_{name}", thoughts, tokens))
    return found


def _part(item: Item, text: str) -> dict[str, Any]:
    if item.kind == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
