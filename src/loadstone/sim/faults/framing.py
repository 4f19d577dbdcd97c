"""Streams that are right but framed in unusual ways, and two that are not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from loadstone.sim.faults.family import Family
from loadstone.sim.faults.script import DONE, Beat, Script, chunked, raw, sse
from loadstone.sim.faults.steps import Send, Steps, Wait
from loadstone.sim.http import chunk

FAMILY = Family("Framing")
CUT_NS = 5_000_000
"""How long after the first part of an event its second one comes."""


@FAMILY.fault("ok", needs="stream")
def crlf(script: Script) -> Steps:
    """Ends its lines with CR LF."""
    return script.spoilt(lambda data: data.replace(b"\n", b"\r\n"))


@FAMILY.fault("ok", needs="stream")
def cr(script: Script) -> Steps:
    """Ends its lines with CR alone."""
    return script.spoilt(lambda data: data.replace(b"\n", b"\r"))


@FAMILY.fault("ok", needs="stream")
def mixed_line_ends(script: Script) -> Steps:
    """Ends every event's line with CR LF and the blank one with LF, or the other way round."""
    ends = [b"\r\n\n", b"\n\r\n"]
    return script.stream(
        beat._replace(data=beat.data.replace(b"\n\n", ends[at % 2])) for at, beat in enumerate(script.beats())
    )


@FAMILY.fault("ok", needs="stream")
def no_space(script: Script) -> Steps:
    """Writes `data:{...}`, without a space after the colon."""
    return script.spoilt(lambda data: data.replace(b"data: ", b"data:"))


@FAMILY.fault("ok", needs="stream")
def many_spaces(script: Script) -> Steps:
    """Writes `data:   {...}`, with three spaces after the colon."""
    return script.spoilt(lambda data: data.replace(b"data: ", b"data:   "))


@FAMILY.fault("ok", needs="stream")
def comments(script: Script) -> Steps:
    """Mixes comments, `id:`, `retry:` and `event: message` in; the first comment comes 30 ms before the first token."""
    early = Beat(40_000_000, b": ping\n\nretry: 3000\n\n")
    first, *others = script.beats()
    beats = [early, first._replace(pause_ns=first.pause_ns - early.pause_ns), *others]
    mixed = b": ping\nid: 7\nevent: message\ndata: "
    return script.stream(beat._replace(data=beat.data.replace(b"data: ", mixed)) for beat in beats)


@FAMILY.fault("ok", needs="stream")
def multi_line_data(script: Script) -> Steps:
    """Spreads the JSON of every event over several `data:` lines."""
    return script.spoilt(lambda data: data.replace(b',"', b',\ndata: "'))


@FAMILY.fault("ok", needs="stream")
def pretty_json(script: Script) -> Steps:
    """Writes its JSON with a space after every colon and comma."""
    return script.spoilt(lambda data: re.sub(rb'"([:,])(?! )', rb'"\1 ', data))


@FAMILY.fault("ok", needs="stream")
def escaped_json(script: Script) -> Steps:
    r"""Writes every character of its text as a `\u` escape."""

    def escaped(event: bytes, text: str) -> bytes:
        spelt = "".join(f"\\u{ord(character):04x}" for character in text)
        return event.replace(msgspec.json.encode(text), f'"{spelt}"'.encode())

    return script.stream(
        beat._replace(data=escaped(beat.data, script.word(at))) for at, beat in enumerate(script.beats())
    )


@FAMILY.fault("ok", needs="stream")
def bom(script: Script) -> Steps:
    """Begins the stream with a byte order mark."""
    first, *others = script.beats()
    return script.stream([first._replace(data=b"\xef\xbb\xbf" + first.data), *others])


@FAMILY.fault("ok", needs="stream")
def blank_lines(script: Script) -> Steps:
    """Puts more blank lines between its events, and before the first."""
    return script.spoilt(lambda data: b"\n\n" + data.replace(b"\n\n", b"\n\n\n\n"))


@FAMILY.fault("ok", needs="stream")
def field_without_colon(script: Script) -> Steps:
    """Adds fields that have no colon (`event`, `id`) or no meaning to every event."""
    return script.spoilt(lambda data: data.replace(b"data: ", b"event\nid\nx-trace\nx-span: 1\ndata: "))


