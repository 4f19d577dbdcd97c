"""What is settled before a run: its folder, its workers, when it is given up."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from loadstone.config import Config, EndpointConfig
from loadstone.plan import schedule
from loadstone.settle import default_folder


@pytest.mark.parametrize("model", ["../../etc", "m" * 5000, "漢" * 300, "\x1b]0;x\x07", "", "..", "a/b\nc"])
def test_the_folder_has_a_name_whatever_the_models_is(model):
    config = Config(endpoint=EndpointConfig(model=model))
    home = default_folder(config, schedule.phases(config.load)[-1], datetime(2026, 1, 1, tzinfo=UTC))
    assert home.parts[:-1] == ("artifacts",)
    assert home.name.isprintable()
    assert len(home.name.encode()) <= 200
