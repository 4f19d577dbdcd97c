"""The account of the load: what was asked for, offered, sent and not sent."""

from __future__ import annotations

import pytest
from tests.conftest import ns

from loadstone.checks import Evidence, certify
from loadstone.metrics import all_metrics
from loadstone.report import Growth
from loadstone.summary.load import asked_rate, load_facts
from loadstone.summary.measure import measure
from loadstone.summary.queue import growing, most
from loadstone.summary.waits import growth


@pytest.fixture
def facts(tables):
    """The account of a run with these rows; keywords go to `run_log`."""

    def of(*rows, **run):
        found = tables(*rows, **run)
        return load_facts(Evidence(found, {name: measure(one, found) for name, one in all_metrics().items()}))

    return of


def capped(answer, unsent, *, sent, never):
    """A cap of one slot: an arrival every 100 ms, an answer every 200 ms."""
    served = [answer(200 * (i + 1), due=100 * i, sent=200 * i) for i in range(sent)]
    return [*served, *(unsent(due=100 * (sent + i)) for i in range(never))]


def test_offered_is_sent_and_not_sent(facts, answer, unsent):
    found = facts(*capped(answer, unsent, sent=10, never=10), rate=10, cap=1, end_ms=2000)
    assert (found.offered, found.sent, found.not_sent, found.never_due) == (20, 10, 10, 0)
    assert (found.timed, found.queued_at_end, found.queue_growing) == (True, 10, True)
    assert found.queued_most == 10
    assert found.growth == Growth(first_ms=250.0, last_ms=1050.0)
    assert (found.offered_rate, found.sent_rate, found.completed_rate) == (10.0, 5.0, 5.0)
    assert found.asked_rate == pytest.approx(10.0)
    assert found.arrivals[0].words == "poisson 10 requests/s, unconditioned, at most 1 in flight"


def test_what_bounded_the_load_is_told_as_the_checks_see_it(facts, answer, unsent):
    found = facts(*capped(answer, unsent, sent=30, never=30), rate=10, cap=1, end_ms=6000)
    assert found.bound_by == "cap"
    assert found.bound_why.startswith("at most 1 in flight: ")
    assert facts(unsent(), rate=10).bound_by is None


def test_a_closed_loop_offers_what_it_sends(facts, answer):
    found = facts(*(answer(100 * i + 50, sent=100 * i) for i in range(12)), cap=1)
    assert (found.offered, found.sent, found.not_sent, found.timed) == (12, 12, 0, False)
    assert (found.queued_at_end, found.queue_growing, found.growth, found.asked_rate) == (None,) * 4
    assert found.send_lag_p99_ms == 0.0


def test_how_late_the_client_was(facts, answer):
    rows = [answer(100 * i + 50, due=100 * i, sent=100 * i + i) for i in range(9)]
    found = facts(*rows, rate=10)
    assert (found.send_lag_p50_ms, found.send_lag_max_ms, found.late) == (4.0, 8.0, 3)


def test_the_lag_is_the_one_by_which_the_client_is_judged(tables, answer):
    """Every request was 4 ms late, of which the first was connecting for 3; one that was 1 ms late is the best."""
    opened = {"connect_ns": ns(0), "connected_ns": ns(3)}
    rows = [answer(50, due=0, sent=4) | opened, answer(60, due=10, sent=14), answer(70, due=20, sent=21)]
    found = tables(*rows, rate=10)
    evidence = Evidence(found, {name: measure(one, found) for name, one in all_metrics().items()})
    told = load_facts(evidence)
    judged = next(check for check in certify(evidence).checks if check.name == "send_lag")
    assert (told.send_lag_p50_ms, told.send_lag_max_ms) == (1.0, 4.0)
    assert told.send_lag_p99_ms == judged.value == pytest.approx(3.94)
    assert evidence.metrics["send_lag"].p50 == 4.0


def test_the_lag_of_what_was_due_at_once_is_how_long_it_took_to_send(facts, answer):
    found = facts(*(answer(50, due=0, sent=k) for k in range(5)), load={"request_rate": "inf"})
    assert (found.send_lag_p50_ms, found.send_lag_p99_ms, found.send_lag_max_ms) == (2.0, 3.96, 4.0)


def test_turns_that_never_became_due_were_planned_but_not_offered(facts, answer, unsent):
    rows = [
        answer(50, due=0, conversation=1, turn=0, outcome="reset"),
        unsent(conversation=1, turn=1) | {"due_ns": None},
        answer(90, due=60, conversation=2, turn=0),
    ]
    found = facts(*rows, rate=10)
    assert (found.offered, found.sent, found.not_sent, found.never_due) == (2, 2, 0, 1)
    assert found.asked_rate is None
    assert found.arrivals[0].words == "poisson 10 conversations/s, unconditioned"


