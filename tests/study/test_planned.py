"""Which runs a study does: sides in turn, seeds that go on, one warm-up where that is asked."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from loadstone.config import load, phase_loads
from loadstone.study.planned import planned

HOME = Path("studies/one")


def config(**flags):
    return load(flags={"endpoint.url": ["sim:"], "load.concurrency": ["2"], **flags}, environ={})


def plan(seed=7, **flags):
    return planned(config(**flags), seed, HOME)


def test_runs_are_numbered_and_have_folders_of_their_own():
    assert [(one.name, one.side) for one in plan(**{"runs.count": ["3"]})] == [
        ("run-1", "run"),
        ("run-2", "run"),
        ("run-3", "run"),
    ]
    assert [one.config.output.folder for one in plan(**{"runs.count": ["2"]})] == [
        "studies/one/run-1",
        "studies/one/run-2",
    ]


def test_every_run_has_a_seed_of_its_own_so_that_no_prompt_comes_twice():
    assert [one.config.input.seed for one in plan(**{"runs.count": ["3"]})] == [7, 8, 9]


def test_one_seed_for_all_where_that_is_asked():
    runs = plan(**{"runs.count": ["3"], "runs.vary_seed": False})
    assert [one.config.input.seed for one in runs] == [7, 7, 7]


def test_two_servers_take_turns_with_the_same_requests():
    runs = plan(**{"runs.count": ["2"], "runs.interleave": ["sim:step_ms=9"]})
    assert [(one.name, one.config.endpoint.url, one.config.input.seed) for one in runs] == [
        ("a-1", "sim:", 7),
        ("b-1", "sim:step_ms=9", 7),
        ("a-2", "sim:", 8),
        ("b-2", "sim:step_ms=9", 8),
    ]


def test_no_run_is_a_study_itself():
    assert all(
        (one.config.runs.count, one.config.runs.interleave) == (1, None)
        for one in plan(**{"runs.count": ["2"], "runs.interleave": ["sim:"]})
    )


def kinds(one):
    return [phase.kind for phase in phase_loads(one.config.load)]


def test_a_warm_up_comes_before_every_run():
    runs = plan(**{"runs.count": ["2"], "load.warmup_request_count": ["4"]})
    assert [kinds(one) for one in runs] == [["warmup", "measured"]] * 2


def test_a_warm_up_before_the_first_run_alone_where_that_is_asked():
    flags = {"runs.count": ["2"], "runs.warmup_once": True}
    runs = plan(**flags, **{"load.warmup_request_count": ["4"], "load.warmup_concurrency": ["2"]})
    assert [kinds(one) for one in runs] == [["warmup", "measured"], ["measured"]]


def test_the_same_for_phases_that_a_file_lists():
    listed = [{"name": "up", "kind": "warmup", "request_count": 3}, {"name": "steady", "request_count": 5}]
    listed = msgspec.json.encode(listed).decode()
    runs = planned(
        load(
            flags={"endpoint.url": ["sim:"], "runs.count": ["2"], "runs.warmup_once": True},
            sets=[f"load.phases={listed}"],
            environ={},
        ),
        7,
        HOME,
    )
    assert [kinds(one) for one in runs] == [["warmup", "measured"], ["measured"]]


@pytest.mark.parametrize("flag", ["runs.cooldown_s", "runs.stop_when"])
def test_what_means_nothing_for_one_run_is_refused(flag):
    from loadstone.errors import UsageError

    value = {"runs.cooldown_s": "3", "runs.stop_when": "request_latency:2"}[flag]
    with pytest.raises(UsageError, match=flag):
        config(**{flag: [value]})
