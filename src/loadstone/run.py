"""The story of one run: settle, reach, plan, load, read, report.

Nothing is started before the configuration is known to be good; the server is asked once before it is
loaded; whatever happens then, a report is written. `rebuild` makes every output from the folder alone.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from loadstone import compose, environment, folder, registry, tokens
from loadstone.account import SOURCE, Setting, account, begun, template_tokens
from loadstone.config import ENGINE, Config, check_goodput, dump_toml
from loadstone.crew import Crew
from loadstone.endpoints import Ask
from loadstone.errors import Exit, LoadstoneError, UsageError
from loadstone.figures import counted
from loadstone.interrupt import Interrupt
from loadstone.load.conduct import Conduct
from loadstone.plan import schedule, seeds
from loadstone.plan.schedule import Phase
from loadstone.plan.turn import Turn
from loadstone.preflight import CONTENT_TOKENS, Preflight, Reached, first_model, preflight, reach
from loadstone.recording import SEGMENT_BYTES
from loadstone.sim.options import from_url
from loadstone.terminal import printable, wants_color
from loadstone.tokens.prompts import Prompts
from loadstone.tui.simple import Progress
from loadstone.wire import url
from loadstone.wire.url import Target

logger = logging.getLogger("loadstone")
PATIENCE_S = 3.0

MODEL_BYTES = 100
"""Of a model's name in that of a folder, which file systems limit to 255 bytes."""


def run(config: Config, command: str) -> Exit:
    """Runs one benchmark and reports it. Raises `UsageError` before anything starts, `TargetError` before the load."""
    setting = settle(config, command)
    try:
        return _run_and_report(setting)
    except FileNotFoundError as error:
        if error.filename is None or not Path(str(error.filename)).is_relative_to(setting.home):
            raise
        raise LoadstoneError(
            f"{error.filename} was removed while the run lasted; what it held is lost."
        ) from None


def _run_and_report(setting: Setting) -> Exit:
    try:
        _run(setting)
    except BaseException:
        if not (setting.home / folder.RUN).exists():
            folder.release(setting.home)  # no request was sent: leave nothing behind
        raise
    return rebuild(setting.home)


def settle(config: Config, command: str) -> Setting:
    """Checks all that can be checked before the load, and claims the run folder.

    Raises `UsageError`; `TargetError` when the server has to name its model and does not.
    """
    if config.slo.goodput:
        from loadstone.metrics import objectives  # numpy and polars: only when they are needed this early

        check_goodput(config, objectives())
    _check_address(config.endpoint.url)
    tokenizer = tokens.load(config.input.tokenizer)
    _ = tokenizer.words
    phases = schedule.phases(config.load)
    started = datetime.now(UTC)
    seed = secrets.randbelow(2**32) if config.input.seed is None else config.input.seed
    named = _named(config.output.folder)
    if named:
        folder.claimable(named, config.output.force)
    if config.endpoint.model is None:
        config = _with_model(config)
    elif config.output.force and not config.endpoint.url.startswith(ENGINE):
        reach(url.parse(config.endpoint.url), config.endpoint)  # or the earlier run is given up for nothing
    home = named or default_folder(config, phases[-1], started)
    folder.claim(home, config.output.force)
    config = msgspec.structs.replace(
        config,
        input=msgspec.structs.replace(config.input, seed=seed),
        output=msgspec.structs.replace(config.output, folder=str(home)),
    )
    return Setting(config, command, secrets.token_hex(4), seed, home, tokenizer, phases, started)


def _named(name: str | None) -> Path | None:
    """The folder that was asked for; `~` means home, which no shell sees behind `--artifact-dir=`."""
    try:
        return Path(name).expanduser() if name else None
    except RuntimeError:
        raise UsageError(f"output.folder = {name!r}: there is no such user; write the path out.") from None


def default_folder(config: Config, phase: Phase, started: datetime) -> Path:
    """`artifacts/<model>-<endpoint>-<load>-<time>`, with nothing in a name that a path could mean."""
    model = re.sub(r"[^\w.-]+", "_", config.endpoint.model or "").strip(".") or "model"
    model = model.encode()[:MODEL_BYTES].decode("utf-8", "ignore")
    load = f"rate{phase.rate:g}" if phase.rate else f"concurrency{phase.slots}"
    return Path("artifacts") / f"{model}-{config.endpoint.type}-{load}-{started:%Y%m%dT%H%M%S.%f}"[:-3]


