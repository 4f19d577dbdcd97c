"""The ways a run can refuse to start or fail as a whole, each with its exit code.

One rule: a message says what is wrong, where, and what to do about it. A fault of a single
request is never an exception; it is an outcome in the recording.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the command line, and what each one means.

    When several apply, `precedence` decides: 2, 130, 1, 5, 3, 4, 0.
    """

    DONE = 0
    """Done, and every objective that was set is met."""
    FAILED = 1
    """The run failed: target unreachable, every request failed, aborted by the error rate."""
    USAGE = 2
    """Wrong flag, key, value or file; nothing was started."""
    SLO_MISSED = 3
    """An objective is not met."""
    UNDECIDED = 4
    """The samples do not suffice to decide an objective."""
    INVALID = 5
    """The measurement cannot be believed."""
    INTERRUPTED = 130
    """Interrupted; what was recorded is kept."""


PRECEDENCE = (
    Exit.USAGE,
    Exit.INTERRUPTED,
    Exit.FAILED,
    Exit.INVALID,
    Exit.SLO_MISSED,
    Exit.UNDECIDED,
    Exit.DONE,
)


def precedence(*codes: Exit) -> Exit:
    """The one exit code that stands for all of `codes`; `DONE` for none."""
    return next((code for code in PRECEDENCE if code in codes), Exit.DONE)


class LoadstoneError(Exception):
    """A failure with one clear sentence for the user and an exit code for the caller."""

    exit = Exit.FAILED


class UsageError(LoadstoneError):
    """The configuration is wrong; nothing was started."""

    exit = Exit.USAGE


class TargetError(LoadstoneError):
    """The server cannot be reached, or refuses the request; found before the run."""

    exit = Exit.FAILED


class InterruptedRun(LoadstoneError):
    """The user has left a run before its report was made; what was recorded is kept."""

    exit = Exit.INTERRUPTED


NEAR = 0.8
"""Share of letters in common from which on one word can be a slip for another. With less a guess misleads."""
SLIP = 2
"""Letters that two words do not have in common after one slip of the finger, which is much of a short word."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The one of the known words that `word` may be a slip for; None when none is near."""
    for near in difflib.get_close_matches(word, list(known), 1):
        common = difflib.SequenceMatcher(None, near, word).ratio()
        if common >= NEAR or round((1 - common) * (len(near) + len(word))) <= SLIP:
            return near
    return None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest of the known words; empty when none is near."""
    near = nearest(word, known)
    return f"Did you mean {near}?" if near else ""
