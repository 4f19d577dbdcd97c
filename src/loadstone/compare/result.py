"""What a comparison found, as one versioned tree: the only thing its pages see, and `--format json`."""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA_VERSION = "1.1"


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of the result."""


class Row(_Part, frozen=True, kw_only=True):
    """One statistic of both sides. What is null has its `reason`."""

    metric: str
    stat: str | None
    """Null of a rate or a share, which is one number."""
    unit: str
    better: Literal["lower", "higher"]
    headline: bool = False
    """Asked for before anything was looked at, and judged by itself."""
    a: float | None
    """The number of the whole side, as its own report has it."""
    b: float | None
    difference: bool = False
    """Whether `change` and the interval are B - A in the unit (percentage points); else they are B / A."""
    pairs: int | None = None
    """`change` is over so many requests alone, those that both sides have, and need not be that of `a` and `b`; null: over all."""
    change: float | None = None
    low: float | None = None
    """The 95 % interval of `change`."""
    high: float | None = None
    probability: float | None = None
    """Of so large a difference by chance alone, this one row looked at."""
    adjusted: float | None = None
    """The same beside all the other rows (Holm); of the headline, `probability`."""
    differs: bool | None = None
    """Whether a difference is shown: `adjusted` below 0.05."""
    shown_from: float | None = None
    """The smallest difference that would have been shown in 80 of 100 such comparisons, as a share of A's number, or in the unit."""
    method: str | None = None
    reason: str | None = None
    caveat: str | None = None
    """How the two sides count a little differently."""
    verdict: str = ""
    """The same in words."""


class SideFacts(_Part, frozen=True, kw_only=True):
    """A side."""

    name: str
    paths: tuple[str, ...]
    tool: str
    requests: int | None
    certificate: Literal["VALID", "DEGRADED", "INVALID"] | None
    headline: str = ""


class Pairing(_Part, frozen=True, kw_only=True):
    """One side against the first."""

    a: SideFacts
    b: SideFacts
    paired: bool
    pairs: int | None = None
    """How many requests have a partner."""
    unpaired_because: str | None = None
    refused: tuple[str, ...] = ()
    """What was asked differently, so that the comparison says nothing of the servers (it was asked for with --anyway)."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rows: tuple[Row, ...]
    unlike: tuple[str, ...] = ()
    """Metrics that are counted differently on either side and so are not compared."""


class Comparison(_Part, frozen=True, kw_only=True):
    """Everything against the first side."""

    schema_version: str = SCHEMA_VERSION
    comparisons: tuple[Pairing, ...]
    regressions: tuple[str, ...] = ()
    """What is shown to be worse by more than the limit of --fail-on."""
