"""Whether this machine has room for the connections that a load asks for: descriptors and ports.

Pure. Too little is no failure: connections beyond it wait for one to end, and are counted.
"""

from __future__ import annotations

from collections.abc import Iterator

RESERVE = 64
"""Descriptors a worker needs beside its connections: pipes, files, what Python has open."""


def shortages(slots: int | None, workers: int, descriptors: int, ports: int | None) -> Iterator[str]:
    """One sentence for each thing there is too little of. An open loop without a cap (`slots` None) asks for none."""
    if slots is None:
        return
    own = -(-slots // workers)
    if own + RESERVE > descriptors:
        yield (
            f"A process may have {descriptors} open files (ulimit -n) and {own} connections a worker need"
            f" {own + RESERVE}: connections beyond will wait. Raise it, or use more --workers."
        )
    if ports is not None and slots > ports:
        yield (
            f"This host has {ports} ports for connections to one address (net.ipv4.ip_local_port_range) and"
            f" concurrency is {slots}: connections beyond will wait. Widen it, or lower --concurrency."
        )
