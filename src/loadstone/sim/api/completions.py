"""`/v1/completions`: texts or token ids in, a text for each out."""

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
    prompts = _prompts(call.prompt)
    if len(prompts) * (call.n or 1) > request.MOST_CHOICES:
        refuse(f"{len(prompts)} prompts are more than {request.MOST_CHOICES} answers come to", "prompt")
    return _together([_ask(call, options, prompt) for prompt in prompts])


def _ask(call: CompletionCall, options: SimOptions, prompt: str | list[int]) -> Asked:
    """What the request asks for of one of its prompts."""
    tokens: Tokens
    if isinstance(prompt, str):
        raw, tokens = prompt.encode(), prompt.split()
    else:
        raw, tokens = msgspec.json.encode(prompt), prompt
    most = call.max_completion_tokens or call.max_tokens
    return request.asked(call, options, "completions", tokens, raw, most, logprobs=call.logprobs)


def _together(each: list[Asked]) -> Asked:
    """One answer to several prompts: the choices of the first one, then those of the next."""
    first = each[0]
    whole = first._replace(
        choices=tuple(choice for one in each for choice in one.choices),
        prompt_tokens=sum(one.prompt_tokens for one in each),
        limit_tokens=max(one.limit_tokens for one in each),
    )
    request.check_logprobs(whole)
    return whole


def _prompts(prompt: Prompt) -> list[str | list[int]]:
    """The prompts of a request: a text, token ids, or a list of such."""
    if isinstance(prompt, str):
        return [prompt]
    ids = [item for item in prompt if isinstance(item, int)]
    if ids and len(ids) == len(prompt):
        return [ids]
    several = [item for item in prompt if not isinstance(item, int)]
    if ids or not several:
        refuse(
            "prompt has to be a text, a list of token ids, or a list of texts or of lists of token ids",
            "prompt",
        )
    return several


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
