"""Says what is waited for when it takes long; a model may still be loading or compiling."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 3.0


@contextmanager
def patience(say: Callable[[str], None], line: str | Callable[[], str]) -> Iterator[None]:
    """Says `line`, or what it then has to say, when what happens in this context takes longer than `PATIENCE_S`."""
    reminder = threading.Timer(PATIENCE_S, lambda: say(line if isinstance(line, str) else line()))
    reminder.start()
    try:
        yield
    finally:
        reminder.cancel()
