"""Every shape of load as it was recorded: due as planned to the nanosecond, planned as its law says, sent at that rate.

What a busy machine may change, the moments of sending, is judged by medians, or where the run itself shows that it was
on time.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.e2e.shapes import SHAPES, Recorded, fit, flags, phases_file
from tests.plan.ks import exponential, p_value

QUICK = "--isl 16 --osl 1 --seed 4"
COUNT = 160
EVERY_DAY = ("constant", "poisson", "gamma-0.5", "conditioned", "up", "grow", "series")
"""The others are recorded by the slow test alone."""
BY_FOUR = ("constant", "poisson", "up", "by-index", "burst", "area")
"""Shapes that four workers send as well."""
NAMES = pytest.mark.parametrize("name", EVERY_DAY)
DRAWN = pytest.mark.parametrize("name", [name for name in EVERY_DAY if SHAPES[name].gaps])


@pytest.fixture(scope="module")
def null(simulate):
    return simulate("--null")


@pytest.fixture(scope="module")
def recorded(good, null, tmp_path_factory):
    """Shapes as phases of one run, of 1 worker; and some of them again in a run of 4."""
    phases = [
        *({"name": name, "request_count": COUNT, **SHAPES[name].keys} for name in EVERY_DAY),
        {"name": "by-index", "request_count": COUNT, "index_ramp_strategy": "linear",
         "index_ramp_start": 100, "index_ramp_end": 400},
        {"name": "burst", "request_count": COUNT, "request_rate": "inf"},
        {"name": "area", "duration_s": 0.6, "request_rate": 400, "request_rate_ramp_s": 0.5,
         "arrival_pattern": "constant"},
    ]  # fmt: skip
    home = tmp_path_factory.mktemp("config")
    some = [phase for phase in phases if phase["name"] in BY_FOUR]
    files = {1: phases_file(home / "all.toml", *phases), 4: phases_file(home / "some.toml", *some)}
    return {n: good(f"--url {null.url} --config {file} {QUICK} --workers {n}") for n, file in files.items()}


def recordings(recorded, name):
    """Of one shape by every number of workers."""
    return [Recorded(run, name) for workers, run in recorded.items() if workers == 1 or name in BY_FOUR]


@pytest.fixture(scope="module")
def one(recorded):
    return recorded[1]


@NAMES
def test_every_request_is_recorded_once_and_due_as_planned(recorded, name):
    for phase in recordings(recorded, name):
        phase.holds_the_plan()
        assert phase.facts.counts == {"ok-length": COUNT}
        assert phase.facts.offered == phase.facts.sent == COUNT


@NAMES
def test_due_times_obey_the_law_of_their_process(one, name):
    phase = Recorded(one, name)
    assert fit(SHAPES[name], phase.due_s) > 0.001
    # The law tells this process from one whose rate is a level, and from one that is more or less even.
    others = [law for other, law in SHAPES.items() if law.gaps is not SHAPES[name].gaps]
    assert min(fit(other._replace(area=SHAPES[name].area), phase.due_s) for other in others) < 0.001


@DRAWN
def test_gaps_between_sends_are_those_of_the_process(one, name):
    phase = Recorded(one, name)
    if phase.blur_s() > 0.5 / 250:
        pytest.skip("the machine was too busy: how late requests were sent differs by half a gap")
    assert fit(SHAPES[name], phase.sent_s, phase.blur_s() * 250) > 0.001


@NAMES
def test_requests_are_sent_at_the_rate_at_which_they_are_due(recorded, name):
    for phase in recordings(recorded, name):
        assert phase.drift() < 0.001 + 0.002 / phase.due_s[-1]


@pytest.mark.parametrize("name", BY_FOUR)
def test_the_plan_is_the_same_for_every_number_of_workers(recorded, name):
    """And whatever other phases there are."""
    one, four = recordings(recorded, name)
    assert (one.table["worker"].n_unique(), four.table["worker"].n_unique()) == (1, 4)
    assert four.asked == one.asked


def test_no_two_phases_ask_or_arrive_alike(one):
    bodies = [str(body) for body in one.bodies]
    assert len(set(bodies)) == len(bodies) == one.report.outcomes.planned
    assert Recorded(one, "poisson").due_s != Recorded(one, "conditioned").due_s


def test_constant_arrivals_are_exact(one):
    assert [row.due_ns for row in Recorded(one, "constant").plan] == [4_000_000 * i for i in range(COUNT)]


def test_conditioned_arrivals_end_at_n_over_rate_and_others_do_not(one):
    assert Recorded(one, "conditioned").plan[-1].due_ns == COUNT * 4_000_000
    assert Recorded(one, "poisson").plan[-1].due_ns != COUNT * 4_000_000
    told = {name: Recorded(one, name).arrivals.words for name in ("conditioned", "poisson")}
    assert told == {
        "conditioned": "poisson 250 requests/s, conditioned",
        "poisson": "poisson 250 requests/s, unconditioned",
    }


def test_the_area_of_a_ramp_is_the_number_sent(one):
    """0 to 400 within 0.5 s and 400 for 0.1 s: 100 + 40 arrivals, the next of which would be due at the end."""
    phase = Recorded(one, "area")
    phase.holds_the_plan()
    assert phase.facts.sent == len(phase.plan) == 140
    assert phase.arrivals.curve == (
        {"start_s": 0.0, "rate": 0.0, "end_rate": 400.0, "span_s": 0.5, "course": "linear"},
    )


def test_a_ramp_by_index_changes_with_the_number(one):
    phase = Recorded(one, "by-index")
    phase.holds_the_plan()
    due_s = [0.0, *phase.due_s]
    gaps = [
        (after - before) * (100 + 300 * i / (COUNT - 1)) for i, (before, after) in enumerate(pairwise(due_s))
    ]
    assert p_value(gaps, exponential()) > 0.001
    assert phase.facts.counts == {"ok-length": COUNT}


def test_of_a_burst_everything_is_due_at_once(one):
    phase = Recorded(one, "burst")
    phase.holds_the_plan()
    assert {row.due_ns for row in phase.plan} == {0}
    assert phase.facts.counts == {"ok-length": COUNT}


def test_the_account_adds_up_over_all_phases(recorded):
    for run, shapes in zip(recorded.values(), (len(EVERY_DAY) + 2, len(BY_FOUR) - 1), strict=True):
        load = run.report.load
        planned = shapes * COUNT + 140
        assert (load.offered, load.sent, load.not_sent, load.never_due) == (planned, planned, 0, 0)
        assert sum(phase.planned for phase in run.report.phases) == planned
        assert sum(run.report.series.offered) == sum(run.report.series.sent) == planned
        assert (run.report.targets, run.report.models) == ((), ()), "there is one of each"


# ---- plans that grow ------------------------------------------------------------------------------------


def rows_alike(run):
    """Rows, but for what the end of the plan says of the last one."""
    return [(row._replace(final=1), body) for row, body in Recorded(run, "measured").asked]


@pytest.fixture(scope="module")
def grown(good, null, simulate):
    """The same load of 60 requests and of 150, over two servers, with cancellations; by three workers and by one."""
    words = (
        f"--url {null.url} --url {simulate('--null').url} --url-strategy random --request-cancellation-rate 20"
        f" --conversation-turn-mean 2 --conversation-turn-stddev 1 {QUICK} --request-rate 400"
    )
    return [good(f"{words} --request-count {n} --workers {w}") for n, w in ((60, 3), (150, 1))]


def test_a_longer_plan_begins_like_a_shorter_one(grown):
    short, long = map(rows_alike, grown)
    assert [len(short), len(long)] == [60, 150]
    assert long[:60] == short
    assert {row.target for row, _ in long} == {0, 1}
    assert 0 < sum(row.cancelled for row, _ in short) < 60


# ---- given times and users ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Timestamps, ms, in any order of the file."""
    path = tmp_path_factory.mktemp("input") / "trace.jsonl"
    at_ms = [1000 + (i * i * 37) % 700 + i / 8 for i in range(60)]
    lines = [
        f'{{"timestamp": {at}, "input_length": {8 + i}, "output_length": 1}}' for i, at in enumerate(at_ms)
    ]
    path.write_text("\n".join(lines))
    return path, at_ms


