"""Whether a machine has the descriptors and ports that a load needs."""

from __future__ import annotations

import pytest

from loadstone.load.room import RESERVE, shortages


@pytest.mark.parametrize(
    ("slots", "workers", "descriptors", "ports"),
    [
        (960, 1, 960 + RESERVE, 28_232),
        (3_840, 4, 960 + RESERVE, 28_232),
        (28_232, 16, 20_000, 28_232),
        (50_000, 16, 20_000, None),
        (None, 1, 100, 100),
    ],
)
def test_enough(slots, workers, descriptors, ports):
    assert list(shortages(slots, workers, descriptors, ports)) == []


def test_too_few_descriptors():
    [sentence] = shortages(1_000, 1, 1_024, 28_232)
    assert sentence == (
        "A process may have 1024 open files (ulimit -n) and 1000 connections a worker need 1064: connections beyond"
        " will wait. Raise it, or use more --workers."
    )


def test_the_fullest_worker_counts():
    assert list(shortages(11, 2, 5 + RESERVE, None)) != []
    assert list(shortages(10, 2, 5 + RESERVE, None)) == []


def test_too_few_ports():
    [sentence] = shortages(30_000, 16, 20_000, 28_232)
    assert sentence.startswith("This host has 28232 ports for connections to one address")
    assert "concurrency is 30000: connections beyond will wait." in sentence
