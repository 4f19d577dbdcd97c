from __future__ import annotations

import pytest

from loadstone.endpoints import Reply, Usage
from loadstone.read.answer import Answer
from loadstone.read.outcome import FAILURES, FAULT_CHARS, OUTCOMES, SUCCESSES, decide, kind, sentence
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
BROKEN = Answer(200, {}, Reply(text=["a"], finish_reason="stop"), streamed=True, fault="an event is not JSON")
DOCUMENT = Answer(200, {}, Reply(text=["a"], finish_reason="stop", ended=True))

COMPLETE, CLOSED, RESET = WireEnd.COMPLETE, WireEnd.CLOSED, WireEnd.RESET


CALLS = Answer(200, {}, Reply(tool_calls=["f"], finish_reason="tool_calls", ended=True), streamed=True)
FILTERED = Answer(200, {}, Reply(text=["a"], finish_reason="content_filter"), streamed=True)
CLAIMED = Answer(200, {}, Reply(usage=Usage(completion_tokens=5)), streamed=True)
FOREIGN = Answer(200, {}, fault="the body is HTML", breach="not-sse")
BOMB = Answer(200, {}, Reply(text=["a"]), fault="longer than 5 bytes", breach="too-large")


@pytest.mark.parametrize(
    ("end", "answer", "outcome"),
    [
        (COMPLETE, STOPPED, "ok"),
        (COMPLETE, MARKED, "ok"),
        (COMPLETE, FILTERED, "ok"),
        (COMPLETE, LENGTH, "ok-length"),
        (COMPLETE, CALLS, "ok-tool-calls"),
        (COMPLETE, EMPTY_STOPPED, "empty"),
        (CLOSED, STOPPED, "ok"),
        (RESET, LENGTH, "ok-length"),
        (RESET, CALLS, "ok-tool-calls"),
        (COMPLETE, PARTIAL, "truncated"),
        (CLOSED, PARTIAL, "reset"),
        (CLOSED, EMPTY, "reset"),
        (CLOSED, NOTHING, "reset"),
        (RESET, PARTIAL, "reset"),
        (RESET, EMPTY, "reset"),
        (RESET, NOTHING, "reset"),
        (COMPLETE, REFUSED, "http-server-error"),
        (CLOSED, REFUSED, "http-server-error"),
        (RESET, REFUSED, "http-server-error"),
        (WireEnd.TIMEOUT_IDLE, REFUSED, "http-server-error"),
        (WireEnd.CUT, REFUSED, "http-server-error"),
        (COMPLETE, FAILED, "in-band-error"),
        (RESET, FAILED, "in-band-error"),
        (WireEnd.TIMEOUT_TOTAL, FAILED, "in-band-error"),
        (WireEnd.CANCELLED, FAILED, "in-band-error"),
        (COMPLETE, EMPTY, "empty"),
        (COMPLETE, CLAIMED, "empty"),
        (COMPLETE, EMPTY_MARKED, "empty"),
        (CLOSED, EMPTY_MARKED, "empty"),
        (COMPLETE, Answer(204, {}), "empty"),
        (COMPLETE, NOTHING, "protocol-error"),
        (COMPLETE, BROKEN, "protocol-error"),
        (RESET, BROKEN, "protocol-error"),
        (WireEnd.PROTOCOL, NOTHING, "protocol-error"),
        (WireEnd.PROTOCOL, PARTIAL, "protocol-error"),
        (COMPLETE, FOREIGN, "not-sse"),
        (COMPLETE, BOMB, "too-large"),
        (WireEnd.TOO_LARGE, PARTIAL, "too-large"),
        (WireEnd.CONNECT, NOTHING, "connect"),
        (WireEnd.REFUSED, NOTHING, "connect-refused"),
        (WireEnd.TLS, NOTHING, "tls"),
        (WireEnd.TIMEOUT_CONNECT, NOTHING, "timeout-connect"),
        (WireEnd.NOT_SENT, NOTHING, "not-sent"),
        (WireEnd.TIMEOUT_FIRST_TOKEN, NOTHING, "timeout-first-token"),
        (WireEnd.TIMEOUT_IDLE, PARTIAL, "timeout-idle"),
        (WireEnd.TIMEOUT_IDLE, STOPPED, "ok"),
        (WireEnd.TIMEOUT_TOTAL, LENGTH, "ok-length"),
        (WireEnd.CANCELLED, CALLS, "ok-tool-calls"),
        (WireEnd.CUT, STOPPED, "ok"),
        (WireEnd.CUT, MARKED, "ok"),
        (WireEnd.TIMEOUT_FIRST_TOKEN, STOPPED, "ok"),
        (WireEnd.TIMEOUT_IDLE, EMPTY_STOPPED, "timeout-idle"),
        (WireEnd.TIMEOUT_IDLE, BROKEN, "timeout-idle"),
        (WireEnd.TIMEOUT_IDLE, DOCUMENT, "timeout-idle"),
        (WireEnd.TOO_LARGE, STOPPED, "too-large"),
        (WireEnd.TIMEOUT_TOTAL, PARTIAL, "timeout-total"),
        (WireEnd.CANCELLED, PARTIAL, "cancelled"),
        (WireEnd.CUT, PARTIAL, "cut"),
        (WireEnd.CLIENT, STOPPED, "client-fault"),
    ],
)
def test_the_one_outcome(end, answer, outcome):
    name, fault = decide(end, "", answer)
    assert name == outcome
    assert (fault is None) is (outcome in SUCCESSES)