@FAMILY.fault("ok")
def one_byte_segments(script: Script) -> Steps:
    """Sends every byte of the answer in a segment of its own."""
    for step in script.well():
        if not isinstance(step, Send):
            yield step
            continue
        for at in range(len(step.data)):
            yield Send(step.data[at : at + 1], step.tokens if at + 1 == len(step.data) else 0)


@FAMILY.fault("ok", needs="stream")
def one_byte_chunks(script: Script) -> Steps:
    """Sends every byte of the stream in an HTTP chunk of its own."""

    def bytewise(data: bytes) -> bytes:
        return b"".join(chunk(data[at : at + 1]) for at in range(len(data)))

    return chunked(script.head(), script.beats(), bytewise)


@FAMILY.fault("ok", needs="stream")
def chunk_extensions(script: Script) -> Steps:
    """Gives its HTTP chunks an extension each, and the last one a trailer."""

    def extended(data: bytes) -> bytes:
        return b"%x;name=value\r\n%b\r\n" % (len(data), data)

    return chunked(script.head(), script.beats(), extended, b"0\r\nX-Trailer: 1\r\n\r\n")


@FAMILY.fault("ok", needs="stream")
def events_cut(script: Script) -> Steps:
    """Cuts every token's event within its text and sends the second part 5 ms after the first."""
    return script.stream(_cut(script.beats(), lambda data: _TEXT.search(data)))


@FAMILY.fault("ok", needs="stream")
def utf8_cut(script: Script) -> Steps:
    """Speaks in characters of several bytes and cuts each token's event within one, 5 ms long."""
    events = [script.text(text) for text in (" f\u00fcr", " \u77f3", " \U0001f9ed", " n\u00e9", " \u78c1")]
    beats = script.beats(events[: script.asked.output_tokens])
    return script.stream(_cut(beats, lambda data: _LEADING_BYTE.search(data)))


_TEXT = re.compile(rb'"(?:content|text)":" ')
_LEADING_BYTE = re.compile(rb"[\xc0-\xff]")


def _cut(beats: Iterable[Beat], place: Callable[[bytes], re.Match[bytes] | None]) -> Iterator[Beat]:
    """Every beat in two parts; the first ends with what `place` finds, the second brings the token."""
    late_ns = 0
    for beat in beats:
        found = place(beat.data)
        at = found.end() if found else 0
        yield Beat(beat.pause_ns - late_ns, beat.data[:at])
        yield Beat(CUT_NS, beat.data[at:], beat.tokens)
        late_ns = CUT_NS


@FAMILY.fault("ok", needs="stream")
def unfinished_last_event(script: Script) -> Steps:
    """Forgets `[DONE]` and the blank line after the event before it, then ends the stream."""
    last = script.closing().removesuffix(DONE).removesuffix(b"\n\n")
    return script.stream(script.beats(closing=last))


@FAMILY.fault("ok", needs="stream")
def unfinished_done(script: Script) -> Steps:
    """Ends the stream right after `data: [DONE]`, without any line end."""
    return script.stream(script.beats(closing=script.closing().removesuffix(b"\n\n")))


@FAMILY.fault("ok")
def one_segment(script: Script) -> Steps:
    """Sends the whole answer in one segment, when it is complete."""
    data, tokens = b"", 0
    for step in script.well():
        if isinstance(step, Wait):
            yield step
        elif isinstance(step, Send):
            data, tokens = data + step.data, tokens + step.tokens
    yield Send(data, tokens)


@FAMILY.fault("ok", needs="stream")
def length_of_stream(script: Script) -> Steps:
    """Frames the stream by a Content-Length instead of chunks."""
    beats = script.beats()
    length = sum(len(beat.data) for beat in beats)
    return raw(script.head(fields=b"Content-Length: %d\r\n" % length), beats)


@FAMILY.fault("protocol-error", needs="stream")
def not_json(script: Script) -> Steps:
    """Puts `data: not-json` between good events."""
    *others, last = script.beats()
    return script.stream([*others, last._replace(data=b"data: not-json\n\n" + last.data)])


@FAMILY.fault("protocol-error", needs="stream")
def cut_json(script: Script) -> Steps:
    """Ends an event in the middle of its JSON, and goes on with the next."""
    broken = sse(script.text(" lost"))[:-20] + b"\n\n"
    first, *others = script.beats()
    return script.stream([first._replace(data=broken + first.data), *others])
