"""One answer under way, as the bytes to send at each step. Knows no sockets; told the time."""

from __future__ import annotations

from loadstone.sim.engine import Sequence
from loadstone.sim.http import LAST_CHUNK, STREAM_HEAD, chunk, response
from loadstone.sim.openai import Answer, Asked
from loadstone.sim.truth import TruthRow


class Turn(Sequence):
    """A sequence of the engine together with its spelling and its truth.

    The response head and chat's opening travel with the first token, and the closing with the last one: a
    packet that brings a token has that token's time.
    """

    __slots__ = ("_answer", "_asked", "_keep_alive", "truth")

    def __init__(self, asked: Asked, answer: Answer, truth: TruthRow, keep_alive: bool) -> None:
        super().__init__(asked.prompt_tokens, asked.output_tokens)
        self._asked = asked
        self._answer = answer
        self._keep_alive = keep_alive
        self.truth = truth

    def advance(self, now_ns: int) -> bytes:
        """What to send at `now_ns` for the token just produced; empty when nothing is due."""
        if self._asked.stream:
            data = self._stream()
        elif self.ended:
            data = response(200, self._answer.whole(), keep_alive=self._keep_alive)
        else:
            return b""
        truth = self.truth
        if truth.first_sent_ns is None:
            truth.first_sent_ns = now_ns
        truth.last_sent_ns = now_ns
        truth.bytes_sent += len(data)
        return data

    def at_once(self, now_ns: int) -> bytes:
        """The whole answer, with no engine behind it."""
        pieces = []
        while not self.ended:
            self.produced += 1
            pieces.append(self.advance(now_ns))
        return b"".join(pieces)

    def row(self) -> TruthRow:
        """The truth, when it is over or the client has left."""
        if self._asked.stream or self.ended:
            self.truth.tokens = self.produced
        if self.ended:
            self.truth.end = self._asked.finish
        return self.truth

    def _stream(self) -> bytes:
        data = chunk(self._answer.token(self.produced - 1))
        if self.produced == 1:
            opening = self._answer.opening()
            data = STREAM_HEAD + (chunk(opening) if opening else b"") + data
        return data + chunk(self._answer.closing()) + LAST_CHUNK if self.ended else data
