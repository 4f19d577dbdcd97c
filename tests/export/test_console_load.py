"""What the summary says of the load, and of phases, servers and models beside each other."""

from __future__ import annotations

from msgspec.structs import replace

from loadstone.export._groups import groups
from loadstone.export._load import load
from loadstone.export._tables import distributions
from loadstone.export.console import render
from loadstone.report import Arrivals, Group, Growth, MetricResult, Outcomes, PhaseFacts, Report

CAPPED = "constant 50 requests/s, at most 2 in flight"


def open_loop(report: Report, **facts: object) -> Report:
    """The same with due times, and with these facts on its load."""
    arrivals = (Arrivals(phase="measured", words=CAPPED, pattern="constant"),)
    return replace(report, load=replace(report.load, **{"arrivals": arrivals, "timed": True, **facts}))


def capped(report: Report, **facts: object) -> Report:
    return open_loop(
        report, **{"offered": 1500, "sent": 462, "not_sent": 1038, "queue_growing": True, "bound_by": "cap", **facts}
    )  # fmt: skip


def test_a_closed_loop_says_nothing_of_offered_and_sent(valid: Report) -> None:
    assert load(valid, 100) == []
    assert "offered" not in render(valid, width=100, color=False)


def test_an_open_loop_that_kept_up_has_one_line(valid: Report) -> None:
    assert load(open_loop(valid), 100) == ["offered 200 · sent 200 · send lag p99 0.2 ms"]


def test_what_was_not_sent_stands_below_what_ran(valid: Report) -> None:
    shown = render(capped(valid), width=120, color=False).split("\n\n")[1].splitlines()
    assert shown == [
        f"M · chat, streaming · {CAPPED} · http://localhost:8000",
        "200 requests: 200 ok · 20.4 s · seed 42",
        "offered 1,500 · sent 462 · not sent 1,038 (queue still growing) · send lag p99 0.2 ms · bound by the cap",
    ]


def test_a_queue_that_does_not_grow_any_more_is_not_said_to(valid: Report) -> None:
    assert load(capped(valid, queue_growing=False, send_lag_p99_ms=None, bound_by=None), 100) == [
        "offered 1,500 · sent 462 · not sent 1,038"
    ]


def test_an_account_is_broken_between_its_parts(valid: Report) -> None:
    facts = {"offered": 101, "sent": 97, "not_sent": 4, "send_lag_p99_ms": 1.38, "bound_by": "server"}
    assert load(capped(valid, **facts), 95) == [
        "offered 101 · sent 97 · not sent 4 (queue still growing) · send lag p99 1.38 ms",
        "  bound by the server",
    ]
    assert load(capped(valid, **facts), 24) == [
        "offered 101 · sent 97",
        "  not sent 4 (queue",
        "  still growing)",
        "  send lag p99 1.38 ms",
        "  bound by the server",
    ]


def test_how_long_the_queue_got_is_told_where_the_waits_have_rows(valid: Report) -> None:
    served = capped(valid, sent=1500, not_sent=0, queued_most=1157, send_lag_p99_ms=None)
    for wait, told in (
        ({"p99": 10.1}, " · queue up to 1,157"),
        ({"p99": 9.9}, ""),
        ({"p99": 9.9, "cut_off": 1, "censored": 1}, " · queue up to 1,157"),
    ):
        metrics = {"queue_wait": MetricResult(unit="ms", better="lower", count=1500, **wait)}
        assert load(replace(served, metrics=metrics), 100) == [
            f"offered 1,500 · sent 1,500{told} · bound by the cap"
        ]


def test_what_the_client_lost_is_a_part_of_what_was_offered(valid: Report) -> None:
    facts = {"offered": 290, "sent": 241, "lost": 46, "not_sent": 3, "send_lag_p99_ms": None}
    assert load(open_loop(valid, **facts), 100) == ["offered 290 · sent 241 · not sent 3 · lost 46"]


