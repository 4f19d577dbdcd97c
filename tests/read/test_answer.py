from __future__ import annotations

import gzip
import subprocess
import sys

import pytest

from loadstone.endpoints import chat
from loadstone.read.answer import read_answer

ONE = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
STOP = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
WHOLE = b'{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}'


def response(body, media="text/event-stream", status=200, length=None, headers=""):
    size = len(body) if length is None else length
    head = f"HTTP/1.1 {status} X\r\nServer: s/1\r\n{headers}Content-Length: {size}\r\n"
    return head.encode() + (f"Content-Type: {media}\r\n".encode() if media else b"") + b"\r\n" + body


def answer(body, media="text/event-stream", streaming=True, complete=True, **more):
    return read_answer(response(body, media, **more), chat, streaming=streaming, complete=complete)


def test_a_stream():
    got = answer(ONE + STOP + DONE)
    assert (got.status, got.fault, got.streamed, got.headers["server"]) == (200, None, True, "s/1")
    assert (got.reply.text, got.reply.ended, list(got.ends)) == (["a"], True, [len(ONE), len(ONE + STOP)])


@pytest.mark.parametrize(
    "media", ["text/event-stream", "TEXT/Event-Stream; charset=utf-8", "text/plain", "application/json", None]
)
def test_a_stream_under_any_name(media):
    assert answer(ONE + STOP, media).streamed
    assert answer(ONE + STOP, media, streaming=False).reply.text == ["a"]


@pytest.mark.parametrize("media", ["application/json", "text/event-stream", "text/plain", None])
@pytest.mark.parametrize("streaming", [True, False])
def test_one_document_is_taken_whole_whatever_was_asked(media, streaming):
    got = answer(WHOLE, media, streaming)
    assert (got.fault, got.streamed, got.ends, got.reply.text) == (None, False, (), ["a"])


@pytest.mark.parametrize(
    "body",
    [
        b": ping\n\nid: 7\nretry: 9\n" + ONE + STOP,
        b"event: message\n" + ONE + STOP,
        b"\xef\xbb\xbf" + ONE + STOP,
        (ONE + STOP + DONE).replace(b"\n", b"\r\n"),
        (ONE + STOP + DONE).replace(b"\n", b"\r"),
        (ONE + STOP + DONE).replace(b"data: ", b"data:"),
        ONE + STOP + DONE.rstrip(),
        ONE + STOP.rstrip(),
        ONE + STOP + DONE + b"data: not looked at\n\n",
    ],
)
def test_streams_of_every_form(body):
    got = answer(body)
    assert (got.fault, got.reply.text, got.reply.output, got.reply.finish_reason) == (
        None,
        ["a"],
        [0],
        "stop",
    )


