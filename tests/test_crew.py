"""The processes of a run, as they are started and told what to do."""

from __future__ import annotations

import json
import os
import signal
import time
from urllib.request import urlopen

import pytest

from loadstone import crew as crew_module
from loadstone.compose import ComposeJob
from loadstone.config import Config, EndpointConfig, InputConfig, LoadConfig
from loadstone.crew import Crew
from loadstone.endpoints import Ask
from loadstone.errors import UsageError
from loadstone.plan import schedule
from loadstone.preflight import reach
from loadstone.wire import url

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def crew(tmp_path):
    with Crew(tmp_path, 2, [0, 10]) as crew:
        yield crew
        crew.fleet.kill()


def models(address):
    """What a server calls its models."""
    with urlopen(f"http://{address}/v1/models", timeout=10) as answer:
        return [model["id"] for model in json.load(answer)["data"]]


def test_every_address_that_means_the_engine_gets_one_of_its_own(crew):
    addresses = crew.engines(EndpointConfig(url=("sim:model=a", "host:1", "sim:model=a", "sim:model=b")))
    assert addresses[1] == "host:1"
    engines = [addresses[at] for at in (0, 2, 3)]
    assert len(set(engines)) == 3
    assert [models(address) for address in engines] == [["a"], ["a"], ["b"]]


def test_an_engine_has_the_model_that_is_asked_for(crew):
    (address,) = crew.engines(EndpointConfig(url="sim:", model=" m "))
    assert models(address) == ["m"]


def test_a_wrong_address_is_told_before_any_engine_is_started(crew):
    with pytest.raises(UsageError, match="there is no option 'stepms'"):
        crew.engines(EndpointConfig(url=("sim:", "sim:stepms=1")))
    assert crew._others == []


def test_workers_are_told_every_server_and_how_each_is_spoken_to(crew, tmp_path, monkeypatch):
    addresses = crew.engines(EndpointConfig(url=("sim:null=true", "sim:null=true")))
    endpoint = EndpointConfig(
        url=tuple(addresses),
        api_key="hunter2",
        streaming=True,
        headers=("X-Route: hunter3",),
        session_headers=("X-Session-ID",),
        session_end_header="X-End: yes",
    )
    jobs, brief = [], crew.fleet.brief
    monkeypatch.setattr(crew.fleet, "brief", lambda job: [jobs.append(job), brief(job)])
    reached = [reach(url.parse(address), endpoint) for address in addresses]
    config = Config(endpoint=endpoint, input=InputConfig(tokenizer="builtin"))
    crew.brief(config, reached, "run-", ["/v1/chat/completions", "/base/v1/chat/completions"])
    (job,) = jobs
    assert [target.address for target in job.targets] == [server.address for server in reached]
    assert [target.authority for target in job.targets] == addresses
    lines = [target.head.split(b"\r\n") for target in job.targets]
    assert [head[0] for head in lines] == [
        b"POST /v1/chat/completions HTTP/1.1",
        b"POST /base/v1/chat/completions HTTP/1.1",
    ]
    assert [head[1] for head in lines] == [f"Host: {address}".encode() for address in addresses]
    assert all({b"Authorization: Bearer hunter2", b"X-Route: hunter3"} <= set(head) for head in lines)
    assert (job.session_headers, job.session_end_header) == (["X-Session-ID"], "X-End: yes")
    assert (crew.fleet.alive, crew.deaths) == ({0, 1}, [])
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hunter" not in written


@pytest.fixture
def composing(tmp_path):
    """A crew whose composer goes on for ever; the test ends it."""
    crew = Crew(tmp_path, 1, [0])
    crew.compose(
        ComposeJob(
            folder=str(tmp_path / "plan"),
            source="synthetic",
            input=InputConfig(tokenizer="none"),
            endpoint="chat",
            ask=Ask(model="m", streaming=True),
            seed=1,
            template_tokens=0,
            phases=schedule.phases(LoadConfig(duration_s=1000)),
        )
    )
    yield crew
    crew.fleet.kill()
    for child in crew._others:
        child.kill()


def test_a_composer_that_stands_still_at_the_end_is_not_waited_for_and_told(composing, monkeypatch):
    monkeypatch.setattr(crew_module, "STOPPED_S", 0.2)
    (composer,) = composing._others
    os.kill(composer.pid, signal.SIGSTOP)
    begun = time.monotonic()
    composing.__exit__(None, None, None)
    assert time.monotonic() - begun < crew_module.CLOSE_S
    told = [(death.process, death.fault) for death in composing.deaths]
    assert told == [("the composer", "stopped for 0.2 s, then killed")]


def test_one_that_dies_at_the_very_end_is_told_too(composing):
    (composer,) = composing._others
    os.kill(composer.pid, signal.SIGKILL)
    composing.__exit__(None, None, None)
    assert [(death.process, death.fault) for death in composing.deaths] == [
        ("the composer", "killed by signal 9")
    ]


def test_those_that_end_when_they_have_nothing_more_to_do_have_not_died(composing):
    composing.engines(EndpointConfig(url="sim:"))
    composing.__exit__(None, None, None)
    assert composing.deaths == []
