"""Writes one worker's recording: rows and bytes gathered in lists, written a thousand at a time.

The hot path appends to `rows` and `data` directly; nothing is formatted, compressed or synced here.
The layout is that of `loadstone.recording`.
"""

from __future__ import annotations

import os
from pathlib import Path

from loadstone.recording import SEGMENT_BYTES, segment_name

ROWS_A_WRITE = 1024


class NoSpaceError(Exception):
    """The recording cannot be written, and why."""


class Tape:
    """The open segment of a worker. Raises `NoSpaceError` when it cannot be written; what was written stays good."""

    def __init__(self, folder: Path, worker: int) -> None:
        self.rows: list[bytes] = []
        self.data: list[bytes] = []
        self._folder = folder
        self._worker = worker
        self._segment = 0
        self._data_bytes = 0
        self._written_bytes = 0
        self._open()

    def _open(self) -> None:
        stem = self._folder / segment_name(self._worker, self._segment)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        try:
            self._dat = os.open(f"{stem}.dat", flags, 0o644)
            self._idx = os.open(f"{stem}.idx", flags, 0o644)
        except FileExistsError:
            raise  # somebody's recording is there already, which is a defect
        except OSError as error:
            raise NoSpaceError(f"the recording cannot go on: {error.strerror}") from None

    def flush(self) -> int:
        """Writes what has gathered, bytes first, so that every row on disk has its bytes there; tells how many."""
        before = self._written_bytes
        if self.data:
            packed = b"".join(self.data)
            _write(self._dat, packed)
            self._data_bytes += len(packed)
            self._written_bytes += len(packed)
            self.data.clear()
        if self.rows:
            _write(self._idx, b"".join(self.rows))
            self.rows.clear()
        if self._data_bytes >= SEGMENT_BYTES:
            self._next()
        return self._written_bytes - before

    def _next(self) -> None:
        self._close()
        self._segment += 1
        self._data_bytes = 0
        self._open()

    def close(self) -> None:
        """Writes what has gathered and closes the segment."""
        self.flush()
        self._close()

    def _close(self) -> None:
        os.close(self._dat)
        os.close(self._idx)


def _write(fd: int, data: bytes) -> None:
    try:
        written = os.write(fd, data)
        while written < len(data):
            written += os.write(fd, memoryview(data)[written:])
    except OSError as error:
        raise NoSpaceError(f"the recording cannot be written: {error.strerror}") from None
