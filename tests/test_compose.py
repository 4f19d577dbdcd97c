"""The plan of a run: what it depends on, where it ends, and that any process can go on with it."""

from __future__ import annotations

import json
import time
from itertools import islice

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadstone import compose
from loadstone.board import Board, Field
from loadstone.child import Child
from loadstone.compose import ROWS_BEYOND, ComposeJob, ComposerOrder, Composition, beforehand, drafts
from loadstone.config import InputConfig, LoadConfig
from loadstone.endpoints import Ask
from loadstone.errors import UsageError
from loadstone.plan import schedule
from loadstone.plan.choices import Choice
from loadstone.plan.schedule import Phase
from loadstone.plan.store import ANY_TARGET, ROW, read_requests, read_rows, rows_file

S = 1_000_000_000
MS = 1_000_000
SEVERAL = {"turns_mean": 3.0, "turns_stddev": 2.0, "think_mean_ms": 40.0, "think_stddev_ms": 9.0}
CLOSED = Phase(name="measured", kind="measured", pattern="closed", slots=1)


@pytest.fixture
def job(tmp_path):
    """A job for a load given as in the configuration, or for `phases`; keys of the input and the job go where they belong."""

    def make(phases=None, **given):
        of_input = {
            "isl_mean": 20.0,
            "isl_stddev": 5.0,
            "osl_mean": 5.0,
            "osl_stddev": 2.0,
            "tokenizer": "none",
        }
        of_job = {"endpoint": "chat", "seed": 7, "source": "synthetic", "ask": Ask(model="m", streaming=True)}
        load = {}
        for key, value in given.items():
            here = of_input if key in InputConfig.__struct_fields__ else load
            (of_job if key in ComposeJob.__struct_fields__ else here)[key] = value
        return ComposeJob(
            folder=str(tmp_path / "plan"),
            input=InputConfig(**of_input),
            template_tokens=0,
            phases=schedule.phases(LoadConfig(**load)) if phases is None else phases,
            **of_job,
        )

    return make


@pytest.fixture
def file_job(job, tmp_path):
    """The same with a file of the lines given."""

    def make(*lines, **rest):
        file = tmp_path / "requests.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return job(source="timed", file=str(file), **rest)

    return make


def closed(**changes):
    return msgspec.structs.replace(CLOSED, **changes)


def numbered(*phases):
    """Phases a thousand rows apart."""
    return [msgspec.structs.replace(phase, first_row=1_000 * at) for at, phase in enumerate(phases)]


def taken(job, n=None, number=0, start=0):
    return list(islice(drafts(job, number, start), n))


def requests(rows):
    return [row for row in rows if row.body]


def marks(rows):
    """How many marks of the end there are; nothing but marks may follow the first."""
    end = len(requests(rows))
    assert not any(row.body for row in rows[end:])
    return len(rows) - end


def messages(row):
    return [message["content"] for message in msgspec.json.decode(row.body)["messages"]]


def split(rows):
    """Rows by conversation; each opens and ends as it should."""
    found = []
    for row in rows:
        if row.opens:
            found.append([])
        assert row.opens == (not found[-1])
        found[-1].append(row)
    assert all([row.final for row in one] == [0] * (len(one) - 1) + [1] for one in found)
    return found


def test_a_row_holds_the_request_of_its_endpoint(job):
    (first,) = taken(job(request_count=1))
    body = msgspec.json.decode(first.body)
    assert body["model"] == "m"
    assert body["max_completion_tokens"] == first.osl_tokens
    assert len(body["messages"][0]["content"].split()) == first.isl_tokens
    assert first._replace(body=b"", isl_tokens=0, osl_tokens=0) == (-1, b"", 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1)


def test_what_nobody_said_is_unknown(job, file_job):
    (row,) = taken(job(request_count=1, osl_mean=None, osl_stddev=0.0))
    assert (row.osl_tokens, row.isl_tokens > 0) == (-1, True)
    rows = requests(
        taken(
            file_job(
                {"session_id": 1, "input_length": 3}, {"session_id": 1, "text_input": "a"}, {"session_id": 1},
                phases=[closed(requests=3)],
            )
        )
    )  # fmt: skip
    assert [row.isl_tokens for row in rows] == [3, -1, -1]


