from __future__ import annotations

import numpy as np
import pytest

NAMES = ("total_energy", "average_power", "energy_per_output_token", "output_tokens_per_joule")


@pytest.fixture
def rows(answer):
    """2 s, 500 output tokens, and a failure."""
    return [
        answer(100, 2000, tokens=300),
        answer(100, 1500, tokens=200),
        answer(5, tokens=9, outcome="reset"),
    ]


def test_without_telemetry_it_is_not_known(tables, rows, reason):
    for name in NAMES:
        assert reason(name, tables(*rows)) == "nobody measured the energy of the servers' devices."


def test_joules_over_the_window(tables, rows, mean):
    run = tables(*rows, environment={"energy_j": 1400.0})
    assert [mean(name, run) for name in NAMES] == [1400.0, 700.0, 2.8, 500 / 1400]


def test_the_energy_of_the_whole_is_not_that_of_a_part(tables, rows, reason):
    run = tables(*rows, environment={"energy_j": 1400.0})
    for part in (run.part(np.array([True, False, False])), run.of_phases()):
        assert "served other requests" in reason("total_energy", part)


def test_nothing_measured_is_not_zero(tables, rows, reason):
    assert "nobody" in reason("total_energy", tables(*rows, environment={"energy_j": 0.0}))
