"""Every fault that `loadstone simulate` can show, through the command line: outcome, counts, times, exit code."""

from __future__ import annotations

import unicodedata
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import polars as pl
import pytest

from loadstone.errors import Exit
from loadstone.read.outcome import SUCCESSES
from loadstone.sim.faults import FAULTS
from loadstone.terminal import HIDDEN

TOKENS = 5
LOAD = (
    f"--model sim --isl 16 --osl {TOKENS} --seed 1 --connect-timeout-seconds 2 --idle-timeout-seconds 2"
    " --request-timeout-seconds 5 --max-response-bytes 6000000"
)
STREAMED = f"{LOAD} --streaming --first-token-timeout-seconds 3"
MANY = "--concurrency 32 --failed-request-threshold 1 --request-count"
OF_A_REQUEST = [fault.name for fault in FAULTS.values() if not fault.whole_server]
OF_ANY_REQUEST = [name for name in OF_A_REQUEST if not FAULTS[name].needs]


class Mixed(NamedTuple):
    """A run in which every request met a fault."""

    run: object
    truth: dict
    """What the server says, by the request's id."""
    names: list[str]
    """The faults."""
    requests: int
    streamed: bool

    @property
    def rows(self):
        """Of every request the fault it met, its outcome, and what was said of it."""
        found = self.run.requests.select("request_id", "outcome", "fault").rows()
        return [(self.truth[request_id].fault, outcome, words) for request_id, outcome, words in found]


def mix(profile, simulate, names, requests, streamed=True):
    engine = simulate(" ".join(f"--fault {name}" for name in names))
    run = profile(f"--url {engine.url} {STREAMED if streamed else LOAD} {MANY} {requests}")
    truth = engine.truth(run, requests + 1)  # and the preflight
    engine.stop()
    return Mixed(run, truth, names, requests, streamed)


# ---- all of them mixed ------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[True, False], ids=["streamed", "unstreamed"])
def mixed(profile, simulate, request):
    """All faults that hit requests for a stream, or for none."""
    if request.param:
        return mix(profile, simulate, OF_A_REQUEST, 600)
    return mix(profile, simulate, OF_ANY_REQUEST, 300, streamed=False)


def test_every_request_has_the_outcome_of_its_fault(mixed):
    wrong = [
        (name, outcome, words)
        for name, outcome, words in mixed.rows
        if outcome != FAULTS[name].outcome_of(mixed.streamed)
    ]
    assert wrong == []


def test_most_faults_were_met(mixed):
    assert len({name for name, _, _ in mixed.rows}) > 0.9 * len(mixed.names)


def test_the_outcomes_add_up(mixed):
    run = mixed.run
    run.adds_up()
    assert run.report.outcomes.planned == mixed.requests
    assert Counter(outcome for _, outcome, _ in mixed.rows) == run.counts
    assert run.counts.keys() <= {FAULTS[name].outcome_of(mixed.streamed) for name in mixed.names}


def test_the_times_of_every_request_are_in_order(mixed):
    table = mixed.run.requests
    order = ["due_ns", "sent_ns", "first_ns", "last_ns", "done_ns"]
    for earlier, later in pairwise(order):
        late = table.select((pl.col(later) < pl.col(earlier)).fill_null(False)).to_series()
        assert late.sum() == 0, (earlier, later)


def test_what_failed_has_its_reason_and_nothing_else_has_one(mixed):
    table = mixed.run.requests
    succeeded = table["outcome"].is_in(list(SUCCESSES))
    assert table.filter(succeeded)["fault"].null_count() == succeeded.sum()
    assert table.filter(~succeeded)["fault"].null_count() == 0


NO_TEXT = {".parquet", ".http", ".bin"}
"""`.http` is what a server said, byte for byte."""


def hidden(text):
    """The characters that a terminal would not show as they are, but for line ends."""
    return {char for char in text if char != "\n" and unicodedata.category(char) in HIDDEN}


def test_no_byte_of_a_server_is_shown_raw(mixed):
    run = mixed.run
    files = [path for path in run.path.rglob("*") if path.is_file() and path.suffix not in NO_TEXT]
    shown = {str(path.relative_to(run.path)): hidden(path.read_bytes().decode()) for path in files}
    assert {name: characters for name, characters in shown.items() if characters} == {}
    assert shown.keys() >= {
        "report.json", "report.csv", "requests.jsonl", "loadstone.log", "summary.txt", "run.json", "faults/index.jsonl",
    }  # fmt: skip
    assert hidden(run.out) == hidden(run.err) == set()


# ---- what is counted ----------------------------------------------------------------------------------------

