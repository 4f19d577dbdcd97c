from __future__ import annotations

import polars as pl
import pytest

from loadstone.errors import LoadstoneError
from loadstone.folder import DeathLog
from loadstone.plan.store import ANY_TARGET, Draft, Writer
from loadstone.read import decoder, tables, unseen
from loadstone.read.faults import samples
from loadstone.read.schema import REQUESTS


def built(run):
    tables.build(run.folder)
    return pl.read_parquet(run.folder / "requests.parquet")


@pytest.fixture
def sent(run, wire):
    """Records requests that were answered, in this order, and decodes them."""

    def sent(*requests, tokens=2, usage=None, **job):
        recorder = run.recorder()
        recorder.clock(0)
        for request in requests:
            count = tokens(request) if callable(tokens) else tokens
            reads = [
                (10 * request + 1, wire.head),
                *((10 * request + 2, wire.token("x")) for _ in range(count)),
            ]
            recorder.flight(
                request, [*reads, (10 * request + 3, wire.finish(usage=usage))], due=1_000 + request
            )
        return run.decode(**job)

    return sent


def test_every_planned_request_is_there_once_in_the_order_of_the_plan(run, sent):
    run.plan([("measured", 6)])
    sent(4, 1, 0, 2)
    table = built(run)
    assert table["request"].to_list() == [0, 1, 2, 3, 4, 5]
    assert table["outcome"].to_list() == ["ok", "ok", "ok", "not-sent", "ok", "not-sent"]
    assert dict(table.schema) == dict(pl.Schema(REQUESTS))


def test_a_request_that_was_never_sent(run):
    run.plan([("measured", 1)], due_ns=30)
    (row,) = built(run).to_dicts()
    assert row == dict.fromkeys(REQUESTS) | {
        "request": 0, "phase": "measured", "conversation": 0, "turn": 0, "target": 0, "model": 0, "outcome": "not-sent", "retries": 0,
        "redirects": 0, "fault": "still waiting for a slot when the time was over",
        "due_ns": 530, "planned_input_tokens": 7, "planned_output_tokens": 9, "request_bytes": 2,
        "arrival_ns": [], "read_ns": [],
    }  # fmt: skip


def test_a_slot_that_never_came_free_has_no_due_time(run):
    run.plan([("measured", 1)])
    assert built(run)["due_ns"].to_list() == [None]


def test_the_recording_goes_before_the_plan(run, sent):
    run.plan([("measured", 2)], due_ns=30)
    sent(0)
    assert built(run)["due_ns"].to_list() == [1_000, 530]


def test_input_tokens_the_server_did_not_count_are_those_planned(run, sent):
    run.plan([("measured", 2)])
    sent(0)
    table = built(run)
    assert table["input_tokens"].to_list() == [7, None]
    assert table["input_tokens_source"].to_list() == ["planned", None]


def test_input_tokens_the_server_counted(run, sent):
    run.plan([("measured", 1)])
    sent(0, usage={"prompt_tokens": 40, "completion_tokens": 2})
    (row,) = built(run).to_dicts()
    assert (row["input_tokens"], row["input_tokens_source"], row["planned_input_tokens"]) == (40, "usage", 7)


def test_unknown_lengths_stay_unknown(run, sent):
    run.plan([("measured", 1)], isl_tokens=-1, osl_tokens=-1)
    sent(0)
    (row,) = built(run).to_dicts()
    assert (row["planned_input_tokens"], row["planned_output_tokens"], row["input_tokens_source"]) == (
        None,
    ) * 3


def test_phases_are_those_of_the_run_log(run, wire):
    run.plan([("warmup", 1), ("measured", 2)])
    recorder = run.recorder()
    recorder.flight(0, [(1, wire.head + wire.token("a") + wire.finish())])
    recorder.start(1, sent_ns=5)
    run.decode()
    table = built(run)
    assert table["phase"].to_list() == ["warmup", "measured", "measured"]
    assert table["outcome"].to_list() == ["ok", "client-fault", "not-sent"]


def test_rows_beyond_those_that_count_are_left_out(run, sent):
    run.plan([("measured", 9)])
    log = tables.read_run(run.folder)
    log.phases[0].planned = 2
    tables.run_folder.write_run(run.folder, log)
    sent(0, 1)
    assert built(run)["request"].to_list() == [0, 1]


