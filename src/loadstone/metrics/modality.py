"""Other modalities: rates of what is no text, by the columns `items` and `audio_s`.

Items are what an answer brought: images, embeddings, or ranked passages, as the endpoint counts them; so items_throughput is
AIPerf's `image_throughput` for an endpoint of images, and its counterpart for the others. An endpoint whose answers are text tells
of neither, and there is nothing here. Over successes.
"""

from __future__ import annotations

import numpy as np

from loadstone.metrics import Each, Missing, Number, Result, Tables, metric
from loadstone.stats import Floats

ORDER = 44

_NO_ITEMS = "the endpoint's answers bring no images, embeddings or ranked passages."
_NO_SOUND = "the endpoint tells of no sound in its requests."


@metric("items_throughput", unit="items/s", better="higher", needs=("success", "window"))
def items_throughput(tables: Tables) -> Result:
    """Images, embeddings or ranked passages of successful requests / window."""
    return _rate(tables, "items", _NO_ITEMS)


@metric("latency_per_item", unit="ms", better="lower", needs=("success",))
def latency_per_item(tables: Tables) -> Each:
    """The latency of one request for each item that it brought: request_latency / items.

    With one image a request it is request_latency. AIPerf's `image_latency`.
    """
    items = tables.number("items")
    return Each(tables.until_complete_ms("sent_ns") / np.where(items > 0, items, np.nan), _NO_ITEMS)


@metric("rtfx", unit="x", better="higher", needs=("success",))
def rtfx(tables: Tables) -> Each:
    """How many times faster than it is spoken sound was heard, one value a request: seconds of sound / latency (RTFx).

    As in AIPerf. vLLM's is that of the whole run, audio_throughput.
    """
    return Each(_sound(tables) / (tables.until_complete_ms("sent_ns") / 1000), _NO_SOUND)


@metric("audio_throughput", unit="s/s", better="higher", needs=("success", "window"))
def audio_throughput(tables: Tables) -> Result:
    """Seconds of sound in successful requests / window. vLLM's RTFx."""
    return _rate(tables, "audio_s", _NO_SOUND)


def _sound(tables: Tables) -> Floats:
    seconds = tables.number("audio_s")
    return np.where(seconds > 0, seconds, np.nan)


def _rate(tables: Tables, column: str, none: str) -> Number | Missing:
    amounts = tables.number(column)[tables.succeeded]
    known = np.isfinite(amounts)
    return Number(float(amounts[known].sum() / tables.window_s)) if known.any() else Missing(none)
