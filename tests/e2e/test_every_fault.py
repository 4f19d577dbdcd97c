"""Every fault that `loadstone simulate` can show, through the command line: outcome, counts, times, exit code."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import polars as pl
import pytest

from loadstone.errors import Exit
from loadstone.read.outcome import SUCCESSES
from loadstone.sim.faults import FAULTS

TOKENS, REQUESTS = 5, 600
LIMITS = (
    "--connect-timeout-seconds 2 --first-token-timeout-seconds 1.2 --idle-timeout-seconds 1.5"
    " --request-timeout-seconds 3 --max-response-bytes 25000000"
)
LOAD = f"--model sim --streaming --isl 16 --osl {TOKENS} --seed 1 {LIMITS}"
OF_A_REQUEST = [fault for fault in FAULTS.values() if not fault.whole_server]
OF_THE_SERVER = [fault.name for fault in FAULTS.values() if fault.whole_server]


# ---- all of them mixed, in one run ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mixed_engine(simulate):
    return simulate("--fault all")


@pytest.fixture(scope="module")
def mixed(profile, mixed_engine):
    """A run in which every request met a fault, and the outcome of each by the fault's name."""
    words = f"--concurrency 24 --request-count {REQUESTS} --failed-request-threshold 1"
    run = profile(f"--url {mixed_engine.url} {LOAD} {words}")
    truth = mixed_engine.truth(run, 1)
    faults = {row.request_id: row.fault for row in truth.values()}
    rows = run.requests.select("request_id", "outcome", "fault").rows()
    return run, [(faults.get(request_id), outcome, words) for request_id, outcome, words in rows]


def test_every_request_has_the_outcome_of_its_fault(mixed):
    _, rows = mixed
    wrong = [
        (name, outcome, words) for name, outcome, words in rows if name and outcome != FAULTS[name].outcome
    ]
    assert wrong == []
    assert sum(name is not None for name, _, _ in rows) == REQUESTS


def test_most_faults_were_met(mixed):
    _, rows = mixed
    assert len({name for name, _, _ in rows}) > 0.9 * len(OF_A_REQUEST)


def test_the_outcomes_add_up(mixed):
    run, rows = mixed
    assert run.report.outcomes.planned == REQUESTS == sum(run.counts.values())
    assert Counter(outcome for _, outcome, _ in rows) == run.counts
    assert run.counts.keys() <= {fault.outcome for fault in OF_A_REQUEST}


def test_the_times_of_every_request_are_in_order(mixed):
    run, _ = mixed
    table = run.requests
    order = ["due_ns", "sent_ns", "first_ns", "last_ns", "done_ns"]
    for earlier, later in pairwise(order):
        late = table.select((pl.col(later) < pl.col(earlier)).fill_null(False)).to_series()
        assert late.sum() == 0, (earlier, later)
    succeeded = table.filter(pl.col("outcome").is_in(list(SUCCESSES)))
    assert succeeded["fault"].null_count() == len(succeeded)
    assert table.filter(~pl.col("outcome").is_in(list(SUCCESSES)))["fault"].null_count() == 0


def test_no_byte_of_a_server_is_shown_raw(mixed):
    run, _ = mixed
    shown = run.out + run.err + (run.path / "report.json").read_text() + (run.path / "report.csv").read_text()
    assert not {char for char in shown if char < " " and char not in "\n\r"} - {"\t"}
    assert "\u202e" not in shown


# ---- one by one ---------------------------------------------------------------------------------------------


def exit_of(fault, run):
    """The exit code of a run of nothing but this fault; a busy machine may speak against it."""
    if fault.outcome not in SUCCESSES:
        return Exit.FAILED
    return Exit.INVALID if run.report.certificate.verdict == "INVALID" else Exit.DONE


def expected(name, **columns):
    return pytest.param(name, columns, id=name)


