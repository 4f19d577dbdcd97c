"""What the client can do at most: arithmetic, and where it is kept."""

from __future__ import annotations

import pytest

from loadstone.ceiling import Ceiling, keep, kept, path, where

HOST = {
    "host": "one", "cpu": "X", "usable_cores": 8, "system": "Linux 6", "python": "3.11", "load_average": [1],
    "packages": {"loadstone": "1"},
}  # fmt: skip


def ceiling(**more):
    told = {
        "made": "2026-12-01T00:00:00Z",
        "where": where(HOST),
        "request_us": 40.0,
        "token_us": 10.0,
        "workers": 4,
    }
    return Ceiling(**{**told, "connections": 5_000, **more})


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


def test_each_worker_has_four_fifths_of_a_core():
    assert ceiling().requests_per_s == 4 * 0.8 / 40e-6
    assert ceiling().tokens_per_s == 4 * 0.8 / 10e-6


def test_streams_are_bounded_by_tokens_and_by_connections():
    assert ceiling().streams(100) == 3_200
    assert ceiling().streams(50) == 5_000


def test_the_share_that_a_load_needs():
    # 1,000 requests of 40 us and 96,000 tokens of 10 us are a second of CPU: over 10 s and 2 workers a twentieth.
    assert ceiling().share(1_000, 96_000, 10.0, 2) == pytest.approx(0.05)


def test_it_is_kept_for_this_machine(state):
    assert keep(ceiling()) == path() == state / "loadstone" / "ceiling.json"
    assert kept(HOST) == ceiling()


def test_what_changes_from_day_to_day_does_not_matter():
    keep(ceiling())
    assert kept({**HOST, "load_average": [9]}) == ceiling()


@pytest.mark.parametrize("change", [{"cpu": "Y"}, {"python": "3.12"}, {"packages": {"loadstone": "2"}}])
def test_it_does_not_hold_on_another_machine_or_with_another_version(change):
    keep(ceiling())
    assert kept({**HOST, **change}) is None


def test_without_one_and_with_a_damaged_one_there_is_none():
    assert kept(HOST) is None
    keep(ceiling())
    path().write_text("{")
    assert kept(HOST) is None


@pytest.mark.parametrize(
    "more", [{"token_us": 0.0}, {"request_us": -5.0}, {"workers": 0}, {"token_us": 1e999}]
)
def test_numbers_that_cannot_be_are_not_taken(more):
    keep(ceiling(**more))
    assert kept(HOST) is None
