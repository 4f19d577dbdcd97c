"""Settings that do not fit together are errors, each with its sentence."""

from __future__ import annotations

import pytest

from loadstone.config import (
    Config,
    CostConfig,
    EndpointConfig,
    InputConfig,
    LoadConfig,
    OutputConfig,
    SloConfig,
    check,
    check_goodput,
)
from loadstone.errors import UsageError


def refusal(**sections):
    with pytest.raises(UsageError) as caught:
        check(Config(**sections))
    return str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        (EndpointConfig(usage_per_chunk=True), "endpoint.usage_per_chunk"),
        (EndpointConfig(first_token_timeout_s=5), "endpoint.first_token_timeout_s"),
        (
            EndpointConfig(streaming=True, first_token_timeout_s=9, timeout_s=8),
            "endpoint.first_token_timeout_s",
        ),
        (EndpointConfig(type="completions", legacy_max_tokens=True), "endpoint.legacy_max_tokens"),
        (EndpointConfig(insecure=True), "endpoint.insecure"),
        (EndpointConfig(insecure=True, url="http://h"), "endpoint.insecure"),
        (EndpointConfig(ca="x"), "endpoint.ca"),
        (EndpointConfig(client_certificate="x"), "endpoint.client_certificate"),
        (EndpointConfig(server_name="x"), "endpoint.server_name"),
        (EndpointConfig(url="https://h", ca="x", insecure=True), "endpoint.ca"),
        (EndpointConfig(url="https://h", client_key="x"), "endpoint.client_key"),
        (EndpointConfig(idle_timeout_s=9, timeout_s=9), "endpoint.idle_timeout_s"),
    ],
)
def test_endpoint_settings_without_effect(endpoint, path):
    assert refusal(endpoint=endpoint).startswith(f"{path} = ")


@pytest.mark.parametrize(
    ("sections", "path"),
    [
        ({"slo": SloConfig(stall_ms=500)}, "slo.stall_ms"),
        ({"slo": SloConfig(reading_speed=8)}, "slo.reading_speed"),
        ({"cost": CostConfig(gpus=2)}, "cost.gpus"),
    ],
)
def test_what_reading_and_prices_need(sections, path):
    assert refusal(**sections).startswith(f"{path} = ")
    streamed = {"endpoint": EndpointConfig(streaming=True)} | sections
    priced = {"cost": CostConfig(gpus=2, gpu_hour_price=3)} if "cost" in sections else {}
    assert check(Config(**{**streamed, **priced})) is not None


@pytest.mark.parametrize(
    ("kind", "given", "path"),
    [
        ("chat", InputConfig(osl_stddev=1), "input.osl_stddev"),
        ("chat", InputConfig(token_ids=True), "input.token_ids"),
        ("completions", InputConfig(token_ids=True, tokenizer="none"), "input.token_ids"),
        ("completions", InputConfig(isl_includes_template=True), "input.isl_includes_template"),
        ("chat", InputConfig(file="x", turns_mean=2), "input.turns_mean"),
        ("chat", InputConfig(file="x", turns_stddev=2), "input.turns_stddev"),
        ("chat", InputConfig(file="x", entries=2), "input.entries"),
        ("chat", InputConfig(file="x", think_mean_ms=2), "input.think_mean_ms"),
        ("chat", InputConfig(think_mean_ms=2), "input.think_mean_ms"),
        ("chat", InputConfig(think_stddev_ms=2), "input.think_stddev_ms"),
        ("chat", InputConfig(think_ratio=2), "input.think_ratio"),
        ("chat", InputConfig(turns_mean=3, think_ratio=2), "input.think_ratio"),
    ],
)
def test_input_settings_without_effect(kind, given, path):
    assert refusal(endpoint=EndpointConfig(type=kind), input=given).startswith(f"{path} = ")


@pytest.mark.parametrize("think", [{"think_mean_ms": 5}, {"think_stddev_ms": 5}])
def test_users_have_no_time_to_think_beside_their_rate(think):
    load = LoadConfig(user_centric_rate=5, users=3)
    told = refusal(load=load, input=InputConfig(turns_mean=3, **think))
    assert told.endswith("has no effect with --user-centric-rate, which says when the next turn is.")


def test_force_needs_a_folder():
    assert (
        refusal(output=OutputConfig(force=True))
        == "output.force = true: has no effect without --artifact-dir."
    )


