"""Requests from a file, `--input-file`: JSONL, a request a line, with its moment, its lengths or its text.

The file is read line by line once, and of every line a few numbers are kept (`Index`): 40 bytes a request, however long
the lines. Texts are read again when their turn has come, and say their own length. Lines with the same `session_id` are
the turns of one conversation, wherever they stand; conversations are in the order of their first timestamps, or else of
the file.
"""

from __future__ import annotations

import re
import stat
from array import array
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from loadstone.config import InputConfig
from loadstone.config.tree import TOKENS
from loadstone.errors import UsageError, did_you_mean
from loadstone.plan.arrivals import LATEST_NS
from loadstone.plan.turn import Conversation, Turn
from loadstone.sources._made import Turns, place
from loadstone.tokens import Tokenizer

SUMMARY = "Requests from a JSONL file: timestamps, think times, sessions, lengths or texts."

MOST_LINE_BYTES = 64 << 20
MOST_MS = 9_000_000_000_000
"""The year 2255 as milliseconds since 1970; nanoseconds of it still fit 64 bits."""
_MS = 1_000_000
_NOT_GIVEN = -1
_BOM = b"\xef\xbb\xbf"
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_OUT_OF_RANGE = re.compile(r".*out of range - at `\$\.(\w+).*`")
"""What msgspec says of a key that is none, and of a number with thousands of digits."""
_TIMES = f"give milliseconds, a number from 0 to {MOST_MS:.0e}."
_TOKENS = f"give tokens, a whole number from 1 to {TOKENS:,}."
_NAMES = "give a text or a whole number, or leave it out."
_TEXTS = "give the text of the prompt, or leave it out."


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a line; another one is a slip, and what it asked for would not be done."""

    timestamp: Any = None
    delay: Any = None
    session_id: Any = None
    input_length: Any = None
    output_length: Any = None
    text_input: Any = None
    hash_ids: Any = None
    messages: Any = None
    payload: Any = None


class Row(NamedTuple):
    """What is kept of a line; -1 where it is not given."""

    at_ns: int
    delay_ns: int
    isl_tokens: int
    osl_tokens: int
    text_at: int
    """Where in the file the line with its text begins."""


class Index(NamedTuple):
    """The rows of a file by conversation: those of number c are `starts[c]` up to `starts[c + 1]`."""

    starts: array[int]
    columns: tuple[array[int], ...]
    """One for each field of `Row`."""

    @property
    def conversations(self) -> int:
        """How many there are."""
        return len(self.starts) - 1

    def rows(self, conversation: int) -> list[Row]:
        """The turns of a conversation, in the order of the file."""
        low, high = self.starts[conversation], self.starts[conversation + 1]
        return [
            Row._make(fields) for fields in zip(*(column[low:high] for column in self.columns), strict=True)
        ]


def distinct(config: InputConfig) -> int:
    """Conversations of the file; see `Source`."""
    return _index_of(config).conversations


def conversations(config: InputConfig, tokenizer: Tokenizer, seed: int, *, template_tokens: int = 0) -> Timed:
    """See `Source`. Raises `UsageError` for a file that cannot be read or has a line that is not as it should be."""
    index = _index_of(config)
    if config.token_ids and max(index.columns[Row._fields.index("text_at")]) != _NOT_GIVEN:
        raise UsageError(
            f"{config.file}: text_input cannot be sent as token ids; leave out --prompt-token-ids or the texts."
        )
    return Timed(config, tokenizer, index, Turns(config, tokenizer.words, seed, template_tokens))


class Timed:
    """See `Conversations`. Without end: after the last one the first is asked again."""

    def __init__(self, config: InputConfig, tokenizer: Tokenizer, index: Index, made: Turns) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._index = index
        self._made = made

    def outlines(self) -> Iterator[Conversation]:
        """See `Conversations`."""
        for number in count():
            rows = self._index.rows(number % self._index.conversations)
            yield Conversation(
                id=number,
                turns=tuple(
                    Turn(at_ns=_given(row.at_ns), think_ns=self._think_ns(row, position))
                    for position, row in enumerate(rows)
                ),
            )

    def conversation(self, number: int) -> Conversation:
        """See `Conversations`."""
        entry = number % self._index.conversations
        rows = enumerate(self._index.rows(entry))
        return Conversation(
            id=number, turns=tuple(self._turn(row, entry, position) for position, row in rows)
        )

    def _turn(self, row: Row, entry: int, position: int) -> Turn:
        at = place(entry, position)
        osl_tokens = _given(row.osl_tokens)
        at_ns, think_ns = _given(row.at_ns), self._think_ns(row, position)
        if row.text_at == _NOT_GIVEN:
            return self._made.turn(at, _given(row.isl_tokens), osl_tokens, at_ns, think_ns)
        text = _text(str(self._config.file), row.text_at)
        return Turn(
            text=text,
            isl_tokens=self._tokenizer.count(text),
            max_tokens=self._made.osl_tokens(at) if osl_tokens is None else osl_tokens,
            at_ns=at_ns,
            think_ns=think_ns,
        )

    def _think_ns(self, row: Row, position: int) -> int:
        """0 of a first turn, for which nobody waited."""
        if position == 0 or row.delay_ns == _NOT_GIVEN:
            return 0
        return round(min(row.delay_ns * self._config.think_ratio, LATEST_NS))


def _given(value: int) -> int | None:
    return None if value == _NOT_GIVEN else value


def _index_of(config: InputConfig) -> Index:
    """The index of the file that a config names, made once in a process unless the file changes."""
    file = str(config.file)
    try:
        found = Path(file).stat()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device, and is read more than once"
        raise UsageError(f"{file}: is {kind}; give a file.")
    return _indexed(file, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)
def _indexed(file: str, _mtime_ns: int, _size: int) -> Index:
    columns = tuple(array("q") for _ in Row._fields)
    owners, firsts, latest = array("q"), array("q"), array("q")
    numbers: dict[str, int] = {}
    for line, offset, content in _lines(file):
        try:
            session, row = _read(content, offset)
            owner = len(firsts) if session is None else numbers.setdefault(session, len(firsts))
            if owner == len(firsts):
                firsts.append(row.at_ns)
                latest.append(row.at_ns)
                _check_first_turn(row, firsts[0])
            latest[owner] = _checked_later(row, latest[owner])
        except ValueError as error:
            raise UsageError(f"{file}, line {line}: {error}") from None
        owners.append(owner)
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    if not firsts:
        raise UsageError(f"{file}: has no requests; give one as a JSON object on each line.")
    return _by_conversation(owners, firsts, columns)


def _check_first_turn(row: Row, first_ns: int) -> None:
    """Raises `ValueError` for the first turn of a conversation that is not like the first one of the file, or waits."""
    if (first_ns == _NOT_GIVEN) != (row.at_ns == _NOT_GIVEN):
        has, had = ("no timestamp", "one") if row.at_ns == _NOT_GIVEN else ("a timestamp", "none")
        raise ValueError(
            f"has {has}, but the first request has {had}; give one to the first turn of every conversation, or to none."
        )

    if row.delay_ns > 0:
        raise ValueError(
            "has a delay, which counts from the answer before, but it is the first turn of its conversation; give it a"
            " timestamp instead, or the session_id of the turn that it follows."
        )


def _checked_later(row: Row, latest_ns: int) -> int:
    """The last timestamp of a conversation by now. Raises `ValueError` for one that goes back."""
    if row.at_ns == _NOT_GIVEN:
        return latest_ns
    if row.at_ns < latest_ns:
        raise ValueError(
            f"timestamp is {row.at_ns / _MS:.15g}, but an earlier turn of its conversation has {latest_ns / _MS:.15g};"
            " put the turns in their order."
        )
    return row.at_ns


def _by_conversation(owners: array[int], firsts: array[int], columns: tuple[array[int], ...]) -> Index:
    """Conversations by their first moments, and in each its rows in the order of the file: both sorts are stable."""
    ranks = array("q", bytes(8 * len(firsts)))
    for rank, owner in enumerate(sorted(range(len(firsts)), key=firsts.__getitem__)):
        ranks[owner] = rank
    starts = array("q", bytes(8 * (len(firsts) + 1)))
    for owner in owners:
        starts[ranks[owner] + 1] += 1
    for rank in range(len(firsts)):
        starts[rank + 1] += starts[rank]
    order = sorted(range(len(owners)), key=lambda row: ranks[owners[row]])
    return Index(starts, tuple(array("q", map(column.__getitem__, order)) for column in columns))


def _lines(file: str) -> Iterator[tuple[int, int, bytes]]:
    """The number, the offset and the content of every line that is not blank."""
    offset = 0
    with _opened(file) as lines:
        for number in count(1):
            content = lines.readline(MOST_LINE_BYTES + 1)
            if not content:
                return
            if len(content) > MOST_LINE_BYTES:
                raise UsageError(
                    f"{file}, line {number}: is longer than {MOST_LINE_BYTES >> 20} MiB; is it JSONL, a request a line?"
                )
            if content.strip():
                yield number, offset, content
            offset += len(content)


def _opened(file: str) -> Any:
    try:
        return open(file, "rb")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}.") from None


def _text(file: str, offset: int) -> str:
    """The text of the line at `offset`."""
    with _opened(file) as lines:
        lines.seek(offset)
        try:
            found = _decoded(lines.readline(MOST_LINE_BYTES)).text_input
        except ValueError:
            found = None
    if isinstance(found, str):
        return found
    raise UsageError(f"{file}: was changed while the run lasted; start again.")


def _read(content: bytes, offset: int) -> tuple[str | None, Row]:
    """The session of a line, and what is kept of it. Raises `ValueError` with what is wrong and what to do."""
    line = _decoded(content)
    for name in ("hash_ids", "messages", "payload"):
        if getattr(line, name) is not None:
            raise ValueError(f"{name} is not supported yet; give input_length or text_input instead.")
    return _session(line.session_id), Row(
        at_ns=_ns("timestamp", line.timestamp),
        delay_ns=_ns("delay", line.delay),
        isl_tokens=_tokens("input_length", line.input_length),
        osl_tokens=_tokens("output_length", line.output_length),
        text_at=_NOT_GIVEN if line.text_input is None else _checked_text(line.text_input, offset),
    )


def _decoded(content: bytes) -> _Line:
    try:
        return msgspec.json.decode(content.removeprefix(_BOM), type=_Line)
    except msgspec.ValidationError as error:
        raise ValueError(_misread(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"is not valid JSON ({error}); give one object a line.") from None
    except RecursionError:
        raise ValueError("is nested too deeply; no key needs that.") from None


def _misread(why: str) -> str:
    """What is wrong with a line that is JSON, but not what is expected."""
    if unknown := _UNKNOWN.fullmatch(why):
        advice = did_you_mean(unknown[1], _Line.__struct_fields__)
        known = f"Known: {', '.join(_Line.__struct_fields__)}."
        return f"there is no key {_shown(unknown[1])}. {advice or known}"
    if (name := _OUT_OF_RANGE.fullmatch(why)) is None:
        return 'must be a JSON object, such as {"timestamp": 0, "input_length": 100}.'
    wanted = {"timestamp": _TIMES, "delay": _TIMES, "session_id": _NAMES, "text_input": _TEXTS}
    return f"{name[1]} holds a number of thousands of digits; {wanted.get(name[1], _TOKENS)}"


def _session(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
        return str(value)
    raise ValueError(f"session_id is {_shown(value)}; {_NAMES}")


def _ns(name: str, value: Any) -> int:
    if value is None:
        return _NOT_GIVEN
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_MS:
        return round(value * _MS)
    raise ValueError(f"{name} is {_shown(value)}; {_TIMES}")


def _tokens(name: str, value: Any) -> int:
    if value is None:
        return _NOT_GIVEN
    if isinstance(value, int | float) and value is not True and 1 <= value <= TOKENS and value == int(value):
        return int(value)
    raise ValueError(f"{name} is {_shown(value)}; {_TOKENS}")


def _checked_text(value: Any, offset: int) -> int:
    if isinstance(value, str) and value:
        return offset
    raise ValueError(f"text_input is {_shown(value)}; {_TEXTS}")


def _shown(value: Any) -> str:
    """The beginning of a value, as JSON."""
    text = msgspec.json.encode(value).decode("utf-8", "replace")
    return text if len(text) <= 40 else f"{text[:40]}..."
