from __future__ import annotations

from random import Random

import pytest
from tests.conftest import ns

from loadstone.checks import CHECKS, Evidence, bound, certify, saturated
from loadstone.checks.advice import ADVICE
from loadstone.checks.saturation import limits
from loadstone.config import InputConfig, LoadConfig
from loadstone.folder import ClockLog, DeathLog, PhaseLog, WorkerLog
from loadstone.metrics import all_metrics
from loadstone.plan import schedule
from loadstone.read.outcome import FAILURES
from loadstone.summary import measure


@pytest.fixture
def evidence(tables):
    """The evidence of a run with these rows; keywords go to `run_log`."""

    def make(*rows, **run):
        found = tables(*rows, **run)
        return Evidence(found, {name: measure(metric, found) for name, metric in all_metrics().items()})

    return make


def stretch(name, kind, start, end, stop=None, seamless=False, planned=1):
    """The log of a phase; ms."""
    return PhaseLog(
        name=name, kind=kind, seamless=seamless, first_row=0, planned=planned, start_ns=ns(start),
        stop_ns=ns(end if stop is None else stop), end_ns=ns(end),
    )  # fmt: skip


@pytest.fixture
def check(evidence):
    """One check of a run."""

    def of(name, *rows, **run):
        return next(one for one in certify(evidence(*rows, **run)).checks if one.name == name)

    return of


@pytest.fixture
def steady(answer):
    """A closed loop of `n` answers, 100 ms each, a token every 10 ms from 50 ms on, read `lag` ms late."""

    def make(n=40, lag=0.1, late=0.0, **columns):
        starts = [100.0 * i + late for i in range(n)]
        return [
            answer(*(s + 50 + 10 * k for k in range(6)), sent=s, due=s - late, lag=lag, **columns)
            for s in starts
        ]

    return make


@pytest.fixture
def open_loop(answer):
    """`n` requests due every 100 ms; the i-th is answered `latency(i)` ms after it was due."""

    def make(latency, n=40, late=lambda i: 0.0):
        return [
            answer(
                100 * i + latency(i) - 1, 100 * i + latency(i), due=100 * i, sent=100 * i + late(i), lag=0.1
            )
            for i in range(n)
        ]

    return make


def test_a_sound_run_is_valid_and_says_with_what_margin(evidence, steady):
    certificate = certify(evidence(*steady()))
    assert certificate.verdict == "VALID"
    assert {check.verdict for check in certificate.checks} == {"VALID"}
    assert certificate.headline == (
        "the busiest worker used 10 % of a core; tokens were read 0.1 ms after they arrived (p99)."
    )


def test_every_check_has_its_functions_name_and_advice_with_a_bad_verdict(evidence, steady, answer):
    for run in (evidence(*steady()), evidence(answer(5, outcome="client-fault"), cpu=1.0)):
        for function in CHECKS:
            found = function(run)
            assert found.name == function.__name__
            assert found.finding.endswith(".")
            assert found.advice or found.verdict in ("VALID", "NOTE")


def test_checks_work_on_an_empty_run(evidence):
    certificate = certify(evidence(planned=0))
    assert (certificate.verdict, certificate.headline) == ("INVALID", "no request was sent.")


def test_the_worst_verdict_is_the_runs(evidence, steady):
    certificate = certify(evidence(*steady(lag=15), cpu=0.5, clock=ClockLog(kernel_stamps=True, steps=1)))
    assert certificate.verdict == "INVALID"
    assert certificate.headline.startswith("tokens were read 15 ms after they arrived")
    assert "NOTE" in {check.verdict for check in certificate.checks}


@pytest.mark.parametrize(
    ("names", "finding"),
    [
        (
            ["worker 1"],
            "worker 1, which sends the load, died (killed by signal 9); what it had under way is lost.",
        ),
        (
            ["decoder 0", "worker 2"],
            "decoder 0, which reads the recorded answers, died (killed by signal 9); what it had not read was decoded"
            " afterwards (and 1 more).",
        ),
        (["the composer"], "the composer, which writes the prompts, died (killed by signal 9)."),
        (["the built-in engine"], "the built-in engine died (killed by signal 9)."),
    ],
)
def test_a_dead_process_makes_a_run_invalid(check, steady, names, finding):
    deaths = [DeathLog(process=name, fault="killed by signal 9", noticed_ns=1) for name in names]
    found = check("processes", *steady(), deaths=deaths)
    assert (found.verdict, found.value, found.finding) == ("INVALID", len(names), finding)


def test_without_a_death_every_process_lived(check, steady):
    found = check("processes", *steady())
    assert (found.verdict, found.value) == ("VALID", 0)


@pytest.mark.parametrize(("lost", "verdict"), [(0, "VALID"), (1, "DEGRADED"), (3, "INVALID")])
def test_requests_lost_by_the_client(lost, verdict, check, steady, answer):
    rows = steady(200) + [answer(outcome="client-fault")] * lost
    assert check("lost_requests", *rows).verdict == verdict


def test_a_run_of_failures_has_nothing_to_measure(check, answer):
    found = check("succeeded", answer(5, outcome="http-error"))
    assert (found.verdict, found.finding) == ("INVALID", "no request succeeded.")


@pytest.mark.parametrize(
    ("cpu", "lag", "verdict"),
    [
        (0.79, 0.1, "VALID"),
        (0.80, 0.1, "DEGRADED"),
        (0.94, 20, "DEGRADED"),
        (0.96, 0.1, "DEGRADED"),  # close to its limit, but the lags show that it kept up
        (0.96, 20, "INVALID"),
    ],
)
def test_cpu_of_the_busiest_worker(cpu, lag, verdict, check, steady):
    found = check("client_cpu", *steady(lag=lag), cpu=cpu)
    assert (found.verdict, found.value) == (verdict, pytest.approx(100 * cpu))


@pytest.mark.parametrize(("wall_ms", "verdict"), [(100, "INVALID"), (99, "VALID"), (0, "VALID")])
def test_a_moment_is_too_short_for_a_share(wall_ms, verdict, check, unsent):
    log = WorkerLog(worker=0, cpu_ns=127_000_000, wall_ns=wall_ms * 1_000_000, flights=0, reads=0)
    found = check("client_cpu", unsent(), workers=[log])
    assert (found.verdict, found.value is None) == (verdict, verdict == "VALID")


def test_a_full_core_is_not_excused_by_lags_that_were_not_seen(check, steady):
    assert check("client_cpu", *steady(), cpu=0.96, streaming=False).verdict == "INVALID"
    assert check("client_cpu", *steady(kernel_stamps=False), cpu=0.96).verdict == "INVALID"


def test_a_worker_that_stood_still_degrades_a_run_whose_p99_does_not_see_it(check, steady, answer):
    found = check("client_lag", *steady(200), answer(50, sent=0, lag=2970))
    assert (found.verdict, found.value) == ("DEGRADED", 2970)
    assert found.finding == "a worker stood still: tokens were read up to 2,970 ms after they arrived."


