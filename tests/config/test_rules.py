"""A refused setting is shown as one would type it."""

from __future__ import annotations

import pytest

from loadstone.config.rules import as_typed, refused


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (5.0, "5"),
        (0.25, "0.25"),
        ("inf", "inf"),
        ((3.0, 1.5), "3,1.5"),
        (((0.0, 1.0), (60.0, 20.0)), "0:1,60:20"),
        ({"request_latency": 2.0, "time_to_first_token": 5.0}, "request_latency:2 time_to_first_token:5"),
        (["a", "b"], "a,b"),
        ([{"name": "a", "concurrency": 3}], "name:a concurrency:3"),
    ],
)
def test_a_value_as_one_would_type_it(value, text):
    assert as_typed(value) == text


def test_a_secret_is_not_shown():
    assert str(refused("endpoint.path", "must be ASCII.")) == "endpoint.path: must be ASCII."
    assert str(refused("load.grace_s", "has no effect.", 0.0)) == "load.grace_s = 0: has no effect."
