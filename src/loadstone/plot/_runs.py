"""Run folders as figures see them: their measured requests, and a label for each that tells it from the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from loadstone import folder as layout
from loadstone.errors import UsageError
from loadstone.metrics import Tables
from loadstone.plan.schedule import Phase
from loadstone.summary.arrivals import arriving, words
from loadstone.terminal import fit, printable

MOST_LABEL = 60
"""Characters of a label that a legend has room for."""
MOST_DIFFERENCES = 3
"""Settings that a label names."""
UNTOLD = ("output", "input.seed")
"""Parts of a config that no label names: they change nothing that is drawn."""


@dataclass(frozen=True)
class Run:
    """One run: its measured requests that were due, and what they are called in a legend."""

    folder: Path
    label: str
    tables: Tables

    @property
    def requests(self) -> pl.DataFrame:
        """The measured requests, sent or not."""
        return self.tables.requests

    @cached_property
    def origin_ns(self) -> int:
        """The first dispatch: the moment 0 of every figure."""
        first = self.requests["sent_ns"].min()
        assert isinstance(first, int)  # `read` refuses a run that sent nothing
        return first

    @cached_property
    def measured(self) -> list[tuple[layout.PhaseLog, Phase | None]]:
        """The measured phases as they went, each with what was asked; None where the config no longer tells."""
        asked = {phase.name: phase for phase in self.tables.loads}
        return [(log, asked.get(log.name)) for log in self.tables.phases]


def read(folders: Sequence[Path], labels: Sequence[str] = ()) -> list[Run]:
    """The runs of these folders, under these labels or their own.

    Raises `UsageError` when one holds no run that can be drawn, or labels are too few, too many or alike.
    """
    tables = [_tables(folder) for folder in folders]
    return [
        Run(folder, label, table)
        for folder, label, table in zip(folders, _labelled(folders, labels, tables), tables, strict=True)
    ]


def _tables(folder: Path) -> Tables:
    if not (folder / layout.RUN).is_file():
        raise UsageError(f"{folder}: holds no {layout.RUN}; give the folder that a run named at its end.")
    layout.look_through(folder)
    if not (folder / layout.REQUESTS).is_file():
        raise UsageError(f"{folder}: {_untabled(folder)}")
    try:
        found = Tables.read(pl.scan_parquet(folder / layout.REQUESTS), layout.read_run(folder))
        found.config  # noqa: B018  # read now, so that damage is found here
    except (OSError, msgspec.MsgspecError, pl.exceptions.PolarsError) as error:
        raise UsageError(
            f"{folder}: a file of the run is damaged, or from another version of loadstone: {error}."
        ) from None
    if not found.attempted.any() or found.requests["sent_ns"].null_count() == len(found.requests):
        raise UsageError(f"{folder}: none of its measured requests was sent, so there is nothing to draw.")
    return found


def _untabled(folder: Path) -> str:
    if layout.goes_on(folder):
        return "its run still goes on; draw it when it has ended."
    return f"holds no {layout.REQUESTS}; `loadstone report {folder}` makes it from what was recorded."


def _labelled(folders: Sequence[Path], given: Sequence[str], tables: Sequence[Tables]) -> list[str]:
    if not given:
        return names(
            [load_words(table) for table in tables],
            [table.run.config for table in tables],
            [folder.resolve().name for folder in folders],
        )
    if len(given) != len(folders):
        raise UsageError(
            f"--label is given {len(given)} times for {len(folders)} folders; give it once for each."
        )
    shown = [fit(printable(label), MOST_LABEL) for label in given]
    if len(set(shown)) < len(shown):
        raise UsageError("--label: two labels read the same, and their runs could not be told apart.")
    return shown


def names(loads: Sequence[str], configs: Sequence[Mapping[str, Any]], folders: Sequence[str]) -> list[str]:
    """A label for every run: its load where loads differ, and the settings that differ; else its folder.

    Where that leaves two alike they get their folders' names as well, and at last a number.
    """
    named = len(loads) == 1 or len(set(loads)) > 1
    untold = (*UNTOLD, "load") if named else UNTOLD
    settings = [dict(_leaves(config, untold)) for config in configs]
    keys = sorted({key for one in settings for key in one})
    differing = [key for key in keys if len({repr(one.get(key)) for one in settings}) > 1][:MOST_DIFFERENCES]
    told = [
        ", ".join([load] * named + [_setting(key, one.get(key)) for key in differing])
        for load, one in zip(loads, settings, strict=True)
    ]
    return _unlike([fit(printable(label), MOST_LABEL) for label in told], folders)


def load_words(tables: Tables) -> str:
    """The load of the measured phases, short enough for a legend: `poisson 10/s, at most 64 in flight`."""
    told = [load for load, _ in groupby(words(phase, arriving(tables)) for phase in tables.loads)]
    return " then ".join(told).replace(" requests/s", "/s").replace(", unconditioned", "")


def _unlike(labels: list[str], folders: Sequence[str]) -> list[str]:
    """The labels, with the folder where several are alike, and a number where that does not help."""
    short = [fit(printable(folder), MOST_LABEL // 3) for folder in folders]
    for more in (short, [f"#{number}" for number in range(1, len(labels) + 1)]):
        alike = {label for label in labels if labels.count(label) > 1}
        labels = [
            f"{fit(label, MOST_LABEL // 2)} {own}".strip() if label in alike else label
            for label, own in zip(labels, more, strict=True)
        ]
    return labels


def _leaves(tree: Mapping[str, Any], untold: Sequence[str], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting of a config by its path, but for the parts in `untold`."""
    for name, value in tree.items():
        key = f"{path}.{name}".lstrip(".")
        if key in untold:
            continue
        if isinstance(value, Mapping):
            yield from _leaves(value, untold, key)
        else:
            yield key, value


def _setting(key: str, value: Any) -> str:
    """A setting in a label: `osl_mean 128`; `no api_key` where it is not set."""
    name = key.rpartition(".")[2]
    if value in (None, (), [], ""):
        return f"no {name}"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
