"""What `run.json` says of a run that has ended, and what its reader has to know."""

from __future__ import annotations

import hashlib
import socket
from datetime import UTC, datetime
from types import SimpleNamespace

import msgspec
import pytest

from loadstone.account import NO_CLOCK, NOT_BEGUN, Setting, account, begun
from loadstone.config import Config, EndpointConfig, InputConfig, LoadConfig
from loadstone.endpoints import Ask
from loadstone.folder import PLAN, DeathLog, HookLog, PhaseLog, PreflightLog
from loadstone.load.conduct import Stop
from loadstone.load.reach import Reached
from loadstone.plan import schedule
from loadstone.plan.store import Draft, Writer
from loadstone.preflight import Found
from loadstone.wire import url

TOKENIZER = SimpleNamespace(name="t", exact=True, flaw=None)
REACHED = Reached(url.parse("127.0.0.1:1"), socket.AF_INET, ("127.0.0.1", 1))
RESET = HookLog(
    name="reset_kv_cache", target=0, path="/reset_prefix_cache", start_ns=1, end_ns=2, http_status=200
)
LOG = PreflightLog(
    request_id="preflight-x", http_status=200, latency_ms=1.0, content_tokens=16, prompt_tokens=20
)
FOUND = Found([LOG], [{"server": "vLLM"}], Ask(model="m", streaming=True))


def phase(kind="measured", first_row=0, planned=2):
    return PhaseLog(
        name=kind, kind=kind, first_row=first_row, planned=planned, start_ns=0, stop_ns=1, end_ns=1
    )


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

    def tell(deaths=(), servers=(REACHED,), found=FOUND, hooks=(), setting=setting, **changes):
        conducted = NOT_BEGUN._replace(phases=[phase()])._replace(**changes)
        return account(setting, servers, found, conducted, NO_CLOCK, list(deaths), hooks)

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
    ("by", "end"),
    [("user", "interrupted"), ("failures", "aborted"), ("trouble", "aborted"), ("steady", "complete")],
)
def test_why_a_run_ended_before_its_time(told, by, end):
    log = told(stop=Stop(by, "because"))
    assert (log.end, log.stopped_by, log.stopped_why) == (end, by, "because")


def test_before_the_first_request_it_stands_as_given_up(setting):
    log = begun(setting, [REACHED], FOUND, [RESET])
    assert (log.end, log.phases, log.hooks) == ("aborted", [], [RESET])


def test_deaths_are_kept(told):
    death = DeathLog(process="worker 0", fault="killed by signal 9", noticed_ns=7)
    assert told(deaths=[death]).deaths == [death]


def test_a_run_that_ended_in_its_warm_up_says_so(told):
    assert told(phases=[phase("warmup")]).notices == ["The run ended in its warm-up; nothing was measured."]


def test_a_cooldown_behind_what_was_measured_is_no_warm_up(told):
    assert told(phases=[phase("warmup"), phase(), phase("cooldown")]).notices == []


def test_what_the_machine_is_short_of_and_what_the_preflight_found(told, setting):
    log = told(
        setting=setting._replace(shortages=("too few ports.",)), found=FOUND._replace(notices=("no usage.",))
    )
    assert log.notices == ["no usage.", "too few ports."]


def test_what_was_asked_of_the_server_beside_the_load(told):
    log = told(hooks=[RESET])
    assert log.hooks == [RESET]
    assert log.notices == ["The server's prefix cache was emptied before the load."]


def test_one_server_describes_itself(told):
    environment = told().environment
    assert environment["server"] == {"server": "vLLM"}
    assert "servers" not in environment


def test_several_servers_describe_themselves_in_their_order(told):
    other = msgspec.structs.replace(LOG, target=1, prompt_tokens=99)
    found = FOUND._replace(logs=[LOG, other], described=[{"server": "vLLM"}, {}])
    log = told(servers=[REACHED, REACHED], found=found)
    assert log.environment["server"] == {"server": "vLLM"}
    assert log.environment["servers"] == [{"server": "vLLM"}, {}]
    assert (log.preflight, log.preflights) == (LOG, [LOG, other])


@pytest.mark.parametrize(
    ("addresses", "local"),
    [(["127.0.0.1"], True), (["192.0.2.1"], False), (["192.0.2.1", "127.0.0.1"], True)],
)
def test_a_server_here_is_one_that_shares_the_cores(told, addresses, local):
    servers = [REACHED._replace(address=(address, 1)) for address in addresses]
    assert told(servers=servers).server_local is local


def test_only_what_was_measured_is_in_the_digest(told):
    whole = told().dataset.digest
    assert whole == hashlib.sha256(b"{}{}").hexdigest()
    assert told(phases=[phase("warmup"), phase(first_row=1, planned=1)]).dataset.digest != whole
    halves = [phase(first_row=0, planned=1), phase(first_row=1, planned=1)]
    assert told(phases=halves).dataset.digest == whole


@pytest.mark.parametrize(("distinct", "reused"), [(None, 0), (2, 0), (1, 1)])
def test_prompts_that_were_sent_before(told, setting, distinct, reused):
    dataset = told(setting=setting._replace(distinct=distinct)).dataset
    assert (dataset.reused, dataset.unique_prompts) == (reused, reused == 0)


@pytest.mark.parametrize(
    ("users", "turns", "told_so"), [(3, 4.0, True), (1, 4.0, False), (3, 1.0, False), (None, 4.0, False)]
)
def test_turns_that_users_have_behind_them_are_told(told, setting, users, turns, told_so):
    load = LoadConfig(user_centric_rate=5.0, users=users) if users else LoadConfig(request_rate=5.0)
    setting = setting._replace(phases=schedule.phases(load, InputConfig(turns_mean=turns)))
    notices = told(setting=setting).notices
    assert [notice.startswith("Users are found in the middle") for notice in notices] == [True] * told_so


def test_what_was_decided_for_the_user_is_told(told, setting):
    assert told(setting=setting._replace(remarks=("So it is.",))).notices == ["So it is."]