def rebuild(home: Path) -> Exit:
    """Makes all outputs of a run folder, prints the summary, and tells the exit code.

    Raises `UsageError` when the folder holds no run.
    """
    try:
        log = folder.read_run(home)
    except FileNotFoundError:
        raise UsageError(f"{home} holds no run: it has no {folder.RUN}.") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{home / folder.RUN} is damaged: {error}.") from None
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from loadstone import summary  # numpy and polars are not worth their time before the load has ended
    from loadstone.export import console, write_all
    from loadstone.read import salvage, tables

    if log.end == "aborted" and not log.phases:
        salvage.salvage(home)
    tables.build(home)
    report = write_all(summary.summarise(home), home)
    width = shutil.get_terminal_size((100, 40)).columns
    color = wants_color(sys.stdout, os.environ)
    print(console.render(report, width=width, color=color, folder=home))
    return summary.exit_code(report)


def _run(setting: Setting) -> None:
    """From the first process to `run.json`."""
    config, home = setting.config, setting.home
    with _log(home, config.output.log_level), Crew(home, _workers(config)) as crew:
        progress = Progress(
            sys.stderr,
            config.output.ui or ("simple" if sys.stderr.isatty() else "none"),
            setting.phases[-1].requests,
            config.load.duration_s,
        )
        target = url.parse(crew.engine(config.endpoint) or config.endpoint.url)
        reached = reach(target, config.endpoint)
        (home / folder.CONFIG).write_text(dump_toml(config), encoding="utf-8")
        with _patience(progress, target):
            found = _preflight(setting, reached)
        _say(progress, _opening(setting, target))
        _say(progress, f"run folder {home} · at most about {_disk_mb(config, setting.phases[-1]):,} MB")
        logger.info(
            "preflight %s: status %d in %.1f ms",
            found.log.request_id,
            found.log.http_status,
            found.log.latency_ms,
        )
        job = _compose_job(setting, found)
        complete = compose.beforehand(job)
        logger.info("plan: %s", "complete" if complete else "its beginning; the composer goes on with it")
        crew.brief(config, reached, f"{setting.id}-", _path(config, reached))
        if not complete:
            crew.compose(job)
        folder.write_run(home, begun(setting, reached, found))
        with Interrupt() as interrupt:
            conduct = Conduct(
                crew.fleet, crew.board, home / folder.PLAN, interrupt, crew.trouble, progress.say
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
        folder.write_run(home, account(setting, reached, found, conducted, clock))


def _workers(config: Config) -> int:
    """How many workers: half the cores, no more than there are slots, unless told."""
    if config.load.workers:
        return config.load.workers
    half = max(1, environment.usable_cores() // 2)
    return min(half, config.load.concurrency or (half if config.load.request_rate else 1), 16)


def _check_address(address: str) -> None:
    """Raises `UsageError` when neither a server nor an engine can have this address."""
    if address.startswith(ENGINE):
        from_url(address)
    else:
        url.parse(address)


def _with_model(config: Config) -> Config:
    """The configuration with the model that the server (or the engine that will be started) has."""
    address = config.endpoint.url
    if address.startswith(ENGINE):
        model = from_url(address).model
    else:
        model = first_model(reach(url.parse(address), config.endpoint), config.endpoint)
    return msgspec.structs.replace(config, endpoint=msgspec.structs.replace(config.endpoint, model=model))


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
        ask=_ask(config),
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


def _disk_mb(config: Config, phase: Phase) -> int:
    """An upper estimate of the run's size on disk.

    Bodies twice (plan, inputs.json), some bytes a token and a request in the tables, and of the raw answers two
    segments a worker, unless all are kept.
    """
    requests = phase.requests or round((phase.rate or 200.0) * (config.load.duration_s or 0.0))
    osl = config.input.osl_mean or 256
    raw = requests * (300 * osl + 900)
    if config.output.keep != "all":
        raw = min(raw, 2 * SEGMENT_BYTES * _workers(config))
    table = requests * (20 * osl + 1500)
    return max(1, round((requests * 2 * (7 * config.input.isl_mean + 300) + table + raw) / 1e6))


@contextmanager
def _patience(progress: Progress, target: Target) -> Iterator[None]:
    """Says what is waited for when the first answer takes long; a model may still be loading or compiling."""
    reminder = threading.Timer(
        PATIENCE_S, progress.say, [f"waiting for {target.url} to answer one small request"]
    )
    reminder.start()
    try:
        yield
    finally:
        reminder.cancel()


def _say(progress: Progress, line: str) -> None:
    progress.say(line)
    logger.info("%s", printable(line))  # it may hold the name that a server gave its model


@contextmanager
def _log(home: Path, level: str) -> Iterator[None]:
    """`loadstone.log` in the run folder."""
    handler = logging.FileHandler(home / folder.LOG, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()
