"""One answer under way, as the bytes to send at each step. Knows no sockets; told the time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from collections.abc import Sequence as Keys

from loadstone.sim.api.answer import Answer
from loadstone.sim.api.asked import Asked, Choice
from loadstone.sim.http import LAST_CHUNK, STREAM_HEAD, chunk, labelled, response
from loadstone.sim.sequence import Sequence
from loadstone.sim.truth import TruthRow


class Part(Sequence):
    """One sequence of the engine for a turn: its only one, or one of its choices or texts."""

    __slots__ = ("choice", "first_ns", "out", "owner", "reason", "token_ns")

    def __init__(self, turn: Turn, number: int, choice: Choice, keys: Keys[int], priority: int) -> None:
        super().__init__(
            len(choice.prompt), choice.output_tokens, keys=keys, priority=priority, draw=choice.draw
        )
        self.owner = turn
        self.choice = number
        self.reason = "length" if choice.finish == "length" else "stop"
        """Why it ends, in the engine's word: to it a called tool is a text that ends by itself."""
        self.out = 0
        """Tokens that have come out."""
        self.first_ns = 0
        self.token_ns = 0
        """When the first and the last of them came out, on the engine's time line; 0: none has."""

    @property
    def over(self) -> bool:
        """Whether its last token has come out."""
        return self.out >= self.output_tokens

    def note_times(self, ends: array[int]) -> None:
        """Keeps none: what its tokens are dated by is when they are sent."""


class Turn:
    """An answer's sequences together with its spelling and its truth.

    The response head and chat's opening travel with the first token, and the closing with the last one: a
    packet that brings a token has that token's time.
    """

    __slots__ = (
        "_answer",
        "_asked",
        "_keep_alive",
        "_left",
        "_slices",
        "_spelt",
        "_told_id",
        "limit_tokens",
        "out",
        "parts",
        "truth",
    )

    def __init__(
        self, asked: Asked, answer: Answer, truth: TruthRow, keep_alive: bool, told_id: str | None = None
    ) -> None:
        """`told_id`: the id of the request, where the head is to bear it."""
        self._asked = asked
        self._told_id = told_id
        self._answer = answer
        self._keep_alive = keep_alive
        self.limit_tokens = asked.limit_tokens
        self.truth = truth
        self.parts: tuple[Part, ...] = tuple(
            Part(self, number, choice, keys, asked.priority)
            for number, (choice, keys) in enumerate(zip(asked.choices, asked.keys(), strict=True))
        )
        self.out = 0
        """Tokens that have come out, of all parts."""
        self._left = len(self.parts) + (
            not asked.generates
        )  # what generates nothing is spelt when all parts are out
        self._slices: Iterator[bytes] | None = None
        self._spelt: list[bytes] = []

    @property
    def generates(self) -> bool:
        """Whether the answer is text."""
        return self._asked.generates

    @property
    def over(self) -> bool:
        """Whether the last token of all has come out, and what is to be spelt then is spelt."""
        return not self._left

    @property
    def unspelt(self) -> bool:
        """Whether all parts are out, and the answer is still to be spelt with `spell`."""
        return self._left == 1 and not self._asked.generates

    def advance(self, part: Part, tokens: int, now_ns: int) -> bytes:
        """What to send at `now_ns` for so many tokens of a part that have just come out; empty when nothing is due."""
        if not part.out and (first := self.parts[0]).scheduled_ns is not None:
            self._answer.cached_tokens = first.cached_tokens
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
            data = labelled(data, self._told_id)
        truth.last_sent_ns = now_ns
        truth.bytes_sent += len(data)
        if truth.sent_ns is not None:
            truth.sent_ns += [now_ns] * tokens
        return data

    def spell(self) -> bool:
        """Spells a little of an answer that is `unspelt`; whether that was the last of it."""
        if self._slices is None:
            self._slices = self._answer.slices()
        piece = next(self._slices, None)
        if piece is not None:
            self._spelt.append(piece)
            return False
        self._left = 0
        return True

    def spelt(self, now_ns: int) -> bytes:
        """What to send at `now_ns`, when all is spelt."""
        data = labelled(response(200, b"".join(self._spelt), keep_alive=self._keep_alive), self._told_id)
        self._spelt.clear()
        truth = self.truth
        truth.first_sent_ns = truth.last_sent_ns = now_ns
        truth.bytes_sent += len(data)
        return data

    def at_once(self, now_ns: int) -> bytes:
        """The whole answer, with no engine behind it; empty for one that is `unspelt`."""
        pieces = []
        for part in self.parts:
            while not part.over:
                pieces.append(self.advance(part, 1, now_ns))
        return b"".join(pieces)

    def row(self) -> TruthRow:
        """The truth, when it is over or the client has left."""
        if self._asked.generates and (self._asked.stream or self.over):
            self.truth.tokens = self.out
        if self.over:
            self.truth.end = self._asked.end
        return self.truth

    def _stream(self, part: Part, tokens: int) -> bytes:
        answer, choice = self._answer, part.choice
        opening = answer.opening() if self.out == tokens else b""  # before any token: events may be numbered
        if tokens == 1:
            data = chunk(answer.token(part.out - 1, choice))
        else:
            events = [answer.token(index, choice) for index in range(part.out - tokens, part.out)]
            data = b"".join(map(chunk, events))
        if self.out == tokens:
            data = STREAM_HEAD + (chunk(opening) if opening else b"") + data
        if not part.over:
            return data
        end = answer.ending(choice)
        if self._left:
            return data + chunk(end) if end else data
        return data + chunk(end + answer.closing()) + LAST_CHUNK
