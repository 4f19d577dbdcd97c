"""Settles a run: everything that can be found wrong before anything is made or started is found here."""

from __future__ import annotations

import re
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from loadstone import environment, folder, tokens
from loadstone.account import Setting
from loadstone.config import ENGINE, Config, check_goodput
from loadstone.errors import UsageError
from loadstone.load.room import shortages
from loadstone.patience import patience
from loadstone.plan import schedule
from loadstone.plan.schedule import Phase
from loadstone.preflight import first_model, reach
from loadstone.sim.options import from_url
from loadstone.terminal import printable
from loadstone.wire import url

MODEL_BYTES = 100
"""Of a model's name in that of a folder, which file systems limit to 255 bytes."""
THRESHOLD = 0.5
"""Of failures, when nothing else is asked."""


def settle(config: Config, command: str) -> Setting:
    """Checks all that can be checked before the load; makes nothing yet.

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
    config = msgspec.structs.replace(
        config,
        input=msgspec.structs.replace(config.input, seed=seed),
        load=msgspec.structs.replace(config.load, failed_request_threshold=threshold(config)),
        output=msgspec.structs.replace(config.output, folder=str(home)),
    )
    workers = worker_count(config)
    room = environment.raise_descriptor_limit(), environment.local_ports()
    return Setting(
        config=config,
        command=command,
        id=secrets.token_hex(4),
        seed=seed,
        home=home,
        tokenizer=tokenizer,
        phases=phases,
        started=started,
        workers=workers,
        shortages=tuple(shortages(phases[-1].slots, workers, *room)),
    )


def worker_count(config: Config) -> int:
    """How many workers: half the cores, no more than there are slots, unless told."""
    if config.load.workers:
        return config.load.workers
    half = max(1, environment.usable_cores() // 2)
    return min(half, config.load.concurrency or (half if config.load.request_rate else 1), 16)


def threshold(config: Config) -> float:
    """The share of failures at which a run is given up; 1: never, as with an engine that is asked to fail."""
    asked = config.load.failed_request_threshold
    if asked is not None:
        return asked
    address = config.endpoint.url
    return 1.0 if address.startswith(ENGINE) and from_url(address).fault else THRESHOLD


def default_folder(config: Config, phase: Phase, started: datetime) -> Path:
    """`artifacts/<model>-<endpoint>-<load>-<time>`, with nothing in a name that a path could mean."""
    model = re.sub(r"[^\w.-]+", "_", config.endpoint.model or "").strip(".") or "model"
    model = model.encode()[:MODEL_BYTES].decode("utf-8", "ignore")
    load = f"rate{phase.rate:g}" if phase.rate else f"concurrency{phase.slots}"
    return Path("artifacts") / f"{model}-{config.endpoint.type}-{load}-{started:%Y%m%dT%H%M%S.%f}"[:-3]


def _named(name: str | None) -> Path | None:
    """The folder that was asked for; `~` means home, which no shell sees behind `--artifact-dir=`."""
    try:
        return Path(name).expanduser() if name else None
    except RuntimeError:
        raise UsageError(f"output.folder = {name!r}: there is no such user; write the path out.") from None


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
        target = url.parse(address)
        with patience(_say, f"waiting for {target.url} to list its models (--model NAME saves the question)"):
            model = first_model(reach(target, config.endpoint), config.endpoint)
    return msgspec.structs.replace(config, endpoint=msgspec.structs.replace(config.endpoint, model=model))


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
