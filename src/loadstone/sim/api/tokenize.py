"""`/tokenize` and `/detokenize` in vLLM's shapes: prompts as token ids, counted as the engine counts them."""

from __future__ import annotations

from typing import Any

import msgspec

from loadstone.sim.api import messages
from loadstone.sim.api.errors import decode, known_model, refuse
from loadstone.sim.api.messages import Message
from loadstone.sim.api.request import TokenId
from loadstone.sim.options import SimOptions
from loadstone.sim.vocabulary import Vocabulary

MOST_WORDS = 1 << 18
"""In one prompt, and ids in one text: each takes one or two microseconds, in which nobody else is served."""


class TokenizeCall(msgspec.Struct, kw_only=True):
    """A text, or the messages of a conversation."""

    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None
    tools: list[Any] | None = None
    return_token_strs: bool | None = None


class DetokenizeCall(msgspec.Struct, kw_only=True):
    """Token ids."""

    tokens: list[TokenId]
    model: str | None = None


_TOKENIZE = msgspec.json.Decoder(TokenizeCall)
_DETOKENIZE = msgspec.json.Decoder(DetokenizeCall)


def tokenize(body: bytes, options: SimOptions, vocabulary: Vocabulary) -> bytes:
    """The ids of a prompt. Raises `ApiError`."""
    call = decode(_TOKENIZE, body)
    known_model(call.model, options)
    if (call.prompt is None) == (call.messages is None):
        refuse("give either a prompt or messages", "prompt")
    words = [] if call.prompt is None else call.prompt.split()
    if call.messages is not None:
        words = messages.of_tools(call.tools) + messages.tokens(call.messages)
    if len(words) > MOST_WORDS:
        refuse(f"the prompt has {len(words)} tokens, more than {MOST_WORDS}; send it in parts", "prompt")
    return msgspec.json.encode(
        {
            "count": len(words),
            "max_model_len": options.max_model_len,
            "tokens": vocabulary.ids(words),
            "token_strs": words if call.return_token_strs else None,
        }
    )


def detokenize(body: bytes, options: SimOptions, vocabulary: Vocabulary) -> bytes:
    """The text of ids, a blank between words. Raises `ApiError`."""
    call = decode(_DETOKENIZE, body)
    known_model(call.model, options)
    if len(call.tokens) > MOST_WORDS:
        refuse(f"{len(call.tokens)} ids are more than {MOST_WORDS}; send them in parts", "tokens")
    return msgspec.json.encode({"prompt": " ".join(vocabulary.words(call.tokens))})