@pytest.mark.parametrize(("lag", "verdict"), [(0.9, "VALID"), (10, "VALID"), (10.5, "INVALID")])
def test_client_lag_is_held_against_the_pace_of_tokens(lag, verdict, check, steady):
    assert check("client_lag", *steady(lag=lag)).verdict == verdict


def test_late_reads_that_merge_tokens_degrade(check, steady, answer):
    merged = [answer(50, 70, 70, 90, 90, lag=25) for _ in range(40)]
    assert check("client_lag", *steady(80, lag=0.1), *merged).verdict == "DEGRADED"


def test_late_reads_that_merge_nothing_make_no_latency_wrong(check, steady):
    rows = steady(90, lag=0.1) + steady(10, lag=25)
    assert check("client_lag", *rows).verdict == "VALID"


def test_without_gaps_the_pace_is_that_of_first_tokens(check, answer):
    assert check("client_lag", *[answer(20, lag=19)] * 5).verdict == "VALID"
    assert check("client_lag", *[answer(20, lag=21)] * 5).verdict == "INVALID"


def test_a_lag_below_a_millisecond_is_never_held_against_a_run(check, answer):
    assert check("client_lag", *[answer(0.1, lag=0.9)] * 5).verdict == "VALID"


def test_a_lag_that_cannot_be_seen_is_not_judged(check, steady):
    found = check("client_lag", *steady(kernel_stamps=False))
    assert (found.verdict, found.value) == ("VALID", None)
    assert "no kernel stamps" in found.finding


@pytest.mark.parametrize(
    ("late", "verdict"),
    [(4.9, "VALID"), (9.9, "VALID"), (15, "DEGRADED"), (99, "DEGRADED"), (120, "INVALID")],
)
def test_send_lag_is_held_against_the_latency(late, verdict, check, steady):
    assert check("send_lag", *steady(late=late), rate=10).verdict == verdict  # the median latency is 100 ms


def test_connecting_is_not_send_lag(check, answer):
    waits = [
        answer(200, due=0, sent=81)
        | {"connect_ns": answer(1)["first_ns"], "connected_ns": answer(80)["first_ns"]}
    ]
    assert check("send_lag", *waits * 5, rate=10).value == pytest.approx(2.0)


def test_under_a_cap_send_lag_is_not_judged(check, steady):
    assert check("send_lag", *steady(late=500), rate=10, cap=1).value is None


def test_in_a_closed_loop_the_wait_for_a_place_of_the_prefill_is_no_send_lag(evidence, answer):
    prefill = [answer(100 * i + 99, due=0, sent=100 * i, lag=0.1) for i in range(40)]  # one after the other
    run = evidence(*prefill, load={"concurrency": 6, "prefill_concurrency": 1})
    checks = {one.name: one for one in certify(run).checks}
    assert (checks["send_lag"].verdict, checks["send_lag"].value) == ("VALID", None)
    assert run.metrics["late_count"].reason.startswith("with a limit the wait for it cannot be told from lag")
    assert bound(run).by == "cap"
    assert certify(run).verdict == "VALID"


def test_a_client_that_sends_all_that_is_due_offers_the_load(check, open_loop):
    found = check("offered_load", *open_loop(lambda i: 50), rate=10)
    assert (found.verdict, found.value) == ("VALID", 100.0)


def test_a_client_that_falls_behind_is_client_bound(check, open_loop):
    found = check("offered_load", *open_loop(lambda i: 50 + 25 * i, late=lambda i: 25 * i), rate=10)
    assert (found.verdict, found.value) == ("INVALID", pytest.approx(80.0))
    assert found.finding == (
        "client-bound: it sent at 80 % of the rate asked and left 0 of 40 due requests unsent; it got no further than 8"
        " requests/s."
    )


@pytest.mark.parametrize(("unsent_count", "verdict"), [(1, "DEGRADED"), (3, "INVALID")])
def test_due_requests_that_were_never_sent(unsent_count, verdict, check, open_loop, unsent):
    rows = open_loop(lambda i: 50, n=200) + [unsent(due=20_000 + i) for i in range(unsent_count)]
    assert check("offered_load", *rows, rate=10).verdict == verdict


def turn(number, conversation=1):
    return {"conversation": conversation, "turn": number}


def test_a_turn_that_was_never_due_is_not_held_against_the_client(check, open_loop, unsent):
    rows = [row | turn(0, i) for i, row in enumerate(open_loop(lambda i: 50))]
    never = [unsent() | {"due_ns": None} | turn(1, i) for i in range(20)]
    found = check("offered_load", *rows, *never, rate=10)
    assert (found.verdict, found.finding) == ("VALID", "every request that was due was sent.")


def test_nor_is_one_that_waited_for_the_turn_before_it(check, open_loop, answer, unsent):
    slow = [answer(4900, due=0, **turn(0, i)) for i in range(20)]
    waiting = [unsent(due=3000) | turn(1, i) for i in range(20)]
    rows = [*open_loop(lambda i: 50), *slow, *waiting]
    assert check("offered_load", *rows, rate=10, end_ms=4000).verdict == "VALID"
    found = check("offered_load", *rows, rate=10, end_ms=5000)  # it could have been sent
    assert (found.verdict, "left 20 of 80 due" in found.finding) == ("INVALID", True)


def test_nor_that_it_was_sent_late_for_that(check, answer):
    rows = [answer(100 * i + 90, due=100 * i, sent=100 * i, **turn(0, i)) for i in range(40)]
    rows += [answer(100 * i + 180, due=100 * i + 10, sent=100 * i + 90.2, **turn(1, i)) for i in range(40)]
    assert check("send_lag", *rows, rate=20).value == pytest.approx(0.2)
    assert check("arrival_fidelity", *rows, rate=20).verdict == "VALID"


def test_the_gaps_recorded_are_those_planned(check, open_loop):
    found = check("arrival_fidelity", *open_loop(lambda i: 50, late=lambda i: 0.1 * (i % 2)), rate=10)
    assert (found.verdict, round(found.value, 3)) == ("VALID", 99.997)
    assert found.finding == (
        "requests were sent at 99.997 % of the rate at which they were due; gaps between them are off by 0.1 ms (median)"
        " and 0.1 ms (p99)."
    )


@pytest.mark.parametrize(("last_late", "verdict"), [(3.9, "VALID"), (4.9, "VALID"), (6, "NOTE")])
def test_a_rate_that_differs_is_noted(last_late, verdict, check, open_loop):
    rows = open_loop(lambda i: 50, late=lambda i: last_late * i / 39)  # 0.1 % of the 3.9 s are 3.9 ms
    found = check("arrival_fidelity", *rows, rate=10)
    assert (found.verdict, found.value) == (verdict, pytest.approx(100 * 3900 / (3900 + last_late)))


def test_a_client_that_fell_behind_is_held_to_it_once(evidence, open_loop):
    run = evidence(*open_loop(lambda i: 50 + 25 * i, late=lambda i: 25 * i), rate=10)
    verdicts = {one.name: one.verdict for one in certify(run).checks}
    assert (verdicts["offered_load"], verdicts["arrival_fidelity"]) == ("INVALID", "VALID")


