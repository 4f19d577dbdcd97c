"""`/v1/completions`: a text or token ids in, a text out."""

from __future__ import annotations

from typing import Any

import msgspec

from loadstone.sim.api import logprobs, request, speech
from loadstone.sim.api.asked import Asked, Choice
from loadstone.sim.api.choices import Choices
from loadstone.sim.api.errors import decode, refuse, unsupported
from loadstone.sim.keys import Tokens
from loadstone.sim.options import SimOptions
from loadstone.sim.words import length

Prompt = str | list[request.TokenId | str | list[request.TokenId]]


class CompletionCall(request.Call, kw_only=True):
    """The body of a request."""

    prompt: Prompt
    max_tokens: request.TokenCount | None = None
    max_completion_tokens: request.TokenCount | None = None
    logprobs: request.Alternatives | None = None
    echo: bool | None = None
    suffix: str | None = None


_CALL = msgspec.json.Decoder(CompletionCall)


def ask(body: bytes, options: SimOptions) -> Asked:
    """What a body asks for. Raises `ApiError`."""
    call = decode(_CALL, body)
    if call.echo:
        unsupported("echo", True)
    if call.suffix:
        unsupported("suffix", call.suffix)
    prompt = _single(call.prompt)
    tokens: Tokens
    if isinstance(prompt, str):
        raw, tokens = prompt.encode(), prompt.split()
    else:
        raw, tokens = msgspec.json.encode(prompt), prompt
    most = call.max_completion_tokens or call.max_tokens
    return request.asked(call, options, "completions", tokens, raw, most, logprobs=call.logprobs)


def _single(prompt: Prompt) -> str | list[int]:
    """The one prompt of a request; a list of one prompt stands for it."""
    if isinstance(prompt, str):
        return prompt
    ids = [item for item in prompt if isinstance(item, int)]
    if ids and len(ids) == len(prompt):
        return ids
    if len(prompt) != 1 or isinstance(prompt[0], int):
        refuse("prompt has to be one text or one list of token ids", "prompt")
    return prompt[0]


class CompletionAnswer(Choices):
    """The spelling of completions."""

    kind = "text_completion"
    chunk_kind = "text_completion"

    def words(self, thinks: bool) -> tuple[bytes, bytes]:
        """What stands around a word."""
        return b',"text":"', b'"'

    def content(self, text: str) -> dict[str, Any]:
        """Text."""
        return {"text": text}

    def nothing(self) -> dict[str, Any]:
        """No text."""
        return {"text": ""}

    def message(self, number: int, choice: Choice) -> dict[str, Any]:
        """The text of a choice."""
        return {"text": speech.text(choice)}

    def logprobs(self, number: int, first: int, last: int) -> dict[str, Any] | None:
        """As completions have them."""
        alternatives = self.asked.logprobs
        if alternatives is None:
            return None
        choice = self.asked.choices[number]
        tokens = [speech.token(choice, index) for index in range(first, last)]
        return logprobs.legacy(tokens, alternatives, length(choice.start_word, first))