@pytest.mark.parametrize(
    ("body", "media", "fault"),
    [
        (ONE + b"data: not-json\n\n" + STOP + DONE, "text/event-stream", "an event is not the JSON expected"),
        (b'data: {"choices":5}\n\n', "text/event-stream", "an event is not the JSON expected"),
        (
            b"<html>Welcome</html>",
            "text/html",
            "the body (text/html) is neither a stream of events nor JSON: <html>Welcome</html>",
        ),
        (b"<html>", "text/event-stream", "the body (text/event-stream) is neither"),
        (b"busy", None, "the body (no content type) is neither a stream of events nor JSON: busy"),
        (b'{"choices":', "application/json", "the body is not the JSON expected (Input data was truncated"),
        (b'{"choices":NaN}', "application/json", "the body is not the JSON expected"),
        (b'{"choices":5}', "application/json", "the body is not the JSON expected (Expected `array | null`"),
        (b'"text"', "application/json", "the body is not the JSON expected (Expected `object`"),
        (b'data: {"choices":NaN}\n\n', "text/event-stream", "an event is not the JSON expected"),
        (b'data: {"choices":[{"index":-1}]}\n\n', "text/event-stream", "an event is not the JSON expected"),
        (b'data: {"a":"\\ud800"}\n\n', "text/event-stream", "an event is not the JSON expected"),
        (b"\r\n", "application/json", "empty: the response holds no output"),
        (b": ping\n\n", "text/event-stream", "empty: the response holds no output"),
        (b"data:\n\ndata: \n\n", "text/event-stream", "empty: the response holds no output"),
        (b"", "text/event-stream", "empty: the response holds no output"),
        (b"", "text/html", "empty: the response holds no output"),
        (DONE, "text/event-stream", "empty: the answer ended without any output"),
        (b"{}", "application/json", "empty: the response holds no output"),
    ],
)
def test_what_is_no_answer(body, media, fault):
    assert answer(body, media).fault.startswith(fault)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'data: {"error":{"message":"oom","code":500}}\n\n', "oom (500)"),
        (ONE + b'data: {"error":"oom"}\n\n' + DONE, "oom"),
        (ONE + b'data: {"object":"error","message":"oom","code":400}\n\n', "oom (400)"),
        (ONE + b'event: error\ndata: {"message":"oom"}\n\n' + STOP + DONE, "oom"),
        (b"event: error\ndata: oom\n\n", "oom"),
        (b"event: error\ndata:\n\n", "the server told of an error without a word"),
        (ONE + b'{"error":{"message":"oom"}}\n', "oom"),
        (ONE + b'\n\n{"detail":"oom"}', "oom"),
        (ONE + b'error: {"message":"oom","code":500}\n\n', "oom (500)"),
        (ONE + b'error: {"message":"oom","code":500}\n\n' + DONE, "oom (500)"),
        (b'error: {"code":500,"message":"oom"}\n\n' + DONE, "oom (500)"),
        (b'error: {"code":500,"message":"oom"}\r\n\r\n' + STOP + DONE, "oom (500)"),
        (b": ping\n\n" + ONE + b'{"error":{"message":"oom"}}\n\n' + STOP + DONE, "oom"),
        (ONE + b'  {"object":"error","message":"oom"}\n\n' + ONE, "oom"),
        (ONE + b'{\n  "error": {\n    "message": "oom"\n  }\n}\n\n' + DONE, "oom"),
        (ONE + b'x\n{"y":1}\n{"error":"oom"}\nz\n' + DONE, "oom"),
        (ONE + b"error: oom\n\n" + DONE, "oom"),
        (ONE + b'error: {"message":"oo', '{"message":"oo'),
        (b'error: {"error":{"message":"oom"}}\n\n', "oom"),
        (ONE + b"event: error\ndata: oom", "oom"),
        (ONE + b'data: {"code":500,"message":"oom"}\n\n', "oom (500)"),
    ],
)
def test_errors_inside_a_stream(body, error):
    got = answer(body)
    assert (got.reply.error, got.fault) == (error, error)


@pytest.mark.parametrize("media", ["application/json", "text/event-stream", None])
@pytest.mark.parametrize(
    "body",
    [
        b'{"error":{"message":"oom"}}',
        b'{"error":"oom"}',
        b'{"object":"error","message":"oom"}',
        b'{"detail":"oom"}',
    ],
)
def test_an_error_as_a_document(body, media):
    got = answer(body, media)
    assert (got.fault, got.reply.error, got.streamed) == ("oom", "oom", False)


@pytest.mark.parametrize("ending", [b"", DONE])
@pytest.mark.parametrize(
    "line",
    [b'{"x":1}', b'{"error":', b"{", b"error", b"error:", b"error: null", b'errors: {"message":"oom"}',
     b': {"error":"oom"}', b'id: {"error":"oom"}', b'{"choices":[],"message":"fine"}'],
)  # fmt: skip
def test_a_line_beside_the_events_is_an_error_only_when_it_says_so(line, ending):
    assert answer(ONE + STOP + line + b"\n\n" + ending).fault is None


@pytest.mark.parametrize("line", [b'error: {"message":"oom"}', b'{"error":"oom"}'])
def test_after_the_end_mark_nothing_is_an_error(line):
    assert answer(ONE + DONE + line + b"\n\n").fault is None


@pytest.mark.parametrize("media", ["text/event-stream", "application/json", "text/html", None])
@pytest.mark.parametrize("blank", [b"\n" * 100, b"\xef\xbb\xbf" + b" \r\n" * 1_000])
def test_blank_lines_before_a_body_change_nothing(blank, media):
    assert answer(blank + WHOLE, media).reply.text == ["a"]
    assert answer(blank + ONE + STOP + DONE, media).reply.text == ["a"]
    assert answer(blank + b"<html>Welcome</html>", media).fault.endswith("nor JSON: <html>Welcome</html>")
    assert answer(blank + b'{"error":"no"}', media, status=500).fault == "HTTP 500: no"
    assert answer(blank, media).fault == "empty: the response holds no output"


@pytest.mark.parametrize(
    ("body", "unfinished"),
    [
        (ONE + STOP + DONE, False),
        (ONE + STOP, False),
        (ONE + STOP.rstrip(), True),
        (ONE + STOP + DONE.rstrip(), True),
        (ONE + STOP + DONE[:-1], True),
        (ONE + b"event: error\ndata: oom\n", True),
        (ONE + STOP + b'data: {"choi', False),
        (ONE + STOP + b": ping", False),
        (ONE.rstrip() + b"\n" + ONE, False),
    ],
)
def test_an_unfinished_last_event_that_counts_is_noted(body, unfinished):
    assert answer(body).unfinished_event is unfinished