def test_counts_are_checked_with_a_tokenizer():
    asked = {"input": InputConfig(tokenizer="none"), "output": OutputConfig(check_tokens="all")}
    assert refusal(**asked) == "output.check_tokens = all: needs a tokenizer; leave out --tokenizer none."


def test_the_sentence_says_what_to_do():
    assert refusal(load=LoadConfig(arrival_pattern="gamma")) == (
        "load.arrival_pattern = gamma: has no effect in a closed loop; set --request-rate or leave it out."
    )


@pytest.mark.parametrize(
    "config",
    [
        Config(),
        Config(load=LoadConfig(request_rate=10, arrival_pattern="poisson", concurrency=4)),
        Config(load=LoadConfig(request_rate=10, arrival_smoothness=0.5)),
        Config(load=LoadConfig(request_rate=10, arrival_pattern="gamma", arrival_smoothness=2)),
        Config(load=LoadConfig(duration_s=5, grace_s=0)),
        Config(
            endpoint=EndpointConfig(streaming=True, usage_per_chunk=True, first_token_timeout_s=5),
            input=InputConfig(isl_includes_template=True, osl_mean=128, osl_stddev=0),
        ),
        Config(endpoint=EndpointConfig(url="https://h/v1", insecure=True, legacy_max_tokens=True)),
        Config(endpoint=EndpointConfig(type="completions"), input=InputConfig(token_ids=True)),
        Config(endpoint=EndpointConfig(url="sim:"), output=OutputConfig(folder="run", force=True)),
        Config(endpoint=EndpointConfig(timeout_s=60)),
        Config(input=InputConfig(turns_mean=3, think_mean_ms=50, think_stddev_ms=5, think_ratio=0)),
        Config(input=InputConfig(turns_stddev=3, entries=5)),
        Config(input=InputConfig(file="x", think_ratio=0.5, isl_mean=100, isl_stddev=5, osl_mean=20)),
        Config(endpoint=EndpointConfig(type="completions"), input=InputConfig(turns_mean=3)),
    ],
)
def test_settings_that_fit_together_pass_unchanged(config):
    assert check(config) is config


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (EndpointConfig(url="ftp://h"), "endpoint.url"),
        (EndpointConfig(headers=("nocolon",)), "endpoint.headers"),
        (EndpointConfig(headers=("X-Request-ID: 1",)), "set by loadstone itself"),
        (EndpointConfig(headers=("authorization: Bearer x",), api_key="k"), "Authorization"),
        (EndpointConfig(api_key="a\r\nb"), "endpoint.api_key: the key holds"),
        (EndpointConfig(extra_inputs={"stream": True}), "use --streaming"),
        (EndpointConfig(extra_inputs={"model": "m"}), "use --model"),
        (EndpointConfig(extra_inputs={"messages": []}), "the prompts are made by loadstone"),
    ],
)
def test_what_makes_no_request_is_refused(endpoint, words):
    assert words in refusal(endpoint=endpoint)


@pytest.mark.parametrize("name", ["https://h", "h:443", "", "a b", ".h", "a..b"])
def test_a_name_for_tls_that_is_none(name):
    assert "endpoint.server_name" in refusal(endpoint=EndpointConfig(url="https://h", server_name=name))


@pytest.mark.parametrize(
    "proxy", ["http://us:hunter2@p:1", "http://us:hun/hunter2@p:1", "http://us:a?hunter2@p:1"]
)
def test_a_proxy_without_effect_is_told_without_its_password(proxy):
    told = refusal(endpoint=EndpointConfig(url="sim:", proxy=proxy))
    assert told == "endpoint.proxy: has no effect on the built-in engine; leave it out."


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/v1?key=hunter2 x", "must be ASCII without spaces; percent-encode what is not."),
        ("/v1#hunter2", "holds a #, which no server is sent; leave out what follows it."),
    ],
)
def test_a_path_that_no_request_can_have_is_not_shown(path, told):
    assert refusal(endpoint=EndpointConfig(path=path)) == f"endpoint.path: {told}"


def test_a_proxy_that_is_none():
    assert refusal(endpoint=EndpointConfig(proxy="p")).startswith("endpoint.proxy: has no port")


def test_limits_name_known_metrics():
    config = Config(slo=SloConfig(goodput={"time_to_first_tokn": 5}))
    with pytest.raises(UsageError) as caught:
        check_goodput(config, ["time_to_first_token", "request_latency"])
    assert str(caught.value) == (
        "slo.goodput.time_to_first_tokn: there is no such metric. Did you mean time_to_first_token?"
    )
    check_goodput(config, ["time_to_first_tokn"])
