"""Whether an objective cannot be met any more while the load still lasts.

Pure: it is told the board's counters. Nothing is guessed from what has come so far, so it does not matter how often one
looks: so many requests are beyond the limit that, if each stood alone, the verdict on all that are planned would be FAIL even
were every one still to come good (curtailed sampling). That is a fact of this run: its own number is beyond the limit whatever
follows, so it cannot PASS. Whether crowds explain it the board cannot see; the verdict on what was sent does, and may be UNDECIDED.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadstone.board import Field
from loadstone.slo import Watched


def certain(watched: Sequence[Watched], fields: Sequence[int]) -> str | None:
    """Why the load may end: the first objective that cannot be met any more, in words; None: each still can be."""
    for at, one in enumerate(watched):
        beyond = fields[Field.BEYOND + at]
        if beyond > one.most:
            return (
                f"{one.objective}: {beyond:,} requests are beyond it, so that with {one.planned:,} planned it cannot be met"
                " any more, whatever follows"
            )
    return None
