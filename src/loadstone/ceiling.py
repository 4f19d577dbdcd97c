"""What the client can do at most on this machine: measured once by `loadstone calibrate`, kept, and told in every report.

Kept in the user's folder for the state of programs, one file, and used only on the machine and with the versions that it was measured with.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import msgspec

SCHEMA_VERSION = 1
ROOM = 0.8
"""Of a core a worker may use so much; above, waiting grows fast (see `checks.client`)."""
SAME = ("host", "cpu", "usable_cores", "system", "python", "loadstone")
"""What has to be the same for a ceiling to hold."""


class Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker's work costs, and what all workers can do with it while each has `ROOM`."""

    schema_version: int = SCHEMA_VERSION
    made: str
    """RFC 3339, UTC."""
    where: dict[str, Any]
    """The facts of `SAME`."""
    request_us: float
    """CPU of a worker for one request on a kept-alive connection with an answer of one read."""
    token_us: float
    """CPU of a worker for one read of a stream: a token, where each comes by itself."""
    workers: int
    """As many as a run has that does not say otherwise and has slots enough."""
    connections: int
    """Sockets that may be open at once, by the limits on descriptors and ports."""

    @property
    def usable(self) -> bool:
        """Whether it is of this form, and has numbers that can be: a file may hold anything."""
        costs = (self.request_us, self.token_us)
        possible = all(math.isfinite(cost) and cost > 0 for cost in costs)
        return self.schema_version == SCHEMA_VERSION and possible and self.workers > 0

    @property
    def requests_per_s(self) -> float:
        """Requests with an answer of one read."""
        return self.workers * ROOM * 1e6 / self.request_us

    @property
    def tokens_per_s(self) -> float:
        """Tokens of streams, each read by itself; what the requests themselves cost left out."""
        return self.workers * ROOM * 1e6 / self.token_us

    def streams(self, pace: float) -> int:
        """Streams that bring `pace` tokens per second each."""
        return int(min(self.tokens_per_s / pace, self.connections))

    def share(self, requests: float, tokens: float, wall_s: float, workers: int) -> float:
        """The share of a worker's core that such a load needs, spread evenly over `workers`."""
        return 1e-6 * (requests * self.request_us + tokens * self.token_us) / (wall_s * workers)


def where(host: dict[str, Any]) -> dict[str, Any]:
    """What a ceiling is bound to, of the facts that `environment.host` tells."""
    flat = {**host, "loadstone": host.get("packages", {}).get("loadstone")}
    return {name: flat.get(name) for name in SAME}


def kept(host: dict[str, Any]) -> Ceiling | None:
    """The ceiling that was measured here, if one was, and nothing it depends on has changed since."""
    try:
        found = msgspec.json.decode(path().read_bytes(), type=Ceiling)
    except (OSError, RuntimeError, msgspec.DecodeError):  # RuntimeError: a user without a home
        return None
    return found if found.usable and found.where == where(host) else None


def keep(ceiling: Ceiling) -> Path:
    """Keeps it for later runs; where. Raises `OSError`."""
    place = path()
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(ceiling), indent=2) + b"\n")
    draft.replace(place)
    return place


def path() -> Path:
    """Where it is kept: `loadstone/ceiling.json` in `$XDG_STATE_HOME`, else in `~/.local/state`."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "loadstone" / "ceiling.json"
