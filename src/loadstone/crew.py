"""The processes of a run: started early, briefed when all is known, watched, ended in order, never left behind."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from loadstone import folder
from loadstone.board import Board, Field
from loadstone.child import CLOSE_S, STOPPED_S, Child, Silence
from loadstone.compose import ComposeJob, ComposerOrder
from loadstone.config import ENGINE, Config, EndpointConfig, secrets
from loadstone.errors import LoadstoneError, TargetError
from loadstone.folder import ClockLog, DeathLog, DecodingLog
from loadstone.load.fleet import Fleet
from loadstone.load.job import Job, TargetJob
from loadstone.plan.store import BODIES
from loadstone.preflight import Reached
from loadstone.read import job as decoding
from loadstone.sim.options import SimOptions, from_url
from loadstone.slo import Watched
from loadstone.wire import request

logger = logging.getLogger("loadstone")
WORKERS_A_DECODER = 4
ENGINE_S = 60.0
"""The built-in engine listens by then, imports included, or never."""
IDLE_S = 30.0
"""A decoder that has neither decoded anything nor used the processor for so long at the end is killed."""
FRUITLESS_S = 300.0
"""So is one that uses the processor for so long and decodes nothing."""
POLL_S = 0.1
MOST_REPLACEMENTS = 3
"""For one decoder: what kills so many would kill them all."""
NAMES = {"loadstone.sim.server": "the built-in engine", "loadstone.compose": "the composer"}
PORTABLE = "LOADSTONE_PORTABLE"
"""Set to 1: no epoll, no timerfd, no kernel stamps, as on systems that lack them."""


class Crew:
    """Workers, decoders and whatever else a run needs, in one context that ends them all.

    Workers and decoders begin to import while main still plans. `first_rows` has the number of every phase's first row.
    """

    def __init__(self, home: Path, workers: int, first_rows: Sequence[int]) -> None:
        self._home = home
        log = home / folder.LOG
        for name in (folder.PLAN, folder.RECORDING, folder.PARTS):
            (home / name).mkdir()
        (home / folder.PLAN / BODIES).touch()
        decoders = -(-workers // WORKERS_A_DECODER)
        self._board_path = home / folder.RECORDING / folder.BOARD
        self.board = Board(self._board_path, workers + decoders, create=True)
        self.fleet = Fleet(workers, home / folder.PLAN, first_rows, log, self.board)
        self._decoders = [self._decoder() for _ in range(decoders)]
        self._decoder_jobs: list[decoding.Job] = []
        self._others: list[Child] = []
        self._deaths: dict[int, DeathLog] = {}
        """By the process id."""
        self._stopped = Silence()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.fleet.kill()
            for child in (*self._decoders, *self._others):
                child.kill()
        until = time.monotonic() + CLOSE_S
        for child in self._decoders:
            child.close(until - time.monotonic())
        for child in self._others:
            if self._close(child, until) and kind is None:
                self._died(NAMES[child.module], child)
        self.board.close()
        self._board_path.unlink(missing_ok=True)
        recording = self._board_path.parent
        if not recording.exists():
            if kind is None:
                raise LoadstoneError(f"{recording} was removed while the run lasted; what it held is lost.")
        elif not any(recording.iterdir()):
            recording.rmdir()

    def _close(self, child: Child, until: float) -> int:
        """The exit status of one that has nothing more to do, by that monotonic time; a stopped one never comes to it."""
        child.dismiss()
        while not child.ended and time.monotonic() < until:
            child.hear_line(POLL_S)
            self._end_stopped()
        return child.close(until - time.monotonic())

    def engines(self, endpoint: EndpointConfig) -> list[str]:
        """An address for every server, in their order; where one means the built-in engine, it is started.

        Waits for each for `ENGINE_S` at most. Raises `TargetError`, `UsageError`.
        """
        wanted = {url: from_url(url) for url in endpoint.urls if url.startswith(ENGINE)}
        model = ",".join(endpoint.models)
        return [self._engine(wanted[url], model) if url in wanted else url for url in endpoint.urls]

    def _engine(self, options: SimOptions, model: str) -> str:
        """Starts a built-in engine with the model asked for, if there is one; its own address."""
        options = msgspec.structs.replace(options, model=model or options.model)
        child = self._start("loadstone.sim.server", options)
        line = child.hear_line(ENGINE_S)
        if line is None:
            raise TargetError(f"the built-in engine did not start; see {self._home / folder.LOG}.")
        return f"{options.host}:{msgspec.json.decode(line)['port']}"

    def compose(self, job: ComposeJob) -> None:
        """Starts the composer, which goes on with the plan while the load runs."""
        self._start(
            "loadstone.compose",
            ComposerOrder(
                job=job,
                board=str(self._board_path),
                blocks=self.board.blocks,
                workers=self.fleet.workers,
            ),
        )

    def _start(self, module: str, order: object) -> Child:
        child = Child(module, self._home / folder.LOG)
        self._others.append(child)
        child.tell(order)
        return child

    def brief(
        self,
        config: Config,
        reached: Sequence[Reached],
        id_prefix: str,
        paths: Sequence[str],
        watched: Sequence[Watched] = (),
        measured: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Tells decoders and workers their jobs, and waits until every worker is ready.

        `paths` has the path of the requests to each of the servers; `watched` are objectives for decoders to count by, of
        the requests with the numbers `measured`.
        """
        self._decoder_jobs = [
            msgspec.structs.replace(
                self._decoder_job(config, id_prefix, index), watched=list(watched), measured=list(measured)
            )
            for index in range(len(self._decoders))
        ]
        for decoder, job in zip(self._decoders, self._decoder_jobs, strict=True):
            decoder.tell(job)
        targets = [
            _target(config.endpoint, server, path) for server, path in zip(reached, paths, strict=True)
        ]
        self.fleet.brief(self._job(config, targets, id_prefix))

    def _decoder(self) -> Child:
        quiet = {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
        return Child("loadstone.read.follow", self._home / folder.LOG, env=quiet)

    def _decoder_job(self, config: Config, id_prefix: str, index: int) -> decoding.Job:
        return decoding.Job(
            folder=str(self._home),
            decoder=index,
            workers=list(range(index, self.fleet.workers, len(self._decoders))),
            endpoint=config.endpoint.type,
            streaming=config.endpoint.streaming,
            tokenizer=config.input.tokenizer,
            keep=config.output.keep,
            check_tokens=config.output.check_tokens,
            max_response_bytes=config.endpoint.max_response_bytes,
            id_prefix=id_prefix,
            secrets=secrets(config.endpoint),
            board=str(self._board_path),
            blocks=self.board.blocks,
            block=self.fleet.workers + index,
        )

    def _job(self, config: Config, targets: list[TargetJob], id_prefix: str) -> Job:
        endpoint = config.endpoint
        return Job(
            worker=0,
            workers=self.fleet.workers,
            folder=str(self._home),
            board=str(self._board_path),
            blocks=self.board.blocks,
            targets=targets,
            id_prefix=id_prefix,
            session_headers=list(endpoint.session_headers),
            session_end_header=endpoint.session_end_header,
            reuse=endpoint.connection_reuse,
            endpoint=endpoint.type,
            streaming=endpoint.streaming,
            connect_timeout_ns=round(endpoint.connect_timeout_s * 1e9),
            first_token_timeout_ns=round(endpoint.first_token_timeout_s * 1e9),
            idle_timeout_ns=round(endpoint.idle_timeout_s * 1e9),
            timeout_ns=round(endpoint.timeout_s * 1e9),
            max_response_bytes=endpoint.max_response_bytes,
            portable=os.environ.get(PORTABLE) == "1",
        )

    def trouble(self) -> str | None:
        """Why the load cannot go on: a process it depends on has died. To be asked a few times a second.

        A dead decoder is replaced: what it had not read is still in the recording, and the share of failures that
        gives a run up is known from decoders alone. Workers are the fleet's own business.
        """
        self._end_stopped()
        for index, decoder in enumerate(self._decoders):
            if decoder.exited():
                self._died(f"decoder {index}", decoder)
                self._replace(index)
        dead = [child for child in self._others if child.failed()]
        for child in dead:
            self._died(NAMES[child.module], child)
        return f"{NAMES[dead[0].module]} died ({dead[0].death()}); see {folder.LOG}" if dead else None

    @property
    def deaths(self) -> list[DeathLog]:
        """Every process that ended before its time."""
        return [*self.fleet.deaths.values(), *self._deaths.values()]

    @property
    def processes(self) -> dict[str, int]:
        """The ids of this run's processes that use the cores beside its servers, and of the built-in engine, by name."""
        children = {f"decoder {index}": decoder for index, decoder in enumerate(self._decoders)}
        others = [(NAMES[child.module], child.pid) for child in self._others]
        return {
            "main": os.getpid(),
            **self.fleet.pids,
            **{name: child.pid for name, child in children.items()},
            **{f"{name} {number}": pid for number, (name, pid) in enumerate(others)},
        }

    def _replace(self, index: int) -> None:
        """Puts another decoder in the place of a dead one, unless too many have died already."""
        deaths = sum(death.process == f"decoder {index}" for death in self._deaths.values())
        if deaths > MOST_REPLACEMENTS:
            return
        self._decoders[index].close(CLOSE_S)
        self._decoders[index] = self._decoder()
        self._decoders[index].tell(self._decoder_jobs[index])

    def _died(self, name: str, child: Child) -> None:
        if child.pid not in self._deaths:
            fault = child.death()
            self._deaths[child.pid] = DeathLog(process=name, fault=fault, noticed_ns=time.monotonic_ns())
            logger.error("%s (pid %d) died: %s", name, child.pid, fault)

    def _end_stopped(self) -> None:
        """Kills what was stopped. One that only starves, as a decoder at nice 19 may, is left alone."""
        children = (*self._decoders, *self._others)
        now = time.monotonic_ns()
        moving = {index: 0 if child.stopped() else now for index, child in enumerate(children)}
        for index, stopped_s in self._stopped.look(moving, now).items():
            if stopped_s >= STOPPED_S:
                children[index].kill(f"stopped for {STOPPED_S:g} s, then killed")

    def finish(self) -> tuple[ClockLog, DecodingLog]:
        """Ends workers, then decoders, once each has written what it holds; what their clocks did, how far they were behind.

        Decoders get as long as they get on with it; see `IDLE_S` and `FRUITLESS_S`.
        """
        live, begun_ns = self.board.live().fields, time.monotonic_ns()
        self.fleet.quit()
        for decoder in self._decoders:
            decoder.tell(decoding.Finish())
        drained = [word for index in range(len(self._decoders)) if (word := self._last_word(index))]
        clock = ClockLog(
            kernel_stamps=self.fleet.kernel_stamps and all(word.kernel_stamps for word in drained),
            steps=max((word.clock_steps for word in drained), default=0),
        )
        behind = max(0, live[Field.ENDED] - live[Field.DECODED])
        return clock, DecodingLog(behind=behind, took_ns=time.monotonic_ns() - begun_ns)

    def _last_word(self, index: int) -> decoding.Done | None:
        """What a decoder says when it is done; None, and its death is noted, when it does not come to that."""
        decoder = self._decoders[index]
        idle, fruitless = Silence(), Silence()
        while (line := decoder.hear_line(POLL_S)) is None and not decoder.ended:
            now = time.monotonic_ns()
            decoded = self._decoded(index)
            if idle.look({0: (decoded, decoder.cpu_s())}, now)[0] >= IDLE_S:
                decoder.kill(f"did nothing for {IDLE_S:g} s, then killed")
            if fruitless.look({0: decoded}, now)[0] >= FRUITLESS_S:
                decoder.kill(f"decoded nothing for {FRUITLESS_S:g} s, then killed")
            self._end_stopped()
        if line is None:
            self._died(f"decoder {index}", decoder)
            return None
        return msgspec.json.decode(line, type=decoding.Done)

    def _decoded(self, index: int) -> int:
        with self.board.block(self.fleet.workers + index) as block:
            return int(block[Field.DECODED])


def _target(endpoint: EndpointConfig, reached: Reached, path: str) -> TargetJob:
    """What workers have to know of one server."""
    head = request.head(
        reached.target,
        path,
        streaming=endpoint.streaming,
        api_key=endpoint.api_key,
        headers=endpoint.headers,
        proxy=reached.proxy,
        closes=endpoint.connection_reuse == "never",
    )
    return TargetJob(
        head=head,
        family=reached.family,
        address=reached.address,
        authority=reached.target.authority,
        tls=reached.tls,
        tunnel=reached.tunnel,
    )
