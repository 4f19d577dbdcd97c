"""The plan of a run: what it depends on, where it ends, and that any process can go on with it."""

from __future__ import annotations

import time
from itertools import islice

import msgspec
import pytest

from loadstone import compose
from loadstone.board import Board, Field
from loadstone.child import Child
from loadstone.compose import ROWS_BEYOND, ComposeJob, ComposerOrder, drafts
from loadstone.config import InputConfig, LoadConfig
from loadstone.endpoints import Ask
from loadstone.plan import schedule
from loadstone.plan.store import ROW, ROWS, Writer, read_requests, read_rows

S = 1_000_000_000


@pytest.fixture
def job(tmp_path):
    """A job for a load given as in the configuration."""

    def make(seed=7, isl=20.0, osl=5.0, entries=None, **load):
        return ComposeJob(
            folder=str(tmp_path / "plan"),
            source="synthetic",
            input=InputConfig(
                isl_mean=isl, isl_stddev=5.0, osl_mean=osl, osl_stddev=2.0, tokenizer="none", entries=entries
            ),
            endpoint="chat",
            ask=Ask(model="m", streaming=True),
            seed=seed,
            template_tokens=0,
            phases=schedule.phases(LoadConfig(**load)),
        )

    return make


def phase(rows, number):
    return [row for row in rows if row.phase == number]


def test_a_row_holds_the_request_of_its_endpoint(job):
    first = next(drafts(job(request_count=1)))
    body = msgspec.json.decode(first.body)
    assert body["model"] == "m"
    assert body["max_completion_tokens"] == first.osl_tokens
    assert len(body["messages"][0]["content"].split()) == first.isl_tokens
    assert (first.due_ns, first.conversation, first.turn, first.phase) == (-1, 0, 0, 0)


@pytest.mark.parametrize(
    "load",
    [
        {"request_count": 30},
        {"request_count": 30, "request_rate": 9.0, "warmup_request_count": 7},
        {"duration_s": 2.0, "request_rate": 9.0, "warmup_request_count": 7},
        {"duration_s": 2.0, "request_rate": 9.0, "request_count": 12},
    ],
)
@pytest.mark.parametrize("start", [0, 1, 6, 7, 8, 20])
def test_any_process_can_go_on_where_another_stopped(job, load, start):
    one = job(**load)
    rows = list(islice(drafts(one), 60))
    assert list(islice(drafts(one, start), 60 - start)) == rows[start:]


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(job):
    def rows(seed):
        return list(drafts(job(seed=seed, request_count=20, request_rate=5.0)))

    assert rows(1) == rows(1)
    assert {row.body for row in rows(1)}.isdisjoint({row.body for row in rows(2)})
    assert [row.due_ns for row in rows(1)] != [row.due_ns for row in rows(2)]


@pytest.mark.parametrize("load", [{"request_count": 15}, {"request_count": 15, "request_rate": 5.0}])
def test_a_warm_up_does_not_shift_what_is_measured(job, load):
    alone = list(drafts(job(**load)))
    both = list(drafts(job(**load, warmup_request_count=4)))
    warmup, measured = phase(both, 0), phase(both, 1)
    assert len(warmup) == 4
    assert [row._replace(phase=0) for row in measured] == alone
    assert {row.body for row in warmup}.isdisjoint({row.body for row in alone})


def test_asking_for_other_answers_leaves_the_prompts_as_they_were(job):
    def prompts(osl):
        return [msgspec.json.decode(row.body)["messages"] for row in drafts(job(osl=osl, request_count=9))]

    assert prompts(5.0) == prompts(500.0)


def test_a_count_bounds_the_rows(job):
    assert len(list(drafts(job(request_count=12)))) == 12


def test_a_closed_loop_of_given_duration_has_no_last_row(job):
    assert len(list(islice(drafts(job(duration_s=1.0)), 500))) == 500


