"""Main's side of reading the servers' pages: starts the process that does it, asks it to look, ends it.

One rule: the run neither fails nor waits for it, but for a moment that is bounded. Imports neither numpy nor polars.
"""

from __future__ import annotations

import logging
import select
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from loadstone import folder
from loadstone.child import Child
from loadstone.config import Config, EndpointConfig, secrets
from loadstone.config.secrets import masked_url
from loadstone.folder import ScrapeLog
from loadstone.load.job import TlsJob
from loadstone.load.reach import Reached
from loadstone.telemetry.job import Done, Finish, Job, Look, Looked, PageJob, Word
from loadstone.telemetry.store import DRAFT
from loadstone.wire import proxy as proxies
from loadstone.wire import request
from loadstone.wire.url import Target, page_address

logger = logging.getLogger("loadstone")
LOOK_S = 0.5
"""So long the begin of a phase waits for the pages; most servers answer in a few ms."""
END_S = 15.0
"""So long the end of a run waits for the last look (2 s at most) and for the table."""
HASTE_S = 2.0
"""So long when the run fails."""
PAGE = "/metrics"
ACCEPT = "Accept: text/plain;version=0.0.4, */*;q=0.1"


class Watch:
    """The pages of a run's servers, read from the begin of this context to `close`; nothing where nobody wants them."""

    def __init__(self, home: Path, config: Config, servers: Sequence[Reached], run_id: str) -> None:
        self._home = home
        self._jobs = page_jobs(config, servers, run_id) if config.server.metrics else []
        self._interval_s = config.server.metrics_interval_s
        self._child: Child | None = None
        self._number = 0
        self.logs = [ScrapeLog(page=job.name, serves=job.serves) for job in self._jobs]
        """What is known of each page; more than its name only after `close`."""
        self.fault: str | None = None
        """Why the reading ended before the run did; None: it did not. What was stored until then is there."""

    def __enter__(self) -> Watch:
        if self._jobs:
            self._child = Child("loadstone.telemetry.scrape", self._home / folder.LOG)
            self._child.tell(Job(folder=str(self._home), interval_s=self._interval_s, pages=self._jobs))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is None:
            return
        if kind is not None and not (self._home / folder.RUN).exists():
            self._child.kill()  # nothing was sent, so nothing stays
        self._child.close(HASTE_S)

    def look(self) -> None:
        """Has every page read, and waits for a moment until they have been: a phase is about to begin."""
        if self._child is not None:
            self._number += 1
            self._child.tell(Look(number=self._number))
            self._hear(LOOK_S)

    def end(self) -> None:
        """Has every page read for the last time; does not wait."""
        if self._child is not None:
            self._child.tell(Finish())

    def close(self) -> None:
        """After `end`: waits until what was read is stored, and takes over the account of it."""
        if self._child is None:
            return
        done = self._hear(END_S, last=True)
        if done is None:
            if not self._child.ended:
                self._child.kill("was not done in time, then killed")
            self.fault = (
                f"the process that read the servers' pages died ({self._child.death()}); see {folder.LOG}"
            )
            logger.warning("%s", self.fault)
            (self._home / DRAFT).unlink(missing_ok=True)
        else:
            self.logs = done.logs
        for log in self.logs:
            told = "; ".join(f"{fault.count} x {fault.fault}" for fault in log.faults)
            if log.scrapes is not None:
                logger.info("%s: read %d times%s", log.page, log.scrapes, f" ({told})" if told else "")

    def notices(self) -> Iterator[str]:
        """What a reader has to know: that a page could not be read which was asked for by its own address."""
        for log in self.logs:
            if not log.serves and log.scrapes == 0:
                why = log.faults[0].fault if log.faults else "nobody came to it"
                yield f"{log.page} was not read (--server-metrics): {why}."

    def _hear(self, wait_s: float, *, last: bool = False) -> Done | None:
        """Listens until the present look is told of, or the last word; None when it does not come in time."""
        child, until = self._child, time.monotonic() + wait_s
        assert child is not None
        while not child.ended and (left_s := until - time.monotonic()) > 0:
            if not select.select([child], [], [], left_s)[0]:
                break
            for line in child.hear():
                word: Word = msgspec.json.decode(line, type=Word)
                if isinstance(word, Done):
                    return word
                if isinstance(word, Looked) and word.number >= self._number and not last:
                    return None
        return None


