"""The story of one run: settle, reach, plan, load, read, report.

Nothing is started before the configuration is known to be good; the server is asked once before it is
loaded; whatever happens then, a report is written, or it is said how it can be.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from loadstone import compose, folder, registry
from loadstone.account import SOURCE, Setting, account, begun, template_tokens
from loadstone.config import Config, dump_toml, secrets
from loadstone.crew import Crew
from loadstone.endpoints import Ask
from loadstone.errors import Exit, InterruptedRun, LoadstoneError
from loadstone.figures import counted
from loadstone.interrupt import Interrupt, unwinding
from loadstone.load.conduct import Conduct
from loadstone.patience import patience
from loadstone.plan import seeds
from loadstone.plan.turn import Turn
from loadstone.preflight import CONTENT_TOKENS, Preflight, Reached, preflight, reach
from loadstone.rebuild import is_full, no_space, rebuild
from loadstone.recording import SEGMENT_BYTES
from loadstone.settle import settle, threshold
from loadstone.terminal import printable
from loadstone.tokens.prompts import Prompts
from loadstone.tui.simple import Progress
from loadstone.wire import url
from loadstone.wire.url import Target

logger = logging.getLogger("loadstone")
_CHANGED = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError)
"""What somebody who meddles with the folder of a run makes us meet."""


def run(config: Config, command: str) -> Exit:
    """Runs one benchmark and reports it. Raises `UsageError` before anything starts, `TargetError` before the load.

    From the load on, a `LoadstoneError` says why there is no report, and how it is made all the same.
    """
    setting = settle(config, command)
    home = setting.home
    with unwinding():
        folder.claim(home, config.output.force)
        try:
            return _run(setting)
        except BaseException as error:
            sent = (home / folder.RUN).exists()
            if not sent:
                folder.release(home)  # leave nothing behind
            raise (_explained(error, home, sent) or error) from None


def _explained(error: BaseException, home: Path, sent: bool) -> LoadstoneError | None:
    """What to tell instead of an error that came from outside; None: it is another one.

    `sent`: there may be requests to report.
    """
    if isinstance(error, LoadstoneError):
        return error
    if isinstance(error, _CHANGED) and Path(str(error.filename)).is_relative_to(home):
        return LoadstoneError(
            f"{error.filename} was removed or replaced while the run lasted ({error.strerror}); what it held is lost."
        )
    if sent and isinstance(error, KeyboardInterrupt):
        return InterruptedRun(
            f"interrupted; `loadstone report {home}` makes the report of what was recorded."
        )
    return no_space(home) if sent and is_full(error, home) else None


def _run(setting: Setting) -> Exit:
    """From the first process to the report."""
    config, home = setting.config, setting.home
    with ExitStack() as reported:
        with _log(home, config.output.log_level), Crew(home, setting.workers) as crew:
            progress = _progress(setting)
            target = url.parse(crew.engine(config.endpoint) or config.endpoint.url)
            reached = reach(target, config.endpoint)
            (home / folder.CONFIG).write_text(dump_toml(config), encoding="utf-8")
            with patience(progress.say, f"waiting for {target.url} to answer one small request"):
                found = _preflight(setting, reached)
            _announce(setting, found, target, progress)
            _plan(setting, found, reached, crew)
            interrupt = reported.enter_context(Interrupt())
            folder.write_run(home, begun(setting, reached, found))
            conduct = Conduct(
                crew.fleet,
                crew.board,
                home / folder.PLAN,
                interrupt,
                crew.trouble,
                lambda line: _say(progress, line),
                threshold(config),
                lambda: crew.deaths,
            )
            conducted = conduct.lead(
                setting.phases,
                lambda phase, elapsed_s: progress.update(crew.board.live(), elapsed_s, phase),
            )
            progress.close()
            clock = crew.finish()
            for phase in conducted.phases:
                span_s = (phase.end_ns - phase.start_ns) / 1e9
                logger.info("phase %s: %d requests in %.3f s", phase.name, phase.planned, span_s)
        interrupt.part_with(f"interrupted; `loadstone report {home}` makes the report of what was recorded.")
        folder.write_run(home, account(setting, reached, found, conducted, clock, crew.deaths))
        return rebuild(home, secrets(config.endpoint))


def _progress(setting: Setting) -> Progress:
    return Progress(
        sys.stderr,
        setting.config.output.ui or ("simple" if sys.stderr.isatty() else "plain"),
        setting.phases[-1].requests,
        setting.config.load.duration_s,
    )


def _announce(setting: Setting, found: Preflight, target: Target, progress: Progress) -> None:
    """Says what is about to happen, and what this machine is short of for it."""
    for line in (
        _opening(setting, target),
        f"run folder {setting.home} · at most about {_disk_mb(setting):,} MB",
    ):
        progress.announce(line)
        logger.info("%s", printable(line))  # it may hold the name that a server gave its model
    for shortage in setting.shortages:
        _say(progress, shortage)
    logger.info(
        "preflight %s: status %d in %.1f ms",
        found.log.request_id,
        found.log.http_status,
        found.log.latency_ms,
    )


def _plan(setting: Setting, found: Preflight, reached: Reached, crew: Crew) -> None:
    """Composes the plan, or its beginning and starts the composer, and tells everybody their jobs."""
    job = _compose_job(setting, found)
    complete = compose.beforehand(job)
    logger.info("plan: %s", "complete" if complete else "its beginning; the composer goes on with it")
    crew.brief(setting.config, reached, f"{setting.id}-", _path(setting.config, reached))
    if not complete:
        crew.compose(job)


def _ask(config: Config) -> Ask:
    endpoint = config.endpoint
    return Ask(
        model=endpoint.model or "",
        streaming=endpoint.streaming,
        extra=endpoint.extra_inputs,
        legacy_max_tokens=endpoint.legacy_max_tokens,
        usage_per_chunk=endpoint.usage_per_chunk,
    )


def _path(config: Config, reached: Reached) -> str:
    own = registry.load("endpoints", config.endpoint.type).PATH
    return reached.target.path(own if config.endpoint.path is None else config.endpoint.path)


def _preflight(setting: Setting, reached: Reached) -> Preflight:
    config = setting.config
    prompts = Prompts(setting.tokenizer.words, seeds.derive(setting.seed, "preflight"))
    turn = Turn(
        text=None if config.input.token_ids else prompts.text(0, CONTENT_TOKENS),
        token_ids=prompts.ids(0, CONTENT_TOKENS) if config.input.token_ids else None,
        max_tokens=1,
        isl_tokens=CONTENT_TOKENS,
    )
    request_id = f"preflight-{setting.id}"
    return preflight(reached, config.endpoint, _ask(config), _path(config, reached), turn, request_id)


def _compose_job(setting: Setting, found: Preflight) -> compose.ComposeJob:
    config = setting.config
    return compose.ComposeJob(
        folder=str(setting.home / folder.PLAN),
        source=SOURCE,
        input=config.input,
        endpoint=config.endpoint.type,
        ask=found.ask,
        seed=setting.seed,
        template_tokens=template_tokens(found.log) or 0,
        phases=setting.phases,
    )


def _opening(setting: Setting, target: Target) -> str:
    """What is about to happen."""
    config, phase = setting.config, setting.phases[-1]
    bounds = [counted(phase.requests, "request")] if phase.requests else []
    bounds += [f"{config.load.duration_s:g} s"] if config.load.duration_s else []
    return f"{target.url} · model {config.endpoint.model} · {' or '.join(bounds)} · seed {setting.seed}"


def _disk_mb(setting: Setting) -> int:
    """An upper estimate of the run's size on disk.

    Bodies twice (plan, inputs.json), some bytes a token and a request in the tables, and of the raw answers two
    segments a worker, unless all are kept.
    """
    config, phase = setting.config, setting.phases[-1]
    requests = phase.requests or round((phase.rate or 200.0) * (config.load.duration_s or 0.0))
    osl = config.input.osl_mean or 256
    raw = requests * (300 * osl + 900)
    if config.output.keep != "all":
        raw = min(raw, 2 * SEGMENT_BYTES * setting.workers)
    table = requests * (20 * osl + 1500)
    return max(1, round((requests * 2 * (7 * config.input.isl_mean + 300) + table + raw) / 1e6))


def _say(progress: Progress, line: str) -> None:
    progress.say(line)
    logger.info("%s", printable(line))


@contextmanager
def _log(home: Path, level: str) -> Iterator[None]:
    """`loadstone.log` in the run folder. That a disk is full is not the log's to say."""
    handler = _Log(home / folder.LOG, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.removeHandler(handler)
        with suppress(OSError):
            handler.close()


class _Log(logging.FileHandler):
    """A log whose own failures go unsaid: logging would print a trace."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Lets go of the record."""
