"""Phases that do not fit the server or the prompts are refused where they were asked for."""

from __future__ import annotations

import msgspec
import pytest

from loadstone.config import Config, EndpointConfig, InputConfig, LoadConfig, check
from loadstone.config.check_phases import STOPPING, STREAMED
from loadstone.errors import UsageError

STREAM = EndpointConfig(streaming=True)


def refusal(**sections):
    with pytest.raises(UsageError) as caught:
        check(Config(**sections))
    return str(caught.value)


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        (
            LoadConfig(prefill_concurrency=1, concurrency=2),
            "load.prefill_concurrency = 1: needs --streaming, which tells when the first token has come.",
        ),
        (
            LoadConfig(concurrency=4, warmup_request_count=5, warmup_prefill_concurrency=3),
            "load.warmup_prefill_concurrency = 3: needs --streaming",
        ),
        (
            LoadConfig(concurrency=4, phases=({"name": "a"}, {"name": "b", "prefill_concurrency": 3})),
            "load.phases[1].prefill_concurrency = 3: needs --streaming",
        ),
        (
            LoadConfig(concurrency=4, prefill_concurrency=3, phases=({"name": "a"},)),
            "load.prefill_concurrency = 3: needs --streaming",
        ),
        (
            LoadConfig(fixed_schedule=True),
            "load.fixed_schedule = true: needs --input-file, which has the timestamps.",
        ),
        (
            LoadConfig(request_rate="inf"),
            "load.request_rate = inf: sends everything at once, so something has to say how much; set --request-count.",
        ),
        (
            LoadConfig(stop_when={"request_latency": 2.0}),
            "load.stop_when = request_latency:2: needs an end in case it is never met: set --request-count,"
            " --num-sessions or --duration.",
        ),
        (
            LoadConfig(stop_when={"ttf": 2.0}, request_count=9),
            "load.stop_when.ttf: is no metric that can stop a run. Known: time_to_first_token, inter_token_latency,",
        ),
        (
            LoadConfig(stop_when={"request_latancy": 2.0}, request_count=9),
            "load.stop_when.request_latancy: is no metric that can stop a run. Did you mean request_latency?",
        ),
    ],
)
def test_what_the_server_or_the_prompts_do_not_allow(load, sentence):
    assert refusal(load=load).startswith(sentence)


@pytest.mark.parametrize("name", STOPPING)
def test_a_criterion_on_tokens_needs_a_stream(name):
    load = LoadConfig(stop_when={name: 2.0}, request_count=9)
    config = Config(endpoint=STREAM, load=load)
    assert check(config) is config
    if name in STREAMED:
        assert refusal(load=load) == f"load.stop_when.{name}: needs --streaming."
    else:
        assert check(Config(load=load)).load is load


@pytest.mark.parametrize("turns", [InputConfig(turns_mean=2.0), InputConfig(turns_stddev=1.0)])
def test_a_conditioned_load_is_of_single_turns(turns):
    load = LoadConfig(request_rate=5.0, request_count=9, conditioned=True)
    assert refusal(load=load, input=turns) == (
        "load.conditioned = true: counts requests, so it is for conversations of one turn."
    )


def test_a_file_says_how_much_there_is_to_send_at_once():
    config = Config(load=LoadConfig(request_rate="inf"), input=InputConfig(file="x"))
    assert check(config) is config


@pytest.mark.parametrize("load", [LoadConfig(fixed_schedule=True), LoadConfig(concurrency=2)])
def test_a_file_is_an_end_in_case_a_criterion_is_never_met(load):
    load = msgspec.structs.replace(load, stop_when={"request_latency": 2.0})
    check(Config(input=InputConfig(file="a.jsonl"), load=load))


@pytest.mark.parametrize("turns", [{"turns_mean": 2.0}, {"turns_stddev": 1.0}])
def test_a_ramp_by_the_number_of_the_request_is_for_conversations_of_one_turn(turns):
    ramp = {
        "index_ramp_strategy": "linear",
        "index_ramp_start": 1.0,
        "index_ramp_end": 9.0,
        "request_count": 9,
    }
    assert refusal(load=LoadConfig(**ramp), input=InputConfig(**turns)) == (
        "load.index_ramp_strategy = linear: counts requests, so it is for conversations of one turn."
    )
