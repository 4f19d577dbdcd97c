"""What is settled before a run: its folder, its workers, when it is given up."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from loadstone import environment
from loadstone.config import Config, CostConfig, EndpointConfig, InputConfig, LoadConfig, OutputConfig
from loadstone.errors import UsageError
from loadstone.plan import schedule
from loadstone.settle import default_folder, settle, threshold, worker_count


@pytest.mark.parametrize("model", ["../../etc", "m" * 5000, "漢" * 300, "\x1b]0;x\x07", "", "..", "a/b\nc"])
def test_the_folder_has_a_name_whatever_the_models_is(model):
    config = Config(endpoint=EndpointConfig(model=model))
    home = default_folder(config, schedule.phases(config.load), datetime(2026, 1, 1, tzinfo=UTC))
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
        (("localhost:8000", "localhost:8001"), None, 0.5),
        (("localhost:8000", "sim:fault=crlf"), None, 1.0),
        (("sim:", "sim:step_ms=1"), None, 0.5),
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


TOLERANT = "The engine is asked to fail (sim:fault), so no share of failures ends the run; --failed-request-threshold sets one."


@pytest.mark.parametrize(
    ("address", "asked", "remarks"),
    [("sim:fault=crlf", None, (TOLERANT,)), ("sim:fault=crlf", 1.0, ()), ("sim:", None, ())],
)
def test_a_limit_that_was_lifted_for_an_engine_that_fails_is_told(address, asked, remarks, tmp_path):
    config = Config(
        endpoint=EndpointConfig(url=address),
        load=LoadConfig(failed_request_threshold=asked),
        output=OutputConfig(folder=str(tmp_path / "run")),
    )
    assert settle(config, "").remarks == remarks


def test_a_load_that_would_send_nothing_is_refused_before_anything_is_made(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"timestamp": 5}\n{"timestamp": 9}\n')
    config = Config(
        input=InputConfig(file=str(tmp_path / "a.jsonl")),
        load=LoadConfig(fixed_schedule=True, fixed_schedule_start_ms=10.0),
        output=OutputConfig(folder=str(tmp_path / "run")),
    )
    with pytest.raises(
        UsageError, match=r"no request would be sent: the conversations begin from 5 to 9 ms\."
    ):
        settle(config, "")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("load", "cores", "workers"),
    [
        ({}, 8, 1),
        ({"concurrency": 3}, 8, 3),
        ({"concurrency": 300}, 8, 4),
        ({"concurrency": 300}, 1, 1),
        ({"concurrency": 300}, 128, 16),
        ({"concurrency": 3, "warmup_request_count": 1, "warmup_concurrency": 4}, 16, 4),
        ({"request_rate": 10.0}, 8, 4),
        ({"request_rate": "inf"}, 8, 4),
        ({"request_rate": 10.0, "warmup_request_count": 1, "concurrency": 3}, 8, 3),
        ({"request_rate": 10.0, "prefill_concurrency": 2}, 8, 2),
        ({"request_rate": 10.0, "prefill_concurrency": 8, "prefill_concurrency_ramp_s": 1.0}, 8, 1),
        ({"user_centric_rate": 10.0, "users": 100}, 8, 4),
        ({"request_rate": 10.0, "concurrency": 2}, 8, 2),
        ({"workers": 40}, 8, 40),
    ],
)
def test_how_many_workers(load, cores, workers, monkeypatch):
    monkeypatch.setattr(environment, "usable_cores", lambda: cores)
    config = Config(load=LoadConfig(**load))
    assert worker_count(config, schedule.phases(config.load)) == workers


@pytest.mark.parametrize(
    ("load", "name"),
    [
        ({}, "concurrency1"),
        ({"concurrency": 8, "cooldown_duration_s": 1.0}, "concurrency8"),
        ({"request_rate": 2.5}, "rate2.5"),
        ({"request_rate": 20.0, "request_rate_ramp_s": 10.0}, "rate20"),
        ({"request_rate": "inf"}, "burst"),
        ({"request_rate_series": ((0.0, 1.0), (9.0, 2.0), (20.0, 0.0))}, "series"),
        ({"fixed_schedule": True}, "schedule"),
        ({"user_centric_rate": 2.0, "users": 8}, "users8-rate2"),
        (
            {
                "index_ramp_strategy": "linear",
                "index_ramp_start": 1.0,
                "index_ramp_end": 9.0,
                "request_count": 9,
            },
            "ramp",
        ),
    ],
)
def test_the_folder_is_called_after_the_load(load, name):
    config = Config(endpoint=EndpointConfig(model="m,n"), load=LoadConfig(**load))
    home = default_folder(config, schedule.phases(config.load), datetime(2026, 1, 1, tzinfo=UTC))
    assert home.name == f"m-chat-{name}-20260101T000000.000"


def test_every_address_is_looked_at_before_anything_is_asked():
    config = Config(endpoint=EndpointConfig(url=("sim:", "ftp://x"), model="m"))
    with pytest.raises(UsageError, match="scheme 'ftp' is not http or https"):
        settle(config, "")


def test_the_first_address_names_the_model(tmp_path):
    output = OutputConfig(folder=str(tmp_path / "run"))
    config = Config(endpoint=EndpointConfig(url=("sim:model=one", "sim:model=two")), output=output)
    assert settle(config, "").config.endpoint.model == "one"


def test_a_way_between_client_and_server_is_the_virtual_clock_s(tmp_path):
    def settled(**how):
        endpoint = EndpointConfig(url="sim:network_us=5", model="m", **how)
        return settle(Config(endpoint=endpoint, output=OutputConfig(folder=str(tmp_path / "run"))), "")

    with pytest.raises(UsageError, match=r"^sim: network_us: has no effect without --virtual"):
        settled()
    assert settled(virtual=True, streaming=True)


@pytest.mark.parametrize(
    ("address", "model"),
    [
        ("sim:", "sim"),
        ("sim:model=m", "m"),
        ("sim:gpu=h100,model=llama-3.1-8b", "llama-3.1-8b"),
        ("sim:gpu=h100,hf_config_path=llama-3.1-8b", "llama-3.1-8b"),
        ("sim:gpu=h100,hf_config_path=llama-3.1-8b,model=m", "m"),
    ],
)
def test_a_run_of_a_model_on_a_device_has_the_model_s_name(address, model, tmp_path):
    config = Config(endpoint=EndpointConfig(url=address), output=OutputConfig(folder=str(tmp_path / "run")))
    assert settle(config, "").config.endpoint.models == (model,)


def test_a_price_without_a_number_of_devices_is_refused(tmp_path):
    def settled(**cost):
        config = Config(
            endpoint=EndpointConfig(url="localhost:8000", model="m"),
            cost=CostConfig(gpu_hour_price=2.5, **cost),
            output=OutputConfig(folder=str(tmp_path / "run")),
        )
        return settle(config, "").config.cost.gpus

    assert settled(gpus=2) == 2
    with pytest.raises(UsageError, match="of how many devices"):
        settled()
