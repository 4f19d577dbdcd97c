"""From the recording to parts: rows, outcomes, and that nothing is lost on the way."""

from __future__ import annotations

import gzip
import tracemalloc

import msgspec
import polars as pl
import pytest

from loadstone.board import Board, Field, Histogram
from loadstone.endpoints import Usage, chat
from loadstone.errors import LoadstoneError
from loadstone.read import decoder as module
from loadstone.read.decoder import Decoder
from loadstone.read.faults import SAMPLE_BYTES, samples
from loadstone.read.schema import REQUESTS
from loadstone.recording import WireEnd
from loadstone.tokens import Tokenless

USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}


def rows(run):
    parts = sorted(run.parts.glob("*.parquet"))
    return pl.concat([pl.read_parquet(part) for part in parts]).sort("request").to_dicts() if parts else []


@pytest.fixture
def recorder(run):
    recorder = run.recorder()
    recorder.clock(0)
    return recorder


def test_a_streamed_answer_as_a_row(run, recorder, wire):
    reads = [
        (1_000, wire.head + wire.token("")),
        (2_000, wire.event({"choices": [{"delta": {"reasoning": "Hm"}}]})),
        (3_000, wire.token("a") + wire.token("bc")),
        (9_000, wire.finish("length", USAGE)),
    ]
    recorder.flight(
        7, reads, lag_ns=50, sent_ns=500, connect=300, tcp=350, connected=400, written=510, body_bytes=77, status=200,
        due=450, retries=1, redirects=1, target=3,
    )  # fmt: skip
    run.decode(id_prefix="x-")
    (row,) = rows(run)
    assert row == dict.fromkeys(REQUESTS) | {
        "request": 7, "request_id": "x-7", "phase": None, "worker": 0, "target": 3, "outcome": "ok-length",
        "http_status": 200, "finish_reason": "length", "retries": 1, "redirects": 1, "streamed": True,
        "coalesced": False, "unfinished_event": False, "choices": 1, "due_ns": 450, "connect_ns": 300,
        "tcp_ns": 350, "connected_ns": 400, "sent_ns": 500, "written_ns": 510, "answered_ns": 1_000, "first_ns": 2_000, "first_answer_ns": 3_000,
        "last_ns": 3_000, "done_ns": 9_000, "first_read_ns": 2_050, "kernel_stamps": True, "input_tokens": 11,
        "input_tokens_source": "usage", "output_tokens": 3, "output_tokens_source": "usage",
        "usage_prompt_tokens": 11, "usage_completion_tokens": 3, "usage_cached_tokens": 4, "text_chars": 3,
        "reasoning_chars": 2, "request_bytes": 77, "response_bytes": sum(len(data) for _, data in reads),
        "arrival_ns": [2_000, 3_000, 3_000], "read_ns": [2_050, 3_050, 3_050],
    }  # fmt: skip


def test_parts_have_the_columns_of_the_schema(run, recorder, wire):
    recorder.flight(0, [(1, wire.head + wire.finish())])
    run.decode()
    assert dict(pl.read_parquet(run.parts / "d0-0.parquet").schema) == dict(pl.Schema(REQUESTS))


