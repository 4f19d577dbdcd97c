"""Whether two sides were asked the same. What differs is said first, and what differs much forbids the comparison."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from loadstone.compare.pairs import matched
from loadstone.compare.sides import Run, Side
from loadstone.figures import brief


class Fact(NamedTuple):
    """Something a server is asked for."""

    name: str
    words: str
    refused: bool
    """Whether a comparison says nothing of the servers where this differs."""


PROMPTS = Fact("dataset", "other prompts", False)
FACTS = (
    Fact("model", "another model", True),
    Fact("endpoint", "another endpoint", True),
    Fact("streaming", "another way to answer", True),
    Fact("input_length", "prompts of another length", True),
    Fact("output_length", "answers of another length", True),
    Fact("load", "another load", True),
    Fact("tokenizer", "lengths by another tokenizer", True),
    Fact("sampling", "other parameters of the request", True),
    Fact("requests", "another number of requests", False),
    Fact("seed", "another seed", False),
    PROMPTS,
)
"""In the order in which they are told. Which server, its version and its flags are the subject of a comparison."""
APART = 0.05
"""Mean lengths that came back may differ by this share before it is told."""
LONG_DIGEST = 12


class Difference(NamedTuple):
    """What one side was asked otherwise than the first."""

    fact: str
    sentence: str
    refused: bool


def differences(first: Side, other: Side) -> list[Difference]:
    """All that differs, what forbids the comparison first."""
    found = [
        Difference(fact.name, _sentence(fact, other.name, mine, theirs), fact.refused)
        for fact in FACTS
        if fact is not PROMPTS
        and (mine := first.run.asked.get(fact.name)) is not None
        and (theirs := other.run.asked.get(fact.name)) is not None
        and mine != theirs
    ]
    found += _prompts(first, other)
    if not any(one.fact == "output_length" for one in found):
        found += _lengths(first, other)
    return sorted(found, key=lambda one: not one.refused)


def unknown(first: Side, other: Side) -> list[str]:
    """The names of facts that only one of the two tells, so that nobody knows whether they differ."""
    return [
        fact.name.replace("_", " ")
        for fact in FACTS
        if (first.run.asked.get(fact.name) is None) != (other.run.asked.get(fact.name) is None)
    ]


def _prompts(first: Side, other: Side) -> list[Difference]:
    """Whether prompts differ, request by request where that is known.

    A closed loop that is ended by time has as many as it came to, so a digest of all differs where each is the same.
    """
    a, b = first.run, other.run
    if a.requests is not None and b.requests is not None:
        found = matched(a.requests, b.requests)
        if found is not None:
            both = len(found.a) + found.other_prompts
            sentence = (
                f"{other.name} was asked for {PROMPTS.words}: {found.other_prompts:,} of {both:,} differ."
            )
            return [Difference(PROMPTS.name, sentence, PROMPTS.refused)] if found.other_prompts else []
    mine, theirs = (run.asked.get(PROMPTS.name) for run in (a, b))
    if mine is None or theirs is None or mine == theirs:
        return []
    sentence = _sentence(PROMPTS, other.name, mine, theirs)
    if a.planned != b.planned:
        sentence = (
            f"Whether {other.name} was asked for {PROMPTS.words} cannot be told: they are not equally many."
        )
    return [Difference(PROMPTS.name, sentence, PROMPTS.refused)]


def _sentence(fact: Fact, name: str, mine: Any, theirs: Any) -> str:
    return f"{name} was asked for {fact.words}: {_shown(theirs)} instead of {_shown(mine)}."


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "streaming" if value else "whole answers"
    text = str(value)
    digest = len(text) == 64 and all(char in "0123456789abcdef" for char in text)
    return text[:LONG_DIGEST] if digest else text


def _lengths(first: Side, other: Side) -> list[Difference]:
    """Where prompts or answers came to clearly different lengths, though none was asked."""
    found = []
    for name, noun, longer in (("input_tokens", "prompts", "longer"), ("output_tokens", "answers", "longer")):
        if name == "output_tokens" and first.run.counted_by != other.run.counted_by:
            continue
        mine, theirs = _mean(first.run, name), _mean(other.run, name)
        if mine and theirs and abs(theirs / mine - 1) > APART:
            word = longer if theirs > mine else "shorter"
            sentence = (
                f"{other.name} had {word} {noun}: {brief(theirs)} tokens on average instead of {brief(mine)}."
            )
            found.append(Difference(name, sentence, False))
    return found


def _mean(run: Run, name: str) -> float | None:
    if run.requests is None:
        return None
    values = getattr(run.requests, name)[run.requests.succeeded]
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
