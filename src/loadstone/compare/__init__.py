"""Two runs or more side by side, ours or other tools': may they be compared, what differs, and what could have been seen.

`sides` reads what is named, `report` compares. Whoever has runs in memory makes `Side`s of them (`importers.run_folder.run`) and
calls `report`; a side of several runs is judged by how its runs differ from each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from loadstone.compare import asked, pairs
from loadstone.compare.importers import read
from loadstone.compare.result import Comparison, Pairing, Row, SideFacts
from loadstone.compare.sides import BY_TOKENS, METRICS, Run, Side
from loadstone.compare.verdict import rows, unlike
from loadstone.errors import UsageError

__all__ = ["METRICS", "Comparison", "Pairing", "Row", "Run", "Side", "limited", "report", "sides", "untold"]


def _itself(path: Path) -> Sequence[Path]:
    return (path,)


def sides(
    named: Sequence[str],
    labels: Sequence[str] = (),
    runs_of: Callable[[Path], Sequence[Path]] = _itself,
) -> list[Side]:
    """The sides, each a path or several with commas between them. Raises `UsageError` for what cannot be read.

    `runs_of`: the paths that one stands for, where it is a folder of several runs.
    """
    if labels and len(labels) != len(named):
        raise UsageError(
            f"--label is given {len(labels)} times for {len(named)} sides; give it once for each."
        )
    names = list(labels) or [chr(ord("A") + number) for number in range(len(named))]
    return [
        Side(name, tuple(read(path) for told in _paths(one) for path in runs_of(Path(told))))
        for name, one in zip(names, named, strict=True)
    ]


def report(
    compared: Sequence[Side],
    *,
    metrics: Collection[str] = METRICS,
    headline: tuple[str, str] | None = None,
    pair: bool | None = None,
    anyway: bool = False,
) -> Comparison:
    """Every side against the first.

    `pair`: None pairs requests where their prompts are known to be the same, True by position where that is not known.
    Raises `UsageError` where what was asked differs, unless `anyway`.
    """
    first, *others = compared
    return Comparison(
        comparisons=tuple(_pairing(first, other, metrics, headline, pair, anyway) for other in others)
    )


def untold(found: Comparison) -> tuple[str, ...]:
    """The names of the sides of which no row could be compared with the first."""
    return tuple(one.b.name for one in found.comparisons if all(row.low is None for row in one.rows))


def limited(found: Comparison, percent: float) -> Comparison:
    """The same with what is shown to be worse by more than so many percent (shares: percentage points): the whole interval
    lies beyond.
    """
    beyond = tuple(
        f"{one.b.name}: {row.metric}{'.' + row.stat if row.stat else ''}"
        for one in found.comparisons
        for row in one.rows
        if row.differs and _least_worse(row) > percent
    )
    return replace(found, regressions=beyond)


def _least_worse(row: Row) -> float:
    """By how many percent (points) of A the row is worse at least; below 0: it may be better."""
    assert row.low is not None and row.high is not None, "what differs has an interval"
    if row.difference:
        return row.low if row.better == "lower" else -row.high
    return 100 * (row.low - 1) if row.better == "lower" else 100 * (1 - row.high)


def _pairing(
    first: Side,
    other: Side,
    metrics: Collection[str],
    headline: tuple[str, str] | None,
    pair: bool | None,
    anyway: bool,
) -> Pairing:
    _as_many(first, other)
    differ = asked.differences(first, other)
    refused = tuple(one.sentence for one in differ if one.refused)
    if refused and not anyway:
        raise UsageError(
            f"{' '.join(refused)} What was measured then is not the server alone; --anyway compares all the same."
        )
    why = _unpaired(first, other, pair)
    elsewise = _counted_elsewise(first.run, other.run, metrics)
    metrics = [name for name in metrics if name not in elsewise]
    found = rows(first, other, paired=why is None, metrics=metrics, headline=headline)
    if not found:
        raise UsageError(
            f"{other.run.path} and {first.run.path} have no metric in common that was to be compared."
        )
    return Pairing(
        a=_facts(first),
        b=_facts(other),
        paired=why is None,
        pairs=_common(first.run, other.run) if why is None else None,
        unpaired_because=why,
        refused=refused,
        warnings=tuple(one.sentence for one in differ if not one.refused),
        notes=(
            *_tokenizers(first, other, elsewise),
            *_unknown(first, other),
            *_surroundings(first, other),
            *_notes(first, other),
        ),
        rows=found,
        unlike=unlike(first.run, other.run),
    )


def _as_many(first: Side, other: Side) -> None:
    """Raises `UsageError` where several runs stand beside one: how far runs differ is not known of both then."""
    one, several = sorted((first, other), key=lambda side: len(side.runs))
    if len(one.runs) == 1 < len(several.runs):
        raise UsageError(
            f"{one.name} is one run and {several.name} is {len(several.runs)}, so nothing can be compared;"
            " name two runs or more of each side (A1,A2 B1,B2), or one of each."
        )


def _paths(named: str) -> list[str]:
    """The runs of one side; a path that has a comma itself is one where it is there."""
    with suppress(OSError, ValueError):  # of a name that no file can have; reading it says so
        if Path(named).exists():
            return [named]
    paths = [part for part in named.split(",") if part]
    if not paths:
        raise UsageError(f"'{named}': names no run; a side is a path, or several with commas between them.")
    return paths


def _unpaired(first: Side, other: Side, pair: bool | None) -> str | None:
    """Why requests are not paired; None: they are."""
    if pair is False:
        return "as asked (--no-pair)"
    if len(first.runs) > 1 or len(other.runs) > 1:
        return None if len(first.runs) == len(other.runs) and pair else "runs are compared, not requests"
    reason = pairs.pairable(first.run, other.run)
    if reason is None or not pair:
        return reason
    reason = pairs.by_position(first.run, other.run)
    if reason is not None:
        raise UsageError(f"--pair: {reason}, so no request of one is the partner of one of the other.")
    return None


def _common(a: Run, b: Run) -> int | None:
    if a.requests is None or b.requests is None:
        return None
    return len(pairs.partners(a.requests, b.requests)[0])


def _facts(side: Side) -> SideFacts:
    order = ("INVALID", "DEGRADED", "VALID")
    worst = next((run for name in order for run in side.runs if run.verdict == name), None)
    counts = [len(run.requests.sent_s) for run in side.runs if run.requests is not None]
    return SideFacts(
        name=side.name,
        paths=tuple(run.path for run in side.runs),
        tool=side.run.tool,
        requests=sum(counts) if counts else None,
        certificate=None if worst is None else worst.verdict,  # type: ignore[arg-type]  # one of the three
        headline="" if worst is None else worst.headline,
    )


def _counted_elsewise(a: Run, b: Run, metrics: Collection[str]) -> list[str]:
    """The metrics of both whose tokens are counted by different tokenizers."""
    if a.counted_by == b.counted_by:
        return []
    both = {name for name, _ in a.numbers} & {name for name, _ in b.numbers}
    return [name for name in BY_TOKENS if name in both and name in metrics]


def _tokenizers(first: Side, other: Side, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    what = ", ".join(name.replace("_", " ") for name in names)
    by = f"{first.name}: {first.run.counted_by}; {other.name}: {other.run.counted_by}"
    return [f"Output tokens are counted by another tokenizer ({by}), so not compared: {what}."]


def _unknown(first: Side, other: Side) -> list[str]:
    names = asked.unknown(first, other)
    return [f"Known of one side only, so it may differ: {', '.join(names)}."] if names else []


def _surroundings(first: Side, other: Side) -> list[str]:
    mine, theirs = first.run.surroundings, other.run.surroundings
    return [
        f"{name}: {mine[name]} for {first.name}, {theirs[name]} for {other.name}."
        for name in mine.keys() & theirs.keys()
        if mine[name] != theirs[name]
    ]


def _notes(first: Side, other: Side) -> list[str]:
    mine, theirs = ([note for run in side.runs for note in run.notes] for side in (first, other))
    both = [note for note in mine if note in theirs]
    told = [(first.name, mine), (other.name, theirs)]
    return [
        *(f"Both: {note}" for note in dict.fromkeys(both)),
        *(f"{name}: {note}" for name, notes in told for note in notes if note not in both),
    ]
