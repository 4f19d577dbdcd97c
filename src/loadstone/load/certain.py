"""Whether an objective is missed for certain while the load still lasts.

Pure: it is told the board's counters. Nothing is guessed from what has come so far, so it does not matter how often one
looks: so many requests are beyond the limit that the verdict on all that are planned would be FAIL even if every one still
to come were good (curtailed sampling; the verdict is the one that a run to its end would have had).
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
                f"{one.objective}: {beyond:,} requests are beyond it, and of {one.planned:,} planned no more than"
                f" {one.most:,} may be for it not to be missed"
            )
    return None