def test_failures_are_the_servers_own():
    others = {"cancelled", "cancelled-as-planned", "cut", "client-fault", "not-sent"}
    assert OUTCOMES.keys() - FAILURES - SUCCESSES == others
    assert not FAILURES & SUCCESSES


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (100, "http-error"),
        (101, "http-error"),
        (301, "http-redirect"),
        (307, "http-redirect"),
        (308, "http-redirect"),
        (400, "http-invalid"),
        (401, "http-auth"),
        (403, "http-auth"),
        (404, "http-not-found"),
        (405, "http-error"),
        (408, "http-timeout"),
        (413, "http-too-large"),
        (418, "http-error"),
        (422, "http-invalid"),
        (429, "http-rate-limited"),
        (500, "http-server-error"),
        (529, "http-server-error"),
        (999, "http-error"),
    ],
)
def test_a_status_outside_2xx_has_its_class(status, outcome):
    assert decide(COMPLETE, "", Answer(status, {}, excerpt="no"))[0] == outcome


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("stop", "ok"),
        ("content_filter", "ok"),
        ("length", "ok-length"),
        ("MAX_TOKENS", "ok-length"),
        ("tool_calls", "ok-tool-calls"),
        ("function_call", "ok-tool-calls"),
        (None, "ok"),
    ],
)
def test_the_reason_of_the_end_makes_the_kind_of_success(reason, outcome):
    answer = Answer(200, {}, Reply(text=["a"], finish_reason=reason, ended=True), streamed=True)
    assert decide(COMPLETE, "", answer) == (outcome, None)


@pytest.mark.parametrize("end", list(WireEnd))
@pytest.mark.parametrize(
    "answer", [NOTHING, PARTIAL, STOPPED, EMPTY, FAILED, REFUSED, BROKEN, FOREIGN, BOMB, CLAIMED]
)
def test_every_flight_has_an_outcome_and_every_failure_a_reason(end, answer):
    name, fault = decide(end, "", answer)
    assert name in OUTCOMES
    assert fault is None if name in SUCCESSES else fault


@pytest.mark.parametrize(
    ("end", "words", "answer", "fault"),
    [
        (WireEnd.CONNECT, "Network is unreachable", NOTHING, "Network is unreachable"),
        (WireEnd.REFUSED, "", NOTHING, "nobody listens at the address"),
        (RESET, "", PARTIAL, "the connection was reset"),
        (COMPLETE, "", REFUSED, "HTTP 503: busy"),
        (COMPLETE, "", REFUSED._replace(retry_after_s=1.5), "HTTP 503 (retry after 1.5 s): busy"),
        (COMPLETE, "", REFUSED._replace(excerpt=""), "HTTP 503: no body"),
        (
            COMPLETE,
            "",
            REFUSED._replace(excerpt="", fault="compressed with br"),
            "HTTP 503: compressed with br",
        ),
        (
            COMPLETE,
            "",
            Answer(307, {"location": "http://b/"}, excerpt="<html>"),
            "HTTP 307: a redirect to http://b/",
        ),
        (COMPLETE, "a second redirect", Answer(308, {"location": "/"}), "HTTP 308: a second redirect"),
        (COMPLETE, "", Answer(302, {}, excerpt="moved"), "HTTP 302: moved"),
        (COMPLETE, "", FAILED, "oom (500)"),
        (COMPLETE, "", BROKEN, "an event is not JSON"),
        (COMPLETE, "", FOREIGN, "the body is HTML"),
        (COMPLETE, "", CLAIMED, "empty: the response holds no output; its usage claims 5 tokens"),
        (COMPLETE, "", EMPTY_STOPPED, "empty: the answer ended (stop) without any output"),
        (COMPLETE, "", EMPTY_MARKED, "empty: the answer ended without any output"),
        (COMPLETE, "", NOTHING, "not HTTP/1.1: there is no status line"),
        (WireEnd.TIMEOUT_TOTAL, "no end within 5 s", PARTIAL, "no end within 5 s"),
        (WireEnd.CUT, "\n", PARTIAL, "still under way when the run's grace period ended"),
    ],
)
def test_the_fault_says_whose_words_they_are(end, words, answer, fault):
    assert decide(end, words, answer)[1] == fault


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\n two\t three", "one two three"),
        ("\x1b[31mred\x1b[0m\x07", r"\x1b[31mred\x1b[0m\x07"),
        ("a\u202eb\u200bc\x9b\x85\u2028d", r"a\u202eb\u200bc\x9b d"),
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
