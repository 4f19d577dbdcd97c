"""Cost: what the tokens cost at a price per device and hour (`--gpu-hour-price`, and how many: `--gpus`).

Cost of the window = USD an hour x devices x window / 3600. The window is that of all rates, from the first send to the last event,
ramp and drain included, in which the devices cost as much and do less: a short run is dearer than a long one at the same load.
Only what succeeded counts; failures cost as well. The price is of the devices alone, as busy or idle as this load left them: at a load
below capacity it is the load that is dear, not the server. Where the number of devices is not told, it is that of
--roofline. `loadstone plan` computes the same for devices you do not have.
"""

from __future__ import annotations

from loadstone.metrics import Missing, Number, Result, Tables, metric
from loadstone.metrics._hardware import devices, price_second
from loadstone.metrics.lengths import total_input_tokens, total_output_tokens

ORDER = 57


@metric(
    "cost_per_million_output_tokens",
    unit="USD/M tokens",
    better="lower",
    needs=("price", "success", "window"),
)
def cost_per_million_output_tokens(tables: Tables) -> Result:
    """Cost of the window / (output tokens of successful requests / 1,000,000)."""
    return _cost(tables, total_output_tokens(tables), 1e6)


@metric(
    "cost_per_million_total_tokens",
    unit="USD/M tokens",
    better="lower",
    needs=("price", "success", "window"),
)
def cost_per_million_total_tokens(tables: Tables) -> Result:
    """Cost of the window / (input + output tokens of successful requests / 1,000,000).

    Input and output at one price. Input tokens found in a prefix cache count like others.
    """
    prompts, answers = total_input_tokens(tables), total_output_tokens(tables)
    if isinstance(prompts, Missing):
        return prompts
    if isinstance(answers, Missing):
        return answers
    note = " ".join(filter(None, (prompts.note, answers.note))) or None
    return _cost(tables, Number(prompts.value + answers.value, note), 1e6)


@metric(
    "cost_per_thousand_requests",
    unit="USD/1000 requests",
    better="lower",
    needs=("price", "success", "window"),
)
def cost_per_thousand_requests(tables: Tables) -> Result:
    """Cost of the window / (successful requests / 1,000)."""
    return _cost(tables, Number(float(tables.succeeded.sum())), 1e3)


def _cost(tables: Tables, brought: Number | Missing, unit: float) -> Number | Missing:
    """USD for so many of what was brought; the note says of which devices."""
    per_second = price_second(tables)
    if isinstance(brought, Missing):
        return brought
    if per_second is None or not brought.value:
        return Missing("nothing was brought that a price could be put on.")
    count = f"{devices(tables):g} x {tables.config.cost.gpu_hour_price:g} USD an hour."
    note = f"{count} {brought.note}" if brought.note else count
    return Number(per_second * tables.window_s * unit / brought.value, note)
