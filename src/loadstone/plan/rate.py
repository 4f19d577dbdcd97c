"""A rate over time: pieces that are constant, linear or exponential, and the exact inverse of their integral.

The n-th arrival of a process of unit rate becomes one of this rate by going through the inverse (time rescaling).
Pure.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """The rate from `start_s` (of the phase) on, until the next segment begins; the last one goes on for ever.

    From `rate` at its start to `end_rate` after `span_s`, along a line or an exponential; `span_s` 0: `rate` for ever.
    """

    start_s: float
    rate: float
    end_rate: float
    span_s: float = 0.0
    course: Literal["linear", "exponential"] = "linear"