FIRST_MS = 70
WHOLE = {"output_tokens": TOKENS, "events": TOKENS}
COUNTED = {
    **dict.fromkeys(
        (
            "crlf", "cr", "no-space", "many-spaces", "comments", "bom", "one-byte-segments", "utf8-cut",
            "reasoning-content", "tool-calls-null", "delta-null", "usage-late", "usage-cumulative",
            "done-missing", "done-then-open", "http-206", "http-103",
        ),
        WHOLE,
    ),
    "unfinished-last-event": {**WHOLE, "unfinished_event": True},
    "one-segment": {**WHOLE, "coalesced": True},
    "coarse": {"output_tokens": 10, "events": 2},
    "one-token": {"output_tokens": 1, "events": 1},
    "two-choices": {"output_tokens": 2 * TOKENS, "events": 2 * TOKENS, "choices": 2},
    "usage-zero": {"output_tokens_source": "tokenizer", "events": TOKENS},
    "usage-absurd": {"output_tokens_source": "tokenizer", "events": TOKENS},
    "usage-doubled": {"output_tokens": 2 * TOKENS, "events": TOKENS},
    "json-for-stream": {"output_tokens": TOKENS, "events": 0, "streamed": False},
    "gzip": {**WHOLE, "compressed": "gzip"},
    "redirect-307": {**WHOLE, "redirects": 1},
    "eof": {"events": 3},
    "reset": {"events": 3},
    "error-mid": {"events": 3},
    "stall": {"events": 3},
    "http-429": {"http_status": 429, "retry_after_s": 1.0},
    "http-401": {"http_status": 401, "events": 0},
}  # fmt: skip


@pytest.fixture(scope="module")
def counted(profile, simulate):
    """Some faults, so often that each is met: one in thirty thousand such runs would miss one."""
    return mix(profile, simulate, list(COUNTED), 500)


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_counted(counted, name):
    met = [request_id for request_id, sent in counted.truth.items() if sent.fault == name]
    table = counted.run.requests.filter(pl.col("request_id").is_in(met))
    table = table.with_columns(events=pl.col("arrival_ns").list.len())
    assert len(table) == len(met) > 0
    for column, value in COUNTED[name].items():
        assert set(table[column]) == {value}, column


def test_no_token_came_before_it_was_sent(counted):
    table = counted.run.requests.filter(pl.col("first_ns").is_not_null())
    assert len(table) > 300
    for row in table.rows(named=True):
        sent = counted.truth[row["request_id"]]
        if sent.fault == "one-byte-segments":  # there the end of an event goes before that of its chunk
            continue
        if not row["coalesced"]:
            assert row["first_ns"] >= sent.first_sent_ns
            assert row["first_ns"] - row["sent_ns"] >= FIRST_MS * 1e6
        assert row["last_ns"] >= sent.last_sent_ns


# ---- one by one ---------------------------------------------------------------------------------------------


def exit_of(fault, run):
    """The exit code of a run of nothing but this fault; a busy machine may speak against it."""
    if fault.outcome not in SUCCESSES:
        return Exit.FAILED
    return Exit.INVALID if run.report.certificate.verdict == "INVALID" else Exit.DONE


EVERYDAY = {"crlf", "json-for-stream", "eof", "stall", "http-429"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in EVERYDAY else pytest.mark.slow) for name in OF_A_REQUEST],
)
def test_a_run_of_nothing_but_one_fault_ends_as_it_was_declared(profile, simulate, name):
    engine, fault = simulate(f"--fault {name}"), FAULTS[name]
    run = profile(f"--url {engine.url} {STREAMED} --request-count 3 --concurrency 3")
    engine.stop()
    assert run.counts == {fault.outcome: 3}
    assert run.against == ([] if fault.outcome in SUCCESSES else ["succeeded"]), run.out
    assert run.code == exit_of(fault, run), run.out


# ---- the whole server ---------------------------------------------------------------------------------------


def test_a_server_that_dies_ends_the_run(profile, simulate):
    engine = simulate("--fault dies-after:30 --step-ms 1")
    run = profile(f"--url {engine.url} {STREAMED} --request-count 5000 --concurrency 4")
    assert run.code == Exit.FAILED
    assert run.log.stopped_by == "failures"
    assert run.counts["connect-refused"] >= 20
    assert sum(run.counts.values()) == run.report.outcomes.planned
    assert run.out.startswith("STOPPED"), run.out


def test_a_server_that_comes_back_is_used_again(profile, simulate):
    engine = simulate("--fault restarts:20 --step-ms 1")
    run = profile(
        f"--url {engine.url} {STREAMED} --request-count 200 --concurrency 4 --failed-request-threshold 1"
    )
    outcomes = run.requests["outcome"].to_list()
    refused = [number for number, outcome in enumerate(outcomes) if outcome == "connect-refused"]
    assert refused
    assert outcomes[-1] in SUCCESSES
    assert run.code in (Exit.DONE, Exit.INVALID)
