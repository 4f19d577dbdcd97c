"""What time each request of another tool took up, from when it was sent and when it ended: what its rates are drawn from."""

from __future__ import annotations

import numpy as np

from loadstone.compare.sides import Floats
from loadstone.estimate.rates import Paced, at_once, closed_loop, open_loop
from loadstone.metrics._pace import ALWAYS


def pace(sent_s: Floats, ended_s: Floats) -> Paced | None:
    """The pace of requests in the order of sending; None where it is not known of each when it was sent.

    One that never ended takes up no time of its own. Where nearly every send takes the last of as many slots as were ever
    taken, the loop is closed.
    """
    if len(sent_s) < 2 or not np.isfinite(sent_s).all():
        return None
    ended_s = np.maximum(np.where(np.isfinite(ended_s), ended_s, sent_s), sent_s)
    if not ended_s.max() > sent_s[0]:
        return None
    taken = at_once(sent_s, ended_s)
    if (taken >= taken.max()).mean() >= ALWAYS:
        return closed_loop(sent_s, ended_s, int(taken.max()))
    return open_loop(sent_s, ended_s, by_time=False)
