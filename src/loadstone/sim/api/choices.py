"""Answers that are lists of choices: what chat and completions have in common. `token` is all that runs once a token."""

from __future__ import annotations

from typing import Any

import msgspec

from loadstone.sim.api import speech
from loadstone.sim.api.answer import DONE, Answer, event
from loadstone.sim.api.asked import Asked, Choice
from loadstone.sim.words import WORDS, WORDS_BYTES

_QUIET = b',"logprobs":null,"finish_reason":null}]}\n\n'


class Choices(Answer):
    """An answer with choices; the subclasses say how a choice is spelt."""

    kind = ""
    """What `object` says of a whole answer."""
    chunk_kind = ""
    """And of an event."""

    def __init__(self, asked: Asked, answer_id: str, created: int) -> None:
        super().__init__(asked, answer_id, created)
        self.facts = {
            "id": answer_id,
            "object": self.chunk_kind,
            "created": created,
            "model": asked.model,
        }
        """The fields that every event of the stream has."""
        self._begin = msgspec.json.encode(self.facts)[:-1] + b',"choices":[{"index":'
        calls = any(choice.call for choice in asked.choices)  # one that is all reasoning has none
        self._simple = not (asked.stops or calls or asked.usage_in_chunks or asked.logprobs is not None)
        self._done_tokens = [0] * len(asked.choices)

    # ---- what the subclasses say ----

    def content(self, text: str) -> dict[str, Any]:
        """Text, as a choice of an event has it."""
        raise NotImplementedError

    def reasoning(self, text: str) -> dict[str, Any]:
        """The same for reasoning."""
        raise NotImplementedError

    def call(self, number: int, index: int, arguments: str) -> dict[str, Any]:
        """A piece of a called tool's arguments; `index`: its token behind the reasoning."""
        raise NotImplementedError

    def nothing(self) -> dict[str, Any]:
        """The content of the event that tells why a choice ended."""
        raise NotImplementedError

    def words(self, thinks: bool) -> tuple[bytes, bytes]:
        """What stands around a word in the content of a choice."""
        raise NotImplementedError

    def message(self, number: int, choice: Choice) -> dict[str, Any]:
        """The content of a whole choice."""
        raise NotImplementedError

    def logprobs(self, number: int, first: int, last: int) -> dict[str, Any] | None:
        """The log probabilities of the tokens from `first` up to before `last`; None: not asked for."""
        raise NotImplementedError

    # ---- a stream ----

    def token(self, index: int, choice: int = 0) -> bytes:
        """The event of the output token `index` of a choice."""
        said = self.asked.choices[choice]
        if not self._simple:
            return self._token(said, index, choice)
        before, after = self.words(index < said.reasoning_tokens)
        word = WORDS_BYTES[(said.start_word + index) % len(WORDS)]
        return b"data: %b%d%b%b%b%b" % (self._begin, choice, before, word, after, _QUIET)

    def _token(self, said: Choice, index: int, number: int) -> bytes:
        """The same with all that an event can have."""
        piece = speech.piece(said, self.asked.stops, index)
        if index < said.reasoning_tokens:
            content = self.reasoning(piece)
        elif said.call:
            content = self.call(number, index - said.reasoning_tokens, piece)
        else:
            content = self.content(piece)
        data = self.event(content, None, number, self.logprobs(number, index, index + 1))
        if self.asked.usage_in_chunks:
            self._done_tokens[number] = index + 1
            data["usage"] = self.usage(sum(self._done_tokens))
        return event(data)

    def ending(self, choice: int = 0) -> bytes:
        """Why a choice ended."""
        said = self.asked.choices[choice]
        data = self.event(self.nothing(), said.finish, choice)
        if said.stop is not None:
            data["choices"][0]["stop_reason"] = said.stop
        return event(data)

    def closing(self) -> bytes:
        """The usage if it was asked for, and the end mark."""
        if not self.asked.usage_at_end:
            return DONE
        usage = self.usage(self.asked.output_tokens)
        return event({**self.facts, "choices": [], "usage": usage}) + DONE

    def event(
        self, content: dict[str, Any], finish: str | None = None, index: int = 0, logprobs: Any = None
    ) -> dict[str, Any]:
        """An event of the stream with one choice: its content and why it ended, if it did."""
        choice = {"index": index, **content, "logprobs": logprobs, "finish_reason": finish}
        return {**self.facts, "choices": [choice]}

    # ---- a whole answer ----

    def whole(self) -> bytes:
        """The body of an answer that is not streamed."""
        choices = [self._whole(number, choice) for number, choice in enumerate(self.asked.choices)]
        usage = self.usage(self.asked.output_tokens)
        return msgspec.json.encode({**self.facts, "object": self.kind, "choices": choices, "usage": usage})

    def _whole(self, number: int, choice: Choice) -> dict[str, Any]:
        found = {
            "index": number,
            **self.message(number, choice),
            "logprobs": self.logprobs(number, 0, choice.output_tokens),
            "finish_reason": choice.finish,
        }
        return found if choice.stop is None else {**found, "stop_reason": choice.stop}
