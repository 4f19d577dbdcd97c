"""What somebody else may have written anything into: whatever goes wrong there is one sentence, and a traceback with --verbose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from loadstone.errors import LoadstoneError


@contextmanager
def guarded(what: str, verbose: bool) -> Iterator[None]:
    """Turns every error within into a `LoadstoneError` that begins with `what`; those that are one pass."""
    try:
        yield
    except LoadstoneError:
        raise
    except Exception as error:
        if verbose:
            raise
        raise LoadstoneError(f"{what}: {str(error) or type(error).__name__}.") from None
