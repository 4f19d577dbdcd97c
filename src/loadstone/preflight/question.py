"""One question to a server beside the load: its head, its answer, and what a refusal means.

What a server says is told to people, so nothing here passes on a secret, a control character or a page of words.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Container, Mapping

from loadstone import registry
from loadstone.config import EndpointConfig, hide, secrets
from loadstone.errors import TargetError
from loadstone.load import once
from loadstone.load.once import Exchange
from loadstone.load.reach import CERTIFICATE_WANTED, Reached, connect, of_tls
from loadstone.read.answer import Answer, read_answer
from loadstone.read.hidden import without
from loadstone.terminal import fit, printable
from loadstone.wire import request
from loadstone.wire.redirect import moved
from loadstone.wire.url import shown

REFUSED_FOR_GOOD = (401, 403, 407)
"""A server that is still starting does not answer like this."""
WORDS_CELLS = 160
_REDIRECTS = range(300, 400)
_ADVICE: Mapping[int, str] = {
    401: "Give a valid key with --api-key.",
    403: "Give a valid key with --api-key.",
    404: "Check --url, --endpoint-type and --model.",
    405: "Check --url and --endpoint-type.",
    407: "Give user and password: --proxy http://USER:PASSWORD@HOST:PORT.",
}


class Refused(TargetError):
    """The server has answered, and its answer is a refusal of this status."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


def asked(
    reached: Reached,
    endpoint: EndpointConfig,
    path: str,
    request_id: str,
    *,
    method: str = "GET",
    streaming: bool = False,
    body: bytes = b"",
) -> bytes:
    """A whole request to `path`, with the key and the headers of the run."""
    head = request.head(
        reached.target,
        path,
        streaming=streaming,
        api_key=endpoint.api_key,
        headers=endpoint.headers,
        method=method,
        proxy=reached.proxy,
    )
    return head + request.tail(request_id, body)


def exchange(
    reached: Reached,
    endpoint: EndpointConfig,
    data: bytes,
    timeout_s: float,
    ended: Callable[[bytes], bool] | None = None,
) -> Exchange:
    """Sends a whole request on a connection of its own. Raises `TargetError` when nothing is answered."""
    where = reached.target.url
    with connect(reached, endpoint) as sock:
        try:
            exchanged = once.exchange(sock, data, timeout_s, ended)
        except ssl.SSLError as error:
            raise TargetError(f"{where}: {of_tls(error, agreed=True)}") from None
        except ConnectionError as error:
            advice = f" {CERTIFICATE_WANTED}" if reached.tls else ""
            raise TargetError(f"{where}: {error.strerror or error}.{advice}") from None
        except OSError as error:
            raise TargetError(f"{where}: {error.strerror or error}.") from None
    if not exchanged.raw:
        raise TargetError(f"{where} closed the connection without an answer.")
    return exchanged


def read(exchanged: Exchange, endpoint: EndpointConfig, *, streaming: bool) -> Answer:
    """The meaning of an answer. What is wrong with one will be told, perhaps cut short: nothing secret may be in it
    by then, but for its headers, since a redirect is followed as it is.
    """
    module = registry.load("endpoints", endpoint.type)
    answer = read_answer(exchanged.raw, module, streaming=streaming, complete=exchanged.complete)
    if answer.fault is None:
        return answer
    raw = without([exchanged.raw], secrets(endpoint))[0]
    cleaned = read_answer(raw, module, streaming=streaming, complete=exchanged.complete)
    return cleaned._replace(headers=answer.headers)


def document(exchanged: Exchange, endpoint: EndpointConfig) -> Answer:
    """The answer to what is no request of a run: a success as it came."""
    module = registry.load("endpoints", endpoint.type)
    answer = read_answer(exchanged.raw, module, streaming=False, complete=exchanged.complete)
    return answer if is_success(answer) else read(exchanged, endpoint, streaming=False)


def is_success(answer: Answer) -> bool:
    """Whether the status says so."""
    return 200 <= answer.status < 300


def onward(reached: Reached, data: bytes, answer: Answer, followed: Container[int]) -> bytes | None:
    """The request `data` to where the answer redirects it within the server; None unless it does."""
    location = answer.headers.get("location", "").encode("latin-1", "replace")
    if answer.status not in followed or not location:
        return None
    target = reached.target
    return moved(data, b"\r\nlocation: " + location, target.authority, tls=target.tls)


def said(answer: Answer, hidden: list[str]) -> str:
    """What is wrong with an answer, in the server's own words."""
    return printable(hide(answer.fault or "", hidden)).rstrip(".")


def patience_s(endpoint: EndpointConfig) -> float:
    """How long a request of the run may take to begin its answer."""
    return min(endpoint.timeout_s, endpoint.first_token_timeout_s)


def advice(reached: Reached, answer: Answer, hidden: list[str]) -> str:
    """What to do about a refusal; empty when its status says nothing about that."""
    if answer.status in _REDIRECTS and (location := answer.headers.get("location")):
        to = fit(shown(printable(hide(location, hidden))), WORDS_CELLS)
        return f"It leads to {to}; give that address with --url and --endpoint."
    if answer.status in (502, 503, 504) and reached.proxy:
        return "Can the proxy reach the server?"
    return _ADVICE.get(answer.status, "")