SHAPES = [
    {"request_count": 30},
    {"request_count": 30, "request_rate": 9.0},
    {"request_count": 30, "concurrency": 4, "cancellation_percent": 40.0, **SEVERAL},
    {"request_count": 30, "user_centric_rate": 5.0, "users": 4, **SEVERAL},
    {"request_count": 30, "duration_s": 2.0, "request_rate": 9.0},
    {"duration_s": 2.0, "request_rate": 9.0, **SEVERAL},
    {"sessions": 6, **SEVERAL},
    {"duration_s": 9.0, **SEVERAL},
]


@pytest.mark.parametrize("load", SHAPES)
@pytest.mark.parametrize("start", [0, 1, 2, 3, 5, 8, 13, 21, 29, 30, 31, 50, 93, 94, 95])
def test_any_process_can_go_on_where_another_stopped(job, load, start):
    one = job(**load, target_choice=Choice(among=3, strategy="random"), models=("a", "b"))
    one = msgspec.structs.replace(one, model_choice=Choice(among=2, weights=(3, 1)))
    assert taken(one, 100, start=start) == taken(one, 100 + start)[start:]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(1, 60), start=st.integers(0, 60), turns=st.floats(1, 9))
def test_a_count_is_exact_and_its_rows_can_be_resumed(job, count, start, turns):
    one = job(request_count=count, turns_mean=turns, turns_stddev=2.0, isl_mean=3.0)
    rows = taken(one)
    assert len(rows) == count
    assert taken(one, start=start) == rows[start:]
    assert [row.turn for conversation in split(rows) for row in conversation] == [
        turn for conversation in split(rows) for turn in range(len(conversation))
    ]


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(job):
    def rows(seed):
        return taken(job(seed=seed, request_count=20, request_rate=5.0))

    assert rows(1) == rows(1)
    assert {row.body for row in rows(1)}.isdisjoint({row.body for row in rows(2)})
    assert [row.due_ns for row in rows(1)] != [row.due_ns for row in rows(2)]


@pytest.mark.parametrize("load", SHAPES[:4])
def test_more_requests_leave_the_first_ones_as_they_were(job, load):
    few, many = taken(job(**load)), taken(job(**{**load, "request_count": 300}))
    if "users" in load:  # their turns are cut by the moment, and not in the order of the plan
        many.sort(key=lambda row: row.due_ns)
        few.sort(key=lambda row: row.due_ns)
    assert [row._replace(final=0) for row in few] == [row._replace(final=0) for row in many[:30]]


@pytest.mark.parametrize("load", [{}, {"request_rate": 5.0}, SEVERAL])
def test_a_warm_up_does_not_shift_what_is_measured(job, load):
    alone = taken(job(request_count=15, **load))
    both = job(request_count=15, warmup_request_count=4, **load)
    warmup, measured = taken(both, number=0), taken(both, number=1)
    assert [row.phase for row in warmup] == [0] * 4
    assert [row._replace(phase=0) for row in measured] == alone
    assert {row.body for row in warmup}.isdisjoint({row.body for row in alone})


def test_no_phase_repeats_what_another_asked(job):
    names = ["warmup", "first", "second", "cooldown"]
    kinds = ["warmup", "measured", "measured", "cooldown"]
    phases = numbered(*(closed(name=n, kind=k, requests=40) for n, k in zip(names, kinds, strict=True)))
    several = job(phases=phases)
    bodies = [row.body for number in range(4) for row in taken(several, number=number)]
    assert len(set(bodies)) == 160
    alone = taken(job(phases=[closed(name="other", requests=40)]))
    assert [row._replace(phase=1) for row in alone] == taken(several, number=1)


def test_choices_of_one_phase_say_nothing_of_those_of_another(job):
    chance = Choice(among=2, strategy="random")
    phases = numbered(*(closed(name=n, requests=200, cancelled_share=0.5) for n in "ab"))
    one = job(phases=phases, target_choice=chance, models=("a", "b"), model_choice=chance)
    first, second = taken(one, number=0), taken(one, number=1)
    columns = [
        [getattr(row, name) for row in rows]
        for rows in (first, second)
        for name in ("target", "model", "cancelled")
    ]
    for at, column in enumerate(columns):
        for other in columns[:at]:
            agreeing = sum(x == y for x, y in zip(column, other, strict=True))
            assert abs(agreeing - 100) < 4 * 50**0.5


