"""However a response is cut into reads it means the same; wherever it breaks off it is told honestly."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone.read.outcome import SUCCESSES
from loadstone.recording import WireEnd
from loadstone.wire.http1 import frame

CUTS = st.lists(st.floats(0, 1, exclude_max=True), max_size=8)


def cut(raw, places):
    """`raw` in pieces, cut at shares of its length; some may be empty."""
    bounds = [0, *sorted(int(place * len(raw)) for place in places), len(raw)]
    return [raw[start:stop] for start, stop in itertools.pairwise(bounds)]


def test_whole_it_is_what_it_is(canonical, judged):
    for raw in (canonical.raw(), canonical.chunked(), canonical.head(b"\r\n") + canonical.body):
        assert judged([raw], canonical.endpoint)[0] == canonical.outcome


def test_every_cut_in_two_and_byte_by_byte(canonical, judged):
    raw = canonical.chunked()
    meant = judged([raw], canonical.endpoint)
    for at in range(len(raw) + 1):
        assert judged([raw[:at], raw[at:]], canonical.endpoint) == meant
    assert judged([raw[at : at + 1] for at in range(len(raw))], canonical.endpoint) == meant


@settings(max_examples=25)
@given(CUTS, st.integers(1, 300))
def test_cuts_in_many_and_chunks_of_any_length(canonical, judged, places, step):
    meant = judged([canonical.raw()], canonical.endpoint)
    name, answer = judged(cut(canonical.chunked(step), places), canonical.endpoint)
    assert (name, answer.reply, answer.ends) == (meant[0], meant[1].reply, meant[1].ends)


@pytest.mark.parametrize("end", [WireEnd.RESET, WireEnd.CLOSED, WireEnd.TIMEOUT_IDLE, WireEnd.CUT])
def test_broken_off_anywhere_it_is_a_success_only_with_all_its_text(canonical, judged, end):
    raw = canonical.chunked()
    whole = judged([raw], canonical.endpoint)[1].reply
    for at in range(len(raw)):
        name, answer = judged([raw[:at]], canonical.endpoint, end)
        if name in SUCCESSES:
            assert (answer.reply.text, answer.reply.tool_calls) == (whole.text, whole.tool_calls)
            assert canonical.outcome in SUCCESSES
        elif answer.reply is not None and whole is not None:
            assert "".join(whole.text).startswith("".join(answer.reply.text)) or whole.choices > 1


REASON = b'"finish_reason":"'


def says_its_end(part, whole):
    """Whether `part` of a body holds its end mark, or the reason for which each of its choices ended."""
    return b"[DONE]" in part or part.count(REASON) == whole.count(REASON) > 0


def test_broken_off_and_closed_without_a_length_it_is_a_success_only_once_it_said_its_end(canonical, judged):
    head, body = canonical.head(b"\r\n"), canonical.body
    for at in range(len(body)):
        name, _ = judged([head + body[:at]], canonical.endpoint)
        if says_its_end(body[:at], body):
            assert name in SUCCESSES | {canonical.outcome, "truncated", "protocol-error"}
        else:
            assert name in {canonical.outcome, "empty", "truncated", "protocol-error", "not-sse"} - SUCCESSES


def test_broken_off_in_its_head_it_is_none(canonical, judged):
    head = canonical.head(b"\r\n")
    names = {judged([head[:at]], canonical.endpoint)[0] for at in range(len(head))}
    assert not names & SUCCESSES


def test_every_event_is_dated_by_the_read_that_completed_it(canonical):
    body = canonical.body
    for at in range(len(body)):
        response = frame([canonical.head(b"\r\n") + body[:at], body[at:]])
        assert response.arrived == [at, len(body)]
