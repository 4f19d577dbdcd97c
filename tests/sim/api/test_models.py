"""`/v1/models`."""

from __future__ import annotations

import json

from loadstone.sim.api.models import models
from loadstone.sim.options import SimOptions


def test_every_name_is_listed_with_the_length_of_the_model() -> None:
    found = json.loads(models(SimOptions(model="m, n", max_model_len=8192), 7))
    assert found == {
        "object": "list",
        "data": [
            {
                "id": name, "object": "model", "created": 7, "owned_by": "loadstone", "root": name, "parent": None,
                "max_model_len": 8192,
            }
            for name in ("m", "n")
        ],
    }  # fmt: skip
    assert json.loads(models(SimOptions(), 7))["data"][0]["max_model_len"] is None