def test_asking_for_other_answers_leaves_the_prompts_as_they_were(job):
    def prompts(osl):
        return [messages(row) for row in taken(job(osl_mean=osl, request_count=9))]

    assert prompts(5.0) == prompts(500.0)


@pytest.mark.parametrize("load", [{}, SEVERAL])
def test_a_closed_loop_of_given_duration_has_no_last_row(job, load):
    rows = taken(job(duration_s=1.0, **load), 500)
    assert len(requests(rows)) == 500
    assert {row.due_ns for row in rows if row.opens} == {-1}


def test_an_open_loop_of_given_duration_ends_with_marks_for_every_worker(job):
    rows = taken(job(duration_s=2.0, request_rate=10.0, arrival_pattern="constant"))
    assert [row.due_ns for row in requests(rows)] == [i * S // 10 for i in range(20)]
    assert marks(rows) == ROWS_BEYOND == 64


def test_of_duration_and_count_the_shorter_one_wins(job):
    load = {"request_rate": 10.0, "arrival_pattern": "constant"}
    by_count = taken(job(duration_s=100.0, request_count=5, **load))
    by_duration = taken(job(duration_s=1.0, request_count=5_000, **load))
    assert (len(requests(by_count)), marks(by_count)) == (5, 0)
    assert (len(requests(by_duration)), marks(by_duration)) == (10, ROWS_BEYOND)


def test_conversations_that_have_begun_go_on_to_their_last_turn(job):
    rows = taken(job(sessions=12, **SEVERAL))
    assert len(split(requests(rows))) == 12
    assert requests(rows) == taken(job(duration_s=9.0, **SEVERAL), len(requests(rows)))
    assert marks(rows) == ROWS_BEYOND


def test_a_later_turn_carries_the_questions_before_it(job):
    rows = taken(job(request_count=60, **SEVERAL))
    conversations = split(rows)
    assert len(conversations) > 12
    for conversation in conversations:
        for row in conversation:
            said = messages(row)
            assert said == messages(conversation[-1])[: row.turn + 1]
            assert row.isl_tokens == sum(len(text.split()) for text in said)
            assert row.follows == (row.turn > 0)
            assert (row.due_ns > 0) == (row.turn > 0)
            assert msgspec.json.decode(row.body)["max_completion_tokens"] == row.osl_tokens
    assert len({row.osl_tokens for row in rows}) > 3


def test_a_conversation_that_the_count_cuts_ends_there(job):
    rows = taken(job(request_count=8, turns_mean=5.0))
    assert [(row.conversation, row.turn, row.final) for row in rows] == [
        *((0, turn, int(turn == 4)) for turn in range(5)),
        *((1, turn, int(turn == 2)) for turn in range(3)),
    ]


def test_a_user_in_the_middle_of_a_conversation_has_asked_before(job):
    rows = taken(job(request_count=40, user_centric_rate=8.0, users=8, turns_mean=4.0))
    begun = split(rows)[:8]
    assert sorted(one[0].turn for one in begun) == [0, 0, 1, 1, 2, 2, 3, 3]
    for one in begun:
        assert [len(messages(row)) for row in one] == list(range(one[0].turn + 1, len(one) + one[0].turn + 1))
        assert one[0].isl_tokens == sum(len(text.split()) for text in messages(one[0]))


def test_a_conversation_keeps_its_server_and_its_model(job):
    one = job(
        request_count=60, target_choice=Choice(among=3), models=("x", "y"), model_choice=Choice(among=2), **SEVERAL
    )  # fmt: skip
    for row in taken(one):
        assert row.target == row.conversation % 3
        assert row.model == row.conversation % 2
        assert msgspec.json.decode(row.body)["model"] == "xy"[row.model]


@pytest.mark.parametrize("field", ["target", "model"])
def test_weights_are_kept_by_chance(job, field):
    choice = Choice(among=2, weights=(3, 1))
    one = job(
        request_count=4_000, isl_mean=1.0, isl_stddev=0.0, models=("a", "b"), **{f"{field}_choice": choice}
    )
    first = sum(getattr(row, field) == 0 for row in taken(one))
    assert abs(first - 3_000) < 4 * (4_000 * 0.75 * 0.25) ** 0.5


def test_the_least_busy_server_is_left_open(job):
    one = job(request_count=9, target_choice=Choice(among=3, strategy="least-in-flight"))
    assert {row.target for row in taken(one)} == {ANY_TARGET}


def test_requests_are_cancelled_when_they_are_measured(job):
    one = job(
        request_count=4_000, isl_mean=1.0, isl_stddev=0.0, cancellation_percent=10.0, warmup_request_count=400
    )
    assert not any(row.cancelled for row in taken(one, number=0))
    rows = taken(one, number=1)
    assert abs(sum(row.cancelled for row in rows) - 400) < 4 * (4_000 * 0.1 * 0.9) ** 0.5
    plain = taken(job(request_count=4_000, isl_mean=1.0, isl_stddev=0.0))
    assert [row._replace(cancelled=0, phase=0) for row in rows] == plain


def test_a_file_is_asked_again_until_the_count_is_reached(file_job):
    rows = taken(
        file_job(*({"timestamp": 1_000 * n, "input_length": n + 1} for n in range(4)), request_count=10)
    )
    assert [row.isl_tokens for row in rows] == [1, 2, 3, 4, 1, 2, 3, 4, 1, 2]
    assert [row.body for row in rows[4:8]] == [row.body for row in rows[:4]]
    assert [row.conversation for row in rows] == list(range(10))
    assert {row.due_ns for row in rows} == {-1}


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4, 60])
def test_a_fixed_schedule_ends_with_its_file(file_job, start):
    one = file_job(
        {"timestamp": 2_000, "input_length": 1, "session_id": 1},
        {"timestamp": 1_000, "input_length": 2},
        {"timestamp": 9_000, "input_length": 3, "session_id": 1},
        {"delay": 5, "input_length": 4, "session_id": 1},
        fixed_schedule=True,
        request_count=9,
    )
    rows = taken(one)
    assert [(row.isl_tokens, row.due_ns, row.follows, row.final) for row in requests(rows)] == [
        (2, 1 * S, 0, 1),
        (1, 2 * S, 0, 0),
        (4, 9 * S, 0, 0),
        (8, 5 * MS, 1, 1),
    ]
    assert marks(rows) == ROWS_BEYOND
    assert taken(one, start=start) == rows[start:]


