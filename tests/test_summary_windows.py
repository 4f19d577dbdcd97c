"""The numbers of stretches of time: which requests are theirs, and what arrived in them."""

from __future__ import annotations

import pytest

from loadstone.checks import Evidence
from loadstone.config import OutputConfig
from loadstone.metrics import Tables, all_metrics
from loadstone.summary.groups import METRICS, lengths, turns
from loadstone.summary.measure import measure
from loadstone.summary.notices import notices
from loadstone.summary.windows import MOST_SLICES, slices, windows


def measured(tables):
    return {name: measure(one, tables) for name, one in all_metrics().items()}


@pytest.fixture
def told(frame, run_log):
    """The windows of a run with these rows, by name."""

    def of(*rows, **run):
        table, log = frame(*rows).lazy(), run_log(**{"planned": len(rows), **run})
        tables = Tables.read(table, log)
        return {window.name: window for window in windows(table, Evidence(tables, measured(tables)))}

    return of


@pytest.fixture
def sliced(frame, run_log):
    """The tables of a run that is to be told in slices of `seconds`."""
    import msgspec

    def of(seconds, *rows, **run):
        log = run_log(**{"planned": len(rows), **run})
        log.config["output"] = msgspec.to_builtins(OutputConfig(slice_duration_s=seconds))
        return Tables.read(frame(*rows).lazy(), log)

    return of


def cut(tables):
    return slices(Evidence(tables, measured(tables)))


def mean(window, name):
    return window.metrics[name].mean


def test_slices_have_the_requests_sent_in_them_and_the_tokens_that_came(sliced, answer):
    run = sliced(1, answer(500, 1000, 1500, sent=0), answer(2200, sent=900), answer(2500, sent=2000))
    first, second, last = cut(run)
    assert [one.name for one in (first, second, last)] == ["0-1 s", "1-2 s", "2-2.5 s"]
    assert [one.planned for one in (first, second, last)] == [2, 0, 1]
    assert [one.complete for one in (first, second, last)] == [True, True, False]
    assert mean(first, "request_latency") == 1400.0
    # A token at 1,000 ms is the second slice's; the last event of all is the last one's.
    assert [mean(one, "output_token_throughput") for one in (first, second, last)] == [1.0, 2.0, 4.0]
    assert [mean(one, "request_throughput") for one in (first, second, last)] == [0.0, 1.0, 4.0]
    assert mean(first, "concurrency") == pytest.approx(1.1)
    assert mean(second, "concurrency") == pytest.approx(1.5)
    assert second.metrics["request_latency"].reason == "no request succeeded."


def test_tokens_of_all_slices_add_up_to_the_whole(sliced, answer):
    rows = [answer(*range(100 * i + 7, 100 * i + 907, 30), sent=100 * i, tokens=60) for i in range(40)]
    run = sliced(0.7, *rows)
    found = cut(run)
    tokens = sum(mean(one, "output_token_throughput") * (one.end_s - one.start_s) for one in found)
    assert tokens == pytest.approx(60 * 40)
    assert sum(one.planned for one in found) == 40
    assert sum(one.share for one in found) == pytest.approx(1.0)


def test_a_whole_number_of_slices_has_no_incomplete_one(sliced, answer):
    assert [one.complete for one in cut(sliced(0.5, answer(200, 1000, sent=0)))] == [True, True]


def test_without_being_asked_for_there_are_no_slices(tables, answer):
    assert cut(tables(answer(50))) == ()


def test_too_many_slices_are_said_to_be(sliced, answer):
    run = sliced(0.001, answer(50, 1000 * MOST_SLICES, sent=0))
    assert cut(run) == ()
    evidence = Evidence(run, measured(run))
    assert any("--slice-duration 0.001 makes 2,000,000 slices" in notice for notice in notices(evidence))


def test_an_answer_that_came_whole_counts_where_it_ended(sliced, answer):
    row = answer(sent=0, done=1500, tokens=9, streamed=False) | {"arrival_ns": None, "read_ns": None}
    found = cut(sliced(1, row, streaming=False))
    assert [mean(one, "output_token_throughput") for one in found] == [0.0, 18.0]


def test_what_was_measured_has_the_numbers_of_the_report(told, answer):
    found = told(answer(50, 100, sent=0), answer(80, 300, sent=10))
    assert set(found) == {"measured", "steady"}
    window = found["measured"]
    assert (window.start_s, window.end_s, window.share, window.planned) == (0.0, 0.3, 1.0, 2)
    assert mean(window, "request_latency") == 195.0
    assert mean(window, "output_token_throughput") == pytest.approx(4 / 0.3)


