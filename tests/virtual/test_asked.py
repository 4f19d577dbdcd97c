"""The preflight of a virtual run, and what is told of an address: never its key."""

from __future__ import annotations

import pytest

from loadstone.config import EndpointConfig
from loadstone.endpoints import Ask
from loadstone.errors import TargetError
from loadstone.plan.turn import Turn
from loadstone.virtual import ask, engines

KEY = "hunter2-key"


def refusal(url, **known):
    """What is told of a preflight that is refused."""
    endpoint = EndpointConfig(url=url, virtual=True, model="m", **known)
    with pytest.raises(TargetError) as told:
        ask(
            engines(endpoint), endpoint, Ask(model="m"), Turn(text="one two three", isl_tokens=3), "preflight"
        )
    return str(told.value)


def test_a_refusal_names_the_address_once_and_ends_with_one_full_stop():
    said = refusal("sim:max_model_len=2")
    assert said.startswith(
        "sim:max_model_len=2: the engine does not take the requests of this run (HTTP 400): "
    )
    assert said.endswith(".")
    assert not said.endswith("..")


def test_an_engine_without_keys_is_called_sim():
    assert refusal(["sim:", "sim:"], path="/v1/nothing").startswith("sim: the engine does not take")


def test_the_key_of_an_address_is_not_told():
    said = refusal(f"sim:step_ms=5,api_key={KEY}")
    assert said.startswith(
        "sim:step_ms=5,api_key=***: the engine does not take the requests of this run (HTTP 401)"
    )
    assert KEY not in said
    assert [server.url for server in engines(EndpointConfig(url=f"sim:api_key={KEY}"))] == ["sim:api_key=***"]
