"""A run on a virtual clock: the same plan through the same engine, without sockets and without waiting.

`client` is the loop: what a worker would do, told the time by the engines of `servers`; `pauses` are its limits for them,
`conduct` leads it through the phases, `plan` composes as it goes, `table` stores what came of each request, `said` what the
engines say of it. `asked` is the preflight, `allowed` says what cannot be had here, `marks` how the run is known for what it
is. One rule: the client's side uses the scheduling of `load` and the server's side that of `sim`, so that nothing is modelled
twice.
"""

from loadstone.virtual.allowed import check
from loadstone.virtual.asked import ask
from loadstone.virtual.conduct import simulate
from loadstone.virtual.marks import marked, run_id
from loadstone.virtual.servers import Server, engines

__all__ = ["Server", "ask", "check", "engines", "marked", "run_id", "simulate"]
