"""The run folder: where each thing lies, and `run.json`, what the run itself knew.

`run.json`, `plan/` and `requests.parquet` are all that `loadstone report FOLDER` needs; of a run that died,
`recording/` and `parts/` take the place of the table.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from loadstone.errors import UsageError

CONFIG = "config.toml"
RUN = "run.json"
PLAN = "plan"
RECORDING = "recording"
"""Raw segments while the run lasts; see `loadstone.recording`."""
BOARD = "board"
"""In `RECORDING`; every process of the run has it open with a shared lock, which the kernel lifts when it ends."""
PARTS = "parts"
"""Decoded tables, `d<decoder>-<number>.parquet`, in the columns of `read.schema.REQUESTS`."""
FAULTS = "faults"
REQUESTS = "requests.parquet"
SERVER_METRICS = "server_metrics.parquet"
"""The servers' Prometheus pages as they were read; see `telemetry.store`."""
LOG = "loadstone.log"
REPORT = "report.json"
PLOTS = "plots"
"""Figures that `loadstone plot` drew."""


class _Part(msgspec.Struct, kw_only=True):
    """A branch of `run.json`."""


class PhaseLog(_Part, kw_only=True):
    """One phase as it went. Times are CLOCK_MONOTONIC ns; rows are positions in the plan."""

    name: str
    kind: Literal["warmup", "measured", "cooldown"]
    seamless: bool = False
    """It began when the phase before had nothing more to send, while its last answers still came."""
    first_row: int
    planned: int
    """Rows that count: due before the stop (open loop) or drawn (closed loop); from `first_row` on."""
    start_ns: int
    stop_ns: int
    """No row was sent after this."""
    end_ns: int
    """Every flight had ended."""
    drawn: int = 0
    """Rows that the workers took from the plan."""
    dealt: bool = False
    """Row r was worker r mod W's own (a rate without a cap); else every free slot took the next row of all."""


class WorkerLog(_Part, kw_only=True):
    """One load-generating process, over the measured phase."""

    worker: int
    cpu_ns: int
    wall_ns: int
    flights: int
    reads: int
    fault: str | None = None
    """Why it ended early; None when it did not."""
    waits: int = 0
    """Connects that had to wait because the client had no descriptor or no port left."""
    waited_ns: int = 0
    """The time during which at least one of them waited."""
    stall_ns: int | None = None
    """The longest time by which its loop came too late to what it does every 20 ms."""
    stalled_ns: int | None = None
    """All such times that were longer than 50 ms."""
    write_ns: int | None = None
    """The longest time that one write of the recording took."""
    collections: int | None = None
    """Garbage collections, which are off in a worker."""


class DeathLog(_Part, kw_only=True):
    """A process of the run that ended before its time."""

    process: str
    """Such as `worker 0` or `decoder 1`."""
    fault: str
    """How, in words: killed by signal 9, stopped, no space left."""
    noticed_ns: int


class ClockLog(_Part, kw_only=True):
    """What the clocks did."""

    kernel_stamps: bool
    """Every read of the run had a stamp of the kernel that could be used."""
    steps: int
    """Steps of the wall clock seen while the run lasted; read times are used around them."""


class MachineSpan(_Part, kw_only=True):
    """What this machine did between two looks at it, in one phase. Null is what the system does not tell."""

    phase: str
    start_ns: int
    end_ns: int
    cpu_ns: int
    """Time of all cores together ..."""
    busy_ns: int
    """... of which they were not idle, stolen time included ..."""
    ours_ns: int
    """... and which processes of this run used, the built-in engine included ..."""
    steal_ns: int | None = None
    """... or the hypervisor gave to somebody else."""
    most_stolen: float | None = None
    """The greatest share stolen between two looks, about a second apart, 0 to 1."""
    throttles: int | None = None
    """How often a core lowered its clock rate because it was too hot."""
    tcp_retransmits: int | None = None
    """Segments that this host sent again, over all its connections."""
    tcp_drops: int | None = None
    """Connections and segments that the kernel threw away after they had arrived."""
    packet_drops: int | None = None
    """Packets thrown away because the cores did not come to them."""
    cpu_pressure_ns: int | None = None
    """Time in which some task was ready and had no core,"""
    io_pressure_ns: int | None = None
    """waited for a disk,"""
    memory_pressure_ns: int | None = None
    """or waited for memory."""
    swapped_in_bytes: int | None = None
    mhz_min: float | None = None
    """Clock rate at the looks, the mean of the first cores."""
    mhz_max: float | None = None
    least_available_bytes: int = 0


class MachineLog(_Part, kw_only=True):
    """What this machine did beside the load, from the first phase to the last."""

    spans: list[MachineSpan]
    """In order; about a second each, longer in a long run."""
    processes_ns: dict[str, int] = {}
    """CPU time of the run's processes, by name."""
    reasons: dict[str, str] = {}
    """Why a figure is null, by its name."""


