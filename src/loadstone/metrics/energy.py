"""Energy: what the devices of the servers took, where telemetry measured it (`energy_j` of the report's environment).

Over the same window as all rates, from the first send to the last event, idle power of the devices included. Only the
tokens of successes count; failed requests took energy as well. What the rest of the machines took is not in it.
"""

from __future__ import annotations

from collections.abc import Callable

from loadstone.metrics import Missing, Number, Result, Tables, metric
from loadstone.metrics._hardware import energy_j
from loadstone.metrics.lengths import total_output_tokens

ORDER = 58


@metric("total_energy", unit="J", better="lower", needs=("energy", "window"))
def total_energy(tables: Tables) -> Result:
    """Energy that all devices took over the window: the sum of their counters' growth, or of power x time."""
    return energy_j(tables) or Missing(_NONE)


@metric("average_power", unit="W", better="lower", needs=("energy", "window"))
def average_power(tables: Tables) -> Result:
    """Mean power of all devices together: total_energy / window."""
    joules = energy_j(tables)
    return Missing(_NONE) if joules is None else joules / tables.window_s


@metric("energy_per_output_token", unit="J/token", better="lower", needs=("energy", "success", "window"))
def energy_per_output_token(tables: Tables) -> Result:
    """total_energy / output tokens of successful requests: prefills, failures and idling are in it."""
    return _per_joule(tables, lambda tokens, joules: joules / tokens)


@metric("output_tokens_per_joule", unit="tokens/J", better="higher", needs=("energy", "success", "window"))
def output_tokens_per_joule(tables: Tables) -> Result:
    """Output tokens of successful requests / total_energy; the same as tokens/s per watt."""
    return _per_joule(tables, lambda tokens, joules: tokens / joules)


_NONE = "nobody measured the energy of the devices."


def _per_joule(tables: Tables, ratio: Callable[[float, float], float]) -> Number | Missing:
    """A ratio of output tokens and joules."""
    tokens, joules = total_output_tokens(tables), energy_j(tables)
    if isinstance(tokens, Missing):
        return tokens
    if joules is None or not tokens.value:
        return Missing(_NONE if joules is None else "no answer brought an output token.")
    return Number(ratio(tokens.value, joules), tokens.note)
