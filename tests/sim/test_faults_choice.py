"""Which request gets which fault."""

from __future__ import annotations

from collections import Counter

import pytest

from loadstone.errors import UsageError
from loadstone.sim.faults import FAULTS
from loadstone.sim.faults.choice import mix
from loadstone.sim.options import SimOptions, from_url

REQUESTS = [f"run-{number}" for number in range(4000)]
ONE_AT_A_TIME = [fault.name for fault in FAULTS.values() if not fault.whole_server]


def shares(*texts: str, seed: int = 0) -> dict[str | None, float]:
    picked = (mix(texts).pick(seed, name) for name in REQUESTS)
    return {
        name: count / len(REQUESTS) for name, count in Counter(one and one.name for one in picked).items()
    }


def test_a_fault_without_a_share_hits_every_request() -> None:
    assert shares("eof") == {"eof": 1.0}


def test_several_without_a_share_are_equally_likely() -> None:
    found = shares("eof", "reset", "html", "cr")
    assert found.keys() == {"eof", "reset", "html", "cr"}
    assert list(found.values()) == pytest.approx([0.25] * 4, abs=0.03)


def test_a_share_is_kept_and_the_rest_is_answered_well() -> None:
    assert shares("eof:0.1", "reset:0.3") == pytest.approx({"eof": 0.1, "reset": 0.3, None: 0.6}, abs=0.03)


def test_those_without_a_share_divide_what_the_others_leave() -> None:
    assert shares("eof:0.5", "cr", "html") == pytest.approx({"eof": 0.5, "cr": 0.25, "html": 0.25}, abs=0.03)


def test_all_is_every_fault_of_a_single_request() -> None:
    assert shares("all").keys() == set(ONE_AT_A_TIME)
    some = shares("all:0.02")
    assert some[None] == pytest.approx(0.98, abs=0.01)
    assert some.keys() - {None} <= set(ONE_AT_A_TIME)


def test_the_choice_depends_on_seed_and_request_alone() -> None:
    two = mix(["eof:0.5"])
    again = mix(["eof:0.5"])
    first = [two.pick(1, name) for name in REQUESTS]
    assert [again.pick(1, name) for name in reversed(REQUESTS)] == first[::-1]
    assert [two.pick(2, name) for name in REQUESTS] != first


def test_a_fault_of_the_whole_server_comes_after_a_number_of_requests() -> None:
    found = mix(["dies-after", "restarts:50", "eof:0.5"]).whole_server
    assert [(fault.name, after) for fault, after in found] == [("dies-after", 20), ("restarts", 50)]
    assert shares("dies-after") == {None: 1.0}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ["crfl"],
            "fault = crfl: there is no such fault. Did you mean crlf? `loadstone simulate --faults` lists",
        ),
        (["eof:2"], "fault = eof:2: the share must be a number above 0 and at most 1, such as eof:0.1."),
        (["eof:0"], "fault = eof:0: the share must be"),
        (["eof:nan"], "fault = eof:nan: the share must be"),
        (["eof:"], "fault = eof:: the share must be"),
        (["all:x"], "fault = all:x: the share must be"),
        (["restarts:0.5"], "fault = restarts:0.5: must have a whole number of requests after the colon"),
        (["eof:0.7", "cr:0.6"], "fault: the shares add up to more than there is"),
        (["eof:1", "cr"], "fault: the shares add up to more than there is"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        mix(texts)
    assert str(refusal.value).startswith(message)


def test_an_address_names_several_with_a_plus() -> None:
    options = from_url("sim:fault=eof:0.1 + all:0.02+restarts:50,step_ms=5,fault_preflight=true")
    assert options == SimOptions(
        fault=("eof:0.1", "all:0.02", "restarts:50"), step_ms=5.0, fault_preflight=True
    )


def test_an_address_with_a_wrong_fault_is_refused() -> None:
    with pytest.raises(UsageError, match=r"fault = crfl: there is no such fault\. Did you mean crlf"):
        from_url("sim:fault=crfl")
