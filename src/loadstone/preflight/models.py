"""Which models a server lists."""

from __future__ import annotations

from typing import Any

import msgspec

from loadstone.config import EndpointConfig, secrets
from loadstone.errors import TargetError
from loadstone.load.reach import Reached
from loadstone.preflight import question
from loadstone.preflight.question import Refused
from loadstone.read.answer import Answer
from loadstone.wire.redirect import FOLLOWED

PATH = "/v1/models"
_FOLLOWED_BY_GET = FOLLOWED | {301, 302, 303}
_UNLISTED = (404, 405)
"""What a server says that lists no models."""


def first_model(reached: Reached, endpoint: EndpointConfig) -> str:
    """The first model that the server lists. Raises `TargetError`, with the server's own words where it refuses."""
    where = reached.target.url
    name = next(iter(listed(reached, endpoint)), None)
    if name is None:
        raise TargetError(f"{where} does not list its models at {PATH}. Name the model with --model.")
    if endpoint.api_key and endpoint.api_key in name:
        raise TargetError(
            f"{where} lists a model whose name holds the key it was sent. Name the model with --model."
        )
    if "," in name:
        raise TargetError(
            f"{where} lists a model whose name holds a comma, which parts the names of several here; "
            "have the server call it by another one."
        )
    return name


def listed(reached: Reached, endpoint: EndpointConfig) -> list[str]:
    """Every model that the server lists. Raises `TargetError` when it answers anything but a success."""
    answer = _listing(reached, endpoint)
    if question.is_success(answer):
        return _names(answer.body)
    hidden = secrets(endpoint)
    where, said = reached.target.url, question.said(answer, hidden)
    if answer.status not in _UNLISTED and (advice := question.advice(reached, answer, hidden)):
        raise Refused(
            f"{where}: the request for its models to {PATH} failed: {said}. {advice}", answer.status
        )
    raise Refused(
        f"{where} does not list its models at {PATH} ({said}). Name the model with --model.", answer.status
    )


def _names(body: bytes) -> list[str]:
    try:
        found: Any = msgspec.json.decode(body)["data"]
        return [name for entry in found if isinstance(name := entry["id"], str)]
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError):
        return []


def _listing(reached: Reached, endpoint: EndpointConfig) -> Answer:
    """What the server answers when it is asked for its models; a redirect within it is followed once."""
    data = question.asked(reached, endpoint, reached.target.path(PATH), "preflight")

    def send(data: bytes) -> Answer:
        try:
            exchanged = question.exchange(reached, endpoint, data, question.patience_s(endpoint))
        except TargetError as error:
            raise TargetError(
                f"{error} It was asked for its models; --model NAME saves the question."
            ) from None
        return question.document(exchanged, endpoint)

    answer = send(data)
    onward = question.onward(reached, data, answer, _FOLLOWED_BY_GET)
    return send(onward) if onward else answer
