"""An answer under way, as the bytes to send at each step. Knows no sockets; told the time."""

from __future__ import annotations

from collections.abc import Sequence as Keys

from loadstone.sim.api.answer import Answer
from loadstone.sim.api.asked import Asked
from loadstone.sim.http import LAST_CHUNK, STREAM_HEAD, chunk, response
from loadstone.sim.sequence import Sequence
from loadstone.sim.truth import TruthRow


class Turn(Sequence):
    """One sequence of the engine and the answer it is a choice of."""

    __slots__ = ("choice", "first_ns", "out", "reply", "token_ns")

    def __init__(
        self, reply: Reply, choice: int, prompt_tokens: int, output_tokens: int, keys: Keys[int], priority: int
    ) -> None:
        super().__init__(prompt_tokens, output_tokens, keys=keys, priority=priority)
        self.reply = reply
        self.choice = choice
        """Its number among the choices."""
        self.out = 0
        """Tokens that have come out."""
        self.first_ns = 0
        self.token_ns = 0
        """When the first and the last of them came out, on the engine's time line; 0: none has."""

    @property
    def over(self) -> bool:
        """Whether its last token has come out."""
        return self.out >= self.output_tokens

    @property
    def reason(self) -> str:
        """Why it ends, in the engine's word: to the engine a called tool is a text that ended by itself."""
        return "length" if self.reply.asked.choices[self.choice].finish == "length" else "stop"

    @property
    def limit_tokens(self) -> int:
        """How long it might have become."""
        return self.reply.asked.limit_tokens

    @property
    def truth(self) -> TruthRow:
        """The truth of the answer."""
        return self.reply.truth

    def advance(self, tokens: int, now_ns: int) -> bytes:
        """What to send at `now_ns` for so many tokens that have just come out; empty when nothing is due."""
        return self.reply.advance(self, tokens, now_ns)


class Reply:
    """One answer together with its spelling and its truth; `turns` are its sequences, one a choice.

    The response head and the opening travel with the first token, and the closing with the last one: a packet that brings
    a token has that token's time.
    """

    __slots__ = ("_answer", "_keep_alive", "_left", "_out", "asked", "truth", "turns")

    def __init__(self, asked: Asked, answer: Answer, truth: TruthRow, keep_alive: bool) -> None:
        self.asked = asked
        self.truth = truth
        self.turns: Keys[Turn] = [
            Turn(self, number, len(choice.prompt), choice.output_tokens, keys, asked.priority)
            for number, (choice, keys) in enumerate(zip(asked.choices, asked.keys(), strict=True))
        ]
        self._answer = answer
        self._keep_alive = keep_alive
        self._left = len(self.turns)
        self._out = 0

    @property
    def over(self) -> bool:
        """Whether the last token of the last choice has come out."""
        return not self._left

    def advance(self, turn: Turn, tokens: int, now_ns: int) -> bytes:
        """What to send at `now_ns` for so many tokens of one choice; empty when nothing is due."""
        if not turn.out and not turn.choice and turn.scheduled_ns is not None:
            self._answer.cached_tokens = turn.cached_tokens
        turn.out += tokens
        self._left -= turn.over
        if self.asked.stream:
            data = self._stream(turn, tokens)
        elif self._left:
            self._out += tokens
            return b""
        else:
            data = response(200, self._answer.whole(), keep_alive=self._keep_alive)
        self._out += tokens
        truth = self.truth
        if truth.first_sent_ns is None:
            truth.first_sent_ns = now_ns
        truth.last_sent_ns = now_ns
        truth.bytes_sent += len(data)
        return data

    def at_once(self, now_ns: int) -> bytes:
        """The whole answer, with no engine behind it."""
        pieces = []
        for turn in self.turns:
            while not turn.over:
                pieces.append(turn.advance(1, now_ns))
        return b"".join(pieces)

    def row(self) -> TruthRow:
        """The truth, when it is over or the client has left."""
        if self.asked.generates and (self.asked.stream or self.over):
            self.truth.tokens = self._out
        if self.over:
            self.truth.end = self.asked.end
        return self.truth

    def _stream(self, turn: Turn, tokens: int) -> bytes:
        answer, choice = self._answer, turn.choice
        if tokens == 1:
            data = chunk(answer.token(turn.out - 1, choice))
        else:
            data = b"".join(
                [chunk(answer.token(index, choice)) for index in range(turn.out - tokens, turn.out)]
            )
        if not self._out:
            opening = answer.opening()
            data = STREAM_HEAD + (chunk(opening) if opening else b"") + data
        if not turn.over:
            return data
        end = answer.ending(choice)
        if self._left:
            return data + chunk(end) if end else data
        return data + chunk(end + answer.closing()) + LAST_CHUNK
