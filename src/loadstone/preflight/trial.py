"""One small request to one server for one model, as the run will send it.

One attempt, with three exceptions: a redirect within the server is followed once, as the run does; a refusal that
names the limit is answered with a greater one, once; and a field that the server names in its refusal, and that the
answers can do without (`refusal.OPTIONAL`), is left out, here and in the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from loadstone import registry
from loadstone.config import EndpointConfig, hide, secrets
from loadstone.endpoints import Ask
from loadstone.folder import PreflightLog
from loadstone.load.reach import Reached
from loadstone.plan.turn import Turn
from loadstone.preflight import question, refusal
from loadstone.preflight.question import WORDS_CELLS, Refused
from loadstone.read.answer import Answer
from loadstone.terminal import fit, printable
from loadstone.wire.redirect import FOLLOWED
from loadstone.wire.url import Target

ENOUGH_TOKENS = 16
"""As many as any server wants to be asked for."""


def ask_of(endpoint: EndpointConfig) -> Ask:
    """What every request of a run asks for, of the first model."""
    return Ask(
        model=next(iter(endpoint.models), ""),
        streaming=endpoint.streaming,
        extra=endpoint.extra_inputs,
        legacy_max_tokens=endpoint.legacy_max_tokens,
        usage_per_chunk=endpoint.usage_per_chunk,
    )


def path_of(endpoint: EndpointConfig, target: Target) -> str:
    """The path of every request to a server."""
    own = registry.load("endpoints", endpoint.type).PATH
    return target.path(own if endpoint.path is None else endpoint.path)


class Answered(NamedTuple):
    """One request and what came back."""

    body: dict[str, Any]
    answer: Answer
    latency_ns: int
    path: str
    """Where the answer came from: the path asked, or the one it redirected to."""


class Tried(NamedTuple):
    """How a trial ended: well. `ask` is what was asked for in the end, with which model."""

    request_id: str
    content_tokens: int
    ask: Ask
    answer: Answer
    latency_ns: int
    notices: list[str]

    def log(self, target: int, model: str) -> PreflightLog:
        """What the run log keeps of it."""
        usage = self.answer.reply.usage if self.answer.reply else None
        return PreflightLog(
            request_id=self.request_id,
            http_status=self.answer.status,
            latency_ms=self.latency_ns / 1e6,
            content_tokens=self.content_tokens,
            prompt_tokens=usage.prompt_tokens if usage else None,
            target=target,
            model=model,
        )


class Trial(NamedTuple):
    """A request about to be tried on a server. `who` is the server as the subject of a sentence; `strict`: no field is
    left out.
    """

    reached: Reached
    endpoint: EndpointConfig
    path: str
    turn: Turn
    who: str = "The server"
    strict: bool = False

    def __call__(self, ask: Ask, request_id: str) -> Tried:
        """Sends it and reads the answer. Raises `TargetError` with the server's own words."""
        notices = []
        tokens, too_few = 1, ""
        while not _is_good((answered := self._ask(ask, request_id, tokens)).answer):
            words = fit(question.said(answered.answer, self._hidden), WORDS_CELLS)
            if tokens < ENOUGH_TOKENS and refusal.names_the_limit(answered.answer):
                tokens, too_few = ENOUGH_TOKENS, words
                continue
            field = self._refused_field(answered, ask, words)
            notices.append(
                f"{self.who} does not take {field} ({words}): it is left out of every request, {refusal.OPTIONAL[field]}."
            )
            ask, too_few = refusal.without_field(ask, field), ""
        if too_few:
            notices.append(
                f"{self.who} does not answer when it may send one token only ({too_few}): the preflight asked for {tokens}."
            )
        notices += self._about(answered)
        content_tokens = self.turn.isl_tokens or 0
        return Tried(request_id, content_tokens, ask, answered.answer, answered.latency_ns, notices)

    @property
    def _hidden(self) -> list[str]:
        return secrets(self.endpoint)

    def _ask(self, ask: Ask, request_id: str, tokens: int) -> Answered:
        """One request for so many tokens and its answer; a redirect within the server is followed once."""
        module = registry.load("endpoints", self.endpoint.type)
        body = module.body(
            [msgspec.structs.replace(self.turn, max_tokens=tokens)], refusal.limited(ask, tokens)
        )
        data = question.asked(
            self.reached,
            self.endpoint,
            self.path,
            request_id,
            method="POST",
            streaming=ask.streaming,
            body=msgspec.json.encode(body),
        )
        ended = module.ended if ask.streaming else None

        def send(data: bytes, path: str) -> Answered:
            patience_s = question.patience_s(self.endpoint)
            exchanged = question.exchange(self.reached, self.endpoint, data, patience_s, ended)
            answer = question.read(exchanged, self.endpoint, streaming=ask.streaming)
            return Answered(body, answer, exchanged.latency_ns, path)

        first = send(data, self.path)
        onward = question.onward(self.reached, data, first.answer, FOLLOWED)
        if onward is None:
            return first
        path = onward.split(b" ", 2)[1].decode("ascii").removeprefix(self.reached.target.origin)
        return send(onward, path)

    def _refused_field(self, answered: Answered, ask: Ask, words: str) -> str:
        """The field to leave out after a refusal. Raises `Refused` when there is none, or none may be."""
        answer, where = answered.answer, self.reached.target.url
        field = refusal.refused_field(answer, answered.body, ask)
        if field is None:
            advice = question.advice(self.reached, answer, self._hidden)
            raise Refused(
                f"{where}: the preflight request to {self.path.partition('?')[0]} for model {printable(ask.model)!r} failed: "
                f"{question.said(answer, self._hidden)}. {advice}".rstrip(),
                answer.status,
            )
        if self.strict:
            raise Refused(
                f"{where}: the server does not take {field} ({words}). Do not ask for it, or do without --strict: "
                f"then it is left out of every request, {refusal.OPTIONAL[field]}.",
                answer.status,
            )
        return field

    def _about(self, answered: Answered) -> Iterator[str]:
        """What a reader has to know of a good answer."""
        if answered.path != self.path:
            yield _redirect_notice(self.who, self.reached.target, self.path, answered.path, self._hidden)
        if _is_merely_empty(answered.answer):
            yield "The answer to the preflight holds no token that is shown."


def _redirect_notice(who: str, target: Target, path: str, onward: str, hidden: list[str]) -> str:
    """What a reader has to know of a redirect that was followed, and the flags that save it."""
    old, _, old_query = path.partition("?")
    new, _, new_query = onward.partition("?")
    other = new_query not in ("", old_query)
    shown_new = fit(hide(new, hidden), WORDS_CELLS)
    if new.startswith(f"{target.prefix}/"):
        flags = f"--endpoint {shown_new.removeprefix(target.prefix)}"
    else:
        flags = f"--url {target.origin} --endpoint {shown_new}"
    return (
        f"{who} redirects {old} to {shown_new}{' with another query' if other else ''}, so every request is sent "
        f"twice; give {flags}{' and that query' if other else ''}."
    )


def _is_good(answer: Answer) -> bool:
    return answer.fault is None or _is_merely_empty(answer)


def _is_merely_empty(answer: Answer) -> bool:
    """Whether the answer is over, and held nothing: the one token it may have had was of a kind without text."""
    reply = answer.reply
    good = reply is not None and bool(reply.finish_reason) and not reply.brought and not reply.error
    return good and question.is_success(answer)
