from __future__ import annotations

from random import Random

import pytest

from loadstone.checks import CHECKS, Evidence, certify, saturated
from loadstone.checks.advice import ADVICE
from loadstone.folder import ClockLog, DeathLog, PhaseLog, WorkerLog
from loadstone.metrics import all_metrics
from loadstone.read.outcome import FAILURES
from loadstone.summary import measure


@pytest.fixture
def evidence(tables):
    """The evidence of a run with these rows; keywords go to `run_log`."""

    def make(*rows, **run):
        found = tables(*rows, **run)
        return Evidence(found, {name: measure(metric, found) for name, metric in all_metrics().items()})

    return make


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


def test_a_client_that_sends_all_that_is_due_offers_the_load(check, open_loop):
    found = check("offered_load", *open_loop(lambda i: 50), rate=10)
    assert (found.verdict, found.value) == ("VALID", 100.0)


def test_a_client_that_falls_behind_is_client_bound(check, open_loop):
    found = check("offered_load", *open_loop(lambda i: 50 + 25 * i, late=lambda i: 25 * i), rate=10)
    assert (found.verdict, found.value) == ("INVALID", pytest.approx(80.0))
    assert found.finding.startswith("client-bound: it sent at 80 % of the rate asked")


@pytest.mark.parametrize(("unsent_count", "verdict"), [(1, "DEGRADED"), (3, "INVALID")])
def test_due_requests_that_were_never_sent(unsent_count, verdict, check, open_loop, unsent):
    rows = open_loop(lambda i: 50, n=200) + [unsent(due=20_000 + i) for i in range(unsent_count)]
    assert check("offered_load", *rows, rate=10).verdict == verdict


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
    warm = PhaseLog(name="warmup", first_row=0, planned=1, start_ns=0, stop_ns=0, end_ns=0)
    assert check("cold_start", *rows, phases=[warm]).verdict == "VALID"


def test_what_we_ended_is_no_failure(check, steady, answer):
    ours = [answer(5, outcome=outcome) for outcome in ("cut", "cancelled")] * 20
    assert check("failures", *steady(), *ours).value == 0.0
    found = check("succeeded", *ours)
    assert found.finding == "the run was stopped before any answer had ended."
    assert found.advice == "Give it more time (--benchmark-duration, --benchmark-grace-period)."
    assert check("succeeded", *ours, stopped_by="user", stopped_why="interrupted").advice == ""


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


def test_warmup_is_over_before_the_measurement_begins(check, steady, run_log):
    measured = run_log(planned=40).phases[0]
    for late_ms, verdict in ((-1, "VALID"), (0, "VALID"), (25, "DEGRADED")):
        end_ns = measured.start_ns + late_ms * 1_000_000
        warm = PhaseLog(name="warmup", first_row=0, planned=1, start_ns=0, stop_ns=0, end_ns=end_ns)
        found = check("warmup_apart", *steady(), phases=[warm, measured])
        assert (found.verdict, found.value) == (verdict, max(late_ms, 0))
