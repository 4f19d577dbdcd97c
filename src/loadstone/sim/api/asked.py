"""A request, reduced to what decides its answer. Whatever the path, the engine and the spelling see only this."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from loadstone.sim.keys import Keys, Tokens, of_prompt

Kind = Literal["chat", "completions", "responses", "embeddings", "rerank", "score"]
Finish = Literal["stop", "length", "tool_calls"]


class Call(NamedTuple):
    """A tool that is called: its name, and the argument that gets the answer's words."""

    name: str
    argument: str


class Choice(NamedTuple):
    """One of the answers asked for: what it goes on from, how long it is, where in the passage it begins."""

    prompt: Tokens
    output_tokens: int
    start_word: int = 0
    finish: Finish = "stop"
    reasoning_tokens: int = 0
    """How many of the output tokens, from the first on, are reasoning."""
    stop: str | None = None
    """The stop string at which it ended."""
    chars: int | None = None
    """How much of the text behind the reasoning comes before that string."""
    call: Call | None = None
    draw: int = 0
    """A number of what was asked and which of the answers this is: all that is left to chance goes by it."""


class Asked(NamedTuple):
    """What a request asks for."""

    kind: Kind
    model: str
    choices: tuple[Choice, ...]
    """One for each sequence in the engine: the choices of `n`, or the texts to be embedded or ranked."""
    prompt_tokens: int
    limit_tokens: int = 1
    """The longest answer asked for."""
    stream: bool = False
    usage_at_end: bool = False
    usage_in_chunks: bool = False
    stops: tuple[str, ...] = ()
    logprobs: int | None = None
    """Alternatives shown for each token; None: no probabilities."""
    reasoning_field: str = "reasoning_content"
    priority: int = 0
    block_size: int = 0
    """Tokens of one KV block; 0: nothing is shared."""
    details: Any = None
    """What only the spelling of this kind knows."""

    @property
    def chat(self) -> bool:
        """Whether the answer has the form of chat."""
        return self.kind == "chat"

    @property
    def generates(self) -> bool:
        """Whether the answer is text."""
        return self.kind in ("chat", "completions", "responses")

    @property
    def end(self) -> Literal["stop", "length", "done"]:
        """How the whole of it ends, if it comes to that: at the limit when one of the choices does."""
        if not self.generates:
            return "done"
        return "length" if any(choice.finish == "length" for choice in self.choices) else "stop"

    @property
    def output_tokens(self) -> int:
        """Output tokens of all choices."""
        return sum(choice.output_tokens for choice in self.choices)

    @property
    def start_word(self) -> int:
        """Where the first choice begins in the passage."""
        return self.choices[0].start_word

    def plain(self, tokens: int) -> Asked:
        """The same request with one short answer that ends by itself: so many tokens, or fewer if fewer are asked for."""
        first = self.choices[0]
        short = Choice(first.prompt, min(tokens, self.limit_tokens), first.start_word, draw=first.draw)
        return self._replace(choices=(short,), usage_in_chunks=False, stops=(), logprobs=None)

    def keys(self) -> list[Keys | tuple[()]]:
        """The keys of the KV blocks of each choice."""
        if not self.block_size:
            return [()] * len(self.choices)
        found: list[Keys | tuple[()]] = []
        prompt: Tokens | None = None
        known: list[int] = []
        for choice in self.choices:
            if choice.prompt is not prompt:
                prompt, known = choice.prompt, of_prompt(choice.prompt, self.block_size)
            found.append(Keys(choice.prompt, known, choice.start_word, choice.output_tokens, self.block_size))
        return found