def test_an_end_mark_after_more_spaces_than_one():
    assert answer(ONE + b"data:   [DONE]\n\n").fault is None


def test_what_breaks_after_the_end_mark_harms_nothing():
    raw = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nzz" % (
        len(ONE + DONE),
        ONE + DONE,
    )
    assert read_answer(raw, chat, streaming=True, complete=True).fault is None
    broken = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nzz" % (len(ONE), ONE)
    assert read_answer(broken, chat, streaming=True, complete=True).fault.startswith("not HTTP/1.1")


def test_a_body_with_a_byte_order_mark():
    assert answer(b"\xef\xbb\xbf" + WHOLE, "application/json").reply.text == ["a"]


@pytest.mark.parametrize("body", [ONE + STOP + DONE, WHOLE])
def test_a_compressed_answer_says_so(body):
    got = answer(gzip.compress(body), headers="Content-Encoding: gzip\r\n")
    assert (got.fault, got.compressed, got.reply.text) == (None, "gzip", ["a"])


def test_an_answer_compressed_in_a_way_we_cannot_read():
    got = answer(b"\x8b\x02\x80", headers="Content-Encoding: br\r\n")
    assert (got.fault, got.compressed) == ("compressed with br, which we did not ask for", "br")
    got = answer(b"\x8b\x02\x80", status=503, headers="Content-Encoding: br\r\n")
    assert got.fault == "HTTP 503: compressed with br, which we did not ask for"


def test_the_wait_that_was_asked_for():
    got = answer(b"slow down", None, status=429, headers="Retry-After: 30\r\n")
    assert (got.retry_after_s, got.fault) == (30.0, "HTTP 429 (retry after 30 s): slow down")
    assert answer(ONE + STOP, headers="Retry-After: 30\r\n").retry_after_s is None


def test_one_token_without_text_is_answer_enough_for_the_preflight():
    assert answer(STOP + DONE).fault is None
    assert answer(b'{"choices":[{"message":{"content":""},"finish_reason":"length"}]}', None).fault is None


@pytest.mark.parametrize(
    ("body", "media", "fault"),
    [
        (
            b'{"error":{"message":"no such model","code":404}}',
            "application/json",
            "HTTP 404: no such model (404)",
        ),
        (b'{"detail":"Not Found"}', "application/json", "HTTP 404: Not Found"),
        (b"<h1>nope</h1>", "text/html", "HTTP 404: <h1>nope</h1>"),
        (b"", None, "HTTP 404: no body"),
    ],
)
def test_an_http_error_in_the_servers_own_words(body, media, fault):
    got = answer(body, media, status=404)
    assert (got.fault, got.reply) == (fault, None)


@pytest.mark.parametrize("status", [200, 201, 202, 206])
def test_every_2xx_is_a_success(status):
    assert answer(ONE + STOP + DONE, status=status).fault is None


@pytest.mark.parametrize("body", [ONE, ONE + b'data: {"choi', ONE + b"data: [DO"])
def test_a_stream_cut_short(body):
    got = answer(body, complete=False, length=999)
    assert got.fault == "the server closed the connection before it was complete"
    assert got.reply.text == ["a"]


def test_a_document_cut_short_is_broken_off_not_malformed():
    got = answer(WHOLE[:20], "application/json", complete=False, length=999)
    assert got.fault == "the server closed the connection before it was complete"


def test_bytes_that_are_not_utf8_are_replaced():
    got = answer(b'data: {"choices":[{"delta":{"content":"\xe2\x82"}}]}\n\n' + STOP + DONE)
    assert (got.fault, got.reply.text) == (None, ["\ufffd"])


def test_what_is_no_http():
    got = read_answer(b"SSH-2.0-x\r\n", chat, streaming=True, complete=True)
    assert got.status == 0
    assert got.fault.startswith("not HTTP/1.1: ")


def test_the_preflight_needs_neither_numpy_nor_polars():
    code = "import sys, loadstone.read.answer; print({'numpy', 'polars'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("body", "media", "status"),
    [
        (b'data: {"other":' + DEEP + b"}\n\n", "text/event-stream", 200),
        (b'data: {"error":' + DEEP + b"}\n\n", "text/event-stream", 200),
        (b"event: error\ndata: " + DEEP + b"\n\n", "text/event-stream", 200),
        (b'{"error":' + DEEP + b"}", "application/json", 200),
        (DEEP, "application/json", 500),
    ],
)
def test_nesting_without_end_is_an_answer_like_any_other_bad_one(body, media, status):
    assert answer(body, media, status=status).fault
