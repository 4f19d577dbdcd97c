"""The moments of the virtual clock that nothing in a run decides. Times are ns from its beginning."""

from __future__ import annotations

BASE_NS = 1_000_000_000
"""The first phase begins one second after the clock's beginning: 0 means never in many places."""
REFUSAL_NS = 1_000_000
"""How long a refusal takes, for which no engine does anything: a closed loop of them must not stand still at one moment."""
NETWORK_US = 100.0
"""The way between client and server in each direction, where nobody says another. Without any a request that follows an answer
would catch the step that begins with the end of that answer, which over any wire it misses."""
LOOK_NS = 250_000_000
"""What stops a load when it is known well enough is looked at so often, as by the clock of a real run."""
