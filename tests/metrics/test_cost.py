from __future__ import annotations

import msgspec
import numpy as np
import pytest

from loadstone.config import Config, CostConfig, EndpointConfig
from loadstone.roofline.case import asked, case

NAMES = ("cost_per_million_output_tokens", "cost_per_million_total_tokens", "cost_per_thousand_requests")


@pytest.fixture
def priced(tables):
    """The tables of a run at a price."""

    def make(*rows, urls="h", environment=None, **cost):
        config = Config(endpoint=EndpointConfig(url=urls, streaming=True), cost=CostConfig(**cost))
        return tables(*rows, config=msgspec.to_builtins(config), environment=environment or {})

    return make


@pytest.fixture
def rows(answer):
    """36 s of two devices: 3 answers of 2,000 tokens to prompts of 1,000, and a failure."""
    whole = [answer(100, 36_000, tokens=2000, input_tokens=1000) for _ in range(3)]
    return [*whole, answer(5, outcome="reset")]


def test_the_price_of_the_window_by_what_it_brought(priced, rows, result):
    run = priced(*rows, gpu_hour_price=3.0, gpus=2)
    usd = 3.0 * 2 * 36 / 3600
    told = [result(name, run).value for name in NAMES]
    assert told == pytest.approx([usd / 6000 * 1e6, usd / 9000 * 1e6, usd / 3 * 1e3], rel=1e-12)
    assert result(NAMES[0], run).note == "2 x 3 USD an hour."


def test_it_is_the_hourly_price_over_the_hourly_tokens(priced, rows, mean):
    run = priced(*rows, gpu_hour_price=3.0, gpus=2)
    per_hour = mean("output_token_throughput", run) * 3600
    assert mean(NAMES[0], run) == pytest.approx(6.0 / per_hour * 1e6, rel=1e-12)


def test_without_a_price_there_is_no_cost(tables, rows, reason):
    for name in NAMES:
        assert "--gpu-hour-price" in reason(name, tables(*rows))


def test_the_number_of_devices_is_told_or_that_of_the_roofline(priced, rows, reason, result):
    assert "--gpus" in reason(NAMES[0], priced(*rows, gpu_hour_price=3.0))
    words = "gpu=h100,model=llama-3.1-8b,tensor_parallel_size=2,data_parallel_size=2"
    roofline = {"roofline": msgspec.to_builtins(case(asked(words, None)))}
    run = priced(*rows, gpu_hour_price=3.0, environment=roofline)
    assert result(NAMES[0], run).note == "4 x 3 USD an hour."
    several = priced(*rows, gpu_hour_price=3.0, environment=roofline, urls=("a", "b"))
    assert "--gpus" in reason(NAMES[0], several)


def test_a_part_of_the_requests_does_not_pay_for_all_devices(priced, rows, reason):
    run = priced(*rows, gpu_hour_price=3.0, gpus=2)
    half = run.part(np.array([True, True, False, False]))
    assert "served other requests" in reason(NAMES[0], half)


def test_tokens_that_nobody_counted_are_said(priced, answer, result, reason):
    unknown = answer(5, 3600) | {"output_tokens": None}
    run = priced(unknown, answer(5, 3600, tokens=100), gpu_hour_price=1, gpus=1)
    assert result(NAMES[0], run).note == "1 x 1 USD an hour. 1 answer whose tokens are not known left out."
    assert "not known" in reason(NAMES[0], priced(unknown, gpu_hour_price=1, gpus=1))
