"""What each figure shows, in numbers: the data that its chart holds."""

from __future__ import annotations

import pytest

from loadstone.errors import UsageError
from loadstone.plot import figures, summaries
from loadstone.plot._look import COLORS, spec
from loadstone.plot._runs import read

FIGURES = ["concurrency", "latency-over-time", "offered-sent-queued", "request-rate"]


def drawn(name, *folders, labels=()):
    """Vega-Lite of a figure, and its data: the rows of every layer, the most first."""
    (figure,) = figures([name], len(folders)).values()
    found = spec(figure.chart(read(folders, labels)), None, "light")
    return found, sorted(found["datasets"].values(), key=len, reverse=True)


def column(rows, name, **where):
    return [row[name] for row in rows if all(row[key] == value for key, value in where.items())]


def axes(found):
    """The vertical axes of panels side by side."""
    return [panel["layer"][0]["encoding"]["y"]["title"] for panel in found["hconcat"]]


def test_every_figure_says_what_it_shows():
    assert list(summaries()) == FIGURES
    assert all(10 < len(summary) < 90 for summary in summaries().values())


def test_without_names_all_that_can_show_so_many_runs():
    assert list(figures([], 1)) == FIGURES
    assert list(figures([], 2)) == ["concurrency", "latency-over-time", "request-rate"]


def test_a_figure_of_one_run_refuses_two():
    with pytest.raises(UsageError, match="--figure offered-sent-queued: shows 1 run at a time and 2 folders"):
        figures(["offered-sent-queued"], 2)


def test_an_unknown_figure_names_the_nearest():
    with pytest.raises(UsageError, match=r"plot: there is no 'request-rates'\. Did you mean request-rate\?"):
        figures(["request-rates"], 1)


def test_a_constant_rate_is_a_flat_line_on_the_rate_asked_for(constant):
    found, (sent, asked) = drawn("request-rate", constant)
    assert found["title"]["text"] == "Request rate"
    assert found["title"]["subtitle"] == ["Counted in bins of 0.5 s. Dashed: the rate asked for."]
    assert column(sent, "rate")[:-2] == [10.0] * (len(sent) - 2)
    assert column(sent, "seconds")[-1] == pytest.approx(19.95, abs=0.01)
    assert column(asked, "rate") == [10.0, 10.0]
    assert column(asked, "seconds") == pytest.approx([0.0, 19.9])


def test_two_runs_are_two_lines_and_a_closed_loop_was_asked_for_no_rate(constant, run_folder, answer):
    closed = run_folder("closed", *(answer(at + 90, sent=at) for at in range(0, 2000, 100)), cap=1)
    _, (sent, asked) = drawn("request-rate", constant, closed)
    assert {row["run"] for row in sent} == {"constant 10/s", "concurrency 1"}
    assert column(asked, "rate") == [10.0, 10.0]


def test_a_rate_asked_of_two_runs_is_one_dashed_line(constant, run_folder, answer):
    rows = [answer(at + 50, sent=at) for at in range(0, 5000, 100)]
    poisson = run_folder("p", *rows, rate=10.0, load={"arrival_pattern": "poisson"}, end_ms=5000)
    _, (_, asked) = drawn("request-rate", constant, poisson)
    assert column(asked, "seconds") == pytest.approx([0.0, 19.9])
    faster = run_folder("f", *rows, rate=20.0, end_ms=5000)
    _, (_, asked) = drawn("request-rate", constant, poisson, faster)
    assert sorted(column(asked, "rate")) == [10.0, 10.0, 20.0, 20.0]


def test_a_ramp_is_asked_for_as_a_ramp(run_folder, answer):
    load = {"request_rate_ramp_s": 10.0, "request_rate_ramp_start": 5.0, "arrival_pattern": "constant"}
    rows = [answer(at + 50, sent=at) for at in range(0, 20_000, 100)]
    _, (_, asked) = drawn("request-rate", run_folder("ramp", *rows, rate=15.0, load=load, end_ms=20_000))
    assert column(asked, "rate")[0] == 5.0
    assert column(asked, "rate")[-1] == 15.0
    assert (10.0, 15.0) in [(row["seconds"], row["rate"]) for row in asked]


def test_no_dashes_lead_from_one_phase_to_the_next(run_folder, answer, phase_log):
    rows = [
        *(answer(at + 50, sent=at, phase="low") for at in range(0, 2000, 100)),
        *(answer(at + 50, sent=at, phase="high") for at in range(5000, 6000, 50)),
    ]
    logs = [phase_log("low", 0, 2000, planned=20), phase_log("high", 5000, 6000, planned=20)]
    load = {"phases": ({"name": "low", "request_rate": 10.0}, {"name": "high", "request_rate": 20.0})}
    _, (_, asked) = drawn("request-rate", run_folder("two", *rows, phases=logs, load=load))
    assert [(row["curve"], round(row["seconds"], 2), row["rate"]) for row in asked] == [
        (0, 0.0, 10.0),
        (0, 1.9, 10.0),
        (1, 5.0, 20.0),
        (1, 5.95, 20.0),
    ]


