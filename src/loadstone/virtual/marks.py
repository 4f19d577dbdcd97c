"""How a simulated run is known for what it is: its id, the field of `run.json`, the sentence in every report."""

from __future__ import annotations

from loadstone.folder import RunLog
from loadstone.plan import seeds

NOTICE = (
    "Simulated (--virtual): these numbers are the built-in engine's own, without a client and with a network that is the same"
    " always (network_us); its times count from 1 s before the first phase."
)


def run_id(seed: int) -> str:
    """The id of the run, made from its seed: the same seed gives the same table, request ids included."""
    return f"{seeds.derive(seed, 'virtual') & 0xFFFFFFFF:08x}"


def marked(log: RunLog) -> RunLog:
    """The account of a simulated run, marked as one."""
    log.simulated = True
    log.notices = [NOTICE, *log.notices]
    return log
