"""What is asked of a fleet: lengths, shared beginnings, how evenly requests come. Drawn without bodies or tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from loadstone.clock import SECOND_NS
from loadstone.errors import UsageError, did_you_mean
from loadstone.sim.sequence import Sequence

Tokens = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
TokensOrZero = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
SPREAD = 4
"""A length is at most so many standard deviations above its mean."""


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Requests as `profile --isl ... --osl ...` makes them: normal lengths, cut at one token."""

    isl: Tokens
    isl_stddev: TokensOrZero = 0
    osl: Tokens
    osl_stddev: TokensOrZero = 0
    prefix: TokensOrZero = 0
    """Of the input, tokens at the beginning that requests share."""
    prefixes: Tokens = 1
    """How many different such beginnings there are; each request has one of them by chance."""
    smoothness: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1.0
    """Of gamma arrivals: 1 is Poisson, more is smoother, less burstier."""


PRESETS = {
    "chat": Workload(isl=512, isl_stddev=128, osl=256, osl_stddev=64),
    "sharegpt": Workload(isl=220, isl_stddev=150, osl=200, osl_stddev=130),
    "summary": Workload(isl=4000, isl_stddev=1000, osl=200, osl_stddev=50),
    "rag": Workload(isl=8000, isl_stddev=1000, osl=300, osl_stddev=100, prefix=1000),
    "reasoning": Workload(isl=1000, isl_stddev=200, osl=4000, osl_stddev=1000),
}
"""Where nobody has lengths of their own yet. `sharegpt` has the means of vLLM's benchmark of it; the others are examples."""


def workload(text: str) -> Workload:
    """A workload by its name, as `isl=512,osl=128,...`, or from the [input] of a configuration file of `profile`.

    Raises `UsageError`.
    """
    if text in PRESETS:
        return PRESETS[text]
    if "=" not in text:
        if Path(text).suffix == ".toml":
            return _of_config(Path(text))
        raise UsageError(
            f"--workload {text!r}: {did_you_mean(text, PRESETS)} There are {', '.join(PRESETS)}; or write"
            " isl=512,osl=128, or name a configuration file (.toml).".replace(":  ", ": ")
        )
    values: dict[str, Any] = {}
    for pair in filter(None, (pair.strip() for pair in text.split(","))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        key = key.replace("-", "_")
        if not equals or key not in Workload.__struct_fields__:
            keys = ", ".join(Workload.__struct_fields__)
            raise UsageError(f"--workload {pair!r} is not KEY=VALUE with one of: {keys}.")
        if key in values:
            raise UsageError(f"--workload: {key} is given twice.")
        values[key] = value
    return _checked(values)


def _checked(values: dict[str, Any]) -> Workload:
    for key in ("isl", "osl"):
        if key not in values:
            raise UsageError(f"--workload: {key} is missing; write for example isl=512,osl=128.")
    try:
        found = msgspec.convert(values, Workload, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        raise UsageError(f"--workload {where.rstrip('`')} = {values[where.rstrip('`')]}: {what}.") from None
    if found.prefix >= found.isl:
        raise UsageError(f"--workload: a prefix of {found.prefix} leaves nothing of isl = {found.isl}.")
    return found


def _of_config(path: Path) -> Workload:
    from loadstone.config import load

    data = load(path).input
    if data.file is not None or data.osl_mean is None:
        raise UsageError(f"--workload {path}: it has no input.osl_mean, or takes its requests from a file.")
    return _checked(
        {
            "isl": data.isl_mean,
            "isl_stddev": round(data.isl_stddev),
            "osl": data.osl_mean,
            "osl_stddev": round(data.osl_stddev),
        }
    )


class Dealt(NamedTuple):
    """Requests that are dealt out in turn to many replicas, of which some are looked at."""

    replicas: float
    """How many there are; of one that is looked at, also a part of one more."""
    looked_at: int = 1


def lengths(random: np.random.Generator, mean: int, stddev: int, count: int) -> list[int]:
    """Normal lengths in whole tokens, of which none is below one or more than `SPREAD` deviations above the mean.

    One number is drawn for each, so that the first lengths are the same however many follow.
    """
    if not stddev:
        return [mean] * count
    normal = NormalDist(mean, stddev)
    low, high = normal.cdf(0.5), normal.cdf(mean + SPREAD * stddev)
    shares = low + (high - low) * random.random(count)
    return [max(1, round(normal.inv_cdf(share))) for share in shares.tolist()]


def longest(asked: Workload) -> int:
    """Tokens of prompt and answer of the longest request there can be."""
    prompt = max(asked.isl + SPREAD * asked.isl_stddev, asked.prefix + 1)
    return prompt + asked.osl + SPREAD * asked.osl_stddev


def requests(
    asked: Workload, rate: float, count: int, block_size: int, seed: int, dealt: Dealt | None = None
) -> Iterator[tuple[int, Sequence]]:
    """So many requests at a mean rate a second, each with the moment it comes, in ns.

    The same seed gives the same lengths at every rate and for every count. With `dealt` these are what a router that deals
    a greater load out in turn leaves to some of its replicas: what comes to the same replica again lies a whole round behind.
    """
    moments_of, inputs_of, outputs_of, shared_of = (
        np.random.default_rng(source) for source in np.random.SeedSequence(seed).spawn(4)
    )
    moments = _moments(moments_of, asked.smoothness, rate, count, dealt or Dealt(1))
    inputs = lengths(inputs_of, asked.isl, asked.isl_stddev, count)
    outputs = lengths(outputs_of, asked.osl, asked.osl_stddev, count)
    if not asked.prefix:
        for at_ns, isl, osl in zip(moments, inputs, outputs, strict=True):
            yield at_ns, Sequence(isl, osl)
        return
    shared = shared_of.integers(asked.prefixes, size=count).tolist()
    common = asked.prefix // block_size
    own = asked.prefixes * common
    for number, at_ns in enumerate(moments):
        isl, osl = max(inputs[number], asked.prefix + 1), outputs[number]
        blocks = (isl + osl) // block_size
        first = shared[number] * common
        keys = [*range(first, first + common), *range(own, own + blocks - common)]
        own += blocks - common
        yield at_ns, Sequence(isl, osl, keys=keys)


def _moments(
    random: np.random.Generator, smoothness: float, rate: float, count: int, dealt: Dealt
) -> list[int]:
    """When requests come, in ns. The sum of n gamma gaps of shape s is one of shape n s."""
    shapes = np.full(count, smoothness)
    shapes[:: dealt.looked_at] *= dealt.replicas - dealt.looked_at + 1
    gaps = random.standard_gamma(shapes) / smoothness * (dealt.looked_at / dealt.replicas)
    found: list[int] = np.rint(np.cumsum(gaps) * (SECOND_NS / rate)).astype(np.int64).tolist()
    return found