def test_the_whole_run_has_its_warm_up_as_well(told, answer, phase_log):
    logs = [phase_log("warm", -500, -100, kind="warmup", planned=1), phase_log("measured", 0, 500, planned=1)]
    found = told(answer(-300, sent=-500, phase="warm"), answer(100, sent=0), phases=logs)
    whole = found["whole"]
    assert (whole.start_s, whole.end_s, whole.planned) == (-0.5, 0.1, 2)
    assert mean(whole, "request_latency") == 150.0
    assert found["measured"].planned == 1


def test_a_steady_state_has_what_came_and_who_was_sent_in_it(told, answer):
    # Two slots; at the end one answer that takes four seconds alone.
    rows = [answer(50 * i + 10, 50 * i + 100, sent=50 * i) for i in range(200)]
    found = told(*rows, answer(10_100, 14_000, sent=10_000), cap=2, end_ms=14_000)["steady"]
    assert (found.level, found.level_is) == (2.0, "cap")
    assert found.start_s == pytest.approx(0.05, abs=0.06)
    assert found.end_s == pytest.approx(10.0, abs=0.11)
    assert mean(found, "output_token_throughput") == pytest.approx(40.0, rel=0.02)
    assert mean(found, "concurrency") == pytest.approx(2.0, rel=0.02)
    assert [trend.found for trend in found.trends] == [False] * 3


def test_without_a_steady_state_it_is_said_why(told, answer):
    found = told(answer(50), cap=1)["steady"]
    assert (found.start_s, found.metrics, found.planned) == (None, {}, 0)
    assert "too short for a steady state" in found.reason


def test_turns_have_numbers_of_their_own_and_late_ones_share_them(tables, answer):
    rows = [
        answer(100 * t + 10 * t + 10, sent=100 * t, turn=t, conversation=0, input_tokens=10)
        for t in range(12)
    ]
    run = tables(*rows)
    found = turns(Evidence(run, measured(run)))
    assert [(one.name, one.planned) for one in found] == [*((str(t), 1) for t in range(8)), ("8+", 4)]
    assert [one.metrics["request_latency"].mean for one in found[:3]] == [10.0, 20.0, 30.0]
    assert sum(one.metrics["request_throughput"].mean for one in found) == pytest.approx(12 / run.window_s)
    assert set(found[0].metrics) == {name for name in METRICS if not name.endswith("_from_due")}


def test_where_no_conversation_goes_on_there_are_no_turns(tables, answer):
    run = tables(answer(5, turn=0), answer(6, turn=0))
    assert turns(Evidence(run, measured(run))) == ()


def test_prompts_of_many_lengths_are_told_by_powers_of_two(tables, answer, unsent):
    of = [100, 127, 128, 255, 256, 1000]
    rows = [answer(10 * n, sent=0, input_tokens=length) for n, length in enumerate(of, 1)]
    never = unsent(due=5) | {"input_tokens": None, "planned_input_tokens": 300}
    unknown = unsent(due=5) | {"input_tokens": None}
    run = tables(*rows, never, unknown, rate=9)
    found = lengths(Evidence(run, measured(run)))
    assert [(one.name, one.planned) for one in found] == [("64-127", 2), ("128-255", 2), ("256-511", 2), ("512-1023", 1)]  # fmt: skip
    assert [one.metrics["request_latency"].mean for one in found] == [15.0, 35.0, 50.0, 60.0]
    assert found[2].counts == {"ok-length": 1, "not-sent": 1}


def test_prompts_about_as_long_are_in_no_bucket(tables, answer):
    run = tables(answer(5, input_tokens=1000), answer(6, input_tokens=1100))
    assert lengths(Evidence(run, measured(run))) == ()


def test_a_saturated_server_came_to_none(told, answer):
    # Ten a second are due; one takes 0.2 s, one after the other.
    rows = [answer(200 * i + 150, 200 * i + 200, sent=100 * i, due=100 * i) for i in range(100)]
    found = told(*rows, rate=10, end_ms=10_000)["steady"]
    assert found.start_s is None
    assert found.reason == "requests waited longer and longer until the load ended, so there was none."


def test_behind_a_limit_that_holds_the_queue_there_is_one(told, answer):
    rows = [answer(200 * i + 150, 200 * i + 200, sent=200 * i, due=100 * i) for i in range(100)]
    found = told(*rows, rate=10, cap=1, end_ms=20_000)["steady"]
    assert (found.level, found.level_is) == (1.0, "cap")
    assert found.share > 0.95
