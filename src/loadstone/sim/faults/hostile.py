"""A server that means harm, or is broken in ways that look like it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from loadstone.sim.faults.family import Family, Play
from loadstone.sim.faults.script import DONE, FIRST_NS, GAP_NS, Beat, Script, chunked, ended, head, sse
from loadstone.sim.faults.statuses import error, refusal
from loadstone.sim.faults.steps import Close, Send, Steps, Wait
from loadstone.sim.http import LAST_CHUNK, chunk

FAMILY = Family("Hostile")
PIECE_BYTES = 250_000
PIECE_NS = 5_000_000
"""Endless data comes in pieces of this size, one in this time: 50 MB/s, which lets other connections live."""
BIG_BYTES = 5_000_000
TINY_EVENTS = 100_000
BOMB_BYTES = 1 << 30
BOMB_PIECE_BYTES = 16 << 20
NESTING = 100_000
ESCAPES = "\x1b[2J\x1b[31mred\x1b]0;title\x07 \u202etxt.exe\u202c \u200bzero\u2066 \r\n\x00 \x9b1m"
"""Clears a terminal, colours it, names its window, turns the direction of writing; control characters of all kinds."""
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>&lt;b&gt;\"'"
FORMULA = '=HYPERLINK("http://elsewhere.invalid","a"),+1+1,-1,@SUM(1),"\n;"'


# ---- the head and the framing ----


def _head(start: bytes, rest: bytes = b"") -> Play:
    """After 70 ms these bytes instead of an answer, and the close."""

    def play(script: Script) -> Steps:
        yield Wait(FIRST_NS)
        yield Send(start + rest)
        yield Close()

    return play


_FIELDS = b"Content-Type: application/json\r\n"
for _name, _does, _start in (
    (
        "status-000",
        "Answers with the status 000.",
        b"HTTP/1.1 000 Nothing\r\n%bContent-Length: 2\r\n\r\n{}" % _FIELDS,
    ),
    ("http-0-9", "Answers without any head.", b"data: hello\n\ndata: [DONE]\n\n"),
    ("http-2", "Answers as HTTP/2 in words.", b"HTTP/2 200\r\n%bContent-Length: 2\r\n\r\n{}" % _FIELDS),
    ("binary", "Answers with bytes of another protocol.", bytes(range(256)) * 4),
    (
        "header-control",
        "Puts an escape sequence into a header field.",
        head(b"200 OK", _FIELDS + b"X-Name: a\x1b[2J\x00\r\nContent-Length: 2\r\n") + b"{}",
    ),
    (
        "header-long",
        "Sends one header field of 1 MB.",
        head(b"200 OK", b"X-Long: %b\r\n%bContent-Length: 2\r\n" % (b"a" * 1_000_000, _FIELDS)) + b"{}",
    ),
    (
        "length-negative",
        "Says `Content-Length: -5`.",
        head(b"200 OK", _FIELDS + b"Content-Length: -5\r\n") + b"{}",
    ),
    (
        "length-absurd",
        "Says a Content-Length of 30 digits.",
        head(b"200 OK", _FIELDS + b"Content-Length: %b\r\n" % (b"9" * 30)) + b"{}",
    ),
    (
        "length-twice",
        "Says two Content-Lengths that differ.",
        head(b"200 OK", _FIELDS + b"Content-Length: 2\r\nContent-Length: 3\r\n") + b"{}",
    ),
    (
        "length-and-chunks",
        "Says a Content-Length and chunks at once.",
        head(b"200 OK", _FIELDS + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n")
        + chunk(b"{}")
        + b"0\r\n\r\n",
    ),
):
    FAMILY.add(_name, _does, "protocol-error", _head(_start))


def _bad_chunk(size: bytes) -> Play:
    """After three tokens a chunk with this size."""

    def play(script: Script) -> Steps:
        yield from script.started()
        yield Wait(GAP_NS)
        yield Send(size + b"\r\n" + sse(script.text(" lost")) + b"\r\n0\r\n\r\n")
        yield Close()

    return play


FAMILY.add(
    "chunk-overflow", "Says a chunk size of 18 hexadecimal digits, after three tokens.", "protocol-error",
    _bad_chunk(b"f" * 18), needs="stream",
)  # fmt: skip
FAMILY.add(
    "chunk-size-bad", "Says a chunk size that is no number, after three tokens.", "protocol-error",
    _bad_chunk(b"-x"), needs="stream",
)  # fmt: skip


def _endless(opening: Callable[[Script], bytes], piece: bytes) -> Play:
    """The opening, then this piece again and again."""

    def play(script: Script) -> Steps:
        yield Wait(FIRST_NS)
        yield Send(opening(script))
        while True:
            yield Wait(PIECE_NS)
            yield Send(piece)

    return play


def _filled(line: bytes) -> bytes:
    return line * (PIECE_BYTES // len(line))


FAMILY.add(
    "endless-head", "Sends header fields without end.", "protocol-error",
    _endless(lambda script: script.head()[:-2], _filled(b"X-More: and more\r\n")),
)  # fmt: skip
FAMILY.add(
    "endless-body", "Sends a body without end that is no stream of events.", "too-large",
    _endless(lambda script: head(b"200 OK", b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n"), chunk(_filled(b"more and "))),
)  # fmt: skip
FAMILY.add(
    "endless-event", "Sends one event without end: a line that never breaks.", "too-large",
    _endless(lambda script: script.head() + chunk(b"data: "), chunk(_filled(b"more and "))), needs="stream",
)  # fmt: skip
FAMILY.add(
    "endless-comments", "Sends comments without end, 50 MB a second.", "too-large",
    _endless(lambda script: script.head(), chunk(_filled(b": more\n\n"))), needs="stream",
)  # fmt: skip


@FAMILY.fault("too-large", needs="stream")
def endless_tokens(script: Script) -> Steps:
    """Sends tokens without end, 50 MB a second."""
    event = sse(script.text(" on"))
    count = PIECE_BYTES // len(event)
    yield from script.started()
    while True:
        yield Wait(PIECE_NS)
        yield Send(chunk(event * count), count)


# ---- compression ----

_GZIP = b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"
_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"


def _compressed(script: Script, beats: list[Beat]) -> Steps:
    """The beats, each compressed and flushed, in chunks."""
    press = zlib.compressobj(wbits=31)
    pressed = [
        beat._replace(data=press.compress(beat.data) + press.flush(zlib.Z_SYNC_FLUSH)) for beat in beats
    ]
    encoded = script.head(fields=_GZIP)
    return chunked(encoded, ended(pressed, press.flush()))


@FAMILY.fault("ok", needs="stream")
def gzip(script: Script) -> Steps:
    """Compresses the stream although the client did not allow it, every token flushed."""
    return _compressed(script, script.beats())


@FAMILY.fault("ok", needs="stream")
def gzip_bursts(script: Script) -> Steps:
    """Compresses the stream and flushes nothing before the end, so that all tokens come at once."""
    beats = script.beats()
    press = zlib.compressobj(wbits=31)
    data = b"".join(press.compress(beat.data) for beat in beats) + press.flush()
    encoded = script.head(fields=_GZIP)
    return chunked(encoded, [Beat(script.span_ns, data, script.asked.output_tokens)])


@FAMILY.fault("protocol-error", needs="stream")
def gzip_broken(script: Script) -> Steps:
    """Says that the stream is compressed with gzip, which it is not."""
    return chunked(script.head(fields=_GZIP), script.beats())


@FAMILY.fault("protocol-error", needs="stream")
def br(script: Script) -> Steps:
    """Says that the stream is compressed with br, an encoding the client cannot undo."""
    return chunked(
        script.head(fields=b"Content-Encoding: br\r\nTransfer-Encoding: chunked\r\n"), script.beats()
    )


@FAMILY.fault("too-large", needs="stream")
def gzip_bomb(script: Script) -> Steps:
    """Sends 1 MB that become a comment of 1 GB when decompressed, and then a good stream."""
    press = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    piece = b"a" * BOMB_PIECE_BYTES
    opening = press.compress(b":") + press.flush(zlib.Z_FULL_FLUSH)
    packed = press.compress(piece) + press.flush(zlib.Z_FULL_FLUSH)  # the same wherever it comes
    crc = zlib.crc32(b":")
    yield Wait(FIRST_NS)
    yield Send(script.head(fields=_GZIP) + chunk(_GZIP_HEAD + opening))
    for _ in range(BOMB_BYTES // BOMB_PIECE_BYTES):
        yield Wait(PIECE_NS)
        yield Send(chunk(packed))
        crc = zlib.crc32(piece, crc)
    rest = b"\n\n" + b"".join(beat.data for beat in script.beats())
    size = 1 + BOMB_BYTES + len(rest)
    trailer = struct.pack("<II", zlib.crc32(rest, crc), size % 2**32)
    yield Send(chunk(press.compress(rest) + press.flush() + trailer) + LAST_CHUNK, script.asked.output_tokens)


# ---- events ----


def _instead(event: Callable[[Script], bytes]) -> Play:
    """A good stream with one more event before its end."""

    def play(script: Script) -> Steps:
        *others, last = script.beats()
        return script.stream([*others, last._replace(data=event(script) + last.data)])

    return play


FAMILY.add(
    "deep-json", "Sends an event whose JSON nests 100,000 levels deep.", "protocol-error",
    _instead(lambda script: b'data: {"choices":%b%b}\n\n' % (b"[" * NESTING, b"]" * NESTING)), needs="stream",
)  # fmt: skip
FAMILY.add(
    "nan", "Sends an event with NaN and Infinity as numbers.", "protocol-error",
    _instead(lambda script: b'data: {"choices":[],"usage":{"prompt_tokens":NaN,"completion_tokens":-Infinity}}\n\n'),
    needs="stream",
)  # fmt: skip
FAMILY.add(
    "wrong-types", "Sends an event of JSON whose fields have types of another kind.", "protocol-error",
    _instead(lambda script: b'data: {"choices":"none","usage":[]}\n\n'), needs="stream",
)  # fmt: skip


@FAMILY.fault("ok", needs="stream")
def big_event(script: Script) -> Steps:
    """Brings its second token with a text of 5 MB."""
    first, *others = script.words()
    big = script.text(" " + "b" * (BIG_BYTES - 1))
    return script.stream(script.beats([first, big, *others[1:]]))


@FAMILY.fault("ok", needs="stream")
def tiny_events(script: Script) -> Steps:
    """Sends 100,000 tokens in tiny events at once."""
    content = {"delta": {"content": "a"}} if script.asked.chat else {"text": "a"}
    tiny = sse({"choices": [content]}) * TINY_EVENTS
    closing = script.closing(usage=script.usage(TINY_EVENTS))
    return script.stream([Beat(FIRST_NS, tiny + closing, TINY_EVENTS)])


@FAMILY.fault("ok", needs="stream")
def invalid_utf8(script: Script) -> Steps:
    """Has bytes in its text that are not UTF-8."""
    events = [script.text("@@"), *script.words()[1:]]
    return script.stream(
        beat._replace(data=beat.data.replace(b'"@@"', b'" \xff\xfe\xc3\x28\xed\xa0\x80"'))
        for beat in script.beats(events)
    )


# ---- words that are not to be taken at their word ----


def _saying(text: str) -> Play:
    """A good stream whose first token is this text."""
    return lambda script: script.stream(script.beats([script.text(text), *script.words()[1:]]))


for _name, _does, _text in (
    ("escapes-text", "Puts terminal escapes and direction marks into its text.", ESCAPES),
    ("html-text", "Puts HTML and script into its text.", SCRIPT),
):
    FAMILY.add(_name, _does, "ok", _saying(_text), needs="stream")


@FAMILY.fault("ok", needs="stream")
def path_ids(script: Script) -> Steps:
    """Names its answer and its model like paths, `../../../tmp/x`."""
    named = {"id": "../../../tmp/x", "model": "/dev/null\x00;rm -rf", "system_fingerprint": "..\\..\\x"}
    return script.stream(script.beats([{**word, **named} for word in script.words()]))


def _error(status: int, message: str) -> Play:
    return lambda script: refusal(status, error(status, message))


for _name, _does, _outcome, _play in (
    (
        "escapes-error",
        "Answers 500 with terminal escapes and direction marks in the message.",
        "http-server-error",
        _error(500, ESCAPES),
    ),
    (
        "html-error",
        "Answers 500 with HTML and script in the message.",
        "http-server-error",
        _error(500, SCRIPT),
    ),
    (
        "csv-error",
        "Answers 400 with a formula of a spreadsheet as the message.",
        "http-invalid",
        _error(400, FORMULA),
    ),
    ("big-error", "Answers 500 with a message of 5 MB.", "http-server-error", _error(500, "e" * BIG_BYTES)),
):
    FAMILY.add(_name, _does, _outcome, _play)


@FAMILY.fault("in-band-error", needs="stream")
def escapes_in_band(script: Script) -> Steps:
    """Sends terminal escapes and direction marks as an error in the stream, after three tokens."""
    return script.stream(
        [*script.begun(), Beat(GAP_NS, sse({"error": {"message": ESCAPES, "code": SCRIPT}}) + DONE)]
    )


@FAMILY.fault("http-auth")
def echo_key(script: Script) -> Steps:
    """Answers 401 and repeats the Authorization header in the message."""
    given = script.request.headers.get("authorization", "none")
    return refusal(401, error(401, f"wrong key: {given}"))