def test_an_open_loop_of_given_duration_has_some_rows_beyond_it(job):
    rows = list(drafts(job(duration_s=2.0, request_rate=10.0, arrival_pattern="constant")))
    assert [row.due_ns for row in rows[:21]] == [i * S // 10 for i in range(21)]
    assert sum(row.due_ns >= 2 * S for row in rows) == ROWS_BEYOND


def test_of_duration_and_count_the_shorter_one_wins(job):
    load = {"request_rate": 10.0, "arrival_pattern": "constant"}
    assert len(list(drafts(job(duration_s=100.0, request_count=5, **load)))) == 5
    assert len(list(drafts(job(duration_s=1.0, request_count=5_000, **load)))) == 10 + ROWS_BEYOND


@pytest.mark.parametrize(
    ("limit", "stored", "complete"),
    [(None, 9, True), (20, 9, True), (9, 9, False), (4, 4, False), (0, 0, False)],
)
def test_rows_are_stored_up_to_a_limit(job, tmp_path, monkeypatch, limit, stored, complete):
    monkeypatch.setattr(compose, "BATCH_REQUESTS", 4)
    writer = Writer(tmp_path / "plan")
    assert compose.compose(drafts(job(request_count=9)), writer, limit) is complete
    writer.close()
    assert len(list(read_rows(tmp_path / "plan"))) == stored


def test_what_is_composed_beforehand_is_bounded_by_time(job, monkeypatch, tmp_path):
    monkeypatch.setattr(compose, "BEFOREHAND_S", 0.0)
    monkeypatch.setattr(compose, "BATCH_REQUESTS", 10)
    assert not compose.beforehand(job(request_count=11))
    assert len(list(read_rows(tmp_path / "plan"))) == 10


@pytest.mark.parametrize(
    ("load", "rows"),
    [
        ({"concurrency": 20}, 40),
        ({"request_rate": 15.0}, 30),
        ({"warmup_request_count": 50}, 60),
    ],
)
def test_what_the_start_needs_is_composed_however_long_it_takes(job, monkeypatch, tmp_path, load, rows):
    monkeypatch.setattr(compose, "BEFOREHAND_S", 0.0)
    monkeypatch.setattr(compose, "BATCH_REQUESTS", 10)
    assert not compose.beforehand(job(request_count=1_000, **load))
    assert len(list(read_rows(tmp_path / "plan"))) == rows


@pytest.mark.timeout(30)
def test_the_composer_goes_on_ahead_of_the_worker_that_is_furthest(job, monkeypatch, tmp_path):
    one = job(request_count=5_600)
    with monkeypatch.context() as patch:
        patch.setattr(compose, "BEFOREHAND_S", 0.0)
        patch.setattr(compose, "BATCH_REQUESTS", 300)
        compose.beforehand(one)
    board = Board(tmp_path / "board", 2, create=True)  # of a worker that lives and one that died at once
    child = Child("loadstone.compose", tmp_path / "log")
    child.tell(ComposerOrder(job=one, board=str(tmp_path / "board"), blocks=2))

    def rows():
        return (tmp_path / "plan" / ROWS).stat().st_size // ROW.size

    def until(there):
        deadline = time.monotonic() + 20
        while rows() < there and time.monotonic() < deadline:
            time.sleep(0.01)
        return rows()

    assert until(5_050) == 5_050  # 300, and batches of 250 until 5,000 are ahead
    time.sleep(0.1)
    assert rows() == 5_050
    board.block(1)[Field.WANTED] = 400
    assert until(5_550) == 5_550
    board.block(1)[Field.WANTED] = 5_000
    assert child.hear_line(30) is None, "it ends when the plan is complete"
    assert child.close() == 0
    board.close()
    stored = [body for _, body in read_requests(tmp_path / "plan")]
    assert stored[::500] == [row.body for row in list(drafts(one))[::500]]
    assert len(stored) == 5_600
    assert (tmp_path / "log").read_bytes() == b""


@pytest.mark.timeout(30)
def test_the_composer_ends_with_its_parent(job, tmp_path):
    Board(tmp_path / "board", 1, create=True).close()
    child = Child("loadstone.compose", tmp_path / "log")
    child.tell(ComposerOrder(job=job(duration_s=1_000.0), board=str(tmp_path / "board"), blocks=1))
    assert child.close() == 0
