"""A deployment on a virtual clock, fed with requests of known times: no sockets, no bodies, no waiting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from loadstone.sim.deployment import Deployment
from loadstone.sim.sequence import Sequence

S = TypeVar("S", bound=Sequence)
NEVER_NS = 1 << 62


def drive(deployment: Deployment[S], arrivals: Iterable[tuple[int, S]]) -> Iterator[tuple[int, S]]:
    """Serves requests that come at these moments (ns, in order); each when its last token is out, with that moment.

    `arrivals` is asked for one request ahead of the clock, so that there may be any number of them. Raises `TooLong`.
    """
    coming = iter(arrivals)
    at_ns, sequence = next(coming, (NEVER_NS, None))
    while True:
        ends_ns = deployment.next_ns
        now_ns = at_ns if ends_ns is None else min(at_ns, ends_ns)
        if now_ns == NEVER_NS:
            return
        deployment.finish(now_ns)
        for ended in deployment.ended:
            yield now_ns, ended
        while at_ns == now_ns and sequence is not None:
            deployment.add(sequence)
            at_ns, sequence = next(coming, (NEVER_NS, None))
        deployment.begin(now_ns, at_ns)
