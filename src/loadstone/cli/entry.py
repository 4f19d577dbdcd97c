"""The way in and out of the command line: one place where every failure becomes one sentence and an exit code.

One rule: a user sees no trace, unless asked for with --verbose.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import click
from click.shell_completion import shell_complete

from loadstone.cli import loadstone
from loadstone.cli.elsewhere import instead
from loadstone.cli.sheet import HELP_ALL
from loadstone.errors import Exit, LoadstoneError, UsageError

_COMPLETE = "_LOADSTONE_COMPLETE"
_STDERR = 2
_GONE = {errno.EPIPE, errno.EIO}
_SCARCE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""What the machine has run out of is no defect."""


def enter(words: Sequence[str]) -> int:
    """Runs the command line and returns its exit code (`errors.Exit`)."""
    if os.environ.get(_COMPLETE):
        return shell_complete(loadstone, {}, "loadstone", _COMPLETE, os.environ[_COMPLETE])
    _fill_closed_streams()
    _show_what_can_be_shown()
    return _flushed(_sentenced(list(words)))


def _sentenced(words: list[str]) -> int:
    """The exit code, after one sentence about what went wrong, if something did."""
    try:
        return _invoked(words)
    except click.ClickException as wrong:
        return _say(_sentence(wrong), Exit.USAGE)
    except LoadstoneError as failure:
        return _say(str(failure), failure.exit)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted.", Exit.INTERRUPTED)
    except Exception as defect:
        return _defect(defect, trace=not {"-v", "--verbose"}.isdisjoint(words))


def _fill_closed_streams() -> None:
    """Streams that `>&-` closed lead nowhere; else the next file that is opened would be taken for one of them."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(descriptor)
    sys.stdout, sys.stderr = sys.stdout or io.StringIO(), sys.stderr or io.StringIO()


def _show_what_can_be_shown() -> None:
    """A terminal that knows only its own alphabet gets a question mark for the rest; no result is lost for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _invoked(words: list[str]) -> int:
    if any("\udc80" <= char <= "\udcff" for word in words for char in word):
        raise UsageError("an argument is not text in the encoding of this terminal (UTF-8).")
    try:
        with loadstone.make_context("loadstone", words.copy(), obj=words) as context:
            return int(loadstone.invoke(context) or Exit.DONE)
    except click.exceptions.Exit as ended:
        return ended.exit_code


def _sentence(wrong: click.ClickException) -> str:
    """What click found; an unknown flag gets the nearest one, or what to use instead of another tool's."""
    if not isinstance(wrong, click.NoSuchOption):
        return wrong.format_message()
    has = {word for parameter in wrong.ctx.command.params for word in parameter.opts} if wrong.ctx else set()
    lists = HELP_ALL if HELP_ALL in has else "--help"
    advice = instead(wrong.option_name, wrong.possibilities or (), lists)
    return f"There is no option {wrong.option_name}. {advice}"


def _say(sentence: str, code: Exit) -> int:
    from loadstone.terminal import printable  # only when something failed

    with suppress(OSError):  # the terminal has gone
        print(f"loadstone: error: {printable(sentence)}", file=sys.stderr)
    return code


def _defect(defect: Exception, trace: bool) -> int:
    if isinstance(defect, OSError) and defect.errno in _GONE and _reader_gone():
        return Exit.FAILED
    if trace:
        traceback.print_exception(defect)
    if isinstance(defect, OSError) and defect.errno in _SCARCE:
        return _say(f"{defect}. Free some, and run again.", Exit.FAILED)
    where = traceback.extract_tb(defect.__traceback__)[-1]
    return _say(
        f"{type(defect).__name__}: {defect} ({Path(where.filename).name}:{where.lineno}). This is a defect of "
        "loadstone; please report it with the trace that --verbose shows.",
        Exit.FAILED,
    )


def _flushed(code: int) -> int:
    """The code, after the last of the output is written; a reader or a terminal that has gone changes nothing."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _lead_nowhere(stream)
    return code


def _reader_gone() -> bool:
    """Whether nobody reads stdout any more; what is left for it then goes nowhere."""
    watch = select.poll()
    watch.register(sys.stdout, 0)
    gone = any(event & (select.POLLERR | select.POLLHUP) for _, event in watch.poll(0))
    if gone:
        _lead_nowhere(sys.stdout)
    return gone


def _lead_nowhere(stream: TextIO) -> None:
    """What the stream still holds, and whatever else comes, is lost without a complaint at the program's end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
