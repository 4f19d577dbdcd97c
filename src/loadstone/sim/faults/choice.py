"""Which request gets which fault: a pure function of the seed and of the request's name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from loadstone.errors import UsageError, did_you_mean
from loadstone.plan.seeds import derive
from loadstone.sim.faults import FAULTS, Fault

ALL = "all"
"""Every fault that hits one request at a time."""
AFTER_REQUESTS = 20
"""When a fault of the whole server comes, unless it is said."""
_ROUNDING = 1e-9


class Mix(NamedTuple):
    """The faults asked for. `faults[i]` is given where a draw from [0, 1) is below `bounds[i]` and above those before it."""

    faults: tuple[Fault, ...]
    bounds: tuple[float, ...]
    whole_server: tuple[tuple[Fault, int], ...]
    """Faults of the whole server, each with the number of requests that are answered well before it."""

    def pick(self, seed: int, name: str) -> Fault | None:
        """The fault of the request `name`; None: it is answered well."""
        draw = derive(seed, f"fault:{name}") / 2**64
        place = bisect_right(self.bounds, draw)
        return self.faults[place] if place < len(self.faults) else None


def mix(texts: Sequence[str]) -> Mix:
    """What `NAME`, `NAME:SHARE` and `all` mean together. Raises `UsageError`.

    Those without a share divide evenly what the others leave.
    """
    shares: list[tuple[Fault, float | None]] = []
    whole_server: list[tuple[Fault, int]] = []
    for text in texts:
        name, colon, value = text.strip().partition(":")
        if name != ALL and name not in FAULTS:
            raise UsageError(_unknown(name))
        if name in FAULTS and FAULTS[name].whole_server:
            whole_server.append((FAULTS[name], _count(text, value) if colon else AFTER_REQUESTS))
        else:
            shares += _members(name, _share(text, value) if colon else None)
    return Mix(
        tuple(fault for fault, _ in shares), _bounds([share for _, share in shares]), tuple(whole_server)
    )


def _members(name: str, share: float | None) -> Iterator[tuple[Fault, float | None]]:
    """One fault, or all of them with an equal part of the share each."""
    members = [fault for fault in FAULTS.values() if name in (fault.name, ALL) and not fault.whole_server]
    return ((fault, share and share / len(members)) for fault in members)


def _bounds(shares: Sequence[float | None]) -> tuple[float, ...]:
    rest = 1.0 - sum(share for share in shares if share)
    open_shares = shares.count(None)
    if rest < -_ROUNDING or (open_shares and rest < _ROUNDING):
        raise UsageError("fault: the shares add up to more than there is; they must leave the sum at most 1.")
    bounds = accumulate(rest / open_shares if share is None else share for share in shares)
    return tuple(1.0 if bound > 1.0 - _ROUNDING else bound for bound in bounds)


def _unknown(name: str) -> str:
    advice = f"{did_you_mean(name, [*FAULTS, ALL])} `loadstone simulate --faults` lists them.".lstrip()
    return f"fault = {name}: there is no such fault. {advice}"


def _share(text: str, value: str) -> float:
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    if 0.0 < share <= 1.0:
        return share
    raise UsageError(f"fault = {text}: the share must be a number above 0 and at most 1, such as eof:0.1.")


def _count(text: str, value: str) -> int:
    if value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    raise UsageError(
        f"fault = {text}: must have a whole number of requests after the colon, such as restarts:50."
    )
