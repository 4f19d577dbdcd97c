"""The paths that the engine answers: who reads their requests, and who spells their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from loadstone.sim import lengths
from loadstone.sim.api import chat, completions, embeddings, rerank, responses
from loadstone.sim.api.answer import Answer
from loadstone.sim.api.asked import Asked, Kind
from loadstone.sim.options import SimOptions

Ask = Callable[[bytes, SimOptions], Asked]


class Spelling(NamedTuple):
    """How one kind of answer is spelt."""

    prefix: str
    """How its ids begin."""
    answer: type[Answer]


PATHS: dict[str, Ask] = {
    "/v1/chat/completions": chat.ask,
    "/v1/completions": completions.ask,
    "/v1/responses": responses.ask,
    "/v1/embeddings": embeddings.ask,
    **dict.fromkeys(("/rerank", "/v1/rerank", "/v2/rerank"), rerank.ask),
    **dict.fromkeys(("/score", "/v1/score"), rerank.ask_score),
}
SPELLINGS: dict[Kind, Spelling] = {
    "chat": Spelling("chatcmpl-", chat.ChatAnswer),
    "completions": Spelling("cmpl-", completions.CompletionAnswer),
    "responses": Spelling("resp_", responses.ResponseAnswer),
    "embeddings": Spelling("embd-", embeddings.EmbeddingAnswer),
    "rerank": Spelling("rerank-", rerank.RerankAnswer),
    "score": Spelling("score-", rerank.ScoreAnswer),
}


def met(options: SimOptions, max_model_len: int | None) -> SimOptions:
    """The options as requests meet them: with the engine's own length. Raises `UsageError` for wrong `output_tokens`."""
    lengths.parse(options.output_tokens)
    return msgspec.structs.replace(options, max_model_len=max_model_len)


def ask(path: str, body: bytes, options: SimOptions) -> Asked:
    """What a body sent to one of `PATHS` asks for. Raises `ApiError`."""
    return PATHS[path](body, options)


def spell(asked: Asked, number: int, created: int) -> Answer:
    """The answer to what was asked: the `number`-th of the server, at `created` (Unix seconds)."""
    spelling = SPELLINGS[asked.kind]
    return spelling.answer(asked, f"{spelling.prefix}{number:016x}", created)
