"""`/rerank` and `/score`: pairs of texts in, how well they go together out.

The score is 0.9 times the share of the first text's words that the second one has, and up to 0.1 drawn from both: made up,
but the same each time, and a text that repeats the question is above one that does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Annotated, Any, NamedTuple

import msgspec

from loadstone.sim.api import pooled
from loadstone.sim.api.asked import Asked
from loadstone.sim.api.errors import decode, known_model, refuse
from loadstone.sim.api.request import Number
from loadstone.sim.options import SimOptions
from loadstone.sim.words import MESSAGE_TOKENS, SEPARATOR

MOST_CHARS = 1 << 24
"""Of all pairs of one request; a question counts with each of its documents."""


class Document(msgspec.Struct):
    """A document in a wrapping of its own."""

    text: str


class RerankCall(msgspec.Struct, kw_only=True):
    """The body of a request to rank."""

    query: str
    documents: list[str | Document]
    model: str | None = None
    top_n: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """0: all."""
    return_documents: bool | None = None
    priority: Number | None = None


class ScoreCall(msgspec.Struct, kw_only=True):
    """The body of a request for scores."""

    text_1: str | list[str]
    text_2: str | list[str]
    model: str | None = None
    priority: Number | None = None


class Details(NamedTuple):
    """What only the spelling needs."""

    pairs: list[tuple[str, str]]
    top: int
    documents: bool


_RERANK = msgspec.json.Decoder(RerankCall)
_SCORE = msgspec.json.Decoder(ScoreCall)


def ask(body: bytes, options: SimOptions) -> Asked:
    """What a body of `/rerank` asks for. Raises `ApiError`."""
    call = decode(_RERANK, body)
    model = known_model(call.model, options)
    texts = [given if isinstance(given, str) else given.text for given in call.documents]
    details = Details(
        [(call.query, text) for text in texts], call.top_n or len(texts), call.return_documents is not False
    )
    return pooled.asked("rerank", model, _prompts(details.pairs), call.priority or 0, options, details)


def ask_score(body: bytes, options: SimOptions) -> Asked:
    """What a body of `/score` asks for. Raises `ApiError`."""
    call = decode(_SCORE, body)
    model = known_model(call.model, options)
    first, second = ([given] if isinstance(given, str) else given for given in (call.text_1, call.text_2))
    if len(first) not in (1, len(second)):
        refuse(f"text_1 has {len(first)} texts and text_2 {len(second)}; one, or as many", "text_1")
    pairs = list(zip(first if len(first) == len(second) else repeat(first[0]), second, strict=False))
    details = Details(pairs, len(pairs), False)
    return pooled.asked("score", model, _prompts(pairs), call.priority or 0, options, details)


def _prompts(pairs: list[tuple[str, str]]) -> list[list[str]]:
    pooled.check_count(len(pairs))
    chars = sum(len(first) + len(second) for first, second in pairs)
    if chars > MOST_CHARS:
        refuse(f"the pairs have {chars} characters, more than {MOST_CHARS}; send several requests")
    separators = [SEPARATOR] * MESSAGE_TOKENS
    words = {first: first.split() for first, _ in pairs}
    return [[*words[first], *separators, *second.split()] for first, second in pairs]


def score(first: str, second: str) -> float:
    """How well the two go together, between 0 and 1."""
    words, found = set(first.lower().split()), set(second.lower().split())
    share = len(words & found) / len(words) if words else 0.0
    drawn = int.from_bytes(pooled.digest(b"score", first, second, size=4), "little") / 2**32
    return 0.9 * share + 0.1 * drawn


class RerankAnswer(pooled.Pooled):
    """The spelling of ranks: the best first, among equals the earlier."""

    def slices(self) -> Iterator[bytes]:
        """The documents as they rank."""
        details: Details = self.asked.details
        scored = []
        for number, pair in enumerate(details.pairs):
            scored.append((score(*pair), number, pair[1]))
            yield b""
        best = sorted(scored, key=lambda found: (-found[0], found[1]))[: details.top]
        results = [self._result(details.documents, *found) for found in best]
        facts = {"id": self.id, "model": self.asked.model, "usage": self.usage()}
        yield msgspec.json.encode({**facts, "results": results})

    @staticmethod
    def _result(documents: bool, relevance: float, index: int, text: str) -> dict[str, Any]:
        document = {"document": {"text": text}} if documents else {}
        return {"index": index, **document, "relevance_score": relevance}


class ScoreAnswer(pooled.Pooled):
    """The spelling of scores."""

    def slices(self) -> Iterator[bytes]:
        """The scores, in the order of the pairs."""
        details: Details = self.asked.details
        data = []
        for number, pair in enumerate(details.pairs):
            data.append({"index": number, "object": "score", "score": score(*pair)})
            yield b""
        facts = {"id": self.id, "object": "list", "created": self.created, "model": self.asked.model}
        yield msgspec.json.encode({**facts, "data": data, "usage": self.usage()})