def test_a_phase_that_nothing_bounds_ends_with_its_file(file_job):
    one = file_job({"input_length": 1}, {"input_length": 2}, phases=[closed()])
    rows = taken(one)
    assert [row.isl_tokens for row in requests(rows)] == [1, 2]
    assert marks(rows) == ROWS_BEYOND


def test_a_fixed_schedule_without_timestamps_is_refused(file_job):
    with pytest.raises(UsageError, match="timestamp"):
        taken(file_job({"input_length": 1}, fixed_schedule=True))


def test_a_phase_without_a_count_ends_before_the_numbers_of_the_next(job):
    first = closed(name="warmup", kind="warmup", duration_ns=S)
    phases = [first, msgspec.structs.replace(CLOSED, first_row=100, requests=5)]
    rows = taken(job(phases=phases))
    assert (len(requests(rows)), marks(rows), len(rows)) == (36, 64, 100)
    several = taken(job(phases=phases, turns_mean=5.0))
    assert [len(one) for one in split(requests(several))] == [5] * 7 + [1]


def stored(tmp_path, phases):
    """Rows that every phase has on disk, marks included."""
    return [(tmp_path / "plan" / rows_file(phase.first_row)).stat().st_size // ROW.size for phase in phases]


def bodies(tmp_path, first=0, stop=None):
    return [body for _, body in read_requests(tmp_path / "plan", first, stop)]


@pytest.fixture
def at_once(monkeypatch):
    """Nothing is composed beforehand but what is needed, ten rows at a time."""
    monkeypatch.setattr(compose, "BEFOREHAND_S", 0.0)
    monkeypatch.setattr(compose, "BATCH_REQUESTS", 10)


def test_what_is_composed_beforehand_is_bounded_by_time(job, at_once, tmp_path):
    assert not beforehand(job(request_count=11))
    assert len(list(read_rows(tmp_path / "plan"))) == 10


def test_a_short_plan_is_complete_before_the_start(job, tmp_path):
    one = job(request_count=600, warmup_request_count=7, isl_mean=3.0)
    assert beforehand(one)
    assert bodies(tmp_path) == [row.body for number in (0, 1) for row in taken(one, number=number)]
    assert [row.request for row in read_rows(tmp_path / "plan")] == list(range(607))
    assert beforehand(one)
    assert stored(tmp_path, one.phases) == [7, 600]


@pytest.mark.parametrize(
    ("load", "rows"),
    [
        ({"concurrency": 20}, [40]),
        ({"concurrency": 20, "turns_mean": 7.0}, [280]),
        ({"request_rate": 15.0, "arrival_pattern": "constant"}, [40]),
        ({"request_rate": 15.0, "arrival_pattern": "constant", "concurrency": 30}, [60]),
        ({"request_rate": 30.0, "arrival_pattern": "constant", "request_rate_ramp_s": 2.0}, [40]),
        ({"request_rate": "inf", "concurrency": 20}, [40]),
        ({"request_rate": "inf"}, [1_000]),
        ({"warmup_request_count": 50}, [10, 10]),
        ({"warmup_request_count": 5, "concurrency": 12}, [5, 30]),
        ({"warmup_duration_s": 60.0, "concurrency": 20}, [40, 40]),
    ],
)
def test_what_the_start_of_every_phase_needs_is_composed_however_long_it_takes(
    job, at_once, tmp_path, load, rows
):
    one = job(request_count=1_000, **load)
    beforehand(one)
    assert stored(tmp_path, one.phases) == rows


def test_of_users_everything_is_composed_that_is_due_in_the_first_seconds(job, at_once, tmp_path):
    one = job(request_count=1_000, user_centric_rate=60.0, users=9, turns_mean=3.0)
    assert not beforehand(one)
    (there,) = stored(tmp_path, one.phases)
    soon = [at for at, row in enumerate(taken(one)) if row.due_ns < 2 * S]
    assert len(soon) == 120
    assert max(soon) < there < 300


def test_of_a_fixed_schedule_the_first_seconds_are_composed(file_job, at_once, tmp_path):
    moments = [0] * 35 + [1_999, 2_000] + [2_001] * 40
    one = file_job(*({"timestamp": at, "input_length": 1} for at in moments), fixed_schedule=True)
    assert not beforehand(one)
    assert stored(tmp_path, one.phases) == [40]


def test_a_conversation_is_stored_whole(job, at_once, tmp_path):
    one = job(request_count=1_000, turns_mean=7.0)
    beforehand(one)
    seen = stored(tmp_path, one.phases)
    plan = Composition(one)
    while plan.unfinished() is not None:
        plan.grow(0)
        seen += stored(tmp_path, one.phases)
    plan.close()
    assert seen[:3] == [14, 28, 42]
    assert [rows % 7 for rows in seen if rows < 1_000] == [0] * (len(seen) - seen.count(1_000))
    assert bodies(tmp_path) == [row.body for row in taken(one)]


def test_phases_are_composed_in_their_order_ahead_of_the_row_that_is_wanted(
    job, at_once, tmp_path, monkeypatch
):
    monkeypatch.setattr(compose, "AHEAD_REQUESTS", 100)
    phases = [
        closed(name="warmup", kind="warmup", requests=30),
        closed(first_row=30, requests=500),
        closed(first_row=530, name="second", requests=500),
    ]
    one = job(phases=phases)
    beforehand(one)
    plan = Composition(one)

    def grown(wanted):
        while (number := plan.unfinished(wanted)) is not None and not plan.is_ahead(number, wanted):
            plan.grow(number)
        return stored(tmp_path, phases)

    assert stored(tmp_path, phases) == [10, 10, 10]
    assert grown(0) == [30, 70, 10]
    assert grown(29) == [30, 100, 10]
    assert grown(30) == [30, 100, 10]
    assert grown(510) == [30, 500, 80]
    assert grown(530) == [30, 500, 100]
    assert grown(1_000) == [30, 500, 500]
    plan.close()


def test_a_phase_that_is_over_is_not_composed_any_more(job, at_once, tmp_path, monkeypatch):
    monkeypatch.setattr(compose, "AHEAD_REQUESTS", 100)
    phases = numbered(closed(name="warmup", kind="warmup", duration_ns=S), closed(slots=100, requests=900))
    one = job(phases=phases)
    beforehand(one)
    plan = Composition(one)
    assert stored(tmp_path, phases) == [10, 200]
    assert plan.unfinished(0) == 0
    assert not plan.is_ahead(0, 0), "what a later phase has is not ahead in this one"
    assert plan.unfinished(999) == 0
    assert plan.unfinished(1_000) == 1
    assert plan.is_ahead(1, 1_000)
    assert not plan.is_ahead(1, 1_101)
    plan.close()


def test_the_composer_is_not_ahead_by_more_than_some_bytes(job, at_once, monkeypatch):
    one = job(request_count=1_000, isl_stddev=0.0)
    beforehand(one)
    plan = Composition(one)
    monkeypatch.setattr(compose, "AHEAD_BYTES", 10 * len(taken(one, 1)[0].body) * 2)
    assert plan.is_ahead(0, 0) is False
    plan.grow(0)
    plan.grow(0)
    assert plan.is_ahead(0, 0) is True
    assert plan.is_ahead(0, 20) is False
    plan.close()


@pytest.mark.timeout(30)
def test_the_composer_goes_on_ahead_of_the_worker_that_is_furthest(job, monkeypatch, tmp_path):
    one = job(request_count=5_600)
    with monkeypatch.context() as patch:
        patch.setattr(compose, "BEFOREHAND_S", 0.0)
        patch.setattr(compose, "BATCH_REQUESTS", 300)
        beforehand(one)
    board = Board(tmp_path / "board", 2, create=True)  # of a worker that lives and one that died at once
    child = Child("loadstone.compose", tmp_path / "log")
    child.tell(ComposerOrder(job=one, board=str(tmp_path / "board"), blocks=2, workers=2))

    def rows():
        return stored(tmp_path, one.phases)[0]

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
    found = bodies(tmp_path)
    assert found[::500] == [row.body for row in taken(one)[::500]]
    assert len(found) == 5_600
    assert (tmp_path / "log").read_bytes() == b""


@pytest.mark.timeout(30)
def test_the_composer_goes_from_phase_to_phase(job, monkeypatch, tmp_path):
    phases = numbered(
        closed(name="warmup", kind="warmup", duration_ns=S, first_row=0),
        closed(requests=700),
    )
    phases[1] = msgspec.structs.replace(phases[1], first_row=10_000_000)
    one = job(phases=phases, **SEVERAL)
    with monkeypatch.context() as patch:
        patch.setattr(compose, "BEFOREHAND_S", 0.0)
        beforehand(one)
    before = stored(tmp_path, phases)
    board = Board(tmp_path / "board", 1, create=True)
    board.block(0)[Field.WANTED] = 10_000_000
    child = Child("loadstone.compose", tmp_path / "log")
    child.tell(ComposerOrder(job=one, board=str(tmp_path / "board"), blocks=1, workers=1))
    assert child.hear_line(30) is None, "it ends when no phase that is still to come lacks a row"
    assert child.close() == 0
    board.close()
    assert stored(tmp_path, phases) == [before[0], 700]
    assert bodies(tmp_path, 10_000_000) == [row.body for row in taken(one, number=1)]


@pytest.mark.timeout(30)
def test_the_composer_ends_with_its_parent(job, tmp_path):
    Board(tmp_path / "board", 1, create=True).close()
    child = Child("loadstone.compose", tmp_path / "log")
    child.tell(ComposerOrder(job=job(duration_s=1_000.0), board=str(tmp_path / "board"), blocks=1, workers=1))
    assert child.close() == 0


def test_a_phase_that_some_worker_is_still_in_is_gone_on_with(job, monkeypatch, tmp_path):
    phases = numbered(closed(requests=9_000), closed(requests=9_000, seamless=True))
    phases[1] = msgspec.structs.replace(phases[1], first_row=9_000)
    monkeypatch.setattr(compose, "AHEAD_REQUESTS", 500)
    plan = Composition(job(phases=phases))
    for number in (0, 1, 1, 1):
        plan.grow(number)
    composed = compose.BATCH_REQUESTS
    assert plan.behind([composed, composed]) == 0
    assert plan.behind([composed, 9_010]) == 0
    assert plan.behind([9_010, 9_010]) is None
    plan.close()
