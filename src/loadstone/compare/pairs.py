"""Which request of one run is the same work as which of the other."""

from __future__ import annotations

import numpy as np

from loadstone.compare.sides import Bools, Floats, Gaps, Ints, Requests, Run

LEAST_SHARE = 0.5
"""So many of the requests of the larger side have to have a partner."""


def pairable(a: Run, b: Run) -> str | None:
    """Why requests cannot be paired; None: they can."""
    if a.requests is None or b.requests is None:
        return "single requests are not known of both"
    if a.requests.keys is None or b.requests.keys is None:
        return "which prompt is which is not known of both"
    if a.digest is None or a.digest != b.digest:
        return "their prompts are not the same"
    common = len(np.intersect1d(a.requests.keys, b.requests.keys))
    if common < LEAST_SHARE * max(len(a.requests.keys), len(b.requests.keys)):
        return f"only {common:,} of their requests have the same prompt"
    return None


def by_position(a: Run, b: Run) -> str | None:
    """Why requests cannot even be paired by their position, as `--pair` asks for; None: they can."""
    if a.requests is None or b.requests is None:
        return "single requests are not known of both"
    if len(a.requests.sent_s) != len(b.requests.sent_s):
        return "they have different numbers of requests"
    return None


def paired(a: Requests, b: Requests) -> tuple[Requests, Requests]:
    """The requests that both have, in the order in which the first sent them; without keys, by position."""
    if a.keys is None or b.keys is None:
        mine = theirs = np.arange(len(a.sent_s))
    else:
        _, mine, theirs = np.intersect1d(a.keys, b.keys, return_indices=True)
        order = np.argsort(mine)
        mine, theirs = mine[order], theirs[order]
    left, right = _chosen(a, mine), _chosen(b, theirs)
    both = {
        name: np.isfinite(left.latencies[name]) & np.isfinite(right.latencies[name])
        for name in left.latencies.keys() & right.latencies.keys()
    }
    return _known(left, both), _known(right, both)


def _chosen(requests: Requests, at: Ints) -> Requests:
    position = np.full(len(requests.sent_s), -1)
    position[at] = np.arange(len(at))

    def gaps(found: Gaps) -> Gaps:
        owners = position[found.owners]
        kept = owners >= 0
        weights = None if found.weights is None else found.weights[kept]
        return Gaps(owners[kept], found.values[kept], weights)

    return requests._replace(
        sent_s=requests.sent_s[at],
        succeeded=requests.succeeded[at],
        failed=requests.failed[at],
        latencies={name: values[at] for name, values in requests.latencies.items()},
        output_tokens=requests.output_tokens[at],
        input_tokens=requests.input_tokens[at],
        pooled={name: gaps(found) for name, found in requests.pooled.items()},
        pooled_sums={name: (above[at], below[at]) for name, (above, below) in requests.pooled_sums.items()},
        good=None if requests.good is None else requests.good[at],
        keys=None if requests.keys is None else requests.keys[at],
    )


def _known(requests: Requests, both: dict[str, Bools]) -> Requests:
    def kept(name: str, values: Floats) -> Floats:
        return np.where(both[name], values, np.nan) if name in both else values

    return requests._replace(latencies={name: kept(name, v) for name, v in requests.latencies.items()})
