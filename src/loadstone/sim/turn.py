"""One answer under way, as the bytes to send at each step. Knows no sockets; told the time."""

from __future__ import annotations

from loadstone.sim.http import LAST_CHUNK, STREAM_HEAD, chunk, response
from loadstone.sim.openai import Answer, Asked
from loadstone.sim.sequence import Sequence
from loadstone.sim.truth import TruthRow


class Part(Sequence):
    """One sequence of the engine for a turn: its only one, or one of its choices."""

    __slots__ = ("choice", "first_ns", "out", "reason", "token_ns", "owner")

    def __init__(self, turn: Turn, choice: int, prompt_tokens: int, output_tokens: int, reason: str) -> None:
        super().__init__(prompt_tokens, output_tokens)
        self.owner = turn
        self.choice = choice
        self.reason = reason
        """Why it ends, in the API's word."""
        self.out = 0
        """Tokens that have come out."""
        self.first_ns = 0
        self.token_ns = 0
        """When the first and the last of them came out, on the engine's time line; 0: none has."""

    @property
    def over(self) -> bool:
        """Whether its last token has come out."""
        return self.out >= self.output_tokens


class Turn:
    """An answer's sequences together with its spelling and its truth.

    The response head and chat's opening travel with the first token, and the closing with the last one: a
    packet that brings a token has that token's time.
    """

    __slots__ = ("_answer", "_asked", "_keep_alive", "_left", "limit_tokens", "out", "parts", "truth")

    def __init__(self, asked: Asked, answer: Answer, truth: TruthRow, keep_alive: bool) -> None:
        self._asked = asked
        self._answer = answer
        self._keep_alive = keep_alive
        self.limit_tokens = asked.limit_tokens
        self.truth = truth
        self.parts = (Part(self, 0, asked.prompt_tokens, asked.output_tokens, asked.finish),)
        self.out = 0
        """Tokens that have come out, of all parts."""
        self._left = len(self.parts)

    @property
    def over(self) -> bool:
        """Whether the last token of all has come out."""
        return not self._left

    def advance(self, part: Part, tokens: int, now_ns: int) -> bytes:
        """What to send at `now_ns` for so many tokens of a part that have just come out; empty when nothing is due."""
        part.out += tokens
        self.out += tokens
        if part.out >= part.output_tokens:
            self._left -= 1
        if self._asked.stream:
            data = self._stream(part, tokens)
        elif not self._left:
            data = response(200, self._answer.whole(), keep_alive=self._keep_alive)
        else:
            return b""
        truth = self.truth
        if truth.first_sent_ns is None:
            truth.first_sent_ns = now_ns
        truth.last_sent_ns = now_ns
        truth.bytes_sent += len(data)
        if truth.sent_ns is not None:
            truth.sent_ns += [now_ns] * tokens
        return data

    def at_once(self, now_ns: int) -> bytes:
        """The whole answer, with no engine behind it."""
        pieces = []
        for part in self.parts:
            while not part.over:
                pieces.append(self.advance(part, 1, now_ns))
        return b"".join(pieces)

    def row(self) -> TruthRow:
        """The truth, when it is over or the client has left."""
        if self._asked.stream or self.over:
            self.truth.tokens = self.out
        if self.over:
            self.truth.end = self._asked.finish
        return self.truth

    def _stream(self, part: Part, tokens: int) -> bytes:
        data = b"".join(chunk(self._answer.token(index)) for index in range(part.out - tokens, part.out))
        if self.out == tokens:
            opening = self._answer.opening()
            data = STREAM_HEAD + (chunk(opening) if opening else b"") + data
        return data + chunk(self._answer.closing()) + LAST_CHUNK if self.over else data