def test_many_parts_in_small_ranges_give_the_same_table(run, sent, monkeypatch):
    order = [7, 3, 11, 0, 1, 9, 2, 4, 8, 5, 10, 6]
    run.plan([("measured", 13)])
    sent(*order, tokens=lambda request: request % 5)
    whole = built(run)
    assert whole["arrival_ns"].list.len().to_list() == [r % 5 for r in range(12)] + [0]
    (run.folder / "requests.parquet").unlink()
    monkeypatch.setattr(decoder, "PART_REQUESTS", 1)
    monkeypatch.setattr(tables, "RANGE_ENTRIES", 100)
    for path in run.recording.iterdir():
        path.unlink()
    recorder_order = [order[i : i + 3] for i in range(0, 12, 3)]
    for number, requests in enumerate(recorder_order):
        sent(*requests, tokens=lambda request: request % 5, decoder=number)
    assert len(list(run.parts.iterdir())) == 4
    assert built(run).equals(whole)


def test_parts_go_when_the_table_is_there_and_a_second_time_changes_nothing(run, sent):
    run.plan([("measured", 1)])
    sent(0)
    table = built(run)
    assert not run.parts.exists()
    assert built(run).equals(table)


def test_a_crash_between_the_table_and_the_end_of_the_parts(run, sent):
    run.plan([("measured", 2)])
    sent(0)
    kept = (run.parts / "d0-0.parquet").read_bytes()
    table = built(run)
    run.parts.mkdir()
    (run.parts / "d0-0.parquet").write_bytes(kept)
    assert built(run).equals(table)
    assert not run.parts.exists()


def test_a_request_decoded_twice_is_refused(run, sent):
    run.plan([("measured", 2)])
    sent(0, 1)
    (run.parts / "d1-0.parquet").write_bytes((run.parts / "d0-0.parquet").read_bytes())
    with pytest.raises(LoadstoneError, match="request 0 was decoded twice"):
        tables.build(run.folder)


def test_a_request_outside_of_all_phases_is_refused(run, sent):
    run.plan([("measured", 1)])
    sent(0, 5)
    with pytest.raises(LoadstoneError, match="request 5 was sent but belongs to no phase"):
        tables.build(run.folder)
    assert not (run.folder / "requests.parquet").exists()


def changed(run, change):
    """The run log, changed."""
    log = tables.read_run(run.folder)
    change(log)
    tables.run_folder.write_run(run.folder, log)


def test_what_a_worker_sent_before_it_heard_of_the_stop_counts(run, sent):
    run.plan([("measured", 6)], stopped_by="user")
    changed(run, lambda log: setattr(log.phases[0], "planned", 2))
    sent(0, 1, 4)
    table = built(run)
    assert table["outcome"].to_list() == ["ok", "ok", "not-sent", "not-sent", "ok"]
    assert table["fault"].to_list()[2] == "the run was interrupted"
    assert tables.read_run(run.folder).phases[0].planned == 5


def test_a_request_in_two_phases_is_refused(run, sent):
    run.plan([("warmup", 2), ("measured", 2)])
    changed(run, lambda log: setattr(log.phases[1], "first_row", 1))
    sent(0, 1)
    with pytest.raises(LoadstoneError, match="request 1 was sent but belongs to two phases"):
        tables.build(run.folder)


def test_rows_that_were_never_composed(run, sent):
    run.plan([("measured", 2)])
    changed(run, lambda log: setattr(log.phases[0], "planned", 4))
    sent(0, 1)
    row = built(run).to_dicts()[3]
    assert (row["request"], row["outcome"], row["phase"]) == (3, "not-sent", "measured")
    assert (row["fault"], row["conversation"], row["request_bytes"]) == (
        "the prompt was not composed in time",
        None,
        None,
    )


def killed(worker):
    return DeathLog(process=f"worker {worker}", fault="killed by signal 9", noticed_ns=1)