def fixed(good, null, given, more):
    path, at_ms = given
    run = good(f"--url {null.url} --fixed-schedule --input-file {path} {more}")
    Recorded(run, "measured").holds_the_plan()
    assert run.counts == {"ok-length": len(run.requests)}
    return run, sorted((at, 8 + i) for i, at in enumerate(at_ms))


def test_a_fixed_schedule_is_kept_to_the_nanosecond(good, null, given):
    run, asked = fixed(good, null, given, "--fixed-schedule-auto-offset --workers 2")
    assert run.due_ns == [round((at - asked[0][0]) * 1e6) for at, _ in asked]
    assert run.requests["planned_input_tokens"].to_list() == [tokens for _, tokens in asked]
    assert run.report.load.bound_by == "load" or run.check("offered_load").verdict != "VALID"


def test_offsets_leave_out_what_is_earlier_and_later(good, null, given):
    bounds = "--fixed-schedule-start-offset 1200 --fixed-schedule-end-offset 1500"
    run, asked = fixed(good, null, given, bounds)
    kept = [at for at, _ in asked if 1200 <= at <= 1500]
    assert 0 < len(kept) < len(asked)
    assert run.due_ns == [round((at - 1200) * 1e6) for at in kept]


def test_users_send_a_turn_every_users_over_rate(good, null):
    run = good(
        f"--url {null.url} {QUICK} --user-centric-rate 100 --num-users 8 --conversation-turn-mean 3"
        " --request-count 120 --workers 2"
    )
    phase = Recorded(run, "measured")
    phase.holds_the_plan()
    assert len(run.requests) == 120
    assert {gap for gaps in user_gaps(phase).values() for gap in gaps} == {80_000_000}
    first_turns = [row.turn for row in phase.plan if row.opens][:8]
    assert set(first_turns) == {0, 1, 2}, "users are met at any turn of their first conversation"
    assert run.report.load.arrivals[0].words.startswith("8 users, 100 requests/s")