def test_how_a_queue_grew_is_told_where_there_was_one(valid: Report) -> None:
    growth = Growth(first_ms=2540.2, last_ms=17800.1)
    told = "latency from due, median: 2,540 ms in the first quarter of the answers, 17,800 ms in the last"
    assert load(capped(valid, growth=growth), 120)[1:] == [told]
    assert load(open_loop(valid, growth=growth), 120)[1:] == []
    saturated = open_loop(replace(valid, run=replace(valid.run, saturated=True)), growth=growth)
    assert load(saturated, 120)[1:] == [told]
    shrunk = Growth(first_ms=17800.1, last_ms=2540.2)
    assert load(capped(valid, growth=shrunk), 120)[1:] == []


def test_what_was_not_sent_has_its_reason_and_no_failures(valid: Report) -> None:
    reasons = ({"reason": "still waiting for a slot", "count": 1038},)
    outcomes = Outcomes(planned=1500, counts={"ok": 462, "not-sent": 1038}, not_sent=reasons)
    shown = render(replace(capped(valid), outcomes=outcomes), width=100, color=False)
    assert "not-sent" not in shown  # that it was bound by the cap has been said
    assert "failed" not in shown
    client = replace(capped(valid, bound_by="client"), outcomes=outcomes)
    shown = render(client, width=100, color=False)
    assert "\n\n  1,038 x not-sent: still waiting for a slot\n\n" in shown
    stopped = replace(client, run=replace(valid.run, stopped_by="user"))
    assert "not-sent" not in render(stopped, width=100, color=False)


def test_turns_that_never_became_due_are_not_called_unsent(valid: Report) -> None:
    reasons = ({"reason": "its conversation was not over", "count": 17},)
    some = Outcomes(planned=114, counts={"ok": 97, "not-sent": 17}, not_sent=reasons)
    server = {"bound_by": "server"}
    shown = render(replace(capped(valid, never_due=13, **server), outcomes=some), width=100, color=False)
    assert "114 requests: 97 ok, 4 never sent, 13 never due · " in shown
    assert "\n  17 x not-sent: its conversation was not over\n" in shown
    shown = render(replace(capped(valid, never_due=17, **server), outcomes=some), width=100, color=False)
    assert "114 requests: 97 ok, 17 never due · " in shown
    assert "not-sent" not in shown


def test_latencies_from_due_have_rows_where_requests_waited(valid: Report) -> None:
    due = replace(valid.metrics["request_latency"], p99=valid.metrics["request_latency"].p99 + 50)
    waited = {"request_latency_from_due": due, "time_to_first_token_from_due": due}
    shown = render(replace(valid, metrics={**valid.metrics, **waited}), width=100, color=False)
    assert "\nrequest latency from due     ms" in shown
    assert "\ntime to first token from due ms" in shown
    kept_up = dict.fromkeys(waited, valid.metrics["request_latency"])
    shown = render(replace(valid, metrics={**valid.metrics, **kept_up}), width=100, color=False)
    assert "from due" not in shown


def test_what_was_cancelled_as_asked_is_not_called_cut_off(valid: Report) -> None:
    counts = {"ok": 140, "cancelled-as-planned": 60}
    latency = replace(
        valid.metrics["request_latency"], cut_off=60, censored=60, with_censored={"p50": 1410.0}
    )
    cancelled = replace(
        valid,
        outcomes=Outcomes(planned=200, counts=counts),
        load=replace(valid.load, cancelled_as_planned=60),
        metrics={**valid.metrics, "request_latency": latency},
    )
    shown = render(cancelled, width=100, color=False)
    assert "200 requests: 140 ok, 60 cancelled as asked · " in shown
    assert "\n  with 60 cancelled " in shown
    assert "cut off" not in shown
    both = replace(cancelled, outcomes=Outcomes(planned=200, counts={**counts, "cut": 3}))
    both = replace(both, metrics={**valid.metrics, "request_latency": replace(latency, cut_off=63)})
    shown = render(both, width=100, color=False)
    assert "140 ok, 60 cancelled as asked, 3 cut off · " in shown
    assert "\n  with 63 cut off or cancelled " in shown


