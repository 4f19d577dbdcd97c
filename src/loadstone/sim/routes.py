"""Which request gets which answer: a table of paths, and the refusals around it. Pure."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from http import HTTPStatus
from typing import NoReturn

import msgspec

from loadstone import __version__
from loadstone.sim.api.asked import Asked
from loadstone.sim.api.errors import ApiError
from loadstone.sim.api.models import models
from loadstone.sim.api.spell import PATHS, Ask
from loadstone.sim.api.tokenize import detokenize, tokenize
from loadstone.sim.http import Request
from loadstone.sim.options import SimOptions
from loadstone.sim.vocabulary import Vocabulary

Route = Callable[[Request, SimOptions, int], Asked | bytes]
"""(request, options, start of the server in Unix seconds) -> an answer to generate, or a JSON body at once."""


def _generation(ask: Ask) -> Route:
    return lambda request, options, _: ask(request.body, options)


_VOCABULARY = Vocabulary()
HOOKS = ("/reset_prefix_cache", "/start_profile", "/stop_profile")
"""What a server can be asked to do; the loop does it, and notes in its truth that it was asked to."""
ROUTES: dict[str, tuple[str, Route]] = {
    **{path: ("POST", _generation(ask)) for path, ask in PATHS.items()},
    "/tokenize": ("POST", lambda request, options, _: tokenize(request.body, options, _VOCABULARY)),
    "/detokenize": ("POST", lambda request, options, _: detokenize(request.body, options, _VOCABULARY)),
    "/v1/models": ("GET", lambda _, options, created: models(options, created)),
    "/health": ("GET", lambda *_: b"{}"),
    "/version": ("GET", lambda *_: msgspec.json.encode({"version": __version__})),
    **{path: ("POST", lambda *_: b"{}") for path in HOOKS},
}
METRICS = "/metrics"
"""The loop's own: a page of what it counts."""
OPEN = frozenset({"/health", "/version"})
"""Paths that need no key."""


def route(request: Request, options: SimOptions, created: int) -> Asked | bytes:
    """What to do with a request. Raises `ApiError` for every kind of refusal."""
    if request.path not in OPEN:
        _authorize(request, options)
    if request.path not in ROUTES:
        _refuse(
            HTTPStatus.NOT_FOUND,
            "NotFoundError",
            f"there is no {request.path}; there are: {', '.join((*ROUTES, METRICS))}",
        )
    method, answer = ROUTES[request.path]
    if request.method != method:
        _refuse(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowedError", f"{request.path} takes {method} only")
    return answer(request, options, created)


def _authorize(request: Request, options: SimOptions) -> None:
    if options.api_key is None:
        return
    given = request.headers.get("authorization", "").encode()
    if not hmac.compare_digest(given, f"Bearer {options.api_key}".encode()):
        _refuse(HTTPStatus.UNAUTHORIZED, "AuthenticationError", "the API key is missing or wrong")


def _refuse(status: HTTPStatus, kind: str, message: str) -> NoReturn:
    raise ApiError(status, kind, message)