def test_a_request_that_its_worker_could_not_end_says_how_that_one_died(run, wire):
    run.plan([("measured", 3)], workers=2, deaths=[killed(1)])
    run.recorder(0).start(0, sent_ns=5)
    run.recorder(1).start(1, sent_ns=5)
    run.decode(workers=[0, 1])
    faults = built(run)["fault"].to_list()
    assert faults[:2] == [
        "the worker ended before this request did",
        "lost with worker 1: killed by signal 9",
    ]


def test_requests_lost_with_a_worker(run, sent):
    run.plan([("measured", 6)], workers=2, deaths=[killed(1)])
    changed(run, lambda log: setattr(log.phases[0], "dealt", True))
    sent(0, 1, 2, 4)
    lost = built(run).filter(outcome="client-fault")
    assert lost["request"].to_list() == [3, 5]
    assert lost["worker"].to_list() == [1, 1]
    assert set(lost["fault"]) == {"lost with worker 1: killed by signal 9"}


def test_every_kind_of_request_that_left_no_trace_has_a_line_among_the_faults(run, sent):
    run.plan([("measured", 6)], workers=2, deaths=[killed(1)])
    changed(run, lambda log: setattr(log.phases[0], "dealt", True))
    sent(0, 1)
    built(run)
    lines = [(sample.outcome, sample.file, sample.request_id) for sample in samples(run.folder / "faults")]
    assert lines == [("not-sent", None, None), ("client-fault", None, None)]


def test_what_a_dead_decoder_left_is_decoded_and_its_segments_go(run, wire):
    run.plan([("measured", 2)])
    recorder = run.recorder()
    for request in range(2):
        recorder.flight(request, [(1, wire.head + wire.token("a") + wire.finish())])
    run.parts.mkdir()
    (run.parts / "d0-0.new").write_bytes(b"half")
    assert built(run)["outcome"].to_list() == ["ok", "ok"]
    assert run.segments() == []
    assert not run.parts.exists()


def test_a_decoder_that_died_between_its_part_and_its_segments(run, wire, monkeypatch):
    run.plan([("measured", 1)])
    run.recorder().flight(0, [(1, wire.head + wire.token("a") + wire.finish())])
    monkeypatch.setattr(decoder.Segments, "forget", lambda segments, serials: None)
    run.decode()
    assert len(run.segments()) == 2
    monkeypatch.undo()
    assert built(run)["outcome"].to_list() == ["ok"]
    assert run.segments() == []


@pytest.mark.parametrize(
    ("secrets", "words"),
    [(["hush hush"], "********* Bearer abc-1234"), (None, "hush hush Bearer ********")],
)
def test_what_is_decoded_late_holds_no_key_that_is_known_or_looks_like_one(run, secrets, words):
    run.plan([("measured", 1)])
    said = b"HTTP/1.1 401 No\r\nContent-Length: 25\r\n\r\nhush hush Bearer abc-1234"
    run.recorder().flight(0, [(1, said)])
    tables.build(run.folder, secrets)
    table = pl.read_parquet(run.folder / "requests.parquet")
    assert table["fault"].to_list() == [f"HTTP 401: {words}"]


def test_a_run_log_that_does_not_tell_how_to_decode(run):
    run.plan([("measured", 1)], config={"output": {"keep": "faults"}})
    run.recorder().flight(0, [])
    with pytest.raises(LoadstoneError, match=r"run\.json is damaged: its config lacks 'endpoint'"):
        tables.build(run.folder)


def test_a_table_that_cannot_be_written_leaves_no_draft_and_costs_no_part(run, sent, monkeypatch):
    run.plan([("measured", 1)])
    sent(0)

    def full(path):
        raise OSError("disk full")

    monkeypatch.setattr(tables, "sync", full)
    with pytest.raises(OSError, match="disk full"):
        tables.build(run.folder)
    assert not list(run.folder.glob("requests.*"))
    assert len(list(run.parts.iterdir())) == 1


def test_a_part_of_another_program(run):
    run.plan([("measured", 1)])
    run.parts.mkdir()
    pl.DataFrame({"request": [0], "arrival_ns": [[1]]}).write_parquet(run.parts / "d0-0.parquet")
    with pytest.raises(LoadstoneError, match="parts is damaged"):
        tables.build(run.folder)


def test_a_run_without_requests(run):
    run.plan([])
    assert built(run).height == 0


