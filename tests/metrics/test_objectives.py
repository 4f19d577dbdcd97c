"""Which metrics can be an objective, and what is found wrong before anything is sent."""

from __future__ import annotations

import pytest

from loadstone.config import Config, EndpointConfig, InputConfig, LoadConfig, ServerConfig, SloConfig
from loadstone.errors import UsageError
from loadstone.metrics import Missing, Number, all_metrics, objectives
from loadstone.metrics._objectives import kinds, of_run, settled
from loadstone.plan import schedule


def asked(*slo, goodput=None, streaming=True, **load):
    config = Config(
        endpoint=EndpointConfig(streaming=streaming, url="http://localhost:1"),
        load=LoadConfig(**load),
        slo=SloConfig(objectives=slo, goodput=goodput or {}),
    )
    return settled(config, schedule.phases(config.load, InputConfig()))


def refusal(*slo, **more):
    with pytest.raises(UsageError) as caught:
        asked(*slo, **more)
    return str(caught.value)


def test_every_metric_is_of_the_kind_that_its_type_says(tables, answer):
    rows = [
        answer(50 + i, 60 + i, 75 + i, sent=i, due=i - 1, done=80 + i, planned_output_tokens=3)
        for i in range(8)
    ]
    failed = answer(sent=3, due=2, outcome="reset")
    found = tables(*rows, failed, rate=10.0, cap=4, goodput={"request_latency": 100.0})
    told = {
        name: result
        for name, one in all_metrics().items()
        if not isinstance(result := one.result(found), Missing)
    }
    assert len(told) > 50
    wrong = [name for name, result in told.items() if kinds()[name].number != isinstance(result, Number)]
    assert wrong == []


def test_what_goodput_can_limit_is_what_has_a_value_a_request():
    each = {name for name, kind in kinds().items() if kind.each and kind.better != "neither"}
    assert each == set(objectives())


def test_objectives_about_each_request_join_those_of_goodput():
    config = asked("tpot<40ms,error_rate<1%", "ttft<1s", goodput={"request_latency": 900.0})
    assert config.slo.goodput == {
        "request_latency": 900.0, "time_per_output_token": 40.0, "time_to_first_token": 1000.0
    }  # fmt: skip
    assert [str(one) for one in of_run(config)] == ["error_rate<1%"]


def test_what_was_settled_can_be_settled_again():
    once = asked("tpot<40ms")
    assert settled(once, schedule.phases(once.load, InputConfig())) == once


def test_the_same_limit_twice_is_no_conflict_but_another_one_is():
    assert asked("tpot<40ms", goodput={"time_per_output_token": 40.0}).slo.goodput == {
        "time_per_output_token": 40.0
    }
    said = refusal("tpot<40ms", goodput={"time_per_output_token": 30.0})
    assert said.startswith(
        "--slo time_per_output_token<40ms and --goodput time_per_output_token:30 limit the same"
    )


@pytest.mark.parametrize(
    ("slo", "more", "said"),
    [
        ("ttft.p99<1s", {"streaming": False}, "it needs a stream"),
        (
            "itl<1s",
            {"streaming": False},
            "inter_token_latency can be no objective of this run: it needs a stream",
        ),
        ("request_latency_from_due.p99<1s", {}, "it needs due times"),
        ("queue_wait.p99<1s", {"request_rate": 3.0}, "requests wait for a slot only where"),
        ("late_count<3", {"request_rate": 3.0, "concurrency": 2}, "the wait for it cannot be told from lag"),
        ("goodput>3", {}, "no limit for a request was set"),
        ("inter_token_latency_of_roofline>50%", {}, "no roofline was named"),
        ("error_rates<3%", {}, "Did you mean error_rate?"),
        ("error_rate<3", {}, "needs the unit %"),
    ],
)
def test_what_this_run_cannot_have_is_refused_before_it(slo, more, said):
    assert said in refusal(slo, **more)


def test_what_it_may_have_is_not():
    asked("queue_wait.p99<1s,request_latency_from_due.p50<1s", request_rate=3.0, concurrency=2)
    asked("goodput>3,token_goodput>100,goodput_attainment>99%,tpot<40ms")
    config = Config(
        endpoint=EndpointConfig(streaming=True),
        server=ServerConfig(roofline={"gpu": "h100", "model": "llama-3.1-8b"}),
        slo=SloConfig(objectives=("inter_token_latency_of_roofline>50%",)),
    )
    settled(config, schedule.phases(config.load, InputConfig()))


def test_a_misspelt_limit_of_goodput_is_named():
    assert "slo.goodput.request_latenzy: there is no such metric. Did you mean request_latency?" in refusal(
        goodput={"request_latenzy": 3.0}
    )
