"""Refusals: every way in which a request is not answered, and how a body is read. No request raises anything else."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, NoReturn, TypeVar

import msgspec

from loadstone.sim.options import SimOptions

C = TypeVar("C")


class ApiError(Exception):
    """A request that is refused, with the status and the words of the refusal."""

    def __init__(self, status: HTTPStatus, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.param = param

    def body(self) -> bytes:
        """The error as the API spells it."""
        facts = {"message": self.message, "type": self.kind, "param": self.param, "code": int(self.status)}
        return msgspec.json.encode({"error": facts})


def refuse(message: str, param: str | None = None) -> NoReturn:
    """Refuses a request that asks for what cannot be done."""
    raise ApiError(HTTPStatus.BAD_REQUEST, "BadRequestError", message, param)


def decode(decoder: msgspec.json.Decoder[C], body: bytes) -> C:
    """A body as its type. Raises `ApiError` with what is wrong, and where."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        refuse(str(error))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        refuse(f"the body is not JSON: {error}")


def known_model(name: str | None, options: SimOptions) -> str:
    """The model that answers: the one named, the first one when none is. Raises `ApiError`."""
    if name is None:
        return options.models[0] if options.models else ""
    if name not in options.models:
        raise ApiError(HTTPStatus.NOT_FOUND, "NotFoundError", f"The model `{name}` does not exist.", "model")
    return name


def unsupported(name: str, value: Any) -> NoReturn:
    """Refuses a field that this server does not play."""
    shown = msgspec.json.encode(value).decode(errors="replace")
    shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
    refuse(f"{name} = {shown}: this server does not support it; leave it out", name)
