"""The story of one run: settle, reach, plan, load, read, report.

Nothing is started before the configuration is known to be good; the server is asked once before it is
loaded; whatever happens then, a report is written, or it is said how it can be.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal

from loadstone import compose, folder
from loadstone.account import NO_CLOCK, Setting, account, begun, template_tokens
from loadstone.clock import SECOND_NS
from loadstone.config import Config, dump_toml, phase_loads, secrets
from loadstone.crew import Crew
from loadstone.errors import Exit, InterruptedRun, LoadstoneError
from loadstone.figures import counted
from loadstone.folder import HookLog
from loadstone.hooks import Profiler, reset_caches
from loadstone.interrupt import Interrupt, unwinding
from loadstone.load.certain import certain
from loadstone.load.conduct import Conduct, Conducted
from loadstone.load.steady import Steady
from loadstone.machine import Machine
from loadstone.patience import patience
from loadstone.plan.choices import Choice
from loadstone.plan.schedule import Phase
from loadstone.preflight import Found, Server, ask_of, path_of, preflight, reach, small_turn
from loadstone.rebuild import is_full, no_space, rebuild
from loadstone.recording import SEGMENT_BYTES
from loadstone.settle import settle, threshold
from loadstone.sources import source_of
from loadstone.telemetry.watch import Watch
from loadstone.terminal import printable
from loadstone.tui.simple import Progress
from loadstone.watching import measured_rows
from loadstone.wire import url

logger = logging.getLogger("loadstone")
_CHANGED = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError)
"""What somebody who meddles with the folder of a run makes us meet."""
NAMED = 3
"""So many servers are named where all of them are meant."""


def run(config: Config, command: str, *, show: bool = True) -> Exit:
    """Runs one benchmark and reports it, on stdout too with `show`. Raises `UsageError` before anything starts,
    `TargetError` before the load.

    From the load on, a `LoadstoneError` says why there is no report, and how it is made all the same.
    """
    if config.endpoint.virtual:
        from loadstone import virtual  # numpy, polars and the engine: nothing for a run with sockets

        virtual.check(config)
    setting = settle(config, command)
    home = setting.home
    with unwinding():
        folder.claim(home, config.output.force)
        try:
            return _simulate(setting, show) if config.endpoint.virtual else _run(setting, show)
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


def _run(setting: Setting, show: bool) -> Exit:
    """From the first process to the report."""
    config, home = setting.config, setting.home
    first_rows = [phase.first_row for phase in setting.phases]
    with ExitStack() as reported:
        with (
            _log(home, config.output.log_level),
            Crew(home, setting.workers, first_rows) as crew,
            ExitStack() as watching,
        ):
            progress = Progress(sys.stderr, _ui(config), setting.phases)
            servers = [_server(config, address) for address in crew.engines(config.endpoint)]
            (home / folder.CONFIG).write_text(dump_toml(config), encoding="utf-8")
            reached = [server.reached for server in servers]
            watch = watching.enter_context(Watch(home, config, reached, setting.id))
            found = _preflight(setting, servers, progress)
            _announce(setting, found, [server.reached.target.url for server in servers], progress)
            _plan(setting, found, servers, crew)
            asked = reset_caches(reached, config, setting.id, progress.say)
            with Profiler(reached, config, setting.id, setting.phases, progress.say) as profiler:
                if setting.phases[0].kind == "measured":
                    profiler.start()
                interrupt = reported.enter_context(Interrupt())
                folder.write_run(home, begun(setting, reached, found, [*asked, *profiler.logs], watch))
                folder.drop_earlier(home)
                conducted = _conduct(setting, crew, progress, interrupt, profiler, watch)
                watch.end()
                progress.close()
                clock, decoding = crew.finish()
                asked += _profiled(profiler, interrupt)
                watch.close()
            for phase in conducted.phases:
                span_s = (phase.end_ns - phase.start_ns) / 1e9
                logger.info("phase %s: %d requests in %.3f s", phase.name, phase.planned, span_s)
        interrupt.part_with(f"interrupted; `loadstone report {home}` makes the report of what was recorded.")
        log = account(setting, reached, found, conducted, clock, crew.deaths, asked, watch, decoding)
        folder.write_run(home, log)
        return rebuild(home, secrets(config.endpoint), show=show)


def _simulate(setting: Setting, show: bool) -> Exit:
    """The same story on a virtual clock: no server is reached, no process started, and nothing waited for."""
    from loadstone import virtual

    setting = setting._replace(id=virtual.run_id(setting.seed), shortages=())
    config, home = setting.config, setting.home
    with ExitStack() as reported:
        with _log(home, config.output.log_level):
            progress = Progress(sys.stderr, _ui(config), setting.phases)
            servers = virtual.engines(config.endpoint)
            (home / folder.CONFIG).write_text(dump_toml(config), encoding="utf-8")
            turn = small_turn(config.input, setting.tokenizer.words, setting.seed)
            asked = ask_of(config.endpoint)
            found = virtual.ask(servers, config.endpoint, asked, turn, f"preflight-{setting.id}")
            _announce(setting, found, [server.url for server in servers], progress)
            interrupt = reported.enter_context(Interrupt())
            folder.write_run(home, virtual.marked(begun(setting, [], found, [])))
            folder.drop_earlier(home)
            job = _compose_job(setting, found)
            try:
                conducted = virtual.simulate(
                    setting,
                    servers,
                    job,
                    progress,
                    lambda: interrupt.asked,
                    lambda line: _say(progress, line),
                )
            except BaseException as error:
                raise (_cut_off(error, setting) or error) from None
            progress.close()
        interrupt.part_with(f"interrupted; `loadstone report {home}` makes the report of what was simulated.")
        folder.write_run(home, virtual.marked(account(setting, [], found, conducted, NO_CLOCK, [], [])))
        return rebuild(home, secrets(config.endpoint), show=show)


def _cut_off(error: BaseException, setting: Setting) -> LoadstoneError | None:
    """What to tell when a simulation ended before its time, while what came of some requests was in memory alone."""
    home, again = setting.home, f"--random-seed {setting.seed} makes"
    report = f"`loadstone report {home}` makes the report of what was stored"
    if isinstance(error, KeyboardInterrupt):
        return InterruptedRun(f"interrupted; {report}; requests under way are lost, {again} them again.")
    if is_full(error, home):
        return LoadstoneError(
            f"no space left for this run: what came of requests after the last part was stored is lost. {report}, when there"
            f" is space; {again} all of it again."
        )
    return None


def _ui(config: Config) -> Literal["simple", "plain", "none"]:
    return config.output.ui or ("simple" if sys.stderr.isatty() else "plain")


def _server(config: Config, address: str) -> Server:
    """The server at an address, when it can be reached."""
    target = url.parse(address)
    return Server(reach(target, config.endpoint), path_of(config.endpoint, target))


def _preflight(setting: Setting, servers: Sequence[Server], progress: Progress) -> Found:
    """Asks every server and every model once."""
    config = setting.config
    turn = small_turn(config.input, setting.tokenizer.words, setting.seed)
    with patience(
        progress.say,
        f"waiting for {_names([server.reached.target.url for server in servers])} to answer one small request",
    ):
        return preflight(
            servers,
            config.endpoint,
            ask_of(config.endpoint),
            turn,
            f"preflight-{setting.id}",
            strict=config.server.strict,
        )


def _announce(setting: Setting, found: Found, names: Sequence[str], progress: Progress) -> None:
    """Says what is about to happen, and what this machine is short of for it."""
    for line in (
        _opening(setting, names),
        f"run folder {setting.home} · at most about {_disk_mb(setting):,} MB",
    ):
        progress.announce(line)
        logger.info("%s", printable(line))  # it may hold the name that a server gave its model
    for shortage in setting.shortages:
        _say(progress, shortage)
    for log in found.logs:
        logger.info("preflight %s: status %d in %.1f ms", log.request_id, log.http_status, log.latency_ms)


def _plan(setting: Setting, found: Found, servers: Sequence[Server], crew: Crew) -> None:
    """Composes the plan, or its beginning and starts the composer, and tells everybody their jobs."""
    job = _compose_job(setting, found)
    complete = compose.beforehand(job)
    logger.info("plan: %s", "complete" if complete else "its beginning; the composer goes on with it")
    reached, paths = [server.reached for server in servers], [server.path for server in servers]
    rows = measured_rows(setting.phases)
    crew.brief(setting.config, reached, f"{setting.id}-", paths, setting.watched, rows)
    if not complete:
        crew.compose(job)


def _compose_job(setting: Setting, found: Found) -> compose.ComposeJob:
    config, endpoint = setting.config, setting.config.endpoint
    return compose.ComposeJob(
        folder=str(setting.home / folder.PLAN),
        source=source_of(config.input),
        input=config.input,
        endpoint=endpoint.type,
        ask=found.ask,
        seed=setting.seed,
        template_tokens=template_tokens(found.log) or 0,
        phases=setting.phases,
        target_choice=Choice(
            among=len(endpoint.urls), strategy=endpoint.url_strategy, weights=endpoint.url_weights
        ),
        models=endpoint.models,
        model_choice=Choice(
            among=len(endpoint.models), strategy=endpoint.model_strategy, weights=endpoint.model_weights
        ),
    )


def _conduct(
    setting: Setting,
    crew: Crew,
    progress: Progress,
    interrupt: Interrupt,
    profiler: Profiler,
    watch: Watch,
) -> Conducted:
    """The load itself."""

    def begins(phase: Phase) -> None:
        profiler.begins(phase, lambda: interrupt.asked > 0)
        if not phase.seamless:
            watch.look()

    last = [asked for asked in phase_loads(setting.config.load) if asked.kind == "measured"][-1]
    steady = Steady(last.load.stop_when)
    conduct = Conduct(
        crew.fleet,
        crew.board,
        setting.home / folder.PLAN,
        interrupt,
        crew.trouble,
        lambda line: _say(progress, line),
        threshold(setting.config),
        lambda: crew.deaths,
        begins,
        profiler.ended,
        lambda phase, live, elapsed_s: steady.look(live, elapsed_s) if phase.name == last.name else None,
        Machine(lambda: crew.processes),
        lambda live: certain(setting.watched, live.fields),
    )
    conducted = conduct.lead(
        setting.phases,
        setting.seed,
        lambda phase, elapsed_s, waiting: progress.update(crew.board.live(), elapsed_s, phase, waiting),
    )
    return conducted._replace(remarks=tuple(steady.unmet()) if conducted.stop is None else ())


def _profiled(profiler: Profiler, interrupt: Interrupt) -> list[HookLog]:
    """What the profilers were asked, when they have stopped, or the user does not want to wait for them."""
    before = interrupt.asked
    return profiler.close(lambda: interrupt.asked > before)


def _opening(setting: Setting, names: Sequence[str]) -> str:
    """What is about to happen."""
    models = setting.config.endpoint.models
    what = f"model {models[0]}" if len(models) == 1 else f"{len(models)} models: {', '.join(models)}"
    return f"{_names(names)} · {what} · {_bounds(setting.measured)} · seed {setting.seed}"


def _names(names: Sequence[str]) -> str:
    """The servers by their addresses: the first three of them, where there are many."""
    if len(names) == 1:
        return names[0]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(names)} servers: {', '.join(names[:NAMED])}{more}"


def _bounds(phases: Sequence[Phase]) -> str:
    """What ends the measurement, phase by phase."""
    if len(phases) > 1:
        return f"{len(phases)} measured phases: {', '.join(f'{p.name} {_bounds([p])}' for p in phases)}"
    bounds = [
        counted(number, noun)
        for phase in phases
        for number, noun in ((phase.requests, "request"), (phase.sessions, "conversation"))
        if number
    ]
    bounds += [f"{phase.duration_ns / SECOND_NS:g} s" for phase in phases if phase.duration_ns]
    return " or ".join(bounds) or "all of the input"


def _disk_mb(setting: Setting) -> int:
    """An upper estimate of the run's size on disk.

    Bodies in the plan and in inputs.json, some bytes a token and a request in the tables, and of the raw answers two
    segments a worker, unless all are kept. On the virtual clock there are no raw answers, and token times are even.
    """
    config = setting.config
    virtual, copies = config.endpoint.virtual, 1 + config.output.inputs_json
    requests = sum(map(_most_requests, setting.phases))
    osl = config.input.osl_mean or 256
    raw = requests * (300 * osl + 900)
    if config.output.keep != "all":
        raw = min(raw, 2 * SEGMENT_BYTES * setting.workers)
    raw = 0 if virtual else raw
    table = requests * ((8 if virtual else 20) * osl + 1500)
    return max(1, round((requests * copies * (7 * config.input.isl_mean + 300) + table + raw) / 1e6))


def _most_requests(phase: Phase) -> int:
    """How many requests a phase comes to, as far as that can be told; a closed loop is taken to do 200 a second."""
    return phase.requests or round((phase.rate or 200.0) * (phase.duration_ns or 0) / SECOND_NS)


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
