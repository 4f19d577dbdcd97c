"""The account of a run: `run.json`, all that the run itself knew and its tables do not hold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from loadstone import __version__, environment, folder
from loadstone.config import Config, masked
from loadstone.folder import ClockLog, DatasetLog, DeathLog, PreflightLog, RunLog
from loadstone.load.conduct import Conducted
from loadstone.plan.schedule import Phase
from loadstone.plan.store import Survey, survey
from loadstone.preflight import Preflight, Reached
from loadstone.tokens import Tokenizer

SOURCE = "synthetic"
NOT_BEGUN = Conducted([], [], None, 0, None)
NO_CLOCK = ClockLog(kernel_stamps=False, steps=0)


class Setting(NamedTuple):
    """A run that is known to be good and has not begun. `config` is resolved: seed, model and folder are in it.

    `shortages` says what this machine has too little of for the load, one sentence each.
    """

    config: Config
    command: str
    id: str
    seed: int
    home: Path
    tokenizer: Tokenizer
    phases: list[Phase]
    started: datetime
    workers: int
    shortages: tuple[str, ...] = ()


def template_tokens(log: PreflightLog) -> int | None:
    """By how much the server counts more than the prompt's own tokens; None when it does not count."""
    return None if log.prompt_tokens is None else max(0, log.prompt_tokens - log.content_tokens)


def begun(setting: Setting, reached: Reached, found: Preflight) -> RunLog:
    """The account as it stands before the first request; should main die, this is what is left."""
    log = account(setting, reached, found, NOT_BEGUN, NO_CLOCK, [])
    log.end = "aborted"
    return log


def account(
    setting: Setting,
    reached: Reached,
    found: Preflight,
    conducted: Conducted,
    clock: ClockLog,
    deaths: list[DeathLog],
) -> RunLog:
    """The account of a run that has ended."""
    stop = conducted.stop
    measured = conducted.phases[-1] if conducted.phases else None
    planned = measured.planned if measured else 0
    surveyed = survey(setting.home / folder.PLAN, measured.first_row if measured else 0, planned)
    return RunLog(
        id=setting.id,
        command=setting.command,
        loadstone_version=__version__,
        started=setting.started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        end="complete" if stop is None else "interrupted" if stop.by == "user" else "aborted",
        seed=setting.seed,
        config=masked(setting.config),
        phases=conducted.phases,
        workers=conducted.workers,
        clock=clock,
        dataset=_dataset(setting, planned, surveyed),
        preflight=found.log,
        server_local=reached.proxy is None and environment.is_local(str(reached.address[0])),
        host_busy_share=conducted.busy_share,
        environment={**environment.host(), "server": found.server},
        notices=list(_notices(setting, found, conducted, surveyed)),
        stopped_by=stop.by if stop else None,
        stopped_why=stop.why if stop else None,
        deaths=deaths,
    )


def _dataset(setting: Setting, planned: int, surveyed: Survey) -> DatasetLog:
    entries = setting.config.input.entries
    return DatasetLog(
        source=SOURCE,
        tokenizer=setting.tokenizer.name,
        lengths_exact=setting.tokenizer.exact,
        unique_prompts=surveyed.one_token_prompts == 0 and (entries is None or planned <= entries),
        reused=max(0, planned - entries) if entries else 0,
        digest=surveyed.digest,
    )


def _notices(setting: Setting, found: Preflight, conducted: Conducted, surveyed: Survey) -> Iterator[str]:
    """What a reader has to know that the tables do not hold."""
    if conducted.phases and conducted.phases[-1].name == "warmup":
        yield "The run ended in its warm-up; nothing was measured."
    yield from found.notices
    yield from setting.shortages
    if setting.tokenizer.flaw:
        yield f"Prompt lengths are approximate: {setting.tokenizer.flaw}"
    if setting.config.input.isl_includes_template and template_tokens(found.log) is None:
        yield "The chat template's length is unknown (the server reports no usage), so nothing was taken off."
    if surveyed.one_token_prompts:
        yield f"{surveyed.one_token_prompts} prompts of one token cannot be unique; the server may have cached them."
    if conducted.starved:
        yield f"Prompts were not composed in time {conducted.starved} times; the load was lower than asked."
