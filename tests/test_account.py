"""What `run.json` says of a run that has ended, and what its reader has to know."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from loadstone.account import NO_CLOCK, NOT_BEGUN, Setting, account, begun
from loadstone.config import Config, EndpointConfig
from loadstone.endpoints import Ask
from loadstone.folder import PLAN, DeathLog, PhaseLog, PreflightLog
from loadstone.load.conduct import Stop
from loadstone.plan.store import Draft, Writer
from loadstone.preflight import Preflight, Reached
from loadstone.wire import url

TOKENIZER = SimpleNamespace(name="t", exact=True, flaw=None)
REACHED = Reached(url.parse("127.0.0.1:1"), socket.AF_INET, ("127.0.0.1", 1))
LOG = PreflightLog(
    request_id="preflight-x", http_status=200, latency_ms=1.0, content_tokens=16, prompt_tokens=20
)
FOUND = Preflight(LOG, {}, Ask(model="m", streaming=True))


def phase(name="measured"):
    return PhaseLog(name=name, first_row=0, planned=2, start_ns=0, stop_ns=1, end_ns=1)


@pytest.fixture
def setting(tmp_path):
    writer = Writer(tmp_path / PLAN)
    writer.append(
        Draft(due_ns=-1, body=b"{}", isl_tokens=16, osl_tokens=-1, conversation=n, turn=0, phase=0)
        for n in range(2)
    )
    writer.close()
    return Setting(
        Config(endpoint=EndpointConfig(model="m")), "loadstone profile", "x", 1, tmp_path, TOKENIZER, [],
        datetime(2026, 1, 1, tzinfo=UTC), workers=1,
    )  # fmt: skip


@pytest.fixture
def told(setting):
    """The account of a run that went like this."""

    def tell(deaths=(), **changes):
        conducted = NOT_BEGUN._replace(phases=[phase()])._replace(**changes)
        return account(setting, REACHED, FOUND, conducted, NO_CLOCK, list(deaths))

    return tell


def test_a_run_that_went_well_has_nothing_to_tell(told):
    log = told()
    assert (log.end, log.stopped_by, log.stopped_why, log.deaths, log.notices) == (
        "complete",
        None,
        None,
        [],
        [],
    )


@pytest.mark.parametrize(
    ("by", "end"), [("user", "interrupted"), ("failures", "aborted"), ("trouble", "aborted")]
)
def test_why_a_run_ended_before_its_time(told, by, end):
    log = told(stop=Stop(by, "because"))
    assert (log.end, log.stopped_by, log.stopped_why) == (end, by, "because")


def test_before_the_first_request_it_stands_as_given_up(setting):
    log = begun(setting, REACHED, FOUND)
    assert (log.end, log.phases, log.notices) == ("aborted", [], [])


def test_deaths_are_kept(told):
    death = DeathLog(process="worker 0", fault="killed by signal 9", noticed_ns=7)
    assert told(deaths=[death]).deaths == [death]


def test_a_run_that_ended_in_its_warm_up_says_so(told):
    assert told(phases=[phase("warmup")]).notices == ["The run ended in its warm-up; nothing was measured."]


def test_what_the_machine_is_short_of_and_what_the_preflight_found(setting):
    log = account(
        setting._replace(shortages=("too few ports.",)),
        REACHED,
        FOUND._replace(notices=("no usage.",)),
        NOT_BEGUN._replace(phases=[phase()]),
        NO_CLOCK,
        [],
    )
    assert log.notices == ["no usage.", "too few ports."]
