"""The words that prompts are made of.

One rule: of a table without a flaw, `first[i]` is one token at the start of a text, every `rest[i]`
is one token after a space, and so n of them joined by single spaces are n tokens. How such words
are found is `find`'s affair, how they are put together is `prompts`'.
"""

from __future__ import annotations

import msgspec


class Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of words, the more frequent ones first.

    The ids stand beside their words; they are empty when there is no vocabulary to take them
    from. `flaw` says in one sentence why lengths made of these words are approximate; None: they
    are exact.
    """

    first: tuple[str, ...]
    rest: tuple[str, ...]
    first_ids: tuple[int, ...] = ()
    rest_ids: tuple[int, ...] = ()
    flaw: str | None = None

    def __post_init__(self) -> None:
        if not self.first or not self.rest:
            raise ValueError("a table needs words")
        if len(self.first_ids) not in (0, len(self.first)) or len(self.rest_ids) not in (0, len(self.rest)):
            raise ValueError("a table needs an id for each word, or none at all")


_EVERYDAY = """
the of and to in is for that on with as it by from at this was are be or an not have can will one
all more your has their other which about when there some into time only new out also over after
first where most even much through before between under right still same both own last long great
little world year day man work life way people place point hand part case home water room mother
area money story fact month lot study book eye job word business issue side kind head house service
friend father power hour game line end member law car city community name team idea kid body
information back parent face others level office door health person art war history party result
change reason research girl moment air teacher force education foot boy age policy music market
sense nation plan interest death experience effect use class control field development role rate
heart drug show leader light voice wife mind price report decision son view relationship town road
arm difference value building action model season tax position player record paper space ground form
event official center site project activity star table need court oil cost industry figure street
image phone data picture practice piece land product doctor wall patient worker news test movie love
support technology step baby computer type attention film tree source organization hair look window
culture run walk free open true full high low cold hot red blue green black white ship train stone
river rain
"""
COMMON = tuple(_EVERYDAY.split())
"""Everyday words for use without a vocabulary: large vocabularies have each of them as one token."""


def common(flaw: str) -> Words:
    """The table of everyday words, whose lengths are approximate because of `flaw`."""
    return Words(first=COMMON, rest=COMMON, flaw=flaw)
