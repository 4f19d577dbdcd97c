"""What is settled before a run: its folder, its workers, when it is given up."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from loadstone import environment
from loadstone.config import Config, EndpointConfig, LoadConfig, OutputConfig
from loadstone.plan import schedule
from loadstone.settle import default_folder, settle, threshold, worker_count


@pytest.mark.parametrize("model", ["../../etc", "m" * 5000, "漢" * 300, "\x1b]0;x\x07", "", "..", "a/b\nc"])
def test_the_folder_has_a_name_whatever_the_models_is(model):
    config = Config(endpoint=EndpointConfig(model=model))
    home = default_folder(config, schedule.phases(config.load)[-1], datetime(2026, 1, 1, tzinfo=UTC))
    assert home.parts[:-1] == ("artifacts",)
    assert home.name.isprintable()
    assert len(home.name.encode()) <= 200


@pytest.mark.parametrize(
    ("address", "asked", "share"),
    [
        ("localhost:8000", None, 0.5),
        ("localhost:8000/fault=x", None, 0.5),
        ("sim:step_ms=1", None, 0.5),
        ("sim:fault=crlf", None, 1.0),
        ("sim:step_ms=1, fault=crlf", None, 1.0),
        ("sim:fault=crlf", 0.1, 0.1),
        ("localhost:8000", 0.0, 0.0),
        ("localhost:8000", 1.0, 1.0),
    ],
)
def test_when_a_run_is_given_up(address, asked, share):
    config = Config(endpoint=EndpointConfig(url=address), load=LoadConfig(failed_request_threshold=asked))
    assert threshold(config) == share


@pytest.mark.parametrize(("address", "share"), [("localhost:8000", 0.5), ("sim:fault=crlf", 1.0)])
def test_the_settled_configuration_says_when_a_run_is_given_up(address, share, tmp_path):
    config = Config(
        endpoint=EndpointConfig(url=address, model="m"), output=OutputConfig(folder=str(tmp_path / "run"))
    )
    assert settle(config, "").config.load.failed_request_threshold == share


@pytest.mark.parametrize(
    ("load", "cores", "workers"),
    [
        ({}, 8, 1),
        ({"concurrency": 3}, 8, 3),
        ({"concurrency": 300}, 8, 4),
        ({"concurrency": 300}, 1, 1),
        ({"concurrency": 300}, 128, 16),
        ({"request_rate": 10.0}, 8, 4),
        ({"request_rate": 10.0, "concurrency": 2}, 8, 2),
        ({"workers": 40}, 8, 40),
    ],
)
def test_how_many_workers(load, cores, workers, monkeypatch):
    monkeypatch.setattr(environment, "usable_cores", lambda: cores)
    assert worker_count(Config(load=LoadConfig(**load))) == workers
