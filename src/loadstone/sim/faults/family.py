"""How a fault is declared: one function that yields steps, in the file of its family.

```
@FAMILY.fault("ok")
def crlf(script: Script) -> Steps:
    "Ends its lines with CR LF."
    return script.spoilt(lambda data: data.replace(b"\\n", b"\\r\\n"))
```
The name is the function's, the first line of its docstring says what the server does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from loadstone.sim.faults.script import Script
from loadstone.sim.faults.steps import Steps

Play = Callable[[Script], Steps | None]
"""The steps of one answer; None: it is answered well."""
Needs = Literal["", "stream", "chat"]
"""What a request must ask for to get the fault, else it is answered well: a stream; a stream of chat."""


class Fault(NamedTuple):
    """One way to answer wrongly, or rightly in an unusual way."""

    name: str
    does: str
    """What the server does, one sentence."""
    outcome: str
    """What a right client calls the end of the request, by the names of docs/outputs.md."""
    needs: Needs
    whole_server: bool
    """It hits everybody, after a number of requests; the others hit one request each."""
    play: Play
    unstreamed: str | None = None
    """The outcome of a request for no stream, where it is another one."""

    def outcome_of(self, streamed: bool) -> str:
        """What a right client calls the end of a request that asked for a stream, or for none."""
        return self.outcome if streamed or self.unstreamed is None else self.unstreamed

    def applies(self, script: Script) -> bool:
        """Whether the request asks for what the fault needs."""
        return not self.needs or (script.asked.stream and (self.needs == "stream" or script.asked.chat))


class Family:
    """The faults of one file, in their order."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.faults: list[Fault] = []

    def fault(
        self,
        outcome: str,
        *,
        unstreamed: str | None = None,
        needs: Needs = "",
        whole_server: bool = False,
    ) -> Callable[[Play], Play]:
        """Declares the function below it as a fault."""

        def declare(play: Play) -> Play:
            name = play.__name__.rstrip("_").replace("_", "-")
            does = (play.__doc__ or "").partition("\n")[0]
            self.faults.append(Fault(name, does, outcome, needs, whole_server, play, unstreamed))
            return play

        return declare

    def add(self, name: str, does: str, outcome: str, play: Play, *, needs: Needs = "") -> None:
        """Declares a fault of a kind that is made by a function of its family."""
        self.faults.append(Fault(name, does, outcome, needs, False, play))
