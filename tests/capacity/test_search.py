"""The largest rate of a replica and the fewest replicas, where they are known."""

from __future__ import annotations

import pytest

from loadstone.capacity.answer import PILING_UP, limit
from loadstone.capacity.search import (
    LESSER_FLEET,
    LOOKED_AT,
    Replica,
    capacity,
    curve_rates,
    curve_trial,
    fewest,
    fleet_trial,
)


def with_(options, **more):
    import msgspec

    return msgspec.structs.replace(options, **more)


def test_the_rate_at_which_m_d_1_waits_as_long_as_is_allowed(server, ask):
    """Mean time in the system 15 ms of services of 10 ms: load / (2 (1 - load)) = 0.5, so load 0.5 and 50 requests/s."""
    found = capacity(ask("ttft.mean<15ms", rate=1.0), [server])
    assert found.rate == pytest.approx(50, rel=0.06)
    assert found.at.keeps(ask("ttft.mean<15ms").objectives)
    assert limit(found, ask("ttft.mean<15ms")) == "time_to_first_token.mean"


def test_loose_objectives_leave_the_throughput(server, ask):
    found = capacity(ask("ttft.p99<1000s", rate=1.0), [server])
    assert found.rate == pytest.approx(100, rel=0.06)
    assert limit(found, ask("ttft.p99<1000s")) == PILING_UP


def test_what_a_request_alone_breaks_is_no_rate(server, ask):
    found = capacity(ask("ttft.p99<10ms"), [server])
    assert found.rate == 0.0
    assert found.alone.values["time_to_first_token", "p99"] == 10.0


def test_an_engine_that_only_serves_alone_has_a_small_rate(server, ask):
    """Every wait breaks the maximum, so the rate is one at which none of the requests meets another."""
    found = capacity(ask("ttft.max<10.5ms", rate=1.0), [server])
    assert 0 < found.rate < 1.0


def test_of_equally_good_flags_the_first_are_taken_and_of_others_the_best(server, ask):
    faster = with_(server, step_ms=5, max_num_batched_tokens=2048)
    same = with_(server, max_num_batched_tokens=4096)
    question = ask("ttft.p99<100ms", rate=1.0)
    assert capacity(question, [server, same]).options == server
    assert capacity(question, [server, faster]).options == faster
    assert capacity(question, [faster, server]).options == faster


def test_a_deal_in_turn_lets_a_replica_do_more(server, ask):
    alone = capacity(ask("ttft.p99<30ms", rate=1.0), [server])
    one_of_many = capacity(ask("ttft.p99<30ms", rate=10_000.0), [server])
    drawn = capacity(ask("ttft.p99<30ms", rate=10_000.0), [with_(server, router="least-loaded")])
    assert one_of_many.rate > 1.2 * alone.rate
    assert drawn.rate == alone.rate


def test_twice_the_load_takes_up_to_twice_the_replicas(server, ask):
    """Up to: among more replicas arrivals are dealt out more evenly. One serves 100 requests/s at most."""

    def replicas(rate):
        question = ask("ttft.p99<30ms", rate=rate)
        return fewest(question, capacity(question, [server]))[0]

    once, twice = replicas(1000.0), replicas(2000.0)
    assert 10 < once <= 13
    assert 20 < twice <= 2 * once
    assert replicas(1.0) == 1
    alone = ask("ttft.p99<30ms", rate=1.0)
    assert fewest(alone, capacity(alone, [server]))[2] is None


def test_the_fewest_keep_and_one_less_does_not(server, ask):
    question = ask("ttft.p99<30ms", rate=1000.0)
    found = capacity(question, [server])
    replicas, whole, fewer = fewest(question, found)
    assert whole.keeps(question.objectives)
    assert fewer == (replicas - 1, fleet_trial(question, found, replicas - 1, 1000.0))
    assert not fleet_trial(question, found, replicas - 1, 1000.0).keeps(question.objectives)


def test_what_is_kept_free_takes_more_replicas_which_wait_less(server, ask):
    question = ask("ttft.p99<30ms", rate=1000.0)
    found = capacity(question, [server])
    (few, busy, _), (many, free, _) = fewest(question, found), fewest(question, found, spare=0.2)
    assert many == pytest.approx(few / 0.8, abs=1)
    assert free.values["time_to_first_token", "p99"] < busy.values["time_to_first_token", "p99"]


def test_of_a_great_fleet_some_replicas_are_simulated(server, ask):
    question = ask("ttft.p99<30ms", rate=100_000.0)
    found = capacity(question, [server])
    assert fleet_trial(question, found, 5, 400.0).engines == 5
    assert fleet_trial(question, found, 2000, 100_000.0).engines == LOOKED_AT
    looking = found._replace(options=with_(server, router="least-loaded"))
    assert fleet_trial(question, looking, 2000, 100_000.0).engines == LESSER_FLEET


def test_the_sample_of_a_fleet_waits_as_the_whole_does(server, ask):
    question = ask("ttft.p99<30ms", rate=1280.0)
    found = capacity(question, [server])
    sample = fleet_trial(question, found, 16, 1280.0)
    whole = fleet_trial(question, found._replace(options=with_(server, router="round-robin")), 8, 640.0)
    assert sample.engines == whole.engines == LOOKED_AT
    one = ("time_to_first_token", "p50")
    assert sample.values[one] == pytest.approx(whole.values[one], rel=0.2)


def test_the_curve_ends_one_step_beyond_the_rate(server, ask):
    question = ask("ttft.p99<30ms", rate=100.0)
    found = capacity(question, [server])
    rates = curve_rates(found)
    assert rates[7] == found.rate
    assert len(rates) == 9
    first, last = (curve_trial(question, server, 2, rate) for rate in (rates[0], rates[-1]))
    assert first.values["time_to_first_token", "p99"] < last.values["time_to_first_token", "p99"]


def test_a_trial_is_as_long_as_its_requests_need(batch, ask):
    """At 50 requests/s of 10 s each some 500 are running: 20 lifetimes are 10,000 requests."""
    replica = Replica(ask("latency.p99<1000s", rate=50.0, osl=1000), batch)
    assert replica.try_rate(50.0).requests >= 10_000 / 1.3