def user_gaps(phase):
    """The gaps between the turns of every conversation."""
    found = {}
    for row in phase.plan:
        found.setdefault(row.conversation, []).append(row.due_ns)
    return {number: [after - before for before, after in pairwise(due)] for number, due in found.items()}


# ---- each by itself -------------------------------------------------------------------------------------


def longer(shape):
    """Of a ramp one five times as long; and for how many requests."""
    if "request_rate_ramp_s" not in shape.keys:
        return shape, 600 if "request_rate" in shape.keys else 200
    keys = {**shape.keys, "request_rate_ramp_s": 5.0}
    return shape._replace(keys=keys, area=lambda t: 5 * shape.area(t / 5)), 800


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_each_shape_by_its_flags(good, null, name):
    shape, count = longer(SHAPES[name])
    words = f"--url {null.url} {QUICK} {flags(shape.keys)}"
    run = good(f"{words} --request-count {count} --workers 1")
    phase = Recorded(run, "measured")
    phase.holds_the_plan()
    assert run.counts == {"ok-length": count}
    assert fit(shape, phase.due_s) > 0.001
    assert shape.area(phase.due_s[-1]) == pytest.approx(count, abs=4 * shape.cv * count**0.5 + 1.01)
    assert phase.drift() < 0.001
    if (
        phase.blur_s() < 0.1 / 250
    ):  # how near the recorded rate itself comes is for `bench open_loop` to judge
        assert shape.gaps is None or fit(shape, phase.sent_s) > 0.001
    if "conditioned" not in shape.keys:
        half = good(f"{words} --request-count {count // 2} --workers 4")
        assert [row.due_ns for row in Recorded(half, "measured").plan] == [
            row.due_ns for row in phase.plan[: count // 2]
        ]