@pytest.mark.parametrize(
    ("run", "finding"),
    [
        ({}, "no two requests with due times and without a limit were sent."),
        ({"rate": 10, "cap": 3}, "no two requests with due times and without a limit were sent."),
        ({"load": {"prefill_concurrency": 3, "request_rate": 5.0}}, "no two requests with due times"),
    ],
)
def test_without_due_times_or_with_a_limit_there_are_no_gaps_to_keep(run, finding, check, open_loop):
    found = check("arrival_fidelity", *open_loop(lambda i: 50), **run)
    assert (found.verdict, found.value) == ("VALID", None)
    assert found.finding.startswith(finding)


BURST = {"load": {"request_rate": "inf"}}


@pytest.mark.parametrize(
    ("took", "latency", "verdict", "finding"),
    [
        (4, 200, "VALID", "all requests were due at once, and sent within 4 ms."),
        (50, 200, "NOTE", "not at once: it took 50 ms to send them all."),
        (50, 20, "NOTE", "not at once: it took 50 ms to send them all."),
        (
            60,
            20,
            "DEGRADED",
            "not at once: it took 60 ms to send them all, longer than an answer takes (median 20 ms).",
        ),
    ],
)
def test_a_burst_is_sent_at_once_or_it_is_said_how_long_it_took(
    took, latency, verdict, finding, evidence, answer
):
    sends = [took * i / 1999 for i in range(2000)]
    run = evidence(*(answer(at + latency, due=0, sent=at, lag=0.1) for at in sends), **BURST)
    certificate = certify(run)
    checks = {one.name: one for one in certificate.checks}
    found = checks["arrival_fidelity"]
    assert (found.verdict, found.unit, found.finding) == (verdict, "ms", finding)
    assert found.value == pytest.approx(took)
    for name in ("offered_load", "send_lag"):  # a rate of infinity is not one to keep
        assert checks[name].verdict == "VALID"
    assert checks["send_lag"].value is None
    assert certificate.verdict == ("VALID" if verdict == "NOTE" else verdict)
    assert bound(run).by == ("client" if verdict == "DEGRADED" else "server")
    assert checks["saturation"].finding.startswith("not judged: a rate needs two requests")


def test_a_burst_of_which_the_client_left_some_is_client_bound(check, answer, unsent):
    rows = [answer(500 + i, due=0, sent=i) for i in range(101)] + [unsent() for _ in range(9)]
    found = check("offered_load", *rows, **BURST)
    assert (found.verdict, found.finding, found.advice) == (
        "INVALID",
        "client-bound: it left 9 of 110 due requests unsent; it got no further than 1,000 requests/s.",
        "Send fewer requests at once, or give the client more --workers and cores of its own.",
    )


def test_the_turns_after_those_of_a_burst_are_late_from_the_turn_before(check, answer):
    rows = [answer(100, due=0, sent=i, **turn(0, i)) for i in range(40)]
    rows += [answer(200 + i, due=100, sent=100.2 + i, **turn(1, i)) for i in range(40)]
    assert check("send_lag", *rows, **BURST).value == pytest.approx(38.81)


def test_slots_that_stand_free_while_requests_wait_are_the_clients_doing(evidence, answer, unsent, check):
    dues = [2.0 * i for i in range(1500)]  # 500/s for 3 s; four slots of 20 ms let 200/s through
    for gap, verdict, share in ((0, "VALID", 100), (1.5, "DEGRADED", 20 / 21.5), (5, "INVALID", 20 / 25)):
        rows = served(answer, unsent, dues, 4, lambda sent: 20.0, 3000, gap)
        run = evidence(*rows, rate=500, cap=4, end_ms=3000)
        found = next(one for one in certify(run).checks if one.name == "offered_load")
        assert (found.verdict, found.value) == (
            verdict,
            pytest.approx(share if share == 100 else 100 * share, abs=1),
        )
        assert bound(run).by == ("cap" if verdict == "VALID" else "client")
    assert found.finding == (
        "client-bound: while requests waited, 3.2 of 4 slots were in use on average; it got no further than 161 requests/s."
    )
    assert found.advice == "Lower --request-rate, or give the client more --workers and cores of its own."


def test_slots_that_nobody_waits_for_may_be_free(check, answer):
    rows = [answer(10 * i + 8, due=10 * i, sent=10 * i + 4) for i in range(100)]  # late, one at a time
    found = check("offered_load", *rows, rate=100, cap=20)
    assert (found.verdict, found.value) == ("VALID", 100.0)


def test_a_slot_that_rests_after_a_failure_and_one_that_is_opening_its_connection_are_in_use(check, answer):
    rows = []
    for i in range(40):  # a place rests for 100 ms after a request that was not answered
        rows.append(answer(outcome="reset", due=0, sent=101.0 * i, done=101.0 * i + 1))
        rows.append(answer(101 * i + 100, due=0, sent=101 * i + 60) | {"connect_ns": ns(101 * i)})
    assert check("offered_load", *rows, rate=100, cap=2).value == pytest.approx(100, abs=0.6)


def test_slots_whose_number_changes_are_filled_as_there_are(check, answer, unsent):
    load = {
        "request_rate": 100.0,
        "concurrency": 3,
        "concurrency_ramp_s": 2.0,
    }  # 2 from 0.5 s on, 3 from 1.5 s on
    slots = [(0, 0.0), (1, 500.0), (2, 1500.0)]
    rows = [
        answer(at + 100, due=10 * k, sent=at)
        for k, (at, _) in enumerate(
            sorted((first + 100.0 * n, slot) for slot, first in slots for n in range(20))
        )
        if at < 2000
    ]
    rows += [unsent(due=10.0 * k) for k in range(len(rows), 200)]
    assert check("offered_load", *rows, load=load, end_ms=2000).value == pytest.approx(100, abs=1)