def test_a_row_with_cancelled_requests_that_repeats_the_one_above_is_left_out(valid: Report) -> None:
    plain = valid.metrics["request_latency"]
    same = {"p50": plain.p50, "p90": 1.04 * plain.p90, "p99": 0.96 * plain.p99}
    for curve, told in ((same, False), ({**same, "p90": 1.06 * plain.p90}, True)):
        latency = replace(plain, cut_off=7, censored=7, with_censored=curve)
        metrics = {"request_latency": latency}
        assert ("  with 7 cancelled" in "\n".join(distributions(metrics, 100, cancelled=7))) is told
        assert "  with 7 cut off or cancelled" in "\n".join(distributions(metrics, 100, cancelled=6))


def phase(report: Report, name: str, words: str, **facts: object) -> PhaseFacts:
    return replace(report.phases[0], name=name, arrivals=words, **facts)


def test_several_measured_phases_have_a_row_each(valid: Report) -> None:
    phases = (
        phase(valid, "warmup", "concurrency 1", kind="warmup"),
        phase(valid, "ramp", "poisson 20 requests/s, unconditioned"),
        phase(valid, "hold", "concurrency 8", planned=1600, counts={"ok": 1200, "reset": 400}),
    )
    several = replace(valid, phases=phases, load=replace(valid.load, arrivals=valid.load.arrivals * 2))
    assert "\n".join(groups(several, 100)) == (
        "phase  requests  ok %  TTFT p50 ms   p99  latency p50 ms    p99  tok/s  load\n"
        "ramp        200   100         57.0  85.5           1,340  2,010  1,250  poisson 20 requests/s\n"
        "hold      1,600  75.0         57.0  85.5           1,340  2,010  1,250  concurrency 8"
    )
    assert "M · chat, streaming · 2 measured phases · http" in render(several, width=100, color=False)


def test_one_phase_one_server_and_one_model_have_no_table(valid: Report) -> None:
    assert groups(valid, 100) == []


def test_servers_and_models_have_a_table_each_of_what_is_known(valid: Report) -> None:
    latency = {"request_latency": MetricResult(unit="ms", better="lower", count=9, p50=1.5, p99=2.5)}
    targets = (
        Group(name="http://a", planned=7, counts={"ok": 7}, metrics=latency),
        Group(name="http://b\x1b[2J", planned=0, counts={}, metrics={}),
    )
    models = tuple(Group(name=name * 50, planned=1, counts={"cut": 1}, metrics={}) for name in "mn")
    shown = groups(replace(valid, targets=targets, models=models), 100)
    assert shown == [
        "target           requests  ok %  latency p50 ms   p99",
        "http://a                7   100            1.50  2.50",
        "http://b\\x1b[2J         0     -               -     -",
        "",
        "model                                     requests  ok %",
        f"{'m' * 39}…         1     0",
        f"{'n' * 39}…         1     0",
    ]


def test_a_narrow_screen_keeps_the_columns_that_matter_most(valid: Report) -> None:
    phases = (phase(valid, "a", "concurrency 1"), phase(valid, "b", "concurrency 2"))
    several = replace(valid, phases=phases)
    assert groups(several, 60)[0] == "phase  requests  ok %  TTFT p50 ms  latency p50 ms  tok/s"
    assert groups(several, 40)[0] == "phase  requests  ok %  latency p50 ms"
    assert groups(several, 12)[0] == "phase"


def test_several_servers_are_the_first_and_how_many_more(valid: Report) -> None:
    endpoint = {**valid.config["endpoint"], "url": ["http://a", "http://b", "http://c"]}
    shown = render(replace(valid, config={"endpoint": endpoint}), width=100, color=False)
    assert "concurrency 8 · http://a and 2 more\n" in shown


def test_a_run_that_knew_enough_is_no_trouble(valid: Report) -> None:
    run = replace(
        valid.run, stopped_by="steady", stopped_why="the mean of request_latency is known within 2 %"
    )
    shown = render(replace(valid, run=run), width=100, color=True)
    assert shown.startswith("\x1b[1;32mSTOPPED\x1b[0m: the mean of request_latency is known within 2 %.\n")