@pytest.mark.parametrize("bytes_a_read", [1, 7, 50])
def test_a_token_arrives_with_the_read_that_completes_its_event(run, recorder, wire, bytes_a_read):
    stream = wire.head + wire.token("é") + wire.token("ü") + wire.finish()
    reads = [stream[at : at + bytes_a_read] for at in range(0, len(stream), bytes_a_read)]
    recorder.flight(0, [(1_000 + index, data) for index, data in enumerate(reads)])
    run.decode()
    (row,) = rows(run)
    ends = [stream.index("é".encode()), stream.index("ü".encode())]
    complete = [stream.index(b"\n\n", end) + 1 for end in ends]
    assert row["arrival_ns"] == [1_000 + end // bytes_a_read for end in complete]
    assert row["text_chars"] == 2


def one(run, **job):
    run.decode(**job)
    (row,) = rows(run)
    return row


@pytest.mark.parametrize(
    ("reads", "coalesced"),
    [
        (["head", "a", "b finish"], False),
        (["head", "a b finish"], True),
        (["head a b finish"], True),
        (["head", "a b done", "end"], True),
        (["head", "a b", "finish"], True),
        (["head", "a b", "usage", "finish"], True),
        (["head", "a b", "a finish"], False),
        (["head", "a finish"], False),
        (["head", "finish"], False),
    ],
)
def test_an_answer_whose_output_came_in_one_read_is_coalesced(run, recorder, wire, reads, coalesced):
    parts = {
        "head": wire.head, "a": wire.token("a"), "b": wire.token("b"), "finish": wire.finish(),
        "done": wire.finish().removesuffix(wire.end), "end": wire.end,
        "usage": wire.event({"choices": [], "usage": {"completion_tokens": 2}}),
    }  # fmt: skip
    recorder.flight(
        0, [(at, b"".join(parts[name] for name in read.split())) for at, read in enumerate(reads, 1)]
    )
    assert one(run)["coalesced"] is coalesced


def test_choices_are_kept_apart(run, recorder, wire):
    def piece(index, text, reason=None):
        return wire.event(
            {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": reason}]}
        )

    ends = wire.event(b"data: [DONE]\n\n") + wire.end
    reads = [piece(1, "a"), piece(0, "b"), piece(1, "c", "stop"), piece(0, "d", "stop"), ends]
    recorder.flight(0, [(1, wire.head), *enumerate(reads, 2)])
    row = one(run)
    assert (row["choices"], row["chunk_choice"]) == (2, [1, 0, 1, 0])
    assert (row["arrival_ns"], row["outcome"]) == ([2, 3, 4, 5], "ok")


def test_a_body_that_was_compressed_says_so(run, recorder, wire):
    body = gzip.compress(
        b'data: {"choices":[{"delta":{"content":"abc"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    head = wire.head.replace(b"Transfer-Encoding: chunked", b"Content-Encoding: gzip")
    recorder.flight(0, [(1, head + body)])
    row = one(run)
    assert (row["outcome"], row["compressed"], row["text_chars"]) == ("ok", "gzip", 3)


def test_a_body_that_unpacks_to_more_than_an_answer_may_have_is_not_unpacked(run, recorder):
    bomb = gzip.compress(bytes(1 << 20))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    recorder.flight(0, [(1, head + bomb)])
    assert one(run, max_response_bytes=1_000)["outcome"] in ("protocol-error", "too-large")


def test_a_server_that_asks_to_wait(run, recorder):
    recorder.flight(0, [(1, b"HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n")])
    row = one(run)
    assert (row["outcome"], row["retry_after_s"]) == ("http-rate-limited", 7.0)
    assert (row["streamed"], row["coalesced"], row["unfinished_event"], row["choices"]) == (None,) * 4


def test_a_last_event_without_its_blank_line(run, recorder, wire):
    ends = wire.chunk(b"data: [DONE]") + wire.end
    recorder.flight(0, [(1, wire.head + wire.token("a")), (2, ends)])
    assert one(run)["unfinished_event"] is True


def test_running_usage_gives_the_tokens_of_every_chunk(run, recorder, wire):
    tokens = [wire.token("x", usage={"completion_tokens": count}) for count in (2, 3, 7)]
    recorder.flight(0, [(1, wire.head + b"".join(tokens) + wire.finish())])
    recorder.flight(1, [(1, wire.head + wire.token("x") + wire.finish())])
    run.decode()
    assert [row["chunk_tokens"] for row in rows(run)] == [[2, 1, 4], None]


def test_an_unstreamed_answer_has_no_token_times(run, recorder):
    body = (
        b'{"choices":[{"message":{"content":"abc"},"finish_reason":"stop"}],"usage":{"completion_tokens":2}}'
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    recorder.flight(0, [(10, head), (20, body)])
    run.decode()
    (row,) = rows(run)
    assert (row["outcome"], row["first_ns"], row["last_ns"], row["done_ns"]) == ("ok", None, None, 20)
    assert (row["arrival_ns"], row["chunk_tokens"], row["output_tokens"], row["text_chars"]) == (
        [],
        None,
        2,
        3,
    )


@pytest.mark.parametrize(
    ("wire_end", "words", "outcome", "fault"),
    [
        (WireEnd.RESET, "", "reset", "the connection was reset"),
        (WireEnd.CLOSED, "", "reset", "the server closed the connection before it was complete"),
        (WireEnd.TIMEOUT_TOTAL, "no end within 2 s", "timeout-total", "no end within 2 s"),
        (WireEnd.CUT, "", "cut", "still under way when the run's grace period ended"),
    ],
)
def test_what_came_of_a_broken_answer_is_kept(run, recorder, wire, wire_end, words, outcome, fault):
    recorder.flight(0, [(10, wire.head + wire.token("a"))], end_ns=99, wire=wire_end, words=words, sent_ns=5)
    run.decode()
    (row,) = rows(run)
    assert (row["outcome"], row["fault"], row["first_ns"], row["done_ns"]) == (outcome, fault, 10, 99)


def test_a_request_that_found_no_connection_was_never_sent(run, recorder):
    recorder.flight(0, [], end_ns=99, wire=WireEnd.CONNECT, words="Connection refused", connect=7)
    run.decode()
    (row,) = rows(run)
    assert (row["outcome"], row["fault"], row["http_status"]) == ("connect", "Connection refused", None)
    assert (row["sent_ns"], row["connect_ns"], row["connected_ns"], row["done_ns"]) == (None, 7, None, 99)
    assert (row["output_tokens"], row["arrival_ns"]) == (None, [])


class Counter:
    def count_many(self, texts):
        return [100 + len(text) for text in texts]


def test_tokens_the_server_did_not_count_are_estimated(run, recorder, wire, monkeypatch):
    monkeypatch.setattr("loadstone.tokens.load", lambda name: Counter())
    told = {"completion_tokens": 5}
    thought = wire.event({"choices": [{"delta": {"reasoning": "Hm"}}]})
    recorder.flight(0, [(1, wire.head + thought + wire.token("abc") + wire.finish())])
    recorder.flight(1, [(1, wire.head + wire.token("abc") + wire.finish(usage=told))])
    recorder.flight(2, [(1, wire.head + wire.token("abc") + wire.finish(usage={"completion_tokens": 0}))])
    recorder.flight(3, [(1, wire.head + wire.token("a"))], wire=WireEnd.RESET)
    recorder.flight(4, [(1, b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")])
    recorder.flight(5, [(1, wire.head + wire.finish())])
    run.decode(tokenizer="any")
    counted = [(row["output_tokens"], row["output_tokens_source"]) for row in rows(run)]
    assert counted == [
        (105, "tokenizer"),
        (5, "usage"),
        (103, "tokenizer"),
        (101, "tokenizer"),
        (None, None),
        (None, None),
    ]
    assert [row["usage_completion_tokens"] for row in rows(run)] == [None, 5, 0, None, None, None]


def answered(wire, text, tokens=None):
    usage = None if tokens is None else {"completion_tokens": tokens}
    return [(1, wire.head + wire.token(text) + wire.finish(usage=usage))]


def test_whole_answers_are_counted_beside_the_server(run, recorder, wire, monkeypatch):
    monkeypatch.setattr("loadstone.tokens.load", lambda name: Counter())
    recorder.flight(3, answered(wire, "abc", tokens=5))
    recorder.flight(4, answered(wire, "abc"))
    recorder.flight(5, [(1, wire.head + wire.token("a"))], wire=WireEnd.RESET)
    recorder.flight(21, answered(wire, "abc", tokens=5))
    recorder.flight(50, answered(wire, "abcd", tokens=5))
    run.decode(tokenizer="any", check_tokens="sample")
    checked = {row["request"]: (row["output_tokens"], row["checked_output_tokens"]) for row in rows(run)}
    assert checked == {3: (5, 103), 4: (103, 103), 5: (101, None), 21: (5, None), 50: (5, 104)}


def test_several_choices_have_no_count_of_their_own(run, recorder, wire, monkeypatch):
    monkeypatch.setattr("loadstone.tokens.load", lambda name: Counter())
    two = [{"index": index, "delta": {"content": "x"}, "finish_reason": "stop"} for index in (0, 1)]
    ends = wire.event(b"data: [DONE]\n\n") + wire.end
    recorder.flight(
        0,
        [(1, wire.head + wire.event({"choices": two, "usage": {"completion_tokens": 2}}) + ends)],
    )
    row = one(run, tokenizer="any", check_tokens="all")
    assert (row["outcome"], row["output_tokens"], row["checked_output_tokens"]) == ("ok", 2, None)


@pytest.mark.parametrize(("tokenizer", "check"), [("none", "all"), ("any", "none")])
def test_without_a_tokenizer_or_when_not_asked_nothing_is_checked(
    run, recorder, wire, monkeypatch, tokenizer, check
):
    monkeypatch.setattr("loadstone.tokens.load", lambda name: Counter() if name == "any" else Tokenless())
    recorder.flight(0, answered(wire, "abc", tokens=5))
    assert one(run, tokenizer=tokenizer, check_tokens=check)["checked_output_tokens"] is None


def test_without_a_tokenizer_nothing_is_guessed(run, recorder, wire):
    recorder.flight(0, [(1, wire.head + wire.token("abc") + wire.finish())])
    run.decode(tokenizer="none")
    (row,) = rows(run)
    assert (row["output_tokens"], row["output_tokens_source"], row["text_chars"]) == (None, None, 3)


def test_the_last_word(run, recorder, wire):
    recorder.flight(0, [(1, wire.head + wire.token("a") + wire.finish(usage=USAGE))])
    recorder.start(1, sent_ns=8, due_ns=6)
    recorder.clock(10)
    recorder.clock(1_000_000, offset_ns=0)
    done = run.decode()
    assert (done.clock_steps, done.kernel_stamps) == (1, True)
    assert [row["outcome"] for row in rows(run)] == ["ok", "client-fault"]
    assert [(row["due_ns"], row["sent_ns"]) for row in rows(run)] == [(0, None), (6, 8)]


def test_a_step_that_every_worker_saw_is_one(run):
    for worker in (0, 1):
        recorder = run.recorder(worker)
        recorder.clock(10)
        recorder.clock(1_000_000, offset_ns=0)
    assert run.decode(workers=[0, 1]).clock_steps == 1


def test_a_decoder_follows_several_workers(run, wire):
    for worker in (0, 3):
        run.recorder(worker).flight(worker, [(1, wire.head + wire.finish())])
    run.decode(workers=[0, 3])
    assert [(row["request"], row["worker"]) for row in rows(run)] == [(0, 0), (3, 3)]


def test_the_board_shows_what_was_decoded(run, recorder, wire):
    tokens = [(1_000_000 * at, wire.token("x")) for at in range(2, 5)]
    recorder.flight(0, [(1_000_000, wire.head), *tokens, (9_000_000, wire.finish(usage=USAGE))], sent_ns=1)
    recorder.flight(1, [(1_000, b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")])
    board = Board(run.folder / "board", 2, create=True)
    run.decode(board=str(run.folder / "board"), blocks=2, block=1)
    live = board.live()
    assert [live.fields[field] for field in (Field.DECODED, Field.OK, Field.FAILED, Field.TOKENS)] == [
        2,
        1,
        1,
        3,
    ]
    assert live.quantile_us(Histogram.LATENCY, 0.5) == pytest.approx(4_000, rel=0.125)
    assert live.quantile_us(Histogram.ITL, 0.5) == pytest.approx(1_000, rel=0.125)
    assert sum(live.histograms[Histogram.ITL]) == 1


# Evidence


def test_one_sample_of_every_kind_of_fault_is_kept(run, recorder):
    def refused(number):
        body = b"request %d refused" % number
        return b"HTTP/1.1 503 X\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    for request in range(3):
        recorder.flight(request, [(1, refused(request)[:20]), (2, refused(request)[20:])])
    recorder.flight(3, [(1, b"HTTP/1.1 500 X\r\nContent-Length: 4\r\n\r\nbang")])
    run.decode()
    assert (run.folder / "faults" / "http-server-error-1.http").read_bytes() == refused(0)
    assert sorted(path.name for path in (run.folder / "faults").iterdir()) == [
        "http-server-error-1.http",
        "http-server-error-2.http",
        "index.jsonl",
    ]


@pytest.mark.parametrize(
    ("keep", "faults", "segments"), [("none", False, 0), ("faults", True, 0), ("all", True, 2)]
)
def test_what_is_kept(run, recorder, keep, faults, segments):
    recorder.flight(0, [(1, b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")])
    run.decode(keep=keep)
    assert (run.folder / "faults" / "http-server-error-1.http").exists() is faults
    assert len(run.segments()) == segments


def test_a_fault_to_which_no_byte_came_has_its_line(run, recorder):
    recorder.flight(0, [], wire=WireEnd.REFUSED, words="Connection refused")
    run.decode()
    (sample,) = samples(run.folder / "faults")
    assert (sample.outcome, sample.file, sample.request_id) == ("connect-refused", None, "r-0")


# Defects of our own


class Broken:
    """An endpoint that fails at some answers."""

    def __init__(self, fold):
        self._fold = fold

    def __getattr__(self, name):
        return getattr(chat, name)

    def fold(self, events):
        reply = chat.fold(events)
        if "".join(reply.text) == "bad":
            return self._fold(reply)
        return reply


def fails(reply):
    raise RuntimeError("no such luck")


def lies(reply):
    return msgspec.structs.replace(reply, usage=Usage(completion_tokens=2**70))


def points_nowhere(reply):
    return msgspec.structs.replace(reply, output=[99])


@pytest.mark.parametrize(
    ("defect", "words"),
    [(fails, "no such luck"), (lies, "could not be stored"), (points_nowhere, "could not be decoded")],
)
def test_a_defect_in_reading_one_answer_costs_that_request_alone(
    run, recorder, wire, monkeypatch, defect, words
):
    monkeypatch.setattr("loadstone.registry.load", lambda kind, name: Broken(defect))
    for request, text in enumerate(["good", "bad", "fine"]):
        recorder.flight(request, answered(wire, text), sent_ns=5, status=200)
    run.decode()
    found = rows(run)
    assert [row["outcome"] for row in found] == ["ok", "client-fault", "ok"]
    assert words in found[1]["fault"]
    assert (found[1]["sent_ns"], found[1]["done_ns"], found[1]["arrival_ns"]) == (5, 1, [])
    assert found[1]["request_id"] == "r-1"
    (sample,) = samples(run.folder / "faults")
    assert (sample.outcome, sample.request_id) == ("client-fault", "r-1")


def test_the_bytes_that_could_not_be_read_are_kept(run, recorder, wire, monkeypatch):
    monkeypatch.setattr("loadstone.registry.load", lambda kind, name: Broken(fails))
    recorder.flight(0, answered(wire, "bad"))
    run.decode()
    assert (run.folder / "faults" / "client-fault-1.http").read_bytes() == answered(wire, "bad")[0][1]


def test_of_a_huge_answer_only_the_beginning_is_kept(run, recorder, wire):
    piece = b"x" * 65_000
    recorder.flight(0, [(1, wire.head), *((2, wire.chunk(piece)) for _ in range(40))], wire=WireEnd.TOO_LARGE)
    run.decode()
    assert one_sample(run).stat().st_size == SAMPLE_BYTES


def test_memory_follows_the_largest_answer_and_not_their_number(run, recorder):
    size = 1 << 20
    head = b"HTTP/1.1 500 X\r\nContent-Length: %d\r\n\r\n" % size
    for request in range(30):
        recorder.flight(request, [(1, head), *((2, bytes(size // 16)) for _ in range(16))])
    decoder = Decoder(run.job())
    tracemalloc.start()
    decoder.finish()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(rows(run)) == 30
    assert peak_bytes < 8 * size


def one_sample(run):
    (path,) = (run.folder / "faults").glob("*.http")
    return path


# While the load runs


def test_flights_are_decoded_when_they_have_ended(run, recorder, wire, monkeypatch):
    monkeypatch.setattr(module, "PART_REQUESTS", 1)
    decoder = Decoder(run.job())
    serial = recorder.start(0)
    recorder.read(serial, wire.head + wire.token("a"), 5)
    decoder.step()
    assert rows(run) == []
    recorder.read(serial, wire.finish(), 6)
    recorder.end(serial, 7, request=0)
    decoder.step()
    assert [row["request"] for row in rows(run)] == [0]


def test_a_flight_waits_for_the_clock_sample_after_its_end(run, recorder, wire, monkeypatch):
    monkeypatch.setattr(module, "PART_REQUESTS", 1)
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: 10_000)
    decoder = Decoder(run.job())
    recorder.flight(0, [(5_000, wire.head + wire.token("a") + wire.finish())])
    decoder.step()
    assert rows(run) == []
    recorder.clock(6_000)
    decoder.step()
    assert [row["arrival_ns"] for row in rows(run)] == [[5_000]]


@pytest.mark.parametrize(("limit", "value"), [("PART_REQUESTS", 2), ("PART_TOKENS", 2), ("PART_NS", 0)])
def test_a_part_is_written_when_one_of_its_limits_is_reached(run, recorder, wire, monkeypatch, limit, value):
    for name in ("PART_REQUESTS", "PART_TOKENS", "PART_NS"):
        monkeypatch.setattr(module, name, value if name == limit else 1 << 60)
    decoder = Decoder(run.job())
    for request in range(2):
        recorder.flight(request, [(1, wire.head + wire.token("a") + wire.finish())])
    decoder.step()
    assert [path.name for path in run.parts.iterdir()] == ["d0-0.parquet"]


def test_segments_go_with_the_part_that_holds_their_last_flight(run, recorder, wire, monkeypatch):
    monkeypatch.setattr(module, "PART_REQUESTS", 2)
    decoder = Decoder(run.job())
    answer = [(1, wire.head + wire.finish())]
    recorder.flight(0, answer)
    recorder.next_segment()
    while decoder.step():
        pass
    assert len(run.segments()) == 4
    recorder.flight(1, answer)
    decoder.step()
    assert run.segments() == ["w00-00001.dat", "w00-00001.idx"]
    decoder.finish()
    assert run.segments() == []


def test_a_part_that_cannot_be_written_costs_no_segment(run, recorder, wire, monkeypatch):
    recorder.flight(0, [(1, wire.head + wire.finish())])

    def full(table, path):
        raise OSError("disk full")

    monkeypatch.setattr(module.columns, "write_part", full)
    with pytest.raises(OSError, match="disk full"):
        run.decode()
    assert len(run.segments()) == 2


# After a crash


def test_what_a_crash_left_is_decoded_once(run, recorder, wire, monkeypatch):
    monkeypatch.setattr(module, "PART_REQUESTS", 1)
    decoder = Decoder(run.job())
    recorder.flight(0, [(1, wire.head + wire.token("a") + wire.finish())])
    decoder.step()
    recorder.flight(1, [(1, wire.head + wire.token("b") + wire.finish())])
    lost = recorder.start(2, sent_ns=5)
    recorder.read(lost, wire.head, 6)
    run.torn(recorder.path(".idx"), recorder.path(".idx").stat().st_size - 1)
    monkeypatch.undo()
    run.decode()
    assert [(row["request"], row["outcome"]) for row in rows(run)] == [
        (0, "ok"),
        (1, "ok"),
        (2, "client-fault"),
    ]
    assert sorted(path.name for path in run.parts.iterdir()) == ["d0-0.parquet", "d0-1.parquet"]
    assert run.segments() == []


def test_a_half_written_part_is_no_part(run, recorder, wire):
    recorder.flight(0, [(1, wire.head + wire.finish())])
    run.parts.mkdir()
    (run.parts / "d0-0.new").write_bytes(b"half")
    run.decode()
    assert [row["request"] for row in rows(run)] == [0]
    assert [path.name for path in run.parts.iterdir()] == ["d0-0.parquet"]


def test_a_key_that_the_server_echoes_reaches_no_file(run, recorder):
    said = b"HTTP/1.1 401 No\r\nContent-Length: 20\r\n\r\nbad key: sk-secret-1"
    recorder.flight(0, [(1_000, said[:-4]), (2_000, said[-4:])], status=401)
    run.decode(secrets=["sk-secret-1"])
    (row,) = rows(run)
    assert row["fault"] == "HTTP 401: bad key: ***********"
    (sample,) = (run.parts.parent / "faults").glob("*.http")
    assert sample.read_bytes() == said.replace(b"sk-secret-1", b"*" * 11)


KEY = "sk-secret-1"


def test_a_key_in_what_the_worker_or_a_compressed_body_says(run, recorder):
    body = gzip.compress(b"bad key: sk-secret-1")
    head = b"HTTP/1.1 500 X\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    recorder.flight(0, [(1, head + body)])
    recorder.flight(1, [], wire=WireEnd.CONNECT, words="the proxy said: no access with sk-secret-1")
    run.decode(secrets=[KEY])
    faults = [row["fault"] for row in rows(run)]
    assert faults == ["HTTP 500: bad key: ***********", "the proxy said: no access with ***********"]


def kept_bytes(run):
    return b"".join(path.read_bytes() for path in sorted(run.recording.glob("*.dat")))


def test_segments_that_are_kept_hold_no_key(run, recorder, wire):
    one, two = recorder.start(0), recorder.start(1)
    recorder.read(one, wire.head + b"a sk-sec", 1)
    recorder.read(two, b"sk-secret-1 in a redirect", 2)
    recorder.redirected(two, 3)
    recorder.next_segment()
    recorder.read(one, b"ret-1 b", 4)
    recorder.read(two, wire.head + wire.token("fine") + wire.finish(), 5)
    recorder.end(one, 6, request=0, wire=WireEnd.RESET)
    recorder.end(two, 7, request=1, words="to sk-secret-1")
    before = kept_bytes(run)
    run.decode(keep="all", secrets=[KEY])
    after = kept_bytes(run)
    assert after == before.replace(b"sk-sec", b"*" * 6).replace(b"ret-1 b", b"***** b").replace(
        b"******ret-1", b"*" * 11
    )
    assert rows(run)[1]["outcome"] == "ok"


def test_after_a_crash_what_looks_like_a_key_is_overwritten(run, recorder):
    said = b"HTTP/1.1 401 No\r\nContent-Length: 22\r\n\r\nbad: Bearer abcdef-123"
    recorder.flight(0, [(1_000, said)], status=401)
    run.decode(secrets=None, keep="all")
    assert rows(run)[0]["fault"] == "HTTP 401: bad: Bearer **********"
    assert b"abcdef-123" not in kept_bytes(run) + one_sample(run).read_bytes()


def test_a_part_that_is_damaged_is_told_in_one_sentence(run, recorder):
    run.parts.mkdir()
    (run.parts / "d0-0.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(LoadstoneError, match=r"d0-0\.parquet is damaged"):
        run.decode()


def test_a_part_that_fails_leaves_no_draft(run, recorder, wire, monkeypatch):
    recorder.flight(0, [(1, wire.head + wire.finish())])

    def full(path):
        raise OSError("disk full")

    monkeypatch.setattr(module.columns, "sync", full)
    with pytest.raises(OSError, match="disk full"):
        run.decode()
    assert list(run.parts.iterdir()) == []