def page_jobs(config: Config, servers: Sequence[Reached], run_id: str) -> list[PageJob]:
    """The pages to read: that of every server, each once, then those asked for by their own address.

    Key, headers and client certificate go to scheme, host and port of a server's own, and to no other; the way there (proxy,
    trust in certificates) is that of the run for every page on a host of its.
    """
    jobs: dict[tuple[str, str], PageJob] = {}
    hidden = secrets(config.endpoint, config.server)
    for number, reached in enumerate(servers):
        path = reached.target.path(PAGE)
        known = jobs.get((reached.target.origin, path))
        serves = (*(known.serves if known else ()), number)
        jobs[reached.target.origin, path] = PageJob(
            name=masked_url(reached.target.origin + path),
            serves=serves,
            request=_request(reached, path, config.endpoint, run_id),
            addresses=[(reached.family, reached.address)],
            tls=reached.tls,
            tunnel=reached.tunnel,
            hidden=hidden,
        )
    for url in config.server.metrics_urls:
        target, path = page_address(url)
        if (target.origin, path) not in jobs:
            jobs[target.origin, path] = _elsewhere(target, path, config, servers, run_id)
    return list(jobs.values())


def _elsewhere(target: Target, path: str, config: Config, servers: Sequence[Reached], run_id: str) -> PageJob:
    """A page that has an address of its own."""
    near = [one for one in servers if one.target.host.lower() == target.host.lower()]
    same = [one for one in near if (one.target.tls, one.target.port) == (target.tls, target.port)]
    endpoint = (
        config.endpoint if same else _without_credentials(config.endpoint) if near else EndpointConfig()
    )
    reached = _by_way_of(next(iter([*same, *near]), None), target, endpoint)
    return PageJob(
        name=masked_url(target.origin + path),
        serves=(),
        request=_request(reached, path, endpoint, run_id),
        addresses=[(reached.family, reached.address)] if reached.proxy else [],
        host=target.host,
        port=target.port,
        tls=reached.tls,
        tunnel=reached.tunnel,
        hidden=secrets(config.endpoint, config.server),
    )


def _without_credentials(endpoint: EndpointConfig) -> EndpointConfig:
    """What is left for another port or scheme of a host: there may be somebody else, and plain text on the wire."""
    return EndpointConfig(server_name=endpoint.server_name, insecure=endpoint.insecure, ca=endpoint.ca)


def _by_way_of(ours: Reached | None, target: Target, endpoint: EndpointConfig) -> Reached:
    """How to get to a page: on a host of ours as to that, else straight."""
    tls = None
    if target.tls:
        tls = TlsJob(
            server_name=endpoint.server_name or target.host.partition("%")[0],
            verify=not endpoint.insecure,
            ca=endpoint.ca,
            client_certificate=endpoint.client_certificate,
            client_key=endpoint.client_key,
        )
    if ours is None or ours.proxy is None:
        return Reached(target, 0, (), None, tls)
    tunnel = proxies.tunnel(target, ours.proxy) if target.tls else b""
    return Reached(target, ours.family, ours.address, ours.proxy, tls, tunnel)


def _request(reached: Reached, path: str, endpoint: EndpointConfig, run_id: str) -> bytes:
    head = request.head(
        reached.target,
        path,
        streaming=False,
        api_key=endpoint.api_key,
        headers=(*endpoint.headers, ACCEPT),
        method="GET",
        proxy=reached.proxy,
        closes=True,
    )
    return head + request.tail(f"metrics-{run_id}", b"")