def test_what_a_dead_worker_lost_was_offered_and_not_sent(facts, answer, unsent):
    """Of three that were lost one had been sent."""
    rows = [
        answer(50, due=0),
        *(answer(due=at, sent=None, outcome="client-fault") for at in (10, 20)),
        answer(due=30, sent=30, outcome="client-fault"),
        unsent(due=40),
    ]
    found = facts(*rows, rate=10)
    assert (found.offered, found.sent, found.not_sent, found.lost, found.never_due) == (5, 2, 1, 2, 0)
    assert (found.queued_at_end, found.timed) == (1, True)


def test_what_was_cancelled_as_asked_is_counted(facts, answer):
    found = facts(
        answer(50), answer(done=500, outcome="cancelled-as-planned"), answer(done=500, outcome="cut")
    )
    assert found.cancelled_as_planned == 1


def test_the_rate_asked_for_is_the_mean_of_a_ramp(tables, answer):
    ramp = {"request_rate_ramp_s": 1.0}
    rows = [answer(600, due=500), answer(2100, due=2000)]
    # 0 to 8 within a second comes to 4, another second at 8 to 8 more
    assert asked_rate(tables(*rows, rate=8, load=ramp)) == pytest.approx((4 + 8) / 2)


def test_the_rate_asked_for_of_several_phases_is_weighted_by_their_time(tables, answer, phase_log):
    load = {"phases": ({"name": "low", "request_rate": 1.0}, {"name": "high", "request_rate": 10.0})}
    logs = [phase_log("low", 0, 3000), phase_log("high", 3000, 4000)]
    rows = [answer(3050, due=3000, sent=3000, phase="low"), answer(4050, due=4000, sent=4000, phase="high")]
    assert asked_rate(tables(*rows, phases=logs, load=load)) == pytest.approx((3 * 1 + 1 * 10) / 4)


def test_the_longest_queue_is_that_of_one_moment(tables, answer, unsent):
    """Who comes at the moment another one goes did not wait with it, and who does not wait is in no queue."""
    rows = [
        *(answer(900, due=at, sent=sent) for at, sent in ((0, 300), (100, 300), (200, 400), (300, 300))),
        answer(900, due=400, sent=700),
        answer(900, due=500, sent=600),
    ]
    assert most(tables(*rows, rate=10, cap=1)) == 3
    left = [unsent(due=550), unsent(due=999), unsent(due=1000), unsent(due=1001)]
    assert most(tables(*rows, *left, rate=10, cap=1, end_ms=1000)) == 3
    assert most(tables(*rows, *left[:1] * 2, rate=10, cap=1, end_ms=1000)) == 4
    assert most(tables(answer(50, due=0, sent=0), rate=10, cap=1)) == 0
    assert most(tables(*rows, cap=1)) is None


def test_a_queue_that_shrinks_does_not_grow(tables, answer):
    rows = [answer(1990, due=0, sent=100 * i) for i in range(19)]
    assert growing(tables(*rows, rate=10, cap=1, end_ms=2000)) is False


def test_what_is_sent_a_moment_late_is_no_queue(tables, answer):
    rows = [answer(100 * i + 50, due=100 * i, sent=100 * i + 0.1 * i) for i in range(20)]
    assert growing(tables(*rows, rate=10, end_ms=2000)) is False


def standing(answer, *waiting):
    """Quarters of one second: so many requests come and wait through the third of them, and so many through the last."""
    third, last = waiting
    return [
        *(answer(1790, due=500, sent=750) for _ in range(third)),
        *(answer(1790, due=750, sent=1000) for _ in range(last)),
    ]


@pytest.mark.parametrize(
    ("waiting", "grows"),
    [((0, 0), False), ((0, 1), True), ((9, 10), True), ((10, 11), True), ((11, 12), False), ((20, 22), True), ((30, 32), False), ((8, 8), False), ((9, 4), False)],
)  # fmt: skip
def test_a_queue_grows_by_a_whole_request_and_a_tenth(waiting, grows, tables, answer):
    assert growing(tables(*standing(answer, *waiting), rate=10, end_ms=1000)) is grows


def test_too_few_answers_do_not_grow(tables, answer):
    rows = [answer(100 * i + 50 + i, due=100 * i) for i in range(8)]
    assert growth(tables(*rows[:7], rate=10)) is None
    assert growth(tables(*rows, rate=10)) == Growth(first_ms=50.5, last_ms=56.5)
