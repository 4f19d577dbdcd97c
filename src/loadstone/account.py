"""The account of a run: `run.json`, all that the run itself knew and its tables do not hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from loadstone import __version__, ceiling, environment, folder, hooks, sources
from loadstone.config import Config, masked
from loadstone.folder import ClockLog, DatasetLog, DeathLog, DecodingLog, HookLog, PreflightLog, RunLog
from loadstone.load.conduct import Conducted
from loadstone.load.reach import Reached
from loadstone.plan.schedule import Phase
from loadstone.plan.store import Survey, survey
from loadstone.preflight import Found
from loadstone.roofline.case import Case
from loadstone.slo import Watched
from loadstone.telemetry.watch import Watch
from loadstone.tokens import Tokenizer

NOT_BEGUN = Conducted([], [], None, 0, None)
NO_CLOCK = ClockLog(kernel_stamps=False, steps=0)
_END: Mapping[str, Literal["complete", "interrupted"]] = {
    "user": "interrupted",
    "steady": "complete",
    "slo": "complete",
}
"""By what stopped the load; anything else aborted it."""


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
    distinct: int | None = None
    """Conversations of the data that differ; None: all do."""
    remarks: tuple[str, ...] = ()
    """What was decided for the user, one sentence each."""
    case: Case | None = None
    """What the servers run, where that is known."""
    watched: tuple[Watched, ...] = ()
    """The objectives that end the load once they are missed for certain."""

    @property
    def measured(self) -> list[Phase]:
        """The phases whose requests are reported."""
        return [phase for phase in self.phases if phase.kind == "measured"]


def template_tokens(log: PreflightLog) -> int | None:
    """By how much the server counts more than the prompt's own tokens; None when it does not count."""
    return None if log.prompt_tokens is None else max(0, log.prompt_tokens - log.content_tokens)


def begun(
    setting: Setting,
    servers: Sequence[Reached],
    found: Found,
    asked: Sequence[HookLog],
    watch: Watch | None = None,
) -> RunLog:
    """The account as it stands before the first request; should main die, this is what is left."""
    log = account(setting, servers, found, NOT_BEGUN, NO_CLOCK, [], asked, watch)
    log.end = "aborted"
    return log


def account(
    setting: Setting,
    servers: Sequence[Reached],
    found: Found,
    conducted: Conducted,
    clock: ClockLog,
    deaths: list[DeathLog],
    asked: Sequence[HookLog],
    watch: Watch | None = None,
    decoding: DecodingLog | None = None,
) -> RunLog:
    """The account of a run that has ended. `asked` is what the servers were asked beside the load, `watch` has read their
    pages.
    """
    stop = conducted.stop
    measured = [phase for phase in conducted.phases if phase.kind == "measured"]
    stretches = [(phase.first_row, phase.planned) for phase in measured]
    surveyed = survey(setting.home / folder.PLAN, stretches, setting.distinct)
    notices = [
        *_notices(setting, found, conducted, surveyed),
        *hooks.notices(asked, len(servers)),
        *(watch.notices() if watch and conducted.phases else ()),
    ]
    return RunLog(
        id=setting.id,
        command=setting.command,
        loadstone_version=__version__,
        started=setting.started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        end=_END.get(stop.by, "aborted") if stop else "complete",
        seed=setting.seed,
        config=masked(setting.config),
        phases=conducted.phases,
        workers=conducted.workers,
        clock=clock,
        dataset=_dataset(setting, surveyed),
        preflight=found.log,
        preflights=found.logs,
        hooks=list(asked),
        server_local=any(map(_is_local, servers)),
        host_busy_share=conducted.busy_share,
        environment={**_host(setting), **_described(found), **_case(setting)},
        notices=notices,
        stopped_by=stop.by if stop else None,
        stopped_why=stop.why if stop else None,
        deaths=deaths,
        machine=conducted.machine,
        decoding=decoding,
        scrapes=watch.logs if watch else [],
        scrape_fault=watch.fault if watch else None,
    )


def _host(setting: Setting) -> dict[str, Any]:
    """Facts of this machine, and what its client can do, where that was measured (`loadstone calibrate`)."""
    host = environment.host()
    found = None if setting.config.endpoint.virtual else ceiling.kept(host)
    return host if found is None else {**host, "ceiling": msgspec.to_builtins(found)}


def _under_way(phase: Phase) -> bool:
    """Whether conversations have begun before the load does."""
    return phase.pattern == "users" and (phase.users or 1) > 1 and not phase.one_turn


def _is_local(server: Reached) -> bool:
    return server.proxy is None and environment.is_local(str(server.address[0]))


def _described(found: Found) -> dict[str, Any]:
    """How the first server describes itself, and, where there are several, how all do."""
    first, *others = found.described
    return {"server": first, "servers": [first, *others]} if others else {"server": first}


def _case(setting: Setting) -> dict[str, Any]:
    """What the percentages of the roofline are of."""
    return {} if setting.case is None else {"roofline": msgspec.to_builtins(setting.case)}


def _dataset(setting: Setting, surveyed: Survey) -> DatasetLog:
    return DatasetLog(
        source=sources.source_of(setting.config.input),
        tokenizer=setting.tokenizer.name,
        lengths_exact=setting.tokenizer.exact,
        unique_prompts=surveyed.one_token_prompts == 0 and surveyed.repeated == 0,
        reused=surveyed.repeated,
        digest=surveyed.digest,
    )


def _notices(setting: Setting, found: Found, conducted: Conducted, surveyed: Survey) -> Iterator[str]:
    """What a reader has to know that the tables do not hold."""
    if conducted.phases and not any(phase.kind == "measured" for phase in conducted.phases):
        yield "The run ended in its warm-up; nothing was measured."
    yield from found.notices
    yield from setting.remarks
    yield from setting.shortages
    yield from conducted.remarks
    if any(map(_under_way, setting.measured)):
        yield (
            "Users are found in the middle of their conversations, as if the load had always been on: the turns before"
            " that are in their prompts, but were not sent."
        )
    if setting.tokenizer.flaw:
        yield f"Prompt lengths are approximate: {setting.tokenizer.flaw}"
    if setting.config.input.isl_includes_template and template_tokens(found.log) is None:
        yield "The chat template's length is unknown (the server reports no usage), so nothing was taken off."
    if surveyed.one_token_prompts:
        yield f"{surveyed.one_token_prompts} prompts of one token cannot be unique; the server may have cached them."
    if conducted.starved:
        yield f"Prompts were not composed in time {conducted.starved} times; the load was lower than asked."
