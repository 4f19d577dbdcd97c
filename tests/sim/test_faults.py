"""Every fault over a real socket: its bytes are those of its steps, and they are what its name says."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import httptools
import msgspec
import pytest

from loadstone.read.outcome import OUTCOMES
from loadstone.sim.api import chat
from loadstone.sim.faults import FAMILIES, FAULTS, Fault, Script
from loadstone.sim.faults.steps import Close, Die, Hold, Reset, Send, Step, Wait
from loadstone.sim.faulty import FaultyServer
from loadstone.sim.http import Request
from loadstone.sim.options import SimOptions
from loadstone.sim.truth import TruthRow, read_truth
from loadstone.wire.sse import Parser

HORIZON_NS = 800_000_000
MOST_BYTES = 7_000_000
"""So much of a fault is looked at; the endless ones have no end."""
CHAT = "/v1/chat/completions"
KEY = "Bearer very-secret"
ASK = {
    "model": "sim", "stream": True, "max_tokens": 16, "stream_options": {"include_usage": True},
    "messages": [{"role": "user", "content": "hello"}],
}  # fmt: skip
CREATED = 7
REQUEST_FAULTS = [fault for fault in FAULTS.values() if not fault.whole_server]


def body(**more: Any) -> bytes:
    return msgspec.json.encode({**ASK, **more})


def post(data: bytes, path: str = CHAT, request_id: str = "mine") -> bytes:
    fields = f"Authorization: {KEY}\r\nX-Request-ID: {request_id}\r\nContent-Length: {len(data)}\r\n"
    return f"POST {path} HTTP/1.1\r\n{fields}\r\n".encode() + data


HEALTH = b"GET /health HTTP/1.1\r\n\r\n"


def asking(fault: Fault) -> dict[str, Any]:
    """The request that gets the fault."""
    return {**ASK, "stream": fault.name != "stream-for-json"}


def script(asked: dict[str, Any] = ASK, query: str = "", first: bool = True) -> Script:
    """What a fault is given for a request."""
    data = msgspec.json.encode(asked)
    spoilt = chat.ask(data, SimOptions()).plain(5)
    answer = chat.ChatAnswer(spoilt, "chatcmpl-0000000000000001", CREATED)
    return Script(spoilt, answer, Request("POST", CHAT, {"authorization": KEY}, data, True, query), first, 1)


class Plan(NamedTuple):
    """The steps of a fault as far as they are looked at."""

    data: bytes
    tokens: int
    last: Step | None
    """The step that ends it; None: it just ends."""
    cut: bool
    """There was more."""


def plan(fault: Fault, given: Script | None = None) -> Plan:
    sent: list[Send] = []
    span_ns = bytes_sent = 0
    for step in fault.play(given or script(asking(fault))) or ():
        if isinstance(step, Close | Reset | Hold | Die):
            return Plan(b"".join(one.data for one in sent), sum(one.tokens for one in sent), step, False)
        span_ns += step.ns if isinstance(step, Wait) else 0
        if span_ns > HORIZON_NS or bytes_sent > MOST_BYTES:
            return Plan(b"".join(one.data for one in sent), sum(one.tokens for one in sent), None, True)
        if isinstance(step, Send):
            sent.append(step)
            bytes_sent += len(step.data)
    return Plan(b"".join(one.data for one in sent), sum(one.tokens for one in sent), None, False)


def unframed(raw: bytes) -> tuple[bytes, bool]:
    """The body, and whether the message is whole; as far as it is HTTP."""
    pieces: list[bytes] = []
    ends: list[bool] = []
    reader = SimpleNamespace(on_body=pieces.append, on_message_complete=lambda: ends.append(True))
    with contextlib.suppress(httptools.HttpParserError):
        httptools.HttpResponseParser(reader).feed_data(raw)
    return b"".join(pieces), bool(ends)


class Seen(NamedTuple):
    """What a client saw of a fault, and what the server says of it."""

    raw: bytes
    end: str
    row: TruthRow

    @property
    def head(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[0]

    @property
    def body(self) -> bytes:
        found, _ = unframed(self.raw)
        return (
            zlib.decompressobj(wbits=31).decompress(found)
            if b"encoding: gzip" in self.head.lower()
            else found
        )

    @property
    def events(self) -> list[Any]:
        """The JSON events of the stream, without the end mark; what is no JSON as bytes."""
        parser = Parser()
        return [
            _json(one.data) for one in (*parser.feed(self.body), *parser.close()) if one.data != b"[DONE]"
        ]

    @property
    def deltas(self) -> list[Any]:
        return [event["choices"][0]["delta"] for event in self.events if event.get("choices")]

    @property
    def text(self) -> str:
        return "".join((delta or {}).get("content") or "" for delta in self.deltas)

    @property
    def words(self) -> int:
        return len(self.text.split())

    @property
    def finishes(self) -> list[str]:
        choices = [choice for event in self.events for choice in event.get("choices") or ()]
        return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]

    @property
    def usages(self) -> list[Any]:
        return [event["usage"]["completion_tokens"] for event in self.events if event.get("usage")]

    @property
    def good(self) -> bool:
        """Five words, one finish, one usage, the end mark."""
        whole = (self.words, self.finishes, self.usages) == (5, ["stop"], [5])
        return whole and b"[DONE]" in self.body and self.row.tokens == 5


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return {"raw": data}


def drive(fault: Fault, folder: Path) -> Seen:
    """Serves the fault to one request and looks at what comes."""
    truth = folder / fault.name
    server = FaultyServer(SimOptions(fault=(fault.name,), truth=str(truth)))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
            sock.sendall(post(body(**asking(fault))))
            raw, end = look(sock, plan(fault))
        row = row_of(truth)
    finally:
        server.stop()
        thread.join()
        server.close()
    return Seen(raw, end, row)


def row_of(truth: Path) -> TruthRow:
    """The one row, once it is there."""
    deadline = time.monotonic() + 20
    while not (rows := read_truth(truth)) and time.monotonic() < deadline:
        time.sleep(0.01)
    [row] = rows
    return row


def look(sock: socket.socket, expected: Plan) -> tuple[bytes, str]:
    """What comes, up to what is expected, and how it ends."""
    raw = receive(sock, len(expected.data))
    if expected.cut:
        return raw, "more"
    if isinstance(expected.last, Hold):
        return raw, "open"
    if expected.last is None:
        sock.sendall(HEALTH)
        return raw, "free" if sock.recv(1000).startswith(b"HTTP/1.1 200 OK") else "busy"
    try:
        return raw, "closed" if sock.recv(1) == b"" else "more"
    except ConnectionResetError:
        return raw, "reset"


def receive(sock: socket.socket, count: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < count and (piece := sock.recv(min(count - len(pieces), 1 << 20))):
        pieces += piece
    return bytes(pieces)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """All faults, each from a server of its own, many at a time."""
    folder = tmp_path_factory.mktemp("truth")
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(24) as pool:
        fixed = SimpleNamespace(time=lambda: CREATED, monotonic_ns=time.monotonic_ns)
        patch.setattr("loadstone.sim.loop.time", fixed)
        found = pool.map(lambda fault: (fault.name, drive(fault, folder)), REQUEST_FAULTS)
        return dict(found)


ENDS = {type(None): "free", Close: "closed", Reset: "reset", Hold: "open"}


@pytest.mark.parametrize("fault", REQUEST_FAULTS, ids=lambda fault: fault.name)
def test_the_server_plays_the_steps_of_a_fault_to_the_byte(seen: dict[str, Seen], fault: Fault) -> None:
    expected, found = plan(fault), seen[fault.name]
    assert found.raw == expected.data
    assert found.end == ("more" if expected.cut else ENDS[type(expected.last)])
    assert found.row.request_id == "mine"
    assert found.row.fault == fault.name
    if not expected.cut:
        assert found.row.end == ("closed" if found.end == "open" else "played")
        assert (found.row.bytes_sent, found.row.tokens) == (len(expected.data), expected.tokens)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_a_fault_says_what_it_does_and_how_a_right_client_calls_it(fault: Fault) -> None:
    assert {fault.outcome_of(streamed=True), fault.outcome_of(streamed=False)} <= OUTCOMES.keys()
    assert fault.unstreamed is None or not fault.needs
    assert fault.does.endswith(".")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fault.name)
    assert fault.needs in ("", "stream", "chat")


def test_no_name_is_used_twice() -> None:
    assert sum(len(family.faults) for family in FAMILIES) == len(FAULTS)


# ---- what each name says ----


def status(number: int, *, holds: bytes = b'{"error":{"message":') -> Callable[[Seen], bool]:
    return lambda seen: seen.raw.startswith(b"HTTP/1.1 %d " % number) and holds in seen.body


def field(line: bytes) -> Callable[[Seen], bool]:
    return lambda seen: line in seen.head.split(b"\r\n")


def before_the_end(piece: bytes) -> Callable[[Seen], bool]:
    return lambda seen: piece in seen.body and seen.words == 5 and seen.body.endswith(b"data: [DONE]\n\n")


def after_three(piece: bytes) -> Callable[[Seen], bool]:
    return lambda seen: (
        seen.words == seen.row.tokens == 3 and piece in seen.body.rpartition(b'finish_reason":null}]}\n\n')[2]
    )


def bad_size(size: bytes) -> Callable[[Seen], bool]:
    """Three tokens, then a chunk of this size that holds a fourth, and the close."""
    return lambda seen: (
        seen.words == seen.row.tokens == 3
        and seen.raw.count(b'\r\n%b\r\ndata: {"id":' % size) == 1
        and seen.raw.endswith(b"\r\n0\r\n\r\n")
        and seen.end == "closed"
    )


def three(end: str) -> Callable[[Seen], bool]:
    """Three tokens, neither finish nor end mark, and this end."""
    return lambda seen: (
        seen.words == seen.row.tokens == 3
        and not seen.finishes
        and b"[DONE]" not in seen.raw
        and not seen.raw.endswith(b"0\r\n\r\n")
        and seen.end == end
    )


def nothing(end: str) -> Callable[[Seen], bool]:
    return lambda seen: not seen.raw and seen.end == end


def usage(claimed: Any) -> Callable[[Seen], bool]:
    return lambda seen: seen.usages == [claimed] and type(seen.usages[0]) is type(claimed) and seen.words == 5


def odd(event: Callable[[Any], bool]) -> Callable[[Seen], bool]:
    """Five odd events among the good ones, one of them first."""
    return lambda seen: (
        sum(map(event, seen.events)) == 5
        and event(seen.events[0])
        and (seen.finishes, seen.row.tokens) == (["stop"], 5)
    )


def good(seen: Seen) -> bool:
    return seen.good


def both(*shows: Callable[[Seen], bool]) -> Callable[[Seen], bool]:
    return lambda seen: all(show(seen) for show in shows)


def body_has(piece: bytes) -> Callable[[Seen], bool]:
    return lambda seen: piece in seen.body


SHOWS: dict[str, Callable[[Seen], bool]] = {
    "crlf": lambda seen: seen.good and not re.search(rb"(?<!\r)\n", seen.body),
    "cr": lambda seen: seen.good and b"\n" not in seen.body and b"\r\r" in seen.body,
    "mixed-line-ends": lambda seen: seen.good and b"}\r\n\ndata" in seen.body and b"}\n\r\ndata" in seen.body,
    "no-space": lambda seen: seen.good and b"data: " not in seen.body,
    "many-spaces": lambda seen: seen.good and not re.search(rb"data:(?!   \S)", seen.body),
    "comments": lambda seen: seen.good and seen.body.startswith(b": ping\n\nretry: 3000\n\n"),
    "multi-line-data": lambda seen: seen.good and b'"sim",\ndata: "choices"' in seen.body,
    "pretty-json": lambda seen: seen.good and b'"model": "sim", "choices": [' in seen.body,
    "escaped-json": lambda seen: seen.good and seen.body.count(rb'"content":"\u0020\u00') == 5,
    "bom": lambda seen: seen.good and seen.body.startswith(b"\xef\xbb\xbfdata: "),
    "blank-lines": lambda seen: seen.good and seen.body.startswith(b"\n\n") and b"}\n\n\n\n" in seen.body,
    "field-without-colon": lambda seen: seen.good and b"event\nid\nx-trace\n" in seen.body,
    "one-byte-segments": good,
    "one-byte-chunks": lambda seen: seen.good and seen.raw.count(b"\r\n1\r\n") == len(seen.body),
    "chunk-extensions": lambda seen: seen.good and b";name=value\r\n" in seen.raw and b"0\r\nX-Trailer" in seen.raw,
    "events-cut": lambda seen: seen.good and seen.raw.count(b'"content":" \r\n') == 5,
    "utf8-cut": lambda seen: seen.text == " für 石 🧭 né 磁" and len(re.findall(rb"[\xc0-\xff]\r\n", seen.raw)) == 5,
    "unfinished-last-event": lambda seen: seen.usages == [5] and seen.body.endswith(b"}") and b"DONE" not in seen.body,
    "unfinished-done": lambda seen: seen.good and seen.body.endswith(b"data: [DONE]"),
    "one-segment": good,
    "length-of-stream": lambda seen: seen.good and b"Content-Length: %d" % len(seen.body) in seen.head,
    "not-json": before_the_end(b"data: not-json\n\n"),
    "cut-json": lambda seen: any("raw" in event for event in seen.events) and seen.row.tokens == 5,
    "role-first": lambda seen: seen.good and seen.deltas[0] == {"role": "assistant", "content": ""},
    "hidden-first-token": lambda seen: (seen.words, seen.usages, seen.row.tokens) == (4, [5], 5),
    "reasoning-content": lambda seen: [*map(list, seen.deltas[1:4])] == [["reasoning_content"]] * 2 + [["content"]],
    "reasoning": lambda seen: [*map(list, seen.deltas[1:4])] == [["reasoning"]] * 2 + [["content"]],
    "reasoning-both": lambda seen: seen.deltas[1]["reasoning"] == seen.deltas[1]["reasoning_content"] != "",
    "reasoning-only": lambda seen: (seen.text, seen.finishes, seen.row.tokens) == ("", ["length"], 5),
    "tool-calls": lambda seen: (seen.text, seen.finishes) == ("", ["tool_calls"])
    and "".join(delta["tool_calls"][0]["function"]["arguments"] for delta in seen.deltas[1:6]) == '{"place": "north"}',
    "tool-calls-null": lambda seen: seen.good and seen.body.count(b'"tool_calls":null') == 5,
    "coarse": lambda seen: (seen.words, len(seen.deltas), seen.usages, seen.row.tokens) == (10, 4, [10], 10),
    "one-token": lambda seen: (seen.words, seen.usages, seen.finishes) == (1, [1], ["stop"]),
    "fewer-tokens": lambda seen: (seen.words, seen.usages, seen.finishes) == (2, [2], ["stop"]),
    "more-tokens": lambda seen: (seen.words, seen.usages, seen.finishes) == (8, [8], ["length"]),
    "spaces": lambda seen: seen.text == " " * 100,
    "two-choices": lambda seen: [event["choices"][0]["index"] for event in seen.events[1:-1]] == [0, 1] * 6
    and (seen.usages, seen.row.tokens) == ([10], 10),
    "content-filter": lambda seen: seen.finishes == ["content_filter"] and seen.words == 5,
    "finish-with-text": lambda seen: seen.good and seen.body.count(b'"finish_reason":""') == 4,
    "pings": lambda seen: seen.good and seen.body.startswith(b'event: ping\ndata: {"type":"ping"}\n\n'),
    "delta-null": odd(lambda event: event.get("choices", []) != [] and event["choices"][0]["delta"] is None),
    "choices-null": odd(lambda event: event.get("choices", []) is None),
    "choices-missing": odd(lambda event: "choices" not in event),
    "usage-null": odd(lambda event: event.get("usage", 0) is None),
    "usage-late": good,
    "usage-in-last": lambda seen: seen.good and '"content"' in json.dumps(seen.events[-2]) and "usage" in seen.events[-2],
    "usage-cumulative": lambda seen: (seen.usages, seen.words) == ([1, 2, 3, 4, 5], 5),
    "usage-missing": lambda seen: (seen.usages, seen.words, seen.finishes) == ([], 5, ["stop"]),
    "usage-without-text": lambda seen: (seen.text, seen.usages, seen.row.tokens) == ("", [5], 0),
    "usage-zero": usage(0),
    "usage-doubled": usage(10),
    "usage-float": usage(5.0),
    "usage-string": usage("5"),
    "usage-bool": usage(True),
    "usage-negative": usage(-5),
    "usage-absurd": usage(10**18),
    "error-first": lambda seen: seen.body.startswith(b'data: {"error":{') and seen.row.tokens == 0,
    "error-mid": after_three(b'data: {"error":{'),
    "error-string": after_three(b'data: {"error":"'),
    "error-event": after_three(b'event: error\ndata: {"message":"'),
    "error-object": after_three(b'data: {"object":"error","message":'),
    "error-bare": after_three(b'{"error":{'),
    "error-json": both(status(200), field(b"Content-Type: application/json")),
    "html": both(status(200, holds=b"<!DOCTYPE html>"), field(b"Content-Type: text/html")),
    "empty": lambda seen: seen.raw.startswith(b"HTTP/1.1 200 ") and seen.body == b"",
    "done-only": lambda seen: seen.body == b"data: [DONE]\n\n",
    "json-for-stream": lambda seen: len(json.loads(seen.body)["choices"][0]["message"]["content"].split()) == 5,
    "stream-for-json": good,
    "done-missing": lambda seen: (seen.words, seen.finishes) == (5, ["stop"]) and b"DONE" not in seen.raw,
    "done-then-open": lambda seen: seen.good and not seen.raw.endswith(b"0\r\n\r\n") and seen.end == "open",
    "done-then-close": lambda seen: seen.good and not seen.raw.endswith(b"0\r\n\r\n") and seen.end == "closed",
    "done-then-reset": lambda seen: seen.good and not seen.raw.endswith(b"0\r\n\r\n") and seen.end == "reset",
    "more-after-done": lambda seen: seen.body.count(b"[DONE]") == 2 and seen.text.endswith(" more"),
    "eof": lambda seen: seen.words == 3 and not seen.finishes and unframed(seen.raw)[1],
    "eof-mid-event": lambda seen: not seen.body.endswith(b"\n") and unframed(seen.raw)[1],
    "reset": three("reset"),
    "close": three("closed"),
    "chunk-cut": lambda seen: seen.words == 3 and not seen.raw.endswith(b"\n") and seen.end == "closed",
    "close-first": nothing("closed"),
    "reset-first": nothing("reset"),
    "close-in-head": lambda seen: seen.end == "closed" and len(seen.raw) > 10 and b"\r\n\r\n" not in seen.raw,
    "stall": three("open"),
    "never-replies": nothing("open"),
    "head-stalls": lambda seen: seen.end == "open" and len(seen.raw) > 10 and b"\r\n\r\n" not in seen.raw,
    "head-only": lambda seen: seen.end == "open" and seen.raw.endswith(b"\r\n\r\n") and seen.body == b"",
    "role-only": lambda seen: seen.end == "open" and seen.deltas == [{"role": "assistant", "content": ""}],
    "drip-head": nothing("more"),
    "drip": three("more"),
    "pings-only": lambda seen: set(seen.body.split(b"\n\n")) == {b": ping", b""} and seen.end == "more",
    "tokens-forever": lambda seen: seen.row.tokens >= 30 and not seen.finishes and seen.end == "more",
    "ignores-close": lambda seen: seen.row.tokens >= 30 and not seen.finishes and seen.end == "more",
    **{f"http-{number}": status(number) for number in (400, 401, 403, 404, 408, 413, 418, 422, 500, 502, 503, 504)},
    "http-429": both(status(429), field(b"Retry-After: 1")),
    "http-429-date": both(status(429), field(b"Retry-After: Fri, 31 Dec 2100 23:59:59 GMT")),
    "http-500-html": both(status(500, holds=b"<html>"), field(b"Content-Type: text/html")),
    "http-503-empty": both(status(503, holds=b""), field(b"Content-Length: 0")),
    **{f"http-{number}": both(good, status(number, holds=b"")) for number in (201, 202, 206)},
    "http-204": lambda seen: seen.raw.startswith(b"HTTP/1.1 204 No Content\r\n") and seen.raw.endswith(b"\r\n\r\n"),
    "http-100": lambda seen: seen.good and seen.raw.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"),
    "http-103": lambda seen: seen.good and seen.raw.count(b"HTTP/1.1 103 Early Hints\r\n") == 2,
    "redirect-307": both(status(307), field(b"Location: /v1/chat/completions?redirected=1")),
    "redirect-308": both(status(308), field(b"Location: /v1/chat/completions?redirected=1")),
    "redirect-302": both(status(302), field(b"Location: /v1/chat/completions?redirected=1")),
    "redirect-loop": both(status(307), field(b"Location: /v1/chat/completions?redirected=1")),
    "redirect-away": both(status(307), field(b"Location: http://elsewhere.invalid/v1/chat/completions")),
    "redirect-nowhere": lambda seen: status(307)(seen) and b"Location" not in seen.raw,
    "connection-close": lambda seen: seen.good and b"Connection: close" in seen.head and seen.end == "closed",
    "closes-idle": lambda seen: seen.good and b"Connection" not in seen.head and seen.end == "closed",
    "closes-reused": good,
    "resets-reused": good,
    "stray-bytes": lambda seen: seen.good and seen.raw.endswith(b"0\r\n\r\nstray bytes\r\n\r\n"),
    "stray-answer": lambda seen: seen.good and b"0\r\n\r\nHTTP/1.1 500 Internal" in seen.raw,
    "http-1-0": lambda seen: seen.good and seen.raw.startswith(b"HTTP/1.0 200 OK") and seen.end == "closed",
    "close-delimited": lambda seen: seen.good and b"chunked" not in seen.head and seen.end == "closed",
    "status-000": lambda seen: seen.raw.startswith(b"HTTP/1.1 000 "),
    "http-0-9": lambda seen: seen.raw.startswith(b"data: hello"),
    "http-2": lambda seen: seen.raw.startswith(b"HTTP/2 200\r\n"),
    "binary": lambda seen: seen.raw.startswith(b"\x00\x01\x02"),
    "header-control": lambda seen: b"X-Name: a\x1b[2J\x00\r\n" in seen.raw,
    "header-long": lambda seen: len(seen.head) > 1_000_000,
    "length-negative": field(b"Content-Length: -5"),
    "length-absurd": field(b"Content-Length: " + b"9" * 30),
    "length-twice": both(field(b"Content-Length: 2"), field(b"Content-Length: 3")),
    "length-and-chunks": both(field(b"Content-Length: 2"), field(b"Transfer-Encoding: chunked")),
    "chunk-overflow": bad_size(b"f" * 18),
    "chunk-size-bad": bad_size(b"-x"),
    "endless-head": lambda seen: len(seen.raw) > MOST_BYTES / 2 and b"\r\n\r\n" not in seen.raw,
    "endless-body": lambda seen: len(seen.body) > MOST_BYTES / 2 and b"\n" not in seen.body,
    "endless-event": lambda seen: len(seen.body) > MOST_BYTES / 2 and b"\n" not in seen.body,
    "endless-comments": lambda seen: len(seen.body) > MOST_BYTES / 2 and b"data" not in seen.body,
    "endless-tokens": lambda seen: seen.row.tokens > 30_000 and b"[DONE]" not in seen.raw,
    "gzip": good,
    "gzip-bursts": lambda seen: seen.good and seen.row.first_sent_ns == seen.row.last_sent_ns,
    "gzip-broken": lambda seen: b"Content-Encoding: gzip" in seen.head and b"data: [DONE]" in seen.raw,
    "br": both(good, field(b"Content-Encoding: br")),
    "gzip-bomb": lambda seen: len(seen.body) > 1000 * len(seen.raw) / 2 and seen.body.startswith(b":aaa"),
    "deep-json": before_the_end(b"[" * 100_000),
    "nan": before_the_end(b'"completion_tokens":-Infinity'),
    "wrong-types": body_has(b'{"choices":"none","usage":[]}'),
    "big-event": lambda seen: len(seen.text) > 5_000_000 and (seen.words, seen.row.tokens) == (5, 5),
    "tiny-events": lambda seen: seen.text == "a" * 100_000 and seen.usages == [100_000] and seen.row.tokens == 100_000,
    "invalid-utf8": body_has(b'" \xff\xfe\xc3\x28\xed\xa0\x80"'),
    "escapes-text": lambda seen: "\x1b[2J" in seen.text and "\u202e" in seen.text and seen.finishes == ["stop"],
    "html-text": lambda seen: "<script>" in seen.text and seen.finishes == ["stop"],
    "path-ids": lambda seen: seen.words == 5 and seen.events[1]["id"] == "../../../tmp/x",
    "escapes-error": lambda seen: status(500)(seen) and "\x1b[2J" in json.loads(seen.body)["error"]["message"],
    "html-error": both(status(500), body_has(b"<script>")),
    "csv-error": both(status(400), body_has(b'"=HYPERLINK(')),
    "big-error": lambda seen: status(500)(seen) and len(seen.body) > 5_000_000,
    "escapes-in-band": lambda seen: seen.row.tokens == 3 and "\x1b[2J" in seen.events[-1]["error"]["message"],
    "echo-key": both(status(401), body_has(KEY.encode())),
}  # fmt: skip


def test_every_fault_has_its_sentence_here() -> None:
    assert SHOWS.keys() == {fault.name for fault in REQUEST_FAULTS}


@pytest.mark.parametrize("name", SHOWS)
def test_the_bytes_are_what_the_name_says(seen: dict[str, Seen], name: str) -> None:
    assert SHOWS[name](seen[name]), seen[name].raw[:3000]
