"""How much of what this machine's client can do a load needed."""

from __future__ import annotations

import msgspec
import pytest

from loadstone.ceiling import Ceiling
from loadstone.checks import CHECKS, Evidence
from loadstone.checks.headroom import headroom
from loadstone.folder import WorkerLog

CEILING = Ceiling(made="", where={}, request_us=100.0, token_us=10.0, workers=2, connections=1_000)


@pytest.fixture
def check(tables, answer):
    """The check of a run of 10 s whose workers had so many flights and reads each."""

    def of(*loads, told=CEILING):
        workers = [
            WorkerLog(worker=n, cpu_ns=1, wall_ns=10_000_000_000, flights=flights, reads=reads)
            for n, (flights, reads) in enumerate(loads)
        ]
        known = {"ceiling": msgspec.to_builtins(told)} if told else {}
        return headroom(Evidence(tables(answer(10), workers=workers, environment=known), {}))

    return of


def test_it_is_one_of_the_checks():
    assert headroom in CHECKS


def test_without_a_ceiling_it_says_how_to_get_one(check):
    found = check((100, 200), told=None)
    assert (found.verdict, found.value) == ("VALID", None)
    assert "`loadstone calibrate`" in found.finding


def test_the_load_in_percent_of_what_its_workers_can_do(check):
    # 10,000 requests are 1 s of CPU, 100,000 tokens as much: 2 s of the 8 s that a worker may use in 10 s.
    found = check((10_000, 110_000))
    assert (found.verdict, found.value) == ("VALID", 25.0)
    assert found.finding == (
        "the load took 25 % of what 1 of this machine's workers can do (8,000 requests/s, or 80,000 tokens/s)."
    )


def test_the_load_is_taken_to_be_spread_over_the_workers(check):
    assert check((10_000, 110_000), (0, 0)).value == 12.5


def test_from_the_ceiling_on_it_is_worth_a_note(check):
    found = check((80_000, 80_000))
    assert (found.verdict, found.value) == ("NOTE", 100.0)
    assert "--workers" in found.advice


def test_a_ceiling_that_cannot_be_is_none(check):
    broken = msgspec.structs.replace(CEILING, token_us=0.0)
    assert check((100, 200), told=broken).value is None