def test_where_slots_stand_free_for_another_reason_they_say_nothing(check, answer, unsent):
    rows = [answer(100 * i + 90, due=0, sent=100 * i) for i in range(20)] + [unsent() for _ in range(20)]
    prefill = {"request_rate": 100.0, "concurrency": 8, "prefill_concurrency": 1}
    assert check("offered_load", *rows, load=prefill).value is None
    turns = [row | turn(i % 2, i // 2) for i, row in enumerate(rows)]
    assert check("offered_load", *turns, rate=100, cap=8).value is None


def test_neither_a_cap_nor_a_closed_loop_holds_the_client_to_a_rate(check, open_loop, unsent):
    rows = [*open_loop(lambda i: 50), unsent(due=4000)]
    assert check("offered_load", *rows, rate=10, cap=4).verdict == "VALID"
    assert check("offered_load", *rows).verdict == "VALID"


def test_a_server_slower_than_asked_is_saturated_and_the_run_valid(evidence, open_loop):
    run = evidence(*open_loop(lambda i: 50 + 100 * i), rate=10)  # completes 5 of 10 a second
    certificate = certify(run)
    assert saturated(run)
    assert certificate.verdict == "VALID"
    assert certificate.headline.startswith("the server completed 5 of the 10 requests/s offered")


def test_what_a_cap_lets_through_is_not_called_the_servers_capacity(evidence, open_loop):
    certificate = certify(evidence(*open_loop(lambda i: 50 + 100 * i), rate=10, cap=3))
    assert certificate.headline.startswith(
        "with at most 3 in flight, 5 of the 10 requests/s offered were completed"
    )


def served(answer, unsent, dues, slots, takes, stops, gap=0.0):
    """Requests due at these moments, each sent when one of the slots is free, answered `takes(sent)` ms later; nothing is
    sent from `stops` on. A slot that was in use is filled again after `gap` ms."""
    free, rows = [0.0] * slots, []
    for due in dues:
        slot = free.index(min(free))
        sent = max(due, free[slot])
        if sent >= stops:
            rows.append(unsent(due=due))
            continue
        done = sent + takes(sent)
        free[slot] = done + gap
        rows.append(answer(done - 1, done, due=due, sent=sent, lag=0.1))
    return rows


def test_what_a_cap_keeps_back_is_offered_queued_and_in_the_latency_from_due(evidence, answer, unsent):
    dues = [20.0 * i for i in range(1500)]  # 50/s for 30 s, of which two slots of 130 ms let 15.4/s through
    rows = served(answer, unsent, dues, 2, lambda sent: 130.0, 30_000)
    run = evidence(*rows, rate=50, cap=2, end_ms=30_000)
    assert [run.metrics[f"{name}_count"].mean for name in ("offered", "sent", "queued")] == [1500, 462, 1038]
    assert run.metrics["offered_rate"].mean == pytest.approx(50)
    assert run.metrics["completed_rate"].mean == pytest.approx(2 / 0.13, rel=0.01)
    from_due = run.metrics["request_latency_from_due"]
    assert (run.metrics["request_latency"].max, from_due.censored) == (130.0, 1038)
    assert from_due.max == pytest.approx(30_000 - 461 * 20, abs=200)
    assert run.metrics["queue_depth"].max == 1038
    certificate = certify(run)
    assert (saturated(run), certificate.verdict) == (True, "VALID")
    assert certificate.headline == (
        "with at most 2 in flight, 15.4 of the 50 requests/s offered were completed; the others waited for a slot, longer"
        " and longer (see queue_wait)."
    )
    assert bound(run) == ("cap", "at most 2 in flight: 15.4 of 50 requests/s offered went through.")


def test_a_load_too_short_to_fall_behind_is_bound_by_its_cap_all_the_same(evidence, answer, unsent):
    rows = served(answer, unsent, [20.0 * i for i in range(15)], 2, lambda sent: 130.0, 300)
    run = evidence(*rows, rate=50, cap=2, end_ms=300)
    assert not saturated(run)
    assert bound(run) == ("cap", "at most 2 in flight: 9 of 15 requests still waited at the end.")


def test_a_cap_that_lets_few_through_is_saturated_however_few_were_answered(evidence, answer, unsent):
    rows = served(answer, unsent, [20.0 * i for i in range(40)], 2, lambda sent: 130.0, 800)
    run = evidence(*rows, rate=50, cap=2, end_ms=800)
    assert (run.metrics["request_count"].mean, run.metrics["queued_count"].mean) == (13, 27)
    assert saturated(run)
    assert bound(run) == ("cap", "at most 2 in flight: 15.4 of 50 requests/s offered went through.")


def test_users_whose_turns_wait_for_answers_are_bound_by_the_server(evidence, answer):
    def users(takes):
        rows = []
        for user in range(10):  # three turns each, 400 ms apart
            ended = 0.0
            for number in range(3):
                due = 40.0 * user + 400 * number
                sent = max(due, ended)
                ended = sent + takes
                rows.append(answer(ended - 1, ended, due=due, sent=sent, lag=0.1, **turn(number, user)))
        return evidence(*rows, load={"user_centric_rate": 25.0, "users": 10, "duration_s": 3.0}, end_ms=3000)

    slow, quick = users(410.0), users(390.0)
    why = "20 of 30 requests were due before the answer to the turn before them had ended"
    assert bound(slow) == ("server", f"{why}.")
    certificate = certify(slow)
    assert certificate.verdict == "VALID"
    assert certificate.headline == f"{why}, and waited for it: the server did not keep up with its users."
    advice = next(one.advice for one in certificate.checks if one.name == "saturation")
    assert advice == "Lower --user-centric-rate, or ask for shorter answers (--osl)."
    assert bound(quick) == ("load", "all that was offered was served.")
    assert certify(quick).verdict == "VALID"


def test_turns_that_wait_for_the_answer_before_wait_for_the_server(evidence, answer, unsent):
    rows = []
    for user in range(4):  # each asks every 100 ms, and its first answer takes until the end
        rows.append(answer(990, due=0, sent=0, conversation=user, turn=0))
        rows.append(unsent(due=100.0, conversation=user, turn=1))
    load = {"user_centric_rate": 40.0, "users": 4, "duration_s": 0.5}
    run = evidence(*rows, load=load, end_ms=500)
    why = "4 of 8 requests still waited at the end, for the answer to the turn before them."
    assert bound(run) == ("server", why)


def test_slots_of_several_turns_are_conversations():
    load, data = LoadConfig(request_rate=1.0, concurrency=2), InputConfig(turns_mean=3.0)
    (several,), (single,) = schedule.phases(load, data), schedule.phases(load)
    assert (limits(several), limits(single)) == ("2 conversations", "2 in flight")


def test_a_limit_of_the_prefill_is_a_cap_as_well(evidence, open_loop):
    load = {"request_rate": 10.0, "prefill_concurrency": 3}
    run = evidence(*open_loop(lambda i: 50 + 100 * i, late=lambda i: 100 * i), load=load)
    assert certify(run).headline.startswith("with at most 3 before their first token, 5 of the 10 requests/s")
    assert bound(run).by == "cap"
    both = evidence(*open_loop(lambda i: 50 + 100 * i), load=load | {"concurrency": 8})
    saturation = next(one for one in certify(both).checks if one.name == "saturation")
    assert "at most 8 in flight and 3 before their first token" in saturation.finding
    assert (
        "Raise --concurrency or --prefill-concurrency to see whether the server can do more."
        in saturation.advice
    )


RAMP = {
    "request_rate": 20.0, "request_rate_ramp_s": 60.0, "request_rate_ramp_start": 1.0, "duration_s": 60.0,
}  # fmt: skip


def ramp(first, last, over_ms, until_ms):
    """Due times of a rate that goes from `first` to `last` per second, along a line, and stays there."""
    dues, area, at = [], 0.0, 0.0
    while at < until_ms:
        rate = first + (last - first) * min(at / over_ms, 1)
        area += rate / 1000
        if area >= len(dues) + 1:
            dues.append(at)
        at += 1.0
    return dues


def test_latency_that_grows_with_the_rate_is_no_saturation(evidence, answer):
    rows = []
    for due in ramp(1, 20, 60_000, 60_000):
        takes = 500 + 5500 * (due / 60_000) ** 2  # a fuller batch is a slower one
        rows.append(answer(due + takes - 1, due + takes, due=due, sent=due, lag=0.1))
        if due + takes > 62_000:
            rows[-1].update(outcome="cut", done_ns=ns(62_000))
    run = evidence(*rows, load=RAMP, end_ms=60_000)
    assert run.metrics["completed_rate"].mean < 0.95 * run.metrics["offered_rate"].mean
    assert not saturated(run)
    why = "nothing held up what was offered; of 629 requests 563 served, 66 cut off."
    assert bound(run) == ("load", why)
    assert saturated(evidence(*rows, rate=10, end_ms=60_000))  # under a steady rate it would be one


@pytest.fixture
def at_most(answer):
    """Answers of a server that completes `rate` requests/s at most, one after the other; all are sent when due."""

    def make(rate, dues):
        free, rows = 0.0, []
        for due in dues:
            free = max(due, free) + 1000 / rate
            rows.append(answer(free - 1, free, due=due, sent=due, lag=0.1))
        return rows

    return make


def test_a_ramp_beyond_what_the_server_can_do_is_saturation(evidence, at_most):
    run = evidence(*at_most(8, ramp(1, 20, 60_000, 60_000)), load=RAMP, end_ms=60_000)
    assert saturated(run)
    assert bound(run) == (
        "server",
        "the server completed 7.18 of 10.6 requests/s offered, and its latencies grew.",
    )
    found = next(one for one in certify(run).checks if one.name == "saturation")
    assert found.advice.endswith("one rate at a time to find its capacity.")


def test_a_ramp_is_not_followed_by_answers_that_come_in_later_and_later(evidence, answer, at_most):
    # Ever more is completed, from 5.4/s on, but clearly less than had been offered one latency before.
    dues, rows = ramp(1, 20, 60_000, 60_000), []
    for due in dues:
        takes = 100 + 16_000 * (due / 60_000) ** 2
        rows.append(answer(due + takes - 1, due + takes, due=due, sent=due, lag=0.1))
    run = evidence(*rows, load=RAMP, end_ms=60_000)
    assert saturated(run)
    assert bound(run).by == "server"


def test_a_server_that_recovers_while_the_rate_falls_kept_up(evidence, at_most):
    rows = at_most(15, ramp(20, 1, 60_000, 60_000))
    assert max(row["done_ns"] - row["due_ns"] for row in rows) > 1_500_000_000  # it had fallen behind
    assert not saturated(evidence(*rows, load=RAMP | {"request_rate_ramp_start": 40.0}, end_ms=60_000))


def test_where_the_client_did_not_send_what_was_offered_no_server_is_blamed(evidence, open_loop):
    run = evidence(*open_loop(lambda i: 50 + 25 * i, late=lambda i: 25 * i), rate=10)
    certificate = certify(run)
    found = next(one for one in certificate.checks if one.name == "saturation")
    assert not saturated(run)
    assert (found.value, found.advice) == (None, "")
    assert found.finding == "not judged: the client did not send what was offered (see offered_load)."
    assert certificate.headline.startswith("client-bound: it sent at 80 % of the rate asked")


@pytest.mark.parametrize(
    ("load", "rate", "advice"),
    [
        ({"request_rate": 10.0}, None, "Lower --request-rate to measure"),
        ({"user_centric_rate": 10.0, "users": 5}, None, "Lower --user-centric-rate to measure"),
        (
            {"request_rate_series": ((0.0, 10.0), (9.0, 10.0)), "duration_s": 9.0},
            None,
            "Lower the rates of --request-rate-series to measure",
        ),
    ],
)
def test_the_advice_names_the_option_that_was_given(load, rate, advice, check, open_loop):
    found = check("saturation", *open_loop(lambda i: 50 + 100 * i), load=load, rate=rate)
    assert found.advice == f"Its capacity is near 5 requests/s. {advice} latency below it."


def test_given_times_are_spread_to_offer_less(check, open_loop):
    late = open_loop(lambda i: 50 + 25 * i, late=lambda i: 25 * i)
    found = check("offered_load", *late, load={"fixed_schedule": True})
    assert found.advice == "Spread the given times, or give the client more --workers and cores of its own."


@pytest.mark.parametrize(
    ("outcomes", "why"),
    [
        ({"cancelled-as-planned": 3}, "all that was offered was served or cancelled as asked."),
        (
            {"http-error": 3, "cut": 2},
            "nothing held up what was offered; of 40 requests 35 served, 3 failed, 2 cut off.",
        ),
        (
            {"client-fault": 1, "cancelled-as-planned": 1},
            "nothing held up what was offered; of 40 requests 38 served, 1 cancelled as asked, 1 lost by the client.",
        ),
    ],
)
def test_that_all_was_served_is_said_where_all_was(outcomes, why, evidence, open_loop):
    rows = open_loop(lambda i: 50)
    names = [name for name, count in outcomes.items() for _ in range(count)]
    for row, name in zip(rows, names, strict=False):
        row.update(outcome=name)
    assert bound(evidence(*rows, rate=10)) == ("load", why)


def test_a_closed_loop_beside_a_rate_is_named(evidence, open_loop, closed_loop):
    rows = [row | {"phase": "closed"} for row in closed_loop(2, lambda k: 200.0, n=20)]
    rows += [row | {"phase": "open"} for row in open_loop(lambda i: 50)]
    phases = [stretch("closed", "measured", 0, 2000), stretch("open", "measured", 0, 4000)]
    load = {"phases": ({"name": "closed", "concurrency": 2}, {"name": "open", "request_rate": 10.0})}
    why = "all that was offered was served; closed offers no rate, but waits for answers."
    assert bound(evidence(*rows, phases=phases, load=load)) == ("load", why)


def test_what_was_cancelled_as_asked_is_not_what_the_server_failed_to_complete(evidence, open_loop):
    rows = open_loop(lambda i: 50 + i)
    for row in rows[1::2]:
        row.update(outcome="cancelled-as-planned")
    run = evidence(*rows, rate=10)
    assert not saturated(run)
    slower = open_loop(lambda i: 50 + 100 * i)
    for row in slower[1::4]:
        row.update(outcome="cancelled-as-planned", done_ns=row["due_ns"] + 10_000_000)
    assert saturated(evidence(*slower, rate=10))


def test_one_saturated_phase_is_enough_and_is_named(evidence, open_loop, answer):
    rows = [row | {"phase": "low"} for row in open_loop(lambda i: 50)]
    for i in range(40):
        due, done = 10_000 + 50 * i, 10_050 + 100 * i
        rows.append(answer(done - 1, done, due=due, sent=due, lag=0.1, phase="high"))
    phases = [
        stretch("low", "measured", 0, 4050, planned=40),
        stretch("high", "measured", 10_000, 14_000, planned=40),
    ]
    load = {"phases": ({"name": "low", "request_rate": 10.0}, {"name": "high", "request_rate": 20.0})}
    run = evidence(*rows, phases=phases, load=load)
    assert saturated(run)
    assert certify(run).headline.startswith(
        "in phase high, the server completed 10 of the 20 requests/s offered"
    )
    assert bound(run) == (
        "server",
        "the server completed 10 of 20 requests/s offered, and its latencies grew.",
    )


def test_what_bounded_a_run(evidence, open_loop, steady, answer):
    def of(*rows, **run):
        return bound(evidence(*rows, **run))

    assert of(*open_loop(lambda i: 50), rate=10) == ("load", "all that was offered was served.")
    behind = of(*open_loop(lambda i: 50 + 25 * i, late=lambda i: 25 * i), rate=10)
    assert (behind.by, behind.why.split(" of ")[0]) == ("client", "client-bound: it sent at 80 %")
    closed = of(*steady(), cap=3)
    assert closed == ("cap", "a closed loop: with 3 in flight the next request waits for an answer.")
    burst = [answer(100 * i, due=0, sent=0) for i in range(1, 30)]
    assert of(*burst, load={"request_rate": "inf"}).by == "server"
    assert of(*burst, load={"request_rate": "inf", "concurrency": 4}) == (
        "cap",
        "everything was due at once, with at most 4 in flight.",
    )
    assert of() is None


def dead(process):
    return {"deaths": [DeathLog(process=process, fault="killed by signal 9", noticed_ns=1)]}


def test_a_dead_process_bounds_a_load_where_something_depended_on_it(evidence, open_loop, answer):
    served = open_loop(lambda i: 50)
    assert bound(evidence(*served, rate=10, **dead("decoder 0"))) == (
        "load",
        "all that was offered was served.",
    )
    assert bound(evidence(*served, rate=10, **dead("worker 1"))) == (
        "client",
        "worker 1 died (killed by signal 9), and what it was to send is missing.",
    )
    engine = dead("the built-in engine")
    assert bound(evidence(*served, rate=10, **engine)).by == "load"
    failed = answer(4100, due=4000, sent=4000, outcome="reset")
    assert bound(evidence(*served, failed, rate=10, **engine)) == (
        "server",
        "the built-in engine died (killed by signal 9).",
    )


def test_a_request_that_went_out_again_says_nothing_of_the_client(evidence, open_loop):
    rows = open_loop(lambda i: 50)
    for row in rows[-3:]:  # the server was killed, and they went out on new connections
        row.update(sent_ns=ns(8_000), done_ns=ns(8_001), outcome="reset", retries=1)
    run = evidence(*rows, rate=10, **dead("the built-in engine"))
    found = {check.name: (check.verdict, check.value) for check in certify(run).checks}
    assert found["offered_load"] == ("VALID", 100)
    assert found["send_lag"] == ("VALID", 0)
    assert found["arrival_fidelity"] == ("VALID", 100)
    assert certify(run).headline == "the built-in engine died (killed by signal 9)."
    assert run.metrics["send_lag"].max == 0


@pytest.mark.parametrize(("late", "verdict"), [(3, "VALID"), (4, "DEGRADED"), (20, "INVALID")])
def test_first_tokens_dated_by_later_ones(check, answer, late, verdict):
    good = [answer(50, 60, 70, lag=0.1) for _ in range(36 - late)]
    merged = [answer(70, 70, 70, lag=40) for _ in range(late)]
    assert check("first_tokens", *good, *merged).verdict == verdict


def test_first_tokens_that_the_server_sent_together_are_its_own_doing(check, answer):
    together = [answer(50, 50, 60, lag=0.1) for _ in range(20)]
    assert check("first_tokens", *together).verdict == "VALID"


@pytest.mark.parametrize(
    ("together", "finding"),
    [
        (0, "first tokens bear stamps of their own."),
        (5, "25 % of the first tokens came together with others; the rest bear stamps of their own."),
        (20, "every first token came together with others, which date it."),
    ],
)
def test_first_tokens_that_came_with_others_are_not_said_to_stand_alone(together, finding, check, answer):
    rows = [answer(50, 50, lag=0.1, coalesced=True) for _ in range(together)]
    rows += [answer(50, 60, lag=0.1) for _ in range(20 - together)]
    found = check("first_tokens", *rows)
    assert (found.verdict, found.finding) == ("VALID", finding)


def test_how_late_first_tokens_were_read_is_said_with_its_percentile(check, answer):
    rows = [answer(70, 70, 70, lag=10 * (1 + k // 18)) for k in range(20)]
    assert "were read together with later ones, 11 ms late (p90), and" in check("first_tokens", *rows).finding


def test_a_backlog_that_was_cut_off_still_shows(evidence, open_loop):
    rows = open_loop(lambda i: 50 + 100 * i)
    for row in rows[20:]:
        row.update(outcome="cut", done_ns=rows[20]["done_ns"])
    assert saturated(evidence(*rows, rate=10, end_ms=4050))


def test_a_steady_server_is_not_saturated(evidence, open_loop):
    assert not saturated(evidence(*open_loop(lambda i: 2000 + 37 * (i % 5)), rate=10))


def test_a_slow_last_answer_is_not_saturation(evidence, open_loop):
    assert not saturated(evidence(*open_loop(lambda i: 3000 if i == 39 else 500), rate=10))


def test_steady_answers_that_the_end_cut_off_are_no_backlog(evidence, open_loop):
    rows = open_loop(lambda i: 1500)
    for row in rows[25:]:
        row.update(outcome="cut", done_ns=rows[25]["done_ns"])
    assert not saturated(evidence(*rows, rate=10, end_ms=4000))


def test_a_server_that_leaves_most_requests_unanswered_is_saturated(evidence, open_loop):
    rows = open_loop(lambda i: 50 + 300 * i)  # the first few are answered later and later, the rest never
    for row in rows[4:]:
        row.update(outcome="cut", done_ns=rows[0]["due_ns"] + 6_000_000_000)
    assert saturated(evidence(*rows, rate=10, end_ms=6000))


def test_a_closed_loop_is_never_saturated(evidence, open_loop):
    assert not saturated(evidence(*open_loop(lambda i: 50 + 100 * i)))


def test_too_few_requests_show_no_trend(evidence, open_loop):
    assert not saturated(evidence(*open_loop(lambda i: 50 + 100 * i, n=19), rate=10))


@pytest.mark.parametrize(("cpu", "verdict"), [(0.1, "NOTE"), (0.5, "DEGRADED")])
def test_missing_kernel_stamps_matter_when_the_client_is_busy(cpu, verdict, check, steady):
    found = check("kernel_stamps", *steady(kernel_stamps=False), cpu=cpu)
    assert (found.verdict, found.value) == (verdict, 0.0)
    assert "there are no kernel stamps here" in found.finding


def test_a_few_missing_kernel_stamps_are_not_taken_for_all(check, steady):
    found = check("kernel_stamps", *steady(199), *steady(1, kernel_stamps=False), cpu=0.5)
    assert (found.verdict, found.value) == ("NOTE", 0.995)
    assert found.finding.startswith("1 of 200 answers hold reads without a kernel stamp")
    many = check("kernel_stamps", *steady(97), *steady(3, kernel_stamps=False), cpu=0.5)
    assert many.verdict == "DEGRADED"


def test_kernel_stamps_are_not_missed_where_no_answer_came(check, answer):
    found = check("kernel_stamps", answer(outcome="connect", kernel_stamps=True))
    assert (found.verdict, found.value) == ("VALID", None)


def test_what_is_noted(check, steady, answer):
    assert check("clock_steps", *steady(), clock=ClockLog(kernel_stamps=True, steps=2)).value == 2.0
    assert check("server_local", *steady(), server_local=True).finding == (
        "client and server share this host's cores, busy for 20 % of the time."
    )
    assert check("shared_reads", answer(50, 60, 60, 70)).verdict == "NOTE"
    assert check("sample_size", *steady(29)).verdict == "NOTE"
    assert check("sample_size", *steady(30)).verdict == "VALID"
    assert check("failures", *steady(), answer(5, outcome="reset")).verdict == "NOTE"
    assert check("retries", *steady(retries=1)).value == 40.0


def test_large_numbers_are_written_out(check, answer):
    rows = [answer(12_345, sent=0), *(answer(12_500 + i, sent=12_400 + i) for i in range(20))]
    assert "took 12,300 ms against a median of 100 ms" in check("cold_start", *rows).finding


def test_a_slow_first_answer_without_warmup_is_a_cold_server(check, answer):
    rows = [answer(200, sent=0), *(answer(300 + i, sent=250 + i) for i in range(20))]
    found = check("cold_start", *rows)
    assert (found.verdict, found.value) == ("NOTE", 200.0)
    phases = [stretch("before", "warmup", -9, -1), stretch("measured", "measured", 0, 1000)]
    assert check("cold_start", *rows, phases=phases).verdict == "VALID"


@pytest.mark.parametrize(("first_ms", "verdict"), [(800, "VALID"), (801, "NOTE")])
def test_those_who_open_a_load_together_may_each_wait_for_the_prompts_of_all(
    check, answer, first_ms, verdict
):
    opening = [answer(first_ms, sent=number) for number in range(8)]
    later = [answer(sent + 100, sent=sent) for sent in range(1000, 3000, 100)]
    assert check("cold_start", *opening, *later).verdict == verdict


def test_what_we_ended_is_no_failure(check, steady, answer):
    ours = [answer(5, outcome=outcome) for outcome in ("cut", "cancelled")] * 20
    assert check("failures", *steady(), *ours).value == 0.0
    found = check("succeeded", *ours)
    assert found.finding == "the run was stopped before any answer had ended."
    assert found.advice == "Give it more time (--benchmark-duration, --benchmark-grace-period)."
    assert check("succeeded", *ours, stopped_by="user", stopped_why="interrupted").advice == ""


def test_where_all_were_cancelled_as_asked_more_time_is_of_no_use(check, answer):
    found = check("succeeded", *[answer(5, outcome="cancelled-as-planned")] * 5)
    assert found.finding == "every request was cancelled as asked before its answer had ended."
    assert found.advice == "Lower --request-cancellation-rate, or raise --request-cancellation-delay."


def test_where_nothing_ended_the_share_of_failures_is_not_known(check, answer):
    found = check("failures", answer(5, done=9, outcome="cut"))
    assert (found.verdict, found.value) == ("VALID", None)
    assert found.finding == (
        "which share of the requests failed is not known: every request is left out: 1 request cut off."
    )


def test_what_the_client_lost_is_no_word_of_the_server(check, steady, answer):
    lost = [answer(outcome="client-fault")] * 5
    assert check("failures", *steady(95), *lost).value == 0.0
    assert check("succeeded", *lost).advice == "See the faults and loadstone.log."
    assert check("succeeded", *lost, answer(5, outcome="reset")).advice == ADVICE["reset"]


def test_there_is_advice_for_every_way_of_failing():
    assert set(ADVICE) == FAILURES
    assert all(text.endswith(".") for text in ADVICE.values())


@pytest.mark.parametrize(
    ("outcome", "names"),
    [
        ("http-auth", "--api-key-file"),
        ("http-not-found", "--url, --endpoint-type and --model"),
        ("http-rate-limited", "lower the load"),
        ("timeout-first-token", "--first-token-timeout-seconds"),
        ("timeout-idle", "--idle-timeout-seconds"),
        ("timeout-total", "--request-timeout-seconds"),
        ("timeout-connect", "--connect-timeout-seconds"),
        ("http-server-error", "the server's log"),
        ("in-band-error", "the server's log"),
        ("not-sse", "--endpoint-type"),
    ],
)
def test_where_all_failed_the_advice_goes_by_how_most_of_them_did(outcome, names, check, answer):
    rows = [answer(5, outcome=outcome), answer(5, outcome=outcome), answer(5, outcome="empty")]
    assert names in check("succeeded", *rows).advice


def test_of_a_server_that_is_gone_it_is_said_since_when(check, steady, answer):
    refused = [answer(done=at, sent=at, outcome="connect-refused") for at in (2500, 710, 900)]
    advice = (
        "Nothing listened at the address from 0.71 s into the measurement on. Is the server still running?"
    )
    assert check("succeeded", *refused).advice.startswith(advice)
    assert check("failures", *steady(9), *refused).advice.startswith(advice)


def test_of_a_server_that_came_back_it_is_said_from_when_to_when_it_was_gone(check, answer):
    def advice(*refused):
        rows = [answer(done=at, sent=at, outcome="connect-refused") for at in refused]
        return check("failures", *rows, *(answer(at + 9, sent=at) for at in (10, 2000))).advice

    assert advice(710, 900) == (
        "Nothing listened at the address between 0.71 s and 0.90 s into the measurement; later it answered. Its log says"
        " why."
    )
    assert " at the address at 0.71 s into the measurement; later it answered." in advice(710)


@pytest.fixture
def two_servers(run_log):
    """The config of a run against two servers."""
    tree = run_log().config
    tree["endpoint"]["url"] = ["http://a", "http://b"]
    return tree


def test_of_several_servers_the_one_that_is_gone_is_named(check, answer, two_servers):
    rows = [answer(50 + at, sent=at, target=0) for at in range(0, 3000, 100)]
    rows += [answer(50 + at, sent=at, target=1) for at in (0, 100)]
    rows += [answer(sent=at, done=at, target=1, outcome="connect-refused") for at in range(500, 900, 50)]
    found = check("failures", *rows, config=two_servers)
    assert found.finding == (
        "20 % of the requests failed, all of them at http://b (8 of its 10); latencies are those of the rest."
    )
    assert found.advice.startswith("Nothing listened at http://b from 0.50 s into the measurement on.")
    alike = [row | {"target": at % 2} for at, row in enumerate(rows)]
    assert check("failures", *alike, config=two_servers).finding == (
        "20 % of the requests failed; latencies are those of the rest."
    )


def test_a_server_that_answers_nothing_while_others_do_is_named(check, answer, two_servers):
    good = [answer(50 + at, sent=at, target=0) for at in range(0, 1600, 100)]
    mute = [answer(sent=at, done=2000, target=1, outcome="cut") for at in (0, 100, 200, 300)]
    found = check("silent_targets", *good, *mute, config=two_servers)
    assert (found.verdict, found.value) == ("DEGRADED", 4)
    assert found.finding == "http://b answered none of its 4 requests."
    begun = answer(150, sent=110, target=1)
    found = check("silent_targets", *good, *mute[:1], begun, config=two_servers)
    assert (found.verdict, found.value) == ("NOTE", 1)
    assert found.finding == (
        "http://b said nothing more from 0.15 s into the measurement on, with 1 request under way."
    )
    slow = answer(sent=1950, done=2000, target=1, outcome="cut")
    assert check("silent_targets", *good, slow, config=two_servers).verdict == "VALID"
    one = check("silent_targets", *good, *mute)
    assert (one.verdict, one.value) == ("VALID", 0)


def test_a_server_that_is_gone_or_silent_has_no_capacity(evidence, answer, open_loop, two_servers):
    two_servers["load"]["request_rate"] = 10.0
    rows = [answer(50 + at, due=at, sent=at, target=0) for at in range(0, 4000, 200)]
    rows += [answer(due=at, sent=at, done=6000, target=1, outcome="cut") for at in range(100, 4000, 200)]
    run = evidence(*rows, config=two_servers, end_ms=6000)
    (found,) = [check for check in certify(run).checks if check.name == "saturation"]
    assert (found.finding, found.advice) == (
        "not judged: http://b fell silent (see silent_targets).",
        "",
    )
    assert not saturated(run)

    behind = open_loop(lambda i: 50 + 100 * i)
    for row in behind[:5]:
        row["outcome"] = "reset"
    assert not saturated(evidence(*behind, rate=10))
    for row in behind[:5]:
        row["outcome"] = "timeout-total"
    assert saturated(evidence(*behind, rate=10))


def test_where_no_way_of_failing_prevails_the_faults_are_to_be_seen(check, answer):
    rows = [answer(5, outcome=name) for name in ("http-auth", "reset", "empty", "not-sse", "http-auth")]
    assert check("succeeded", *rows).advice == "See the server's log, and its words among the faults."


def test_a_run_of_nothing_but_failures_is_judged_once(evidence, answer):
    run = evidence(*(answer(5, outcome="reset") for _ in range(40)))
    assert [one.name for one in certify(run).checks if one.verdict == "INVALID"] == ["succeeded"]
    assert [one.name for one in certify(run).checks if one.verdict == "DEGRADED"] == []


@pytest.fixture
def closed_loop(answer):
    """`slots` slots, each filled again when its answer ends; the k-th request lasts `latency(k)` ms."""

    def make(slots, latency, n=200):
        free, rows = [0.0] * slots, []
        for k in range(n):
            slot = free.index(min(free))
            sent, free[slot] = free[slot], free[slot] + latency(k)
            rows.append(answer(sent + 10, free[slot], sent=sent, lag=0.1))
        return rows

    return make


@pytest.mark.parametrize("slots", [4, 8, 64])
def test_answers_of_one_length_lock_the_slots_together(slots, check, closed_loop):
    found = check("cohort_lock", *closed_loop(slots, lambda k: 200.0, n=8 * slots), cap=slots)
    assert (found.verdict, found.value) == ("NOTE", 100.0)
    assert "--osl-stddev" in found.advice


@pytest.mark.parametrize("slots", [4, 8, 64])
@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_answers_of_differing_length_do_not(slots, spread, check, closed_loop):
    random = Random(slots)
    rows = closed_loop(slots, lambda k: 200 * (1 + spread * random.uniform(-1, 1)), n=20 * slots)
    found = check("cohort_lock", *rows, cap=slots)
    assert found.verdict == "VALID"
    assert found.value < 25


def test_failures_that_start_together_are_no_lock(check, closed_loop):
    rows = closed_loop(8, lambda k: 200.0, n=64)
    assert check("cohort_lock", *rows, cap=8).verdict == "NOTE"
    for row in rows[39:]:
        row.update(outcome="connect-refused")
    assert check("cohort_lock", *rows, cap=8).value is None


def test_two_cohorts_in_turn_are_a_lock_too(check, answer):
    starts = [100.0 * (k // 4) for k in range(80)]
    rows = [answer(at + 50, at + 200, sent=at, lag=0.1) for at in starts]
    found = check("cohort_lock", *rows, cap=8)
    assert (found.verdict, found.value) == ("NOTE", pytest.approx(100 * 3 / 7))


def test_the_common_start_of_a_closed_loop_is_no_lock(check, closed_loop):
    found = check("cohort_lock", *closed_loop(8, lambda k: 200.0, n=39), cap=8)
    assert (found.verdict, found.value) == ("VALID", None)


def test_only_several_slots_of_a_closed_loop_can_lock(check, closed_loop):
    rows = closed_loop(4, lambda k: 200.0)
    assert check("cohort_lock", *rows, cap=3).value is None
    assert check("cohort_lock", *rows, rate=20, cap=4).value is None


def worker(waits, waited_ms):
    return WorkerLog(
        worker=0,
        cpu_ns=1,
        wall_ns=1_000_000_000,
        flights=9,
        reads=9,
        waits=waits,
        waited_ns=round(waited_ms * 1e6),
    )


@pytest.mark.parametrize(
    ("waits", "waited_ms", "verdict"),
    [(0, 0, "VALID"), (1, 5, "NOTE"), (3, 5, "DEGRADED"), (1, 11, "DEGRADED")],
)
def test_waits_for_descriptors_and_ports(waits, waited_ms, verdict, check, steady):
    found = check("resource_waits", *steady(200), workers=[worker(waits, waited_ms)])
    assert (found.verdict, found.value) == (verdict, waits)


@pytest.mark.parametrize(
    ("late_ms", "seamless", "verdict"),
    [
        (-1, False, "VALID"),
        (0, False, "VALID"),
        (25, False, "DEGRADED"),
        (25, True, "NOTE"),
        (-1, True, "VALID"),
    ],
)
def test_warmup_is_over_before_the_measurement_begins(late_ms, seamless, verdict, check, steady):
    phases = [
        stretch("before", "warmup", -100, late_ms),
        stretch("measured", "measured", 0, 1000, seamless=seamless),
    ]
    found = check("warmup_apart", *steady(), phases=phases)
    assert (found.verdict, found.value) == (verdict, max(late_ms, 0))


def test_each_measured_phase_has_its_own_warmup_behind_it(check, steady):
    phases = [
        stretch("measured", "measured", 0, 1000),
        stretch("again", "warmup", 1000, 1240),
        stretch("more", "measured", 1200, 2000),
    ]
    found = check("warmup_apart", *steady(), phases=phases)
    assert (found.verdict, found.value) == ("DEGRADED", 40)


def test_a_closed_phase_among_others_can_lock(check, closed_loop, open_loop):
    rows = [row | {"phase": "closed"} for row in closed_loop(8, lambda k: 200.0, n=64)]
    rows += [row | {"phase": "open"} for row in open_loop(lambda i: 50)]
    phases = [stretch("closed", "measured", 0, 1600), stretch("open", "measured", 0, 4000)]
    load = {"phases": ({"name": "closed", "concurrency": 8}, {"name": "open", "request_rate": 10.0})}
    found = check("cohort_lock", *rows, phases=phases, load=load)
    assert (found.verdict, found.value) == ("NOTE", 100.0)