def test_the_queue_grows_and_ends_with_the_load(capped):
    found, (rates, queue) = drawn("offered-sent-queued", capped)
    assert "7 requests never sent." in " ".join(found["title"]["subtitle"])
    assert {row["kind"] for row in rates} == {"offered", "sent", "completed"}
    assert column(rates, "rate", kind="offered") == pytest.approx(
        [10.0] * len(column(rates, "rate", kind="offered"))
    )
    at = {round(row["seconds"], 3): row["level"] for row in queue}
    assert [at[0.1], at[0.3], at[0.4], at[0.8], at[0.9], at[1.0]] == [1, 3, 3, 6, 7, 0]


def test_the_queue_is_that_of_the_report(run_folder, answer, unsent):
    """A user's second turn is due at 100 ms, and sent at 400 ms, when the first has ended: it waited 300 ms. Its third is
    due at 500 ms and not sent before the stop; the fourth never became due."""
    rows = [
        answer(400, due=0, sent=0, conversation=1, turn=0),
        answer(900, due=100, sent=400, conversation=1, turn=1),
        unsent(500, conversation=1, turn=2),
        unsent(due_ns=None, conversation=1, turn=3),
    ]
    load = {"user_centric_rate": 10.0, "users": 1}
    found, (_, queue) = drawn("offered-sent-queued", run_folder("users", *rows, load=load))
    assert [(round(row["seconds"], 3), row["level"]) for row in queue] == [
        (0.0, 0),
        (0.1, 1),
        (0.4, 0),
        (0.5, 1),
        (1.0, 0),
    ]
    assert "1 request never sent." in " ".join(found["title"]["subtitle"])


def test_in_a_closed_loop_nothing_queues(run_folder, answer):
    closed = run_folder("closed", *(answer(at + 90, due=at, sent=at + 50) for at in range(0, 900, 100)))
    _, (_, queue) = drawn("offered-sent-queued", closed)
    assert [row["level"] for row in queue] == [0]


def test_latency_stands_from_sent_and_from_due(capped):
    found, layers = drawn("latency-over-time", capped)
    assert axes(found) == ["latency from sent, ms", "latency from due, ms"]
    points = sorted(tuple(round(row["latency"]) for row in layer) for layer in layers if len(layer) == 3)
    assert points[0] == (400, 400, 400)
    assert (400, 700, 1000) in points
    assert "Without the 7 requests that got no whole answer." in " ".join(found["title"]["subtitle"])


def test_a_closed_loop_has_no_latency_from_due(run_folder, answer):
    found, _ = drawn(
        "latency-over-time", run_folder("c", *(answer(at + 90, sent=at) for at in range(0, 900, 100)))
    )
    assert axes(found) == ["latency from sent, ms"]


def test_long_latencies_are_in_seconds(run_folder, answer):
    found, (points, *_) = drawn("latency-over-time", run_folder("l", answer(20_000, sent=0), end_ms=20_000))
    assert axes(found) == ["latency from sent, s"]
    assert column(points, "latency") == [20.0]


def test_many_points_are_thinned_and_the_figure_says_so(run_folder, answer):
    rows = [answer(at + (900 if at == 777 else 90), sent=at) for at in range(6000)]
    found, (points, *_) = drawn("latency-over-time", run_folder("many", *rows, cap=100, end_ms=7000))
    assert len(points) <= 2000
    assert max(column(points, "latency")) == 900
    assert f"{len(points):,} of 6,000 shown, the slowest among them" in " ".join(found["title"]["subtitle"])


def test_runs_without_an_answer_have_no_latency(run_folder, answer):
    failed = run_folder("failed", answer(sent=0, outcome="http-5xx", done=10.0))
    with pytest.raises(UsageError, match="no answer of these runs is whole"):
        drawn("latency-over-time", failed)


def test_concurrency_is_exact_and_stands_against_the_slots(capped):
    found, (in_flight, slots) = drawn("concurrency", capped)
    assert [(round(row["seconds"], 3), row["level"]) for row in in_flight] == [
        (0, 1),
        (0.4, 1),
        (0.8, 1),
        (1.2, 0),
    ]
    assert [(row["seconds"], row["level"]) for row in slots] == [(0, 1), (1, 1)]
    assert found["title"]["subtitle"] == ["Every step is shown. Dashed: slots."]


def test_slots_that_change_are_stairs(run_folder, answer):
    load = {"concurrency_ramp_s": 4.0}
    rows = [answer(at + 50, sent=at) for at in range(0, 8000, 1000)]
    _, layers = drawn("concurrency", run_folder("ramp", *rows, cap=4, load=load, end_ms=8000))
    levels = column(min(layers, key=lambda rows: "run" not in rows[0]), "level")
    stairs = next(layer for layer in layers if column(layer, "level")[-1] == 4)
    assert levels
    assert column(stairs, "level")[0] == 1
    assert column(stairs, "level") == sorted(column(stairs, "level"))


def test_more_runs_than_colours_differ_by_dashes(constant):
    folders, labels = [constant] * (COLORS + 1), [f"run {number}" for number in range(COLORS + 1)]
    found, _ = drawn("request-rate", *folders, labels=labels)
    dashes = found["layer"][0]["encoding"]["strokeDash"]["scale"]["range"]
    assert dashes[:COLORS] == [[1, 0]] * COLORS
    assert dashes[COLORS] != [1, 0]
    few, _ = drawn("request-rate", constant)
    assert "strokeDash" not in few["layer"][0]["encoding"]