class DecodingLog(_Part, kw_only=True):
    """How far the decoders were behind the recording when the load had ended."""

    behind: int
    """Requests that had ended and were not decoded."""
    took_ns: int
    """From the end of the load until everything was decoded and on the disk."""


class DatasetLog(_Part, kw_only=True):
    """What was asked."""

    source: str
    tokenizer: str
    lengths_exact: bool
    unique_prompts: bool
    reused: int
    """Requests whose prompt had been sent before in this run."""
    digest: str
    """SHA-256 over the bodies of the plan, in order."""


class PreflightLog(_Part, kw_only=True):
    """One small request before the run."""

    request_id: str
    http_status: int
    latency_ms: float
    content_tokens: int
    prompt_tokens: int | None
    """The server's count; less `content_tokens` it is the chat template's overhead."""
    target: int = 0
    """Which of `endpoint.urls` answered it."""
    model: str | None = None


class HookLog(_Part, kw_only=True):
    """Something asked of one server beside the load. Times are CLOCK_MONOTONIC ns."""

    name: Literal["reset_kv_cache", "profiler_start", "profiler_stop"]
    target: int
    """Which of `endpoint.urls` was asked."""
    path: str
    """Without its query, which may hold a key."""
    start_ns: int
    end_ns: int
    """When it was answered, or given up, whatever attempts there were in between."""
    attempts: int = 1
    http_status: int | None = None
    """Of the last answer; None: there was none."""
    fault: str | None = None
    """Why it was not done; None: it was."""


class ScrapeLog(_Part, kw_only=True):
    """One Prometheus page that was read while the run lasted. Times are CLOCK_MONOTONIC ns.

    Numbers are null until its reader has told them at the end: it may die, or main may.
    """

    page: str
    """Its address without secrets; column `target` of `SERVER_METRICS`."""
    serves: tuple[int, ...] = ()
    """Which of `endpoint.urls` it tells of; empty: it was asked for by its own address."""
    scrapes: int | None = None
    """How often it was read."""
    failed: int | None = None
    """How often that was tried in vain."""
    thinned: int | None = None
    """Scrapes that were let go of again, evenly, since the run was longer than there is room for."""
    samples: int | None = None
    """Rows of it in the table."""
    given_up: bool = False
    """It was not asked for any more, since it had never been there."""
    faults: list[ScrapeFault] = []
    """The first ones of each kind, in their order."""


class ScrapeFault(_Part, kw_only=True):
    """Why a page could not be read, at the moment when that was first so."""

    at_ns: int
    http_status: int | None = None
    """None: there was no answer."""
    fault: str
    count: int = 1
    """How often."""


class RunLog(_Part, kw_only=True):
    """`run.json`: everything about a run that its tables do not hold."""

    id: str
    command: str
    loadstone_version: str
    started: str
    end: Literal["complete", "interrupted", "aborted"]
    seed: int
    config: dict[str, Any]
    """The resolved tree, secrets masked."""
    phases: list[PhaseLog]
    workers: list[WorkerLog]
    clock: ClockLog
    dataset: DatasetLog
    preflight: PreflightLog | None
    """Of the first server and the first model."""
    preflights: list[PreflightLog] = []
    """All of them: every server with the first model, then the first server with every other one."""
    hooks: list[HookLog] = []
    """What was asked of the servers beside the load, in order."""
    server_local: bool
    """A server runs on this host and shares its cores."""
    host_busy_share: float | None
    """Busy share of all cores during the measured phase."""
    environment: dict[str, Any]
    notices: list[str]
    stopped_by: Literal["user", "failures", "trouble", "workers", "steady", "slo"] | None = None
    """What ended the load before its time: Ctrl-C or a signal, the error rate, something the run depends on, the
    death of every load-generating process, or that a metric was known well enough."""
    stopped_why: str | None = None
    """The same as one sentence."""
    deaths: list[DeathLog] = []
    simulated: bool = False
    """Computed on a virtual clock: no server was asked, nothing was measured. Times count from its beginning."""
    scrapes: list[ScrapeLog] = []
    """The servers' Prometheus pages, in the order of `endpoint.urls`, then those asked for by their own address."""
    machine: MachineLog | None = None
    """What else this machine did; None: nobody looked."""
    decoding: DecodingLog | None = None
    """None: nothing was decoded, or main did not come to the end of it."""
    scrape_fault: str | None = None
    """Why the reading of them ended before the run did, so that what came after its last store is lost; None: it did not."""

    @property
    def cut_off(self) -> bool:
        """Whether the run ended without a word of its main process: killed, left at once, out of disk."""
        return self.end == "aborted" and self.stopped_by is None


def read_run(folder: Path) -> RunLog:
    """The run log of a folder. Raises `FileNotFoundError`, `msgspec.ValidationError`."""
    return msgspec.json.decode((folder / RUN).read_bytes(), type=RunLog)


