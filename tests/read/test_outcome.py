from __future__ import annotations

import pytest

from loadstone.endpoints import Reply
from loadstone.read.answer import Answer
from loadstone.read.outcome import FAULT_CHARS, OUTCOMES, decide, kind, sentence
from loadstone.recording import WireEnd

NOTHING = Answer(0, {})
PARTIAL = Answer(200, {}, Reply(text=["a"]), streamed=True)
STOPPED = Answer(200, {}, Reply(text=["a"], finish_reason="stop"), streamed=True)
LENGTH = Answer(200, {}, Reply(text=["a"], finish_reason="length", ended=True), streamed=True)
MARKED = Answer(200, {}, Reply(text=["a"], ended=True), streamed=True)
EMPTY = Answer(200, {}, Reply(), streamed=True)
EMPTY_STOPPED = Answer(200, {}, Reply(finish_reason="stop", ended=True), streamed=True)
EMPTY_MARKED = Answer(200, {}, Reply(ended=True), streamed=True)
FAILED = Answer(200, {}, Reply(text=["a"], error="oom (500)", finish_reason="stop", ended=True))
REFUSED = Answer(503, {}, excerpt="busy")
BROKEN = Answer(200, {}, Reply(text=["a"], finish_reason="stop"), fault="an event is not JSON")

COMPLETE, CLOSED, RESET = WireEnd.COMPLETE, WireEnd.CLOSED, WireEnd.RESET


@pytest.mark.parametrize(
    ("end", "answer", "outcome"),
    [
        (COMPLETE, STOPPED, "ok"),
        (COMPLETE, MARKED, "ok"),
        (COMPLETE, LENGTH, "ok-length"),
        (COMPLETE, EMPTY_STOPPED, "ok"),
        (CLOSED, STOPPED, "ok"),
        (RESET, LENGTH, "ok-length"),
        (COMPLETE, PARTIAL, "truncated"),
        (CLOSED, PARTIAL, "truncated"),
        (CLOSED, EMPTY, "truncated"),
        (CLOSED, NOTHING, "truncated"),
        (RESET, PARTIAL, "reset"),
        (RESET, NOTHING, "reset"),
        (COMPLETE, REFUSED, "http-error"),
        (CLOSED, REFUSED, "http-error"),
        (RESET, REFUSED, "http-error"),
        (COMPLETE, FAILED, "in-band-error"),
        (RESET, FAILED, "in-band-error"),
        (WireEnd.TIMEOUT_TOTAL, FAILED, "in-band-error"),
        (COMPLETE, EMPTY, "protocol-error"),
        (COMPLETE, EMPTY_MARKED, "protocol-error"),
        (COMPLETE, NOTHING, "protocol-error"),
        (COMPLETE, BROKEN, "protocol-error"),
        (RESET, BROKEN, "protocol-error"),
        (WireEnd.PROTOCOL, NOTHING, "protocol-error"),
        (WireEnd.CONNECT, NOTHING, "connect"),
        (WireEnd.TIMEOUT_FIRST_TOKEN, NOTHING, "timeout-first-token"),
        (WireEnd.TIMEOUT_TOTAL, PARTIAL, "timeout-total"),
        (WireEnd.CUT, PARTIAL, "cut"),
        (WireEnd.CLIENT, STOPPED, "client-fault"),
    ],
)
def test_the_one_outcome(end, answer, outcome):
    name, fault = decide(end, "", answer)
    assert name == outcome
    assert (fault is None) is (outcome in {"ok", "ok-length"})
    assert name in OUTCOMES


@pytest.mark.parametrize("end", list(WireEnd))
@pytest.mark.parametrize("answer", [NOTHING, PARTIAL, STOPPED, EMPTY, FAILED, REFUSED, BROKEN])
def test_every_flight_has_an_outcome_and_every_failure_a_reason(end, answer):
    name, fault = decide(end, "", answer)
    assert name in OUTCOMES
    assert fault is None if name in {"ok", "ok-length"} else fault


@pytest.mark.parametrize(
    ("end", "words", "answer", "fault"),
    [
        (WireEnd.CONNECT, "Connection refused", NOTHING, "Connection refused"),
        (RESET, "", PARTIAL, "the connection was reset"),
        (COMPLETE, "", REFUSED, "HTTP 503: busy"),
        (COMPLETE, "", FAILED, "oom (500)"),
        (COMPLETE, "", BROKEN, "an event is not JSON"),
        (WireEnd.TIMEOUT_TOTAL, "no end within 5 s", PARTIAL, "no end within 5 s"),
    ],
)
def test_the_fault_says_whose_words_they_are(end, words, answer, fault):
    assert decide(end, words, answer)[1] == fault


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\n two\t three", "one two three"),
        ("\x1b[31mred\x1b[0m\x07", "[31mred [0m"),
        ("a\u202eb\u200bc\x9b", "a b c"),
        ("x" * FAULT_CHARS, "x" * FAULT_CHARS),
        ("x" * 9999, "x" * (FAULT_CHARS - 1) + "…"),
        ("", ""),
    ],
)
def test_a_fault_is_one_harmless_line(text, line):
    assert sentence(text) == line


def test_faults_that_differ_in_numbers_and_ids_are_of_one_kind():
    assert (
        kind("request 17 of 0a4f-99 failed")
        == kind("request 18 of ffe1-3 failed")
        == "request # of #-# failed"
    )
    assert kind("bad face") == "bad face"
