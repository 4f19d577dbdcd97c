"""When the steps of a fault come: pure, no clock."""

from __future__ import annotations

import zlib

import msgspec
import pytest

from loadstone.sim.api import chat
from loadstone.sim.faults import FAULTS, Script, hostile
from loadstone.sim.faults.steps import Send, Wait
from loadstone.sim.http import Request
from loadstone.sim.options import SimOptions

EVEN_MS = [70, 90, 110, 130, 150]
"""Where the tokens of a good answer come."""


def script(tokens: int = 5, **more: object) -> Script:
    call = {
        "model": "sim",
        "stream": True,
        "max_tokens": tokens,
        "messages": [{"role": "user", "content": "hi"}],
    }
    body = msgspec.json.encode({**call, **more})
    asked = chat.ask(body, SimOptions()).plain(tokens)
    answer = chat.ChatAnswer(asked, "chatcmpl-1", 7)
    return Script(asked, answer, Request("POST", "/v1/chat/completions", {}, body, True), True, 1)


def token_times_ms(name: str, given: Script | None = None) -> list[float]:
    """When each token comes, after the request."""
    at_ns, times = 0, []
    for step in FAULTS[name].play(given or script()) or ():
        if isinstance(step, Wait):
            assert step.ns >= 0
            at_ns += step.ns
        elif isinstance(step, Send):
            times += [at_ns / 1e6] * step.tokens
    return times


@pytest.mark.parametrize(
    "name",
    [
        "crlf", "cr", "mixed-line-ends", "no-space", "many-spaces", "comments", "multi-line-data", "pretty-json",
        "escaped-json", "bom", "blank-lines", "field-without-colon", "one-byte-segments", "one-byte-chunks",
        "chunk-extensions", "unfinished-last-event", "unfinished-done", "length-of-stream", "not-json", "reasoning",
        "reasoning-only", "tool-calls", "pings", "delta-null", "choices-null", "usage-late", "usage-in-last",
        "hidden-first-token", "done-missing", "done-then-open", "http-201", "http-103", "closes-idle", "http-1-0",
        "gzip", "br", "deep-json", "big-event", "escapes-text",
    ],
)  # fmt: skip
def test_five_tokens_the_first_after_70_ms_the_others_20_ms_apart(name: str) -> None:
    assert token_times_ms(name) == EVEN_MS


@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("events-cut", [75, 95, 115, 135, 155]),
        ("utf8-cut", [75, 95, 115, 135, 155]),
        ("one-segment", [150] * 5),
        ("role-first", [370, 390, 410, 430, 450]),
        ("coarse", [70] * 5 + [90] * 5),
        ("one-token", [70]),
        ("fewer-tokens", [70, 90]),
        ("more-tokens", [*EVEN_MS, 170, 190, 210]),
        ("two-choices", list(range(70, 251, 20))),
        ("json-for-stream", [150] * 5),
        ("gzip-bursts", [150] * 5),
        ("eof", [70, 90, 110]),
        ("reset", [70, 90, 110]),
        ("stall", [70, 90, 110]),
        ("error-mid", [70, 90, 110]),
        ("usage-without-text", []),
        ("http-500", []),
        ("never-replies", []),
    ],
)
def test_unless_the_fault_says_otherwise(name: str, times: list[float]) -> None:
    assert token_times_ms(name) == times


def test_fewer_tokens_when_fewer_are_asked_for() -> None:
    assert token_times_ms("crlf", script(2)) == [70, 90]
    assert token_times_ms("reset", script(2)) == [70, 90]


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
@pytest.mark.parametrize("tokens", [1, 2])
def test_every_fault_can_play_a_short_answer(fault: object, tokens: int) -> None:
    assert isinstance(fault, type(FAULTS["crlf"]))
    for number, step in enumerate(fault.play(script(tokens)) or ()):
        assert not isinstance(step, Wait) or step.ns >= 0
        if number > 50:
            return


def test_the_last_usage_comes_half_a_second_after_the_last_token() -> None:
    steps = list(FAULTS["usage-late"].play(script(stream_options={"include_usage": True})) or ())
    late, last = steps[-2:]
    assert late == Wait(500_000_000)
    assert isinstance(last, Send)
    assert b'"usage":{' in last.data


def test_the_bomb_is_sound_gzip_of_a_comment_and_a_good_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "BOMB_BYTES", 3 * hostile.BOMB_PIECE_BYTES)
    sent = b"".join(step.data for step in FAULTS["gzip-bomb"].play(script()) or () if isinstance(step, Send))
    chunks, rest = [], sent.partition(b"\r\n\r\n")[2]
    while rest != b"0\r\n\r\n":
        size, _, rest = rest.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    text = zlib.decompress(b"".join(chunks), wbits=31)  # checks length and checksum too
    assert text.startswith(b":" + b"a" * 3 * hostile.BOMB_PIECE_BYTES + b"\n\ndata: {")
    assert text.endswith(b"data: [DONE]\n\n")
    assert len(sent) < len(text) / 300