def test_the_server_that_was_asked_goes_before_the_one_planned(run, wire):
    anywhere = {"target": ANY_TARGET, "model": 1}
    run.plan([("measured", 4)], row=lambda i: anywhere if i > 1 else {"target": i})
    recorder = run.recorder()
    for request, target in ((0, 0), (2, 5)):
        recorder.flight(request, [(1, wire.head + wire.token("a") + wire.finish())], target=target)
    recorder.start(1, sent_ns=5)
    run.decode()
    table = built(run)
    assert table["target"].to_list() == [0, 1, 5, None]
    assert table["model"].to_list() == [0, 0, 1, 1]


def test_a_turn_that_follows_another_is_due_when_that_one_has_ended(run, sent):
    run.plan([("measured", 4)], turns=2, due_ns=30, row=lambda i: {"follows": i % 2})
    sent(0, 1)
    table = built(run)
    assert table["due_ns"].to_list() == [1_000, 1_001, 530, None]
    assert table["fault"].to_list()[2:] == [unseen.NO_SLOT, unseen.NOT_OVER]


@pytest.mark.parametrize(("due_ns", "known"), [(399, 899), (400, None)])
def test_what_was_due_after_the_load_had_stopped_was_never_due(run, due_ns, known):
    run.plan([("measured", 1)], due_ns=due_ns)
    assert built(run)["due_ns"].to_list() == [known]


@pytest.mark.parametrize("entries", [1, 1 << 20])
def test_turns_after_one_that_failed_are_not_sent_and_were_never_due(run, wire, monkeypatch, entries):
    monkeypatch.setattr(tables, "RANGE_ENTRIES", entries)
    run.plan([("measured", 6)], turns=3, due_ns=30)
    recorder = run.recorder()
    recorder.flight(0, [(1, b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")])
    recorder.flight(3, [(1, wire.head + wire.token("a") + wire.finish())])
    run.decode()
    table = built(run)
    assert table["outcome"].to_list() == ["http-server-error", *["not-sent"] * 2, "ok", *["not-sent"] * 2]
    assert table["fault"].to_list()[1:3] == [unseen.TURN_FAILED] * 2
    assert table["fault"].to_list()[4:] == [unseen.NOT_OVER] * 2
    assert table["due_ns"].to_list() == [0, None, None, 0, 530, 530]


def test_the_mark_of_a_phases_end_is_no_request(run, sent):
    run.plan([("warmup", 2), ("measured", 2)], firsts=(0, 100))
    writer = Writer(run.folder / "plan", (0, 100))
    writer.append([Draft(0, b"", -1, -1, 0, 0, 0)])
    writer.close()
    sent(0, 1, 100)
    table = built(run)
    assert table["request"].to_list() == [0, 1, 100, 101]
    assert table["outcome"].to_list() == ["ok", "ok", "ok", "not-sent"]


def test_every_phase_that_a_stop_ended_reaches_to_what_was_sent_of_it(run, sent):
    run.plan([("first", 4), ("second", 4)], firsts=(0, 100), stopped_by="user")
    changed(run, lambda log: [setattr(phase, "planned", 1) for phase in log.phases])
    sent(0, 2, 100, 101)
    assert built(run)["request"].to_list() == [0, 1, 2, 100, 101]
    assert [phase.planned for phase in tables.read_run(run.folder).phases] == [3, 2]


def test_a_phase_that_was_over_before_the_stop_keeps_its_rows(run, sent):
    run.plan([("first", 4), ("second", 4)], firsts=(0, 100), stopped_by="user")
    changed(run, lambda log: setattr(log.phases[0], "stop_ns", 800))
    changed(run, lambda log: setattr(log.phases[0], "planned", 1))
    sent(0, 2, 100)
    with pytest.raises(LoadstoneError, match="request 2 was sent but belongs to no phase"):
        tables.build(run.folder)


def test_a_run_log_that_counts_rows_far_beyond_the_plan(run):
    run.plan([("warmup", 2), ("measured", 2)], firsts=(0, 2_000_000))
    changed(run, lambda log: setattr(log.phases[0], "planned", 1_000_003))
    with pytest.raises(LoadstoneError, match="counts 1000003 rows from 0 on, but the plan has 2"):
        tables.build(run.folder)