FIRST_MS, GAP_MS = 70, 20
WHOLE = {"output_tokens": TOKENS, "events": TOKENS}


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        *(
            expected(name, **WHOLE)
            for name in (
                "crlf", "cr", "no-space", "many-spaces", "comments", "bom", "one-byte-segments", "utf8-cut",
                "reasoning-content", "tool-calls-null", "delta-null", "usage-late", "usage-cumulative",
                "done-missing", "done-then-open", "http-206", "http-103",
            )
        ),
        expected("unfinished-last-event", **WHOLE, unfinished_event=True),
        expected("one-segment", **WHOLE, coalesced=True),
        expected("coarse", output_tokens=10, events=2),
        expected("one-token", output_tokens=1, events=1),
        expected("two-choices", output_tokens=2 * TOKENS, events=2 * TOKENS, choices=2),
        expected("usage-zero", output_tokens_source="tokenizer", events=TOKENS),
        expected("usage-absurd", output_tokens_source="tokenizer", events=TOKENS),
        expected("usage-doubled", output_tokens=2 * TOKENS, events=TOKENS),
        expected("json-for-stream", output_tokens=TOKENS, events=0, streamed=False),
        expected("gzip", **WHOLE, compressed="gzip"),
        expected("redirect-307", **WHOLE, redirects=1),
        expected("eof", events=3),
        expected("reset", events=3),
        expected("error-mid", events=3),
        expected("stall", events=3),
        expected("http-429", http_status=429, retry_after_s=1.0),
        expected("http-401", http_status=401, events=0),
    ],
)  # fmt: skip
def test_what_is_counted(profile, simulate, name, columns):
    engine = simulate(f"--fault {name}")
    run = profile(f"--url {engine.url} {LOAD} --request-count 2 --concurrency 2")
    fault = FAULTS[name]
    assert run.counts == {fault.outcome: 2}
    table = run.requests.with_columns(events=pl.col("arrival_ns").list.len())
    assert {column: table[column].to_list() for column in columns} == {
        column: [value] * 2 for column, value in columns.items()
    }
    assert run.against == ([] if fault.outcome in SUCCESSES else ["succeeded"]), run.out
    assert run.code == exit_of(fault, run), run.out
    truth = engine.truth(run, 3)
    for row in table.rows(named=True):
        sent = truth[row["request_id"]]
        if row["first_ns"] is not None and not row["coalesced"]:
            assert row["first_ns"] >= sent.first_sent_ns
            assert row["first_ns"] - row["sent_ns"] >= FIRST_MS * 1e6
        if row["first_ns"] is not None and name != "one-byte-segments":  # there the end of an event goes last
            assert row["last_ns"] >= sent.last_sent_ns
    engine.stop()


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [fault.name for fault in OF_A_REQUEST])
def test_alone_and_without_a_stream(profile, simulate, name):
    """Every fault by itself, as it was declared; unstreamed as well where it does not need a stream."""
    engine, fault = simulate(f"--fault {name}"), FAULTS[name]
    run = profile(f"--url {engine.url} {LOAD} --request-count 3 --concurrency 3")
    assert run.counts == {fault.outcome: 3}
    assert run.code == exit_of(fault, run), run.out
    engine.stop()


# ---- the whole server ---------------------------------------------------------------------------------------


def test_a_server_that_dies_ends_the_run(profile, simulate):
    engine = simulate("--fault dies-after:30 --step-ms 1")
    run = profile(f"--url {engine.url} {LOAD} --request-count 5000 --concurrency 4")
    assert run.code == Exit.FAILED
    assert run.log.stopped_by == "failures"
    assert run.counts["connect-refused"] >= 20
    assert sum(run.counts.values()) == run.report.outcomes.planned
    assert run.out.startswith("STOPPED"), run.out


def test_a_server_that_comes_back_is_used_again(profile, simulate):
    engine = simulate("--fault restarts:20 --step-ms 1")
    run = profile(
        f"--url {engine.url} {LOAD} --request-count 200 --concurrency 4 --failed-request-threshold 1"
    )
    outcomes = run.requests["outcome"].to_list()
    refused = [number for number, outcome in enumerate(outcomes) if outcome == "connect-refused"]
    assert refused
    assert outcomes[-1] in SUCCESSES
    assert run.code in (Exit.DONE, Exit.INVALID)
