"""Makes every output of a run from its folder alone."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from loadstone import folder
from loadstone.errors import Exit, LoadstoneError, UsageError
from loadstone.terminal import wants_color

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What a disk, a quota or a limit on files says when it takes no more."""
NEARLY_FULL_BYTES = 256 << 10
_FULL_IN_WORDS = re.compile(rf"os error ({'|'.join(str(number) for number in sorted(FULL))})\b")


def rebuild(
    home: Path, secrets: Sequence[str] | None = None, *, show: bool = True, slo: Sequence[str] = ()
) -> Exit:
    """Makes all outputs of a run folder, prints the summary with `show`, and tells the exit code.

    What a decoder has left undecoded is stored without the run's `secrets`; None: nobody knows them any more, and what
    looks like one is left out. With `slo` the run is judged by these objectives instead of its own, and no output is
    written.

    Raises `UsageError` when the folder holds no run, `LoadstoneError` when there is no space for its report (nothing
    is deleted then) or the summary cannot be printed.
    """
    try:
        log = folder.read_run(home)
    except FileNotFoundError:
        raise UsageError(f"{home} holds no run: it has no {folder.RUN}.") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{home / folder.RUN} is damaged: {error}.") from None
    try:
        text, code = _built(home, log, secrets, slo)
    except Exception as error:
        if is_full(error, home):
            raise no_space(home) from None
        raise
    if show:
        _show(text, home)
    return code


def no_space(home: Path) -> LoadstoneError:
    """What to say when the report does not fit on the disk."""
    return LoadstoneError(
        f"no space left for the report of this run; nothing recorded is lost. "
        f"`loadstone report {home}` makes the report when there is space."
    )


def is_full(error: BaseException, home: Path) -> bool:
    """Whether an error means that the disk of `home` takes no more. polars says so in words, or not at all."""
    if getattr(error, "errno", None) in FULL or _FULL_IN_WORDS.search(str(error)):
        return True
    try:
        return shutil.disk_usage(home).free < NEARLY_FULL_BYTES
    except OSError:
        return False


def _built(
    home: Path, log: folder.RunLog, secrets: Sequence[str] | None, slo: Sequence[str]
) -> tuple[str, Exit]:
    """The summary and the exit code, when every file is written."""
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from loadstone import summary  # numpy and polars are not worth their time before the load has ended
    from loadstone.export import console, write_all
    from loadstone.read import salvage, tables

    if log.end == "aborted" and not log.phases:
        salvage.salvage(home)
    tables.build(home, secrets)
    report = summary.summarise(home, slo) if slo else write_all(summary.summarise(home), home)
    width = shutil.get_terminal_size((100, 40)).columns
    color = wants_color(sys.stdout, os.environ)
    return console.render(report, width=width, color=color, folder=home), summary.exit_code(report)


def _show(text: str, home: Path) -> None:
    """Prints the summary. A reader or a terminal that has gone changes nothing; a full disk behind stdout does."""
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise LoadstoneError(
                f"the summary could not be printed ({error.strerror}); it is in {home / 'summary.txt'}."
            ) from None
