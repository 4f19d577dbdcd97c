"""The processes of a run: started early, briefed when all is known, ended in order, and never left behind."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import msgspec

from loadstone import folder
from loadstone.board import Board
from loadstone.child import Child
from loadstone.compose import ComposeJob, ComposerOrder
from loadstone.config import ENGINE, Config, EndpointConfig, secrets
from loadstone.errors import LoadstoneError, TargetError
from loadstone.folder import ClockLog
from loadstone.load.fleet import Fleet
from loadstone.load.job import Job, TlsJob
from loadstone.plan.store import BODIES, ROWS
from loadstone.preflight import Reached
from loadstone.read import job as decoding
from loadstone.sim.options import from_url
from loadstone.wire import request

WORKERS_A_DECODER = 4
PORTABLE = "LOADSTONE_PORTABLE"
"""Set to 1: no epoll, no timerfd, no kernel stamps, as on systems that lack them."""


class Crew:
    """Workers, decoders and whatever else a run needs, in one context that ends them all.

    Workers and decoders begin to import while main still plans.
    """

    def __init__(self, home: Path, workers: int) -> None:
        self._home = home
        log = home / folder.LOG
        for name in (folder.PLAN, folder.RECORDING, folder.PARTS):
            (home / name).mkdir()
        (home / folder.PLAN / BODIES).touch()
        decoders = -(-workers // WORKERS_A_DECODER)
        self._board_path = home / folder.RECORDING / folder.BOARD
        self.board = Board(self._board_path, workers + decoders, create=True)
        self.fleet = Fleet(workers, home / folder.PLAN / ROWS, log)
        quiet = {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
        self._decoders = [Child("loadstone.read.follow", log, env=quiet) for _ in range(decoders)]
        self._others: list[Child] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.fleet.kill()
            for decoder in self._decoders:
                decoder.kill()
        for child in (*self._decoders, *self._others):
            child.close()
        self.board.close()
        self._board_path.unlink(missing_ok=True)
        recording = self._board_path.parent
        if not recording.exists():
            if kind is None:
                raise LoadstoneError(f"{recording} was removed while the run lasted; what it held is lost.")
        elif not any(recording.iterdir()):
            recording.rmdir()

    def engine(self, endpoint: EndpointConfig) -> str | None:
        """Starts the built-in engine, with the model asked for, when the address means it; its own address.

        Raises `TargetError`, `UsageError`.
        """
        if not endpoint.url.startswith(ENGINE):
            return None
        options = from_url(endpoint.url)
        options = msgspec.structs.replace(options, model=endpoint.model or options.model)
        child = self._start("loadstone.sim.server", options)
        line = child.hear_line()
        if line is None:
            raise TargetError(f"the built-in engine did not start; see {self._home / folder.LOG}.")
        return f"{options.host}:{msgspec.json.decode(line)['port']}"

    def compose(self, job: ComposeJob) -> None:
        """Starts the composer, which goes on with the plan while the load runs."""
        self._start(
            "loadstone.compose", ComposerOrder(job=job, board=str(self._board_path), blocks=self.board.blocks)
        )

    def _start(self, module: str, order: object) -> Child:
        child = Child(module, self._home / folder.LOG)
        self._others.append(child)
        child.tell(order)
        return child

    def brief(self, config: Config, reached: Reached, id_prefix: str, path: str) -> None:
        """Tells decoders and workers their jobs, and waits until every worker is ready."""
        for index, decoder in enumerate(self._decoders):
            decoder.tell(self._decoder_job(config, id_prefix, index))
        self.fleet.brief(self._job(config, reached, id_prefix, path))

    def _decoder_job(self, config: Config, id_prefix: str, index: int) -> decoding.Job:
        return decoding.Job(
            folder=str(self._home),
            decoder=index,
            workers=list(range(index, self.fleet.workers, len(self._decoders))),
            endpoint=config.endpoint.type,
            streaming=config.endpoint.streaming,
            tokenizer=config.input.tokenizer,
            keep=config.output.keep,
            id_prefix=id_prefix,
            secrets=secrets(config.endpoint),
            board=str(self._board_path),
            blocks=self.board.blocks,
            block=self.fleet.workers + index,
        )

    def _job(self, config: Config, reached: Reached, id_prefix: str, path: str) -> Job:
        endpoint, target = config.endpoint, reached.target
        head = request.head(
            target, path, streaming=endpoint.streaming, api_key=endpoint.api_key, headers=endpoint.headers
        )
        return Job(
            worker=0,
            workers=self.fleet.workers,
            folder=str(self._home),
            board=str(self._board_path),
            blocks=self.board.blocks,
            rows_fd=self.fleet.rows_fd,
            head=head,
            id_prefix=id_prefix,
            family=reached.family,
            address=reached.address,
            authority=target.authority,
            tls=_tls(endpoint, target.host) if target.tls else None,
            tunnel=b"",
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
        """Why the load cannot go on: a process it depends on has died. Workers are the fleet's own business."""
        dead = [child.module for child in self._others if child.failed()]
        return f"{dead[0]} died; see {folder.LOG}" if dead else None

    def finish(self) -> ClockLog:
        """Ends workers, then decoders, once each has written what it holds."""
        self.fleet.quit()
        drained = []
        for decoder in self._decoders:
            decoder.tell(decoding.Finish())
            line = decoder.hear_line()
            if line is not None:
                drained.append(msgspec.json.decode(line, type=decoding.Done))
        return ClockLog(
            kernel_stamps=self.fleet.kernel_stamps and all(word.kernel_stamps for word in drained),
            steps=max((word.clock_steps for word in drained), default=0),
        )


def _tls(endpoint: EndpointConfig, host: str) -> TlsJob:
    return TlsJob(
        server_name=endpoint.server_name or host,
        verify=not endpoint.insecure,
        ca=endpoint.ca,
        client_certificate=endpoint.client_certificate,
        client_key=endpoint.client_key,
    )
