"""A file that describes something: read whole, as long as it is no longer than such a file can be.

One rule: what never ends is not read to its end.
"""

from __future__ import annotations

import errno
from pathlib import Path

MOST_BYTES = 4 << 20
"""The longest `config.json` that is known, which names each matrix that is not quantized, has a tenth of it."""


def read(path: Path) -> bytes:
    """The bytes of a file. OSError: it cannot be read, or is longer than `MOST_BYTES`."""
    with path.open("rb") as file:
        found = file.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is longer than {MOST_BYTES >> 20} MiB", str(path))
    return found
