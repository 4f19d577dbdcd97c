"""How a simulated run is known for what it is: its id, the field of `run.json`, the sentence in every report."""

from __future__ import annotations

from loadstone.folder import RunLog
from loadstone.plan import seeds

NOTICE = (
    "Simulated: the built-in engine computed these numbers on a virtual clock (--virtual). No server was asked, there was no"
    " network and no client process, and nothing was measured."
)


def run_id(seed: int) -> str:
    """The id of the run, made from its seed: the same seed gives the same table, request ids included."""
    return f"{seeds.derive(seed, 'virtual') & 0xFFFFFFFF:08x}"


def marked(log: RunLog) -> RunLog:
    """The account of a simulated run, marked as one."""
    log.simulated = True
    log.notices = [NOTICE, *log.notices]
    return log
