"""From a run's folder to its report: every metric, every outcome, the certificate.

Reads `run.json`, `requests.parquet` and the index of `faults/`, writes nothing. One rule: whatever the run
was, there is a report; what cannot be known is null with a reason. Memory: some 200 bytes a request
for the scalar columns, and for one metric at a time as much again; nothing grows with the tokens (see `metrics._pools`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from loadstone import folder as run_folder
from loadstone.checks import Evidence, certify, saturated
from loadstone.errors import Exit, LoadstoneError, precedence
from loadstone.folder import RunLog
from loadstone.metrics import Tables, all_metrics
from loadstone.read.outcome import SUCCESSES
from loadstone.read.schema import REQUESTS, completed
from loadstone.report import Report, RunFacts
from loadstone.summary import at_least, groups
from loadstone.summary.load import load_facts
from loadstone.summary.measure import measure
from loadstone.summary.notices import notices
from loadstone.summary.objectives import judged_by, verdicts
from loadstone.summary.outcomes import outcomes
from loadstone.summary.series import series
from loadstone.summary.server import server_facts
from loadstone.summary.stopping import failing, limits
from loadstone.summary.windows import slices, windows

__all__ = ["exit_code", "measure", "summarise"]

_FILES = {
    "run": run_folder.RUN,
    "config": run_folder.CONFIG,
    "requests": run_folder.REQUESTS,
    "server_metrics": run_folder.SERVER_METRICS,
    "log": run_folder.LOG,
    "faults": run_folder.FAULTS,
}
"""What is in a run's folder beside the exports, by role."""


def summarise(folder: Path, slo: Sequence[str] = ()) -> Report:
    """The report of the run in `folder`; with `slo` by these objectives instead of its own.

    Raises `LoadstoneError` when the folder holds no finished run, or a table that is not this run's.
    """
    table = _table(folder)
    run = run_folder.read_run(folder)
    if slo:
        run.config = judged_by(run.config, slo)
    tables = Tables.read(table, run)
    evidence = _evidence(tables)
    evidence = evidence._replace(server=server_facts(folder, table, tables, evidence.metrics))
    return Report(
        loadstone_version=run.loadstone_version,
        run=RunFacts(
            id=run.id,
            command=run.command,
            started=run.started,
            duration_s=_lasted_s(tables),
            end=run.end,
            stopped_by=run.stopped_by,
            stopped_why=run.stopped_why,
            failing=failing(_at_the_end(table, tables)),
            seed=run.seed,
            simulated=run.simulated,
            saturated=saturated(evidence),
            notices=notices(evidence),
            limits=limits(tables.config),
            files={role: name for role, name in _FILES.items() if (folder / name).exists()},
        ),
        certificate=certify(evidence),
        slo=verdicts(tables, evidence.metrics),
        metrics=dict(evidence.metrics),
        outcomes=outcomes(table, tables, folder),
        load=load_facts(evidence),
        series=series(tables),
        phases=groups.phases(table, evidence),
        targets=groups.targets(evidence),
        models=groups.models(evidence),
        turns=groups.turns(evidence),
        lengths=groups.lengths(evidence),
        windows=windows(table, evidence),
        timeslices=slices(evidence),
        server=evidence.server,
        config=run.config,
        environment=_environment(run),
    )


def exit_code(report: Report) -> Exit:
    """How a run with this report exits: interrupted, failed (given up, or no success), INVALID, an objective missed or
    undecided, or done.

    That all workers died is no failure of the server; it makes the run INVALID.
    """
    run = report.run
    died = run.stopped_by == "workers"
    nothing = not any(report.outcomes.counts.get(name) for name in SUCCESSES)
    holds = {
        Exit.INTERRUPTED: run.stopped_by == "user" or run.end == "interrupted",
        Exit.FAILED: run.stopped_by in ("failures", "trouble")
        or (run.end == "aborted" and not died)
        or nothing,
        Exit.INVALID: report.certificate.verdict == "INVALID",
        Exit.SLO_MISSED: any(one.verdict == "FAIL" for one in report.slo),
        Exit.UNDECIDED: any(one.verdict == "UNDECIDED" for one in report.slo),
    }
    return precedence(*(code for code, so in holds.items() if so))


def _evidence(tables: Tables) -> Evidence:
    """The tables with every metric of theirs, lower bounds marked."""
    found = Evidence(tables, {name: measure(metric, tables) for name, metric in all_metrics().items()})
    behind = at_least.behind(tables, at_least.saturated(found))
    return Evidence(tables, at_least.marked(found.metrics, tables, behind))


def _at_the_end(table: pl.LazyFrame, tables: Tables) -> Tables:
    """The tables of the kind of phase in which the run ended: all measured ones, or the one warm-up or cooldown."""
    last = tables.run.phases[-1:]
    if not last or last[0].kind == "measured":
        return tables
    return Tables.read(table, tables.run, [last[0].name])


def _lasted_s(tables: Tables) -> float | None:
    """From the first send until nothing was under way any more, whoever ended it; None when nothing was sent.

    Longer than the window of the rates where a time limit, or the run's end, was awaited.
    """
    left_ns = tables.left_ns.max()
    if tables.window_ns is None or not isinstance(left_ns, int):
        return None
    sent_ns, last_ns = tables.window_ns
    return (max(last_ns, left_ns) - sent_ns) / 1e9


def _environment(run: RunLog) -> dict[str, Any]:
    """What the run knew of its surroundings, in JSON's own types."""
    known = {
        "dataset": run.dataset,
        "preflight": run.preflight,
        "preflights": run.preflights,
        "hooks": run.hooks,
        "clock": run.clock,
        "workers": run.workers,
        "server_local": run.server_local,
        "host_busy_share": run.host_busy_share,
    }
    return {**run.environment, **{name: msgspec.to_builtins(value) for name, value in known.items()}}


def _table(folder: Path) -> pl.LazyFrame:
    for needed in (folder / run_folder.RUN, folder / run_folder.REQUESTS):
        if not needed.exists():
            raise LoadstoneError(
                f"{needed} is missing: {folder} holds no finished run; choose another folder."
            )
    path = folder / run_folder.REQUESTS
    try:
        table = completed(pl.scan_parquet(path, glob=False))
        found = table.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise LoadstoneError(f"{path} is damaged: {error}.") from None
    wrong = [name for name, dtype in REQUESTS.items() if found.get(name) != dtype]
    if wrong:
        raise LoadstoneError(f"{path} is no table of a run: column {wrong[0]} is missing or of another type.")
    return table
