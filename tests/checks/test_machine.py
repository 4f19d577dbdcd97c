from __future__ import annotations

import pytest
from tests.conftest import ns

from loadstone.checks import machine
from loadstone.folder import MachineLog, MachineSpan

SECOND = 1_000_000_000


def span(number=0, phase="measured", **more):
    """One second of two cores that were half busy, all of it with our own work."""
    start = ns(1000 * number)
    told = {"cpu_ns": 2 * SECOND, "busy_ns": SECOND, "ours_ns": SECOND, "least_available_bytes": 1 << 30}
    return MachineSpan(phase=phase, start_ns=start, end_ns=start + SECOND, **told | more)


@pytest.fixture
def found(evidence, answer):
    """What a check says of a run of a hundred requests with these spans."""

    def of(check, *spans, reasons=None, requests=100, **run):
        log = MachineLog(spans=list(spans), reasons=reasons or {})
        return check(evidence(*[answer(5)] * requests, machine=log, **run))

    return of


@pytest.mark.parametrize(
    "check",
    [
        machine.machine_steal, machine.clock_rate, machine.other_load, machine.kernel_drops,
        machine.memory_pressure,
    ],
)  # fmt: skip
def test_where_nobody_looked_nothing_is_known(check, evidence, answer):
    told = check(evidence(answer(5)))
    assert (told.name, told.verdict, told.value) == (check.__name__, "VALID", None)
    assert told.finding == "not known: nobody looked."


def test_what_a_system_does_not_tell_is_said(found):
    told = found(
        machine.machine_steal, span(), reasons={"steal_ns": "this system does not tell stolen time."}
    )
    assert (told.value, told.finding) == (None, "not known: this system does not tell stolen time.")


@pytest.mark.parametrize(
    ("stolen", "verdict"), [(0.0, "VALID"), (0.9, "VALID"), (1.0, "NOTE"), (4.9, "NOTE"), (5.0, "DEGRADED")]
)
def test_stolen_time(found, stolen, verdict):
    told = found(machine.machine_steal, span(steal_ns=round(stolen / 100 * 2 * SECOND), most_stolen=0.1))
    assert (told.verdict, told.value) == (verdict, pytest.approx(stolen))
    assert bool(told.advice) == (verdict != "VALID")


@pytest.mark.parametrize(("most", "verdict"), [(0.49, "VALID"), (0.5, "NOTE")])
def test_half_of_a_second_stolen_is_told_however_long_the_run(found, most, verdict):
    spans = [span(number, steal_ns=0, most_stolen=0.0) for number in range(100)]
    assert found(machine.machine_steal, *spans, span(100, steal_ns=0, most_stolen=most)).verdict == verdict


def test_what_happened_in_the_warm_up_is_not_looked_at(found):
    stolen = {"steal_ns": SECOND, "most_stolen": 0.5}
    told = found(machine.machine_steal, span(phase="warmup", **stolen), span(1, steal_ns=0, most_stolen=0.0))
    assert (told.verdict, told.value) == ("VALID", 0)


def clocked(*mhz, busy=1.0, later_busy=None):
    """Seconds with these clock rates, of which the second half may be less busy."""
    half = len(mhz) // 2
    return [
        span(
            number, mhz_min=rate, mhz_max=rate, throttles=0,
            busy_ns=round(SECOND * (busy if number < half or later_busy is None else later_busy)),
        )
        for number, rate in enumerate(mhz)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("last", "local", "verdict"),
    [(2701, False, "VALID"), (2699, False, "NOTE"), (2699, True, "DEGRADED")],
)
def test_a_clock_rate_that_fell(found, last, local, verdict):
    told = found(machine.clock_rate, *clocked(*[3000] * 3, *[3000] * 3, *[last] * 3), server_local=local)
    assert (told.verdict, told.value) == (verdict, pytest.approx(100 * (1 - last / 3000)))


def test_a_clock_rate_that_follows_the_load_is_no_defect(found):
    told = found(machine.clock_rate, *clocked(*[3000] * 6, *[1500] * 6, later_busy=0.5))
    assert (told.verdict, told.value) == ("VALID", 0)


def test_a_short_run_shows_no_trend_of_the_clock_rate(found):
    assert found(machine.clock_rate, span(mhz_min=3000.0, mhz_max=3000.0)).value is None


def test_a_core_that_was_too_hot(found):
    told = found(machine.clock_rate, span(throttles=2))
    assert told.verdict == "NOTE"
    assert told.finding.startswith(
        "cores lowered their clock rate 2 times because they were too hot: the client"
    )


@pytest.mark.parametrize(
    ("others", "free", "local", "verdict"),
    [
        (9.9, 0, True, "VALID"),
        (10, 11, True, "NOTE"),
        (10, 10, True, "DEGRADED"),
        (10, 10, False, "NOTE"),
    ],
)
def test_other_processes(found, others, free, local, verdict):
    busy = 2 * SECOND * (100 - free) // 100
    one = span(busy_ns=busy, ours_ns=busy - round(others / 100 * 2 * SECOND), steal_ns=0)
    told = found(machine.other_load, one, server_local=local, config={"endpoint": {"url": ["sim:"]}})
    assert (told.verdict, told.value) == (verdict, pytest.approx(others))


def test_stolen_time_is_no_other_process(found):
    told = found(machine.other_load, span(busy_ns=2 * SECOND, ours_ns=SECOND, steal_ns=SECOND))
    assert (told.verdict, told.value) == ("VALID", 0)


def test_a_server_on_this_machine_cannot_be_told_from_others(found):
    told = found(machine.other_load, span(ours_ns=0), server_local=True)
    assert (told.verdict, told.value) == ("VALID", None)


@pytest.mark.parametrize(
    ("requests", "lost", "verdict"),
    [(1001, 1, "VALID"), (1000, 1, "NOTE"), (301, 3, "NOTE"), (300, 3, "DEGRADED"), (10, 2, "NOTE")],
)
@pytest.mark.parametrize("kind", ["tcp_retransmits", "tcp_drops", "packet_drops"])
def test_packets_lost(found, requests, lost, verdict, kind):
    told = found(machine.kernel_drops, span(**{kind: lost}), requests=requests)
    assert (told.verdict, told.value) == (verdict, pytest.approx(100 * lost / requests))


@pytest.mark.parametrize(("waited", "verdict"), [(9_999_999, "VALID"), (10_000_000, "DEGRADED")])
def test_waiting_for_memory(found, waited, verdict):
    assert found(machine.memory_pressure, span(memory_pressure_ns=waited)).verdict == verdict


def test_swap_and_the_last_memory_are_told(found):
    swapped = found(machine.memory_pressure, span(memory_pressure_ns=0, swapped_in_bytes=3_000_000))
    assert (swapped.verdict, swapped.finding) == ("NOTE", "3 MB were read back from swap meanwhile.")
    for left, verdict in ((200, "VALID"), (199, "NOTE")):
        little = found(
            machine.memory_pressure, span(least_available_bytes=left), environment={"memory_bytes": 10_000}
        )
        assert little.verdict == verdict


@pytest.mark.parametrize(
    ("source", "verdict"), [("tsc", "VALID"), ("kvm-clock", "VALID"), (None, "VALID"), ("hpet", "NOTE")]
)
def test_the_source_of_the_clock(evidence, answer, source, verdict):
    told = machine.clock_source(evidence(answer(5), environment={"clock_source": source}))
    assert told.verdict == verdict
