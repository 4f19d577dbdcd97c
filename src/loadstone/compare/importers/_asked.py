"""What others call the load and the API, in the words of our own reports, so that what is the same reads the same."""

from __future__ import annotations

from typing import Any

from loadstone.compare.importers._document import number

ENDPOINTS = {
    "openai-chat": "chat",
    "vllm-chat": "chat",
    "sglang-oai-chat": "chat",
    "lmdeploy-chat": "chat",
    "openai": "completions",
    "vllm": "completions",
    "sglang-oai": "completions",
    "lmdeploy": "completions",
}
"""The APIs behind the back ends of vLLM and SGLang; one that is not here has no counterpart of ours."""


def endpoint(backend: Any) -> str | None:
    """What a back end asks."""
    return None if backend is None else ENDPOINTS.get(str(backend), str(backend))


def load(rate: Any, most: Any, *, shape: Any = None, drawn: str = "unconditioned") -> str | None:
    """The shape of the load as `summary.arrivals` says it; None where nothing is known of it.

    `rate` may be inf in any spelling: with a cap that is a closed loop. `shape` is that of gamma gaps, 1 or None poisson.
    """
    if rate is None and most is None:
        return None
    if rate is None or str(rate).lower() in ("inf", "infinity"):
        return "everything at once" if most is None else f"concurrency {most}"
    shape = number(shape)
    process = "poisson" if shape in (None, 1.0) else f"gamma (shape {shape:g})"
    words = f"{process} {float(rate):g} requests/s, {drawn}"
    return words if most is None else f"{words}, at most {most} in flight"