def write_run(folder: Path, log: RunLog) -> None:
    """Writes `run.json` whole or not at all."""
    draft = folder / (RUN + ".new")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(log), indent=2))
    draft.replace(folder / RUN)


def goes_on(folder: Path) -> bool:
    """Whether some process of the run is alive."""
    try:
        with (folder / RECORDING / BOARD).open("rb") as board:
            fcntl.flock(board, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


OUTPUTS = (REPORT, "report.csv", "summary.txt", "requests.jsonl", "inputs.json", "junit.xml")
"""What the exporters write; a new run need not write all of them."""
OURS = (CONFIG, RUN, PLAN, RECORDING, PARTS, FAULTS, REQUESTS, SERVER_METRICS, LOG, PLOTS, *OUTPUTS)
"""What a new run would otherwise inherit; anything else is not ours to remove."""
EARLIER = ".earlier"
"""Where an earlier run is until the one that replaces it has begun."""


def claimable(folder: Path, force: bool) -> None:
    """Raises `UsageError` when `claim` would; changes nothing."""
    try:
        _look(folder, force)
        there = next(path for path in (folder, *folder.parents, Path()) if path.exists())
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{there} is not a directory")
        if not os.access(there, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "no permission to write there")
    except OSError as error:
        raise _unusable(folder, error) from None


def claim(folder: Path, force: bool) -> None:
    """Makes `folder` ready for a new run; an earlier one is set aside until `drop_earlier` or `release` is called.

    Raises `UsageError` when it cannot be written to, or holds anything already: an earlier run is only
    replaced with `force`, and what is not a run, or still goes on, never.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _look(folder, force)
        _set_aside(folder)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        with suppress(OSError):
            _put_back(folder)
        raise _unusable(folder, error) from None


def drop_earlier(folder: Path) -> None:
    """Removes the earlier run: the new one has begun."""
    shutil.rmtree(folder / EARLIER, ignore_errors=True)


def release(folder: Path) -> None:
    """Takes back what a run made that sent nothing, and the folder if nothing else is in it; an earlier run is put back."""
    with suppress(OSError):
        _clear(folder)
        _put_back(folder)
        folder.rmdir()


def _unusable(folder: Path, error: OSError) -> UsageError:
    return UsageError(
        f"output.folder = {str(folder)!r}: {error.strerror}. Choose another one with --artifact-dir."
    )


def _look(folder: Path, force: bool) -> None:
    """Raises `UsageError` when what is in the folder must stay there."""
    present = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if not present:
        return
    where = f"output.folder = {str(folder)!r}"
    if present.isdisjoint((LOG, RUN)) and not _holds_earlier(folder):  # a config.toml may be anybody's
        raise UsageError(f"{where}: it is not empty and holds no run; choose another.")
    if not force:
        raise UsageError(f"{where} holds a run already; --force replaces it.")
    if goes_on(folder):
        raise UsageError(f"{where}: its run still goes on; choose another.")


def look_through(folder: Path) -> None:
    """Raises `UsageError` when something in a run's folder is neither a file nor a folder of its own.

    A folder may be somebody else's: a link would lead what is written or deleted elsewhere, a pipe would be waited for.
    """
    for entry in _entries(folder):
        if entry.is_symlink() or not (entry.is_file() or entry.is_dir()):
            raise UsageError(
                f"{entry.path}: is a link, a pipe or a device, and no part of a run; take it away."
            )


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """What bears the name of something of ours, and all that is in our folders."""
    with os.scandir(folder) as found:
        ours = [entry for entry in found if entry.name in OURS or entry.name.endswith(".new")]
    yield from ours
    for entry in ours:
        if entry.is_dir(follow_symlinks=False):
            with os.scandir(entry) as found:
                yield from found


def _set_aside(folder: Path) -> None:
    """Moves what is ours out of the way; what a run had set aside that was killed is put back first, if it never began."""
    if _holds_earlier(folder) and (folder / RUN).exists():
        drop_earlier(folder)
    elif _holds_earlier(folder):
        _clear(folder)
        _put_back(folder)
    found = _ours(folder)
    if found:
        (folder / EARLIER).mkdir()
    for name in found:
        (folder / name).rename(folder / EARLIER / name)


def _put_back(folder: Path) -> None:
    if not _holds_earlier(folder):
        return
    for name in _ours(folder / EARLIER):
        (folder / EARLIER / name).rename(folder / name)
    (folder / EARLIER).rmdir()


def _holds_earlier(folder: Path) -> bool:
    """Whether a run is set aside in it; a folder of that name may be anybody's, and a link lead anywhere."""
    aside = folder / EARLIER
    return not aside.is_symlink() and any(os.path.lexists(aside / name) for name in (LOG, RUN))


def _ours(folder: Path) -> list[str]:
    """The names of what is there and ours."""
    return [path.name for path in folder.iterdir() if path.name in OURS or path.name.endswith(".new")]


def _clear(folder: Path) -> None:
    for name in _ours(folder):
        entry = folder / name
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
