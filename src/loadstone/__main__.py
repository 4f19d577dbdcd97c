"""The entry of the command line.

One rule: from its first moment on a signal ends the program without a trace, so nothing else is imported before that
is arranged.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from loadstone.interrupt import all_done, leave_at_once


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code (`errors.Exit`)."""
    if arguments is None:
        leave_at_once()
    from loadstone.cli.entry import enter  # the whole command line

    code = enter(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        all_done()
    return code


if __name__ == "__main__":
    sys.exit(main())
