"""What a run on the virtual clock cannot have, of all that an engine's address can ask for."""

from __future__ import annotations

from loadstone.config import ENGINE, Config
from loadstone.errors import UsageError
from loadstone.sim.options import SimOptions, from_url

_NEEDS_SOCKETS = "needs real connections, and --virtual has none; leave one of them out."
_NO_SERVER = "has no effect with --virtual, which starts no server; leave it out."
_NO_TEXT = "has no effect with --virtual, where answers are numbers of tokens and no text; leave it out."
_REFUSED = {
    "host": _NO_SERVER,
    "port": _NO_SERVER,
    "steps": "has no effect with --virtual, where no step is late; leave it out (truth=FILE says what came of each request).",
    "fault": f"a fault {_NEEDS_SOCKETS}",
    "fault_preflight": f"a fault {_NEEDS_SOCKETS}",
    "reasoning_field": _NO_TEXT,
    "embedding_dimensions": _NO_TEXT,
    "enable_request_id_headers": _NO_TEXT,
    "null": "an engine that answers at once has no steps to compute; leave --virtual or null out.",
    "startup_s": "the run begins when the engine is up, so that nothing would wait for it; leave it out.",
}
"""Keys of an engine's address without effect here, and why."""


def check(config: Config) -> None:
    """Raises `UsageError` for what would have no effect without sockets and time."""
    for address in config.endpoint.urls:
        options = from_url(address)
        for key, why in _REFUSED.items():
            if getattr(options, key) != getattr(SimOptions(), key):
                raise UsageError(f"{ENGINE} {key}: {why}")
