"""The servers of a virtual run: for every address a deployment, and what a request means to it.

One rule: what a request asks for is read from its body by the routes of the real server.
"""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import msgspec

from loadstone import registry
from loadstone.config import EndpointConfig
from loadstone.config.secrets import masked_url
from loadstone.errors import UsageError
from loadstone.load.flight import Flight
from loadstone.plan.store import Row
from loadstone.sim import build
from loadstone.sim.api.asked import Asked
from loadstone.sim.api.errors import ApiError
from loadstone.sim.api.spell import met
from loadstone.sim.deployment import Deployment
from loadstone.sim.engine import TooLong
from loadstone.sim.http import Request
from loadstone.sim.options import SimOptions, from_url
from loadstone.sim.routes import route
from loadstone.sim.sequence import Sequence as Tokens
from loadstone.sim.truth import TruthFile
from loadstone.virtual.moments import NETWORK_US


class Call(Flight):
    """A request in flight: what it asks for, and the sequences that answer it; or the refusal that is on its way."""

    __slots__ = ("asked", "left", "refusal", "sequences")

    def __init__(self, serial: int, row: Row, due_ns: int, target: int) -> None:
        super().__init__(serial, row, due_ns, b"", target)
        self.asked: Asked | None = None
        self.sequences: list[Generated] = []
        """One for each choice of the answer; none where it was refused."""
        self.left = 0
        """Sequences that have not ended."""
        self.refusal: ApiError | None = None


class Generated(Tokens):
    """A sequence of the engine, and the call that it answers."""

    __slots__ = ("call",)

    call: Call | None


class Server(NamedTuple):
    """One address: its engines, and what a request to it is made of beside the body."""

    url: str
    """As it may be shown: without its key."""
    options: SimOptions
    deployment: Deployment[Generated]
    path: str
    headers: dict[str, str]
    truth: TruthFile | None
    way_ns: int = 0
    """What a request needs to come here, and what comes back needs as well."""

    def read(self, body: bytes) -> tuple[Asked, list[Generated]]:
        """What a body asks for, and the sequences to answer it. Raises `ApiError` where the server refuses it."""
        found = route(Request("POST", self.path, self.headers, body, True), self.options, 0)
        if not isinstance(found, Asked) or not found.generates:
            raise UsageError(f"endpoint.path = {self.path!r}: the built-in engine generates nothing there.")
        sequences = _sequences(found)
        try:
            for sequence in sequences:
                self.deployment.check(sequence)
        except TooLong as error:
            raise ApiError(HTTPStatus.BAD_REQUEST, "BadRequestError", f"too long: {error}") from None
        return found, sequences

    def take(self, call: Call, body: bytes) -> None:
        """Begins the answer to a call; where the server refuses it, the refusal is noted in the call."""
        try:
            call.asked, call.sequences = self.read(body)
        except ApiError as error:
            call.refusal = error
            return
        call.left = len(call.sequences)
        for sequence in call.sequences:
            sequence.call = call
            self.deployment.add(sequence)

    def answer(self, body: bytes) -> tuple[Asked, int]:
        """Answers a request on engines that have nothing else to do; what it asks for, and when that is back, in ns.

        Raises `ApiError` where the server refuses it.
        """
        asked, sequences = self.read(body)
        deployment, now = self.deployment, 0
        for sequence in sequences:
            deployment.add(sequence)
        deployment.begin(now)
        while (end_ns := deployment.next_ns) is not None:
            now = end_ns
            deployment.finish(now)
            deployment.begin(now)
        return asked, now + 2 * self.way_ns


def _sequences(asked: Asked) -> list[Generated]:
    """One for each choice; they have the same prompt where it is one text."""
    return [
        Generated(
            len(choice.prompt), choice.output_tokens, keys=keys, priority=asked.priority, draw=choice.draw
        )
        for choice, keys in zip(asked.choices, asked.keys(), strict=True)
    ]


def engines(endpoint: EndpointConfig) -> list[Server]:
    """The servers in the order of their addresses, idle. Raises `UsageError`."""
    return [_server(endpoint, url) for url in endpoint.urls]


def _server(endpoint: EndpointConfig, url: str) -> Server:
    options = from_url(url)
    options = msgspec.structs.replace(options, model=",".join(endpoint.models) or options.model)
    path = registry.load("endpoints", endpoint.type).PATH if endpoint.path is None else endpoint.path
    deployment: Deployment[Generated] = build.deployment(options)
    return Server(
        masked_url(url),
        met(options, deployment.engines[0].limits.max_model_len),
        deployment,
        path.partition("?")[0],
        _headers(endpoint),
        _truth(options.truth),
        round((NETWORK_US if options.network_us is None else options.network_us) * 1000),
    )


def _headers(endpoint: EndpointConfig) -> dict[str, str]:
    """The headers of every request, as the server reads them; its key is looked for in them."""
    given = (header.partition(":") for header in endpoint.headers)
    key = {"authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    return key | {name.strip().lower(): value.strip() for name, _, value in given}


def _truth(path: str | None) -> TruthFile | None:
    try:
        return TruthFile(Path(path)) if path else None
    except OSError as error:
        raise UsageError(f"truth = {path}: {error.strerror}; name a file that can be written.") from None
