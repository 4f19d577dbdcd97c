"""Requests to the pure API and their answers, read back: what tests of every path have in common."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import msgspec
import pytest

from loadstone.sim.api.answer import Answer
from loadstone.sim.api.asked import Asked
from loadstone.sim.api.errors import ApiError
from loadstone.sim.api.spell import ask, spell
from loadstone.sim.options import SimOptions

OPTIONS = SimOptions(model="m")
CHAT, COMPLETIONS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
HELLO = {"role": "user", "content": "hello there"}
_GIVEN: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [HELLO]},
    COMPLETIONS: {"prompt": "one two three"},
    RESPONSES: {"input": "hello there"},
}


def asked(path: str = CHAT, options: SimOptions = OPTIONS, **call: Any) -> Asked:
    """What a request asks for; one for text goes on to its limit unless it says otherwise."""
    usual = {"ignore_eos": True, **_GIVEN[path]} if path in _GIVEN else {}
    return ask(path, msgspec.json.encode({"model": "m", **usual, **call}), options)


def answer(found: Asked, cached: int | None = None) -> Answer:
    """Its answer."""
    spelt = spell(found, 1, 7)
    spelt.cached_tokens = cached
    return spelt


def whole(found: Asked, cached: int | None = None) -> Any:
    """The body of its answer."""
    return json.loads(answer(found, cached).whole())


def pieces(found: Asked, cached: int | None = None) -> Iterator[bytes]:
    """The stream of its answer, a token of each choice in turn."""
    spelt = answer(found, cached)
    yield spelt.opening()
    for indices in zip_longest(*(range(choice.output_tokens) for choice in found.choices)):
        for number, index in enumerate(indices):
            if index is not None:
                yield spelt.token(index, number)
                if index + 1 == found.choices[number].output_tokens:
                    yield spelt.ending(number)
    yield spelt.closing()


def events(found: Asked, cached: int | None = None) -> list[Any]:
    """The events of its stream; the end mark, which lists of choices have, is looked for and left out."""
    *lines, rest = b"".join(pieces(found, cached)).decode().split("\n\n")
    assert rest == ""
    if found.kind != "responses":
        assert lines.pop() == "data: [DONE]"
    return [json.loads(line[line.index("data: ") + len("data: ") :]) for line in lines]


def refused(path: str = CHAT, options: SimOptions = OPTIONS, **call: Any) -> dict[str, Any]:
    """The error that a request gets."""
    with pytest.raises(ApiError) as refusal:
        asked(path, options, **call)
    error: dict[str, Any] = json.loads(refusal.value.body())["error"]
    assert refusal.value.status == error["code"]
    return error
