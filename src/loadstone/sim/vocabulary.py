"""Words as token ids and back. An id is a function of its word, so every server gives the same ones.

The engine's own words have the lowest ids. Any other word has a hash of it, which does not say the word: a server can
turn back only ids of words that it has been shown, and remembers so many of them, and so many characters of them in all.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from itertools import cycle, islice

from loadstone.sim.words import BARE, SEPARATOR

OWN = (SEPARATOR, *dict.fromkeys(BARE))
"""The words whose ids are their places, from `FIRST_ID` on."""
FIRST_ID = 1
HASHED = 1 << 20
"""The ids of other words begin here; they take 48 bits, which any JSON reader keeps exactly."""
REMEMBERED_WORDS = 1 << 20
REMEMBERED_CHARS = 1 << 26
_OWN_IDS = {word: number for number, word in enumerate(OWN, FIRST_ID)}
_OWN_WORDS = {number: word for word, number in _OWN_IDS.items()}
_OWN_BARE = tuple(_OWN_IDS[word] for word in BARE)


def word_id(word: str) -> int:
    """The id of one word."""
    own = _OWN_IDS.get(word)
    if own is not None:
        return own
    digest = hashlib.blake2b(word.encode(), digest_size=6).digest()
    return HASHED + int.from_bytes(digest, "little")


def bare_ids(start: int, tokens: int) -> list[int]:
    """The ids of the passage's words from `start` on."""
    begin = start % len(_OWN_BARE)
    return list(islice(cycle(_OWN_BARE), begin, begin + tokens))


class Vocabulary:
    """The words that one server has been shown."""

    def __init__(self, most: int = REMEMBERED_WORDS, most_chars: int = REMEMBERED_CHARS) -> None:
        self._most = most
        self._most_chars = most_chars
        self._chars = 0
        self._words: OrderedDict[int, str] = (
            OrderedDict()
        )  # a dict would look for its oldest among all that are gone
        """Words that are not its own, the oldest first."""

    def ids(self, words: Iterable[str]) -> list[int]:
        """The ids of words, which are remembered; beyond the limits the oldest are forgotten."""
        found, known = [], self._words
        for word in words:
            number = word_id(word)
            found.append(number)
            if number >= HASHED and number not in known:
                known[number] = word
                self._chars += len(word)
                while len(known) > self._most or self._chars > self._most_chars:
                    self._chars -= len(known.popitem(last=False)[1])
        return found

    def words(self, ids: Iterable[int]) -> list[str]:
        """The words of ids; one that is not known as `<|ID|>`."""
        return [_OWN_WORDS.get(number) or self._words.get(number, f"<|{number}|>") for number in ids]
