"""`/v1/models`: the names that it answers to, and how long prompt and answer may be together."""

from __future__ import annotations

import msgspec

from loadstone.sim.options import SimOptions


def models(options: SimOptions, created: int) -> bytes:
    """The list, in vLLM's shape; `max_model_len` is null where there is no limit."""
    listed = [
        {
            "id": name,
            "object": "model",
            "created": created,
            "owned_by": "loadstone",
            "root": name,
            "parent": None,
            "max_model_len": options.max_model_len,
        }
        for name in options.models
    ]
    return msgspec.json.encode({"object": "list", "data": listed})
