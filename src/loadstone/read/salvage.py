"""Brings back a run whose main process died: decodes what was recorded, and finds its phases in it.

One rule: nothing is made up. Times come from the recording, and from the plan, which says how long after the start of its
phase a request was due. Rows that were not seen are not-sent: in a closed loop those up to the last one seen, of a phase
with due times all that were due by its last send. The report of such a run says that it was cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

import msgspec
import polars as pl

from loadstone import folder as run_folder
from loadstone.config import Config
from loadstone.errors import LoadstoneError, UsageError
from loadstone.folder import PhaseLog, RunLog, read_run, write_run
from loadstone.plan import schedule
from loadstone.plan.schedule import Phase
from loadstone.plan.store import read_rows
from loadstone.read.follow import decode_all
from loadstone.read.job import Job
from loadstone.recording import segment_of

CUT_OFF = "The run was cut off before its end; this is what had been recorded."
SIMULATION_CUT_OFF = (
    "The simulation was cut off before its end: what came of requests after the last part was stored is lost."
    " --random-seed {} makes it again."
)


def salvage(folder: Path) -> None:
    """Decodes what is left in `recording/` and completes `run.json` from it.

    Raises `UsageError` while the run goes on: the recording is still its decoders' own.
    """
    if run_folder.goes_on(folder):
        raise UsageError(f"{folder}: its run still goes on; ask again when it has ended.")
    log = read_run(folder)
    decode_rest(folder, log)
    asked = msgspec.convert(log.config, Config)
    log.phases = _phases(folder, schedule.phases(asked.load, asked.input))
    log.notices.append(SIMULATION_CUT_OFF.format(log.seed) if log.simulated else CUT_OFF)
    write_run(folder, log)


def decode_rest(folder: Path, log: RunLog, secrets: Sequence[str] | None = None) -> None:
    """Decodes what is in `recording/` and in no part yet, such as a decoder leaves behind that died.

    `secrets` None: nobody knows them any more. Raises `LoadstoneError` when `run.json` does not tell how to.
    """
    decode_all(_job(folder, log, None if secrets is None else list(secrets)))


def _job(folder: Path, log: RunLog, secrets: list[str] | None) -> Job:
    workers = {segment_of(path.stem)[0] for path in (folder / run_folder.RECORDING).glob("w*.idx")}
    try:
        endpoint, output = log.config["endpoint"], log.config["output"]
        told = {
            "folder": str(folder),
            "decoder": 0,
            "workers": sorted(workers),
            "endpoint": endpoint["type"],
            "streaming": endpoint["streaming"],
            "tokenizer": log.config["input"]["tokenizer"],
            "keep": output["keep"],
            "id_prefix": f"{log.id}-",
            "check_tokens": output["check_tokens"],
            "max_response_bytes": endpoint["max_response_bytes"],
            "secrets": secrets,
        }
        return msgspec.convert(told, Job)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise LoadstoneError(f"{folder / run_folder.RUN} is damaged: its config lacks {error}.") from None


def _phases(folder: Path, asked: list[Phase]) -> list[PhaseLog]:
    """One entry for each phase of which a request was seen, in the order of the plan."""
    parts = sorted((folder / run_folder.PARTS).glob("d*.parquet"))
    if not parts:
        return []
    ordered = sorted(asked, key=lambda phase: phase.first_row)
    begun = pl.sum_horizontal((pl.col("request") >= phase.first_row).cast(pl.Int32) for phase in ordered)
    seen = (
        pl.scan_parquet(parts, glob=False)
        .group_by(phase=begun - 1)
        .agg(
            first=pl.col("request").min(),
            last=pl.col("request").max(),
            due_ns=pl.col("due_ns").sort_by("request").first(),
            start_ns=pl.min_horizontal(pl.col("due_ns").min(), pl.col("sent_ns").min()),
            sent_ns=pl.col("sent_ns").max(),
            end_ns=pl.max_horizontal(
                pl.col("done_ns").max(), pl.col("last_ns").max(), pl.col("sent_ns").max()
            ),
        )
        .sort("phase")
        .collect()
    )
    firsts = [*(phase.first_row for phase in ordered[1:]), None]
    plan = folder / run_folder.PLAN
    return [_log(plan, ordered[row["phase"]], firsts[row["phase"]], row) for row in seen.to_dicts()]


def _log(plan: Path, phase: Phase, following: int | None, seen: dict[str, int | None]) -> PhaseLog:
    """A phase as far as it was seen; `following` is the first row of the next one."""
    sent_ns, end_ns = (seen[name] or 0 for name in ("sent_ns", "end_ns"))
    start_ns, stop_ns = _start_ns(plan, phase, seen), sent_ns or end_ns
    rows = (seen["last"] or 0) + 1 - phase.first_row
    if phase.timed:
        rows = max(rows, _due_rows(plan, phase, following, stop_ns - start_ns))
    return PhaseLog(
        name=phase.name,
        kind=phase.kind,
        seamless=phase.seamless,
        first_row=phase.first_row,
        planned=rows,
        start_ns=start_ns,
        stop_ns=stop_ns,
        end_ns=end_ns or sent_ns,
        dealt=phase.slots is None and phase.prefill is None,
    )


def _start_ns(plan: Path, phase: Phase, seen: dict[str, int | None]) -> int:
    """When a phase began: its first request seen opens a conversation, and the plan says how long after that it was due."""
    first, due_ns = seen["first"] or 0, seen["due_ns"]
    row = next(read_rows(plan, first, first + 1), None)
    if phase.timed and row is not None and row.opens and due_ns is not None:
        return due_ns - row.due_ns
    return seen["start_ns"] or 0


def _due_rows(plan: Path, phase: Phase, following: int | None, lasted_ns: int) -> int:
    """The rows of the plan that were due by then; a conversation counts whole, by the row that opens it."""
    rows = read_rows(plan, phase.first_row, following)
    return sum(1 for _ in takewhile(lambda row: not row.opens or row.due_ns <= lasted_ns, rows))
