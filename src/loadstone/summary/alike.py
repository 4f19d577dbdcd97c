"""Whether runs may be fitted together, and what is to be said of them: one model, on one kind of hardware, step by step.

One rule: what the runs themselves say goes before what a user remembers of them; where they contradict each other nothing
is fitted. Knows no steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from loadstone.config import ENGINE
from loadstone.errors import UsageError
from loadstone.figures import counted
from loadstone.metrics import Tables
from loadstone.metrics.roofline import case_of, several
from loadstone.roofline.case import Asked, Case, asked, asked_of

ROUGH_PERCENT = 10.0
"""Root mean square of the errors from which on the model does not describe the runs: twice what good fits leave."""
ONE_BY_ONE = "Fit the runs of each by themselves."


class Told(NamedTuple):
    """What a run says of what it measured."""

    folder: str
    model: str | None
    case: Case | None
    built_in: bool
    """It was the built-in engine, in real time or on the virtual clock."""
    certain: bool
    """The case is that of the engine itself, and not what somebody named."""
    urls: tuple[str, ...]


def told(folder: str, tables: Tables) -> Told:
    """What a run says. UsageError: it was of several servers or models."""
    if several(tables):
        raise UsageError(
            f"{folder}: its requests went to several servers or models. Measure them one by one."
        )
    config, case = tables.config, case_of(tables)
    built_in = all(url.startswith(ENGINE) for url in config.endpoint.urls)
    chosen = tables.requests["model"].drop_nulls().unique().to_list() or [0]
    return Told(
        folder=folder,
        model=dict(enumerate(config.endpoint.models)).get(chosen[0]),
        case=case,
        built_in=built_in,
        certain=built_in and case is not None and not config.server.roofline,
        urls=tuple(config.endpoint.urls),
    )


def words_of(run: Told, tables: Tables) -> Asked | None:
    """The setup in the words with which one asks for it; None where the run tells none that can be asked for again."""
    named = tables.config.server.roofline
    if named and "=" in named:
        return asked(named, next(iter(tables.config.endpoint.models), None))
    return None if run.case is None else asked_of(run.case)


def refuse_unlike(runs: Mapping[str, Told]) -> None:
    """UsageError: the runs are of several models, or of several setups."""
    for what, known in (
        ("model", {name: run.model for name, run in runs.items() if run.model}),
        ("setup", {name: _setup(run.case) for name, run in runs.items() if run.case}),
    ):
        if len(set(known.values())) > 1:
            first, *others = known.items()
            other = next(one for one in others if one[1] != first[1])
            raise UsageError(
                f"{first[0]} and {other[0]}: the runs are of more than one {what}, {first[1]} and {other[1]}. {ONE_BY_ONE}"
            )


def refuse_unfit(runs: Mapping[str, Told], where: Case) -> None:
    """UsageError: the runs are not of this case, or their steps bring more than one token."""
    for name, run in runs.items():
        if run.certain and run.case is not None and _setup(run.case) != _setup(where):
            raise UsageError(
                f"{name}: the engine was {_setup(run.case)}, and not {_setup(where)}. Leave --gpu, --model and their like out."
            )
        drafts = max(where.draft_tokens, run.case.draft_tokens if run.case else 0)
        if drafts:
            raise UsageError(
                f"{name}: with speculation ({counted(drafts, 'draft token')}) a gap is no step of one token."
                " Measure without it (num_speculative_tokens=0)."
            )


def notes(runs: Mapping[str, Told], where: Case, rms_percent: float) -> tuple[str, ...]:
    """What whoever reads the calibration should know, the gravest first."""
    found = []
    if rms_percent > ROUGH_PERCENT:
        found.append(
            f"The model is {rms_percent:.0f} % off, root mean square: it does not describe these runs, and what is made of it is"
            " a guess. See which points are off: other load on the server, another model, type or number of devices?"
        )
    simulated = [run for run in runs.values() if run.built_in]
    if simulated:
        which = "All runs are" if len(simulated) == len(runs) else f"{len(simulated)} of {len(runs)} runs are"
        found.append(
            f"{which} of the built-in engine: this says how the simulator was set, and nothing of hardware."
        )
    urls = {run.urls for run in runs.values() if not run.built_in}
    if len(urls) > 1:
        found.append(
            f"The runs went to {len(urls)} addresses; they are taken to be alike in hardware and flags."
        )
    named = {_setup(run.case) for run in runs.values() if run.case and not run.certain}
    if named - {_setup(where)}:
        found.append(f"The runs were told that they measured {named.pop()}; the flags go before that.")
    return tuple(found)


def _setup(case: Case) -> str:
    """A case in words, with how its devices are used."""
    split = case.parallel
    more = [
        f"{name} {size}" for name, size in (("tp", split.tensor), ("pp", split.pipeline), ("dp", split.data)) if size > 1
    ]  # fmt: skip
    return ", ".join([case.words, *more, *(["expert parallel"] if split.expert else [])])
