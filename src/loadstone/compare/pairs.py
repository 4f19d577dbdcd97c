"""Which request of one run is the same work as which of the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from loadstone.compare.sides import Bools, Floats, Gaps, Ints, Requests, Run
from loadstone.estimate.rates import Paced

LEAST_SHARE = 0.5
"""So many of the requests of the larger side have to have a partner."""


class Match(NamedTuple):
    """The requests that both runs sent as the same row of their plans."""

    a: Ints
    """Where they are in the first run, in the order in which that sent them,"""
    b: Ints
    """and in the other one."""
    other_prompts: int
    """Rows that both sent, but with another prompt; they are no pair."""


def matched(a: Requests, b: Requests) -> Match | None:
    """The pairs of two runs of which it is known what each request was; None where it is not."""
    if a.keys is None or b.keys is None or a.prompts is None or b.prompts is None:
        return None
    _, mine, theirs = np.intersect1d(a.keys, b.keys, return_indices=True)
    same = a.prompts[mine] == b.prompts[theirs]
    order = np.argsort(mine[same])
    return Match(mine[same][order], theirs[same][order], int((~same).sum()))


def pairable(a: Run, b: Run) -> str | None:
    """Why requests cannot be paired; None: they can."""
    if a.requests is None or b.requests is None:
        return "single requests are not known of both"
    found = matched(a.requests, b.requests)
    if found is None:
        return "which prompt is which is not known of both"
    if not len(found.a):
        return "their prompts are not the same"
    if len(found.a) < LEAST_SHARE * max(len(a.requests.sent_s), len(b.requests.sent_s)):
        return f"only {len(found.a):,} of their requests have the same prompt"
    return None


def by_position(a: Run, b: Run) -> str | None:
    """Why requests cannot even be paired by their position, as `--pair` asks for; None: they can."""
    if a.requests is None or b.requests is None:
        return "single requests are not known of both"
    if len(a.requests.sent_s) != len(b.requests.sent_s):
        return "they have different numbers of requests"
    return None


def partners(a: Requests, b: Requests) -> tuple[Ints, Ints]:
    """Where the requests that are paired are in either run: those known to be the same work, else all by their position."""
    found = matched(a, b)
    everything = np.arange(len(a.sent_s))
    return (everything, everything) if found is None or not len(found.a) else (found.a, found.b)


def paired(a: Requests, b: Requests) -> tuple[Requests, Requests]:
    """The requests that both sent, in the order in which the first did.

    A latency is left to those alone that have it on both sides.
    """
    mine, theirs = partners(a, b)
    left, right = _chosen(a, mine), _chosen(b, theirs)
    both = {
        name: np.isfinite(left.latencies[name]) & np.isfinite(right.latencies[name])
        for name in left.latencies.keys() & right.latencies.keys()
    }
    answered = left.succeeded & right.succeeded
    return _known(left, both, answered), _known(right, both, answered)


def _chosen(requests: Requests, at: Ints) -> Requests:
    position = np.full(len(requests.sent_s), -1)
    position[at] = np.arange(len(at))
    return requests._replace(
        sent_s=requests.sent_s[at],
        succeeded=requests.succeeded[at],
        failed=requests.failed[at],
        latencies={name: values[at] for name, values in requests.latencies.items()},
        output_tokens=requests.output_tokens[at],
        input_tokens=requests.input_tokens[at],
        pooled={name: _moved(gaps, position) for name, gaps in requests.pooled.items()},
        pooled_sums={name: (above[at], below[at]) for name, (above, below) in requests.pooled_sums.items()},
        good=None if requests.good is None else requests.good[at],
        keys=None if requests.keys is None else requests.keys[at],
        prompts=None if requests.prompts is None else requests.prompts[at],
        pace=None if requests.pace is None else _paced(requests.pace, at),
    )


def _paced(found: Paced, at: Ints) -> Paced:
    return found._replace(spent=found.spent[at], settled=found.settled[at])


def _moved(found: Gaps, position: Ints) -> Gaps:
    """The gaps of requests that now have other positions; those of -1 are left out."""
    owners = position[found.owners]
    kept = owners >= 0
    weights = None if found.weights is None else found.weights[kept]
    return Gaps(owners[kept], found.values[kept], weights)


def _known(requests: Requests, both: dict[str, Bools], answered: Bools) -> Requests:
    def kept(name: str, values: Floats) -> Floats:
        return np.where(both[name], values, np.nan) if name in both else values

    position = np.where(answered, np.arange(len(answered)), -1)
    return requests._replace(
        latencies={name: kept(name, values) for name, values in requests.latencies.items()},
        pooled={name: _moved(gaps, position) for name, gaps in requests.pooled.items()},
        pooled_sums={
            name: (np.where(answered, above, 0.0), np.where(answered, below, 0.0))
            for name, (above, below) in requests.pooled_sums.items()
        },
    )
