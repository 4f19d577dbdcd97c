"""The fast way to understand a response: a whole stream decoded at once, as lines of JSON.

One rule: the same answers as `read.answer`, or none. A stream has the plain form when it is nothing but events
`data: {...}` and the end mark, without carriage returns. Its newlines are then exactly the ends of its events (JSON
has none inside a string), so taking out the `data: ` between them leaves one JSON object a line. An object
cannot spill over its line: `}` followed by `{` is no JSON. Whatever deviates is read event by event.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from loadstone.endpoints import Endpoint
from loadstone.endpoints._error import NOT_JSON
from loadstone.read.answer import STREAM, Answer, understand
from loadstone.wire.http1 import Response

_FIRST = b"data: {"
_NEXT = b"\n\ndata: "
_NEXT_OBJECT = b"}\n\ndata: {"
_NEWLINE = 10
SLICE_BYTES = 256 << 10
"""At least so much of a body is decoded in one call, and not much more."""
_LAST_NEWLINES = 2
"""Those after the end mark."""


class _Events:
    """The events of a body in the plain form up to `stop`, decoded slice by slice; `count` is how many there were."""

    def __init__(self, body: bytes, stop: int, lines: Callable[[bytes], list[Any]]) -> None:
        self.count = 0
        self._body = body
        self._stop = stop
        self._lines = lines

    def __iter__(self) -> Iterator[Any]:
        start, stop = len(_FIRST) - 1, self._stop
        while start < stop:
            end = self._body.find(_NEXT, start + SLICE_BYTES, stop)
            end = stop if end < 0 else end
            events = self._lines(self._body[start:end].replace(_NEXT, b"\n"))
            self.count += len(events)
            yield from events
            start = end + len(_NEXT)


class Reader:
    """Understands the responses of one endpoint."""

    def __init__(self, endpoint: Endpoint, streaming: bool) -> None:
        self._endpoint = endpoint
        self._streaming = streaming
        self._lines = msgspec.json.Decoder[Any](endpoint.Event).decode_lines
        self._last = b"}" + _NEXT + endpoint.END_MARK + b"\n\n"

    def __call__(self, response: Response, complete: bool) -> Answer:
        """The meaning of a framed response; `complete` as in `read.answer`."""
        answer = self._plain(response)
        if answer is None:
            answer = understand(response, self._endpoint, streaming=self._streaming, complete=complete)
        return answer

    def _plain(self, response: Response) -> Answer | None:
        """The answer of a stream in the plain form; None for any other response."""
        body = response.body
        if not (body.startswith(_FIRST) and body.endswith(self._last) and self._endpoint.END_MARK):
            return None
        if (
            response.media_type != STREAM
            or not 200 <= response.status < 300
            or response.fault
            or b"\r" in body
        ):
            return None
        newlines = np.flatnonzero(np.frombuffer(body, np.uint8) == _NEWLINE)
        count = body.count(_NEXT_OBJECT) + 1
        if len(newlines) != 2 * count + _LAST_NEWLINES:
            return None
        events = _Events(body, len(body) + 1 - len(self._last), self._lines)
        try:
            reply = self._endpoint.fold(events)
        except NOT_JSON:
            return None
        if events.count != count:
            return None
        reply.ended = True
        ends = array("q", (newlines[1 : 2 * count : 2] + 1).tobytes())
        return Answer(
            response.status, response.headers, reply, ends, True, body=body, compressed=response.compressed
        )
