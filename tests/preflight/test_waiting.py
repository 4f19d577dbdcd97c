"""How a server that is not there yet, or still loads its model, is waited for."""

from __future__ import annotations

import re
import socket

import pytest

from loadstone.config import Config, EndpointConfig, ServerConfig
from loadstone.errors import TargetError
from loadstone.plan.turn import Turn
from loadstone.preflight import waiting
from loadstone.wire import url

pytestmark = pytest.mark.timeout(20)
TURN = Turn(text="a b c", max_tokens=1, isl_tokens=3)
CHAT = "/v1/chat/completions"
MODELS = "/v1/models"
ANSWER = {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]}
LOADING = (503, {"error": "loading"})


@pytest.fixture
def wait(playing, monkeypatch):
    """Waits for servers that give these answers in turn, the last one for ever; `wait.said` is what was told."""
    monkeypatch.setattr(waiting, "LEAST_S", 0.05)

    def run(*servers, seconds=10.0, mode="inference", model="m", interval=0.01):
        wait.servers = [playing(answers) for answers in servers]
        wait.said = []
        addresses = tuple(f"127.0.0.1:{server.port}" for server in wait.servers)
        config = Config(
            endpoint=EndpointConfig(url=addresses, model=model),
            server=ServerConfig(
                wait_for_model_s=seconds, wait_for_model_mode=mode, wait_for_model_interval_s=interval
            ),
        )
        waiting.wait_for_models([url.parse(address) for address in addresses], config, TURN, wait.said.append)

    wait = run
    return run


def test_a_server_that_answers_is_asked_once_and_nothing_is_said(wait):
    wait({CHAT: [(200, ANSWER)]})
    assert [call.path for call in wait.servers[0].calls] == [CHAT]
    assert wait.said == []


def test_a_server_that_still_loads_is_asked_until_it_answers(wait):
    wait({CHAT: [LOADING, LOADING, (404, {"error": "no model"}), (200, ANSWER)]})
    assert [call.path for call in wait.servers[0].calls] == [CHAT] * 4
    where = f"http://127.0.0.1:{wait.servers[0].port}"
    first, second = wait.said  # once for every new reason
    assert first.startswith(
        f"waiting up to 10 s for a model at {where}; not yet: {where}: the preflight request to {CHAT}"
    )
    assert first.endswith("failed: HTTP 503: loading.")
    assert "HTTP 404: no model" in second


def test_every_server_is_waited_for(wait):
    wait({CHAT: [LOADING, (200, ANSWER)]}, {CHAT: [LOADING, LOADING, (200, ANSWER)]})
    assert [len(server.calls) for server in wait.servers] == [2, 3]


def test_every_model_has_to_answer(wait):
    wait({CHAT: [(200, ANSWER), LOADING, (200, ANSWER), (200, ANSWER)]}, model="a,b")
    assert [call.body["model"] for call in wait.servers[0].calls] == ["a", "b", "a", "b"]


def test_when_the_time_is_over_the_last_reason_is_told(wait):
    with pytest.raises(TargetError) as failed:
        wait({CHAT: [LOADING]}, seconds=0.2)
    port = wait.servers[0].port
    assert str(failed.value).startswith(
        f"http://127.0.0.1:{port}: no model answered within 0.2 s (--wait-for-model-timeout). The last try: "
    )
    assert str(failed.value).endswith("HTTP 503: loading.")
    assert len(wait.servers[0].calls) > 2


def test_nobody_there_is_not_yet():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    config = Config(
        endpoint=EndpointConfig(model="m"),
        server=ServerConfig(wait_for_model_s=0.05, wait_for_model_interval_s=0.01),
    )
    with pytest.raises(TargetError, match=r"The last try: cannot connect to .* refused"):
        waiting.wait_for_models([url.parse(f"127.0.0.1:{port}")], config, TURN, lambda line: None)


def test_a_server_that_says_nothing_is_left_when_the_time_is_over(wait):
    with pytest.raises(TargetError, match=r"no model answered within 0\.1 s .*no answer within"):
        wait({CHAT: [None]}, seconds=0.1)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_not_waited_for(wait, status):
    with pytest.raises(TargetError, match=f"HTTP {status}: no key. Give a valid key with --api-key"):
        wait({CHAT: [(status, {"error": "no key"})]})
    assert len(wait.servers[0].calls) == 1


def listing(*names):
    return 200, {"data": [{"id": name} for name in names]}


@pytest.mark.parametrize(
    ("model", "answers"),
    [
        ("m", [LOADING, listing(), listing("x"), listing("x", "m")]),
        ("m,n", [listing("m"), listing("n"), listing("n"), listing("n", "m")]),
        (None, [(404, {}), LOADING, listing(), listing("x")]),
    ],
)
def test_the_list_of_models_has_to_hold_those_asked_for(wait, model, answers):
    wait({MODELS: answers}, mode="models", model=model)
    assert [call.path for call in wait.servers[0].calls] == [MODELS] * 4


def test_what_is_missing_in_the_list_is_said(wait):
    wait({MODELS: [listing("x"), listing(), listing("m")]}, mode="models")
    missing = f"http://127.0.0.1:{wait.servers[0].port} does not list the model 'm' yet."
    assert [re.sub(r".*not yet: ", "", line) for line in wait.said] == [missing]


def test_both_are_asked_for_in_their_order(wait):
    wait({MODELS: [listing(), listing("m")], CHAT: [LOADING, (200, ANSWER)]}, mode="both")
    assert [call.path for call in wait.servers[0].calls] == [MODELS, MODELS, CHAT, MODELS, CHAT]


def test_a_model_that_nobody_named_is_the_first_one_listed(wait):
    wait({MODELS: [listing(), listing("x", "y")], CHAT: [(200, ANSWER)]}, model=None)
    (asked,) = [call.body["model"] for call in wait.servers[0].calls if call.path == CHAT]
    assert asked == "x"
