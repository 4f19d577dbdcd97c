"""`/v1/embeddings`: texts or token ids in, unit vectors out; equal texts have equal vectors, others nearly orthogonal ones."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from loadstone.sim.api import pooled
from loadstone.sim.api.asked import Asked
from loadstone.sim.api.errors import decode, known_model, refuse
from loadstone.sim.api.request import Number, TokenId
from loadstone.sim.keys import Tokens
from loadstone.sim.options import SimOptions

Input = str | list[TokenId | str | list[TokenId]]


MOST_NUMBERS = 1 << 22
"""In all vectors of one answer."""


class EmbeddingCall(msgspec.Struct, kw_only=True):
    """The body of a request."""

    input: Input
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=65_536)] | None = None
    priority: Number | None = None


class Details(NamedTuple):
    """What only the vectors need."""

    texts: list[Any]
    dimensions: int
    as_base64: bool


_CALL = msgspec.json.Decoder(EmbeddingCall)


def ask(body: bytes, options: SimOptions) -> Asked:
    """What a body asks for. Raises `ApiError`."""
    call = decode(_CALL, body)
    model = known_model(call.model, options)
    dimensions = call.dimensions or options.embedding_dimensions
    if dimensions > options.embedding_dimensions:
        refuse(f"dimensions = {dimensions} is above the model's {options.embedding_dimensions}", "dimensions")
    texts = _texts(call.input)
    pooled.check_count(len(texts))
    if len(texts) * dimensions > MOST_NUMBERS:
        refuse(
            f"{len(texts)} vectors of {dimensions} numbers are more than {MOST_NUMBERS} numbers; send several requests",
            "input",
        )
    prompts: list[Tokens] = [text.split() if isinstance(text, str) else text for text in texts]
    details = Details(texts, dimensions, call.encoding_format == "base64")
    return pooled.asked("embeddings", model, prompts, call.priority or 0, options, details)


def _texts(given: Input) -> list[Any]:
    """Each text, or list of ids, by itself."""
    if isinstance(given, str):
        return [given]
    kinds = {type(item) for item in given}
    if kinds == {int}:
        return [given]
    if len(kinds) > 1:
        refuse("input has to be texts, or token ids, or lists of token ids", "input")
    return given


class EmbeddingAnswer(pooled.Pooled):
    """The spelling of embeddings."""

    def slices(self) -> Iterator[bytes]:
        """The vectors, in the order of the texts."""
        details: Details = self.asked.details
        facts = {"id": self.id, "object": "list", "created": self.created, "model": self.asked.model}
        yield msgspec.json.encode(facts)[:-1] + b',"data":['
        for number, text in enumerate(details.texts):
            one = {"object": "embedding", "index": number, "embedding": _spelt(text, details)}
            yield (b"," if number else b"") + msgspec.json.encode(one)
        yield b'],"usage":%b}' % msgspec.json.encode(self.usage())


def _spelt(text: Any, details: Details) -> list[float] | str:
    numbers = vector(text, details.dimensions)
    packed = struct.pack(f"<{len(numbers)}f", *numbers)
    if details.as_base64:
        return base64.b64encode(packed).decode()
    return list(struct.unpack(f"<{len(numbers)}f", packed))


def vector(text: Any, dimensions: int) -> list[float]:
    """The unit vector of a text: odd 17-bit numbers drawn from it (SHAKE-128), divided by their length."""
    drawn = struct.unpack(f"<{dimensions}h", pooled.digest(b"vector", text, size=2 * dimensions))
    odd = [2 * number + 1 for number in drawn]  # never 0, so neither is the length
    norm = math.sqrt(sum(number * number for number in odd))
    return [number / norm for number in odd]
