"""Settles a run: everything that can be found wrong before anything is made or started is found here."""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from loadstone import environment, folder, registry, tokens
from loadstone.account import Setting
from loadstone.config import ENGINE, Config
from loadstone.errors import UsageError
from loadstone.load.room import shortages
from loadstone.patience import patience
from loadstone.plan import schedule
from loadstone.plan.fit import check_fit
from loadstone.plan.schedule import Phase
from loadstone.preflight import first_model, reach, small_turn
from loadstone.preflight.waiting import wait_for_models
from loadstone.roofline.case import Case, settled
from loadstone.sim.case import case_of, named
from loadstone.sim.options import from_url
from loadstone.slo import Objective
from loadstone.sources import source_of
from loadstone.terminal import printable
from loadstone.tokens import Tokenizer
from loadstone.watching import watched
from loadstone.wire import url
from loadstone.wire.url import Target

MODEL_BYTES = 100
"""Of a model's name in that of a folder, which file systems limit to 255 bytes."""
THRESHOLD = 0.5
"""Of failures, when nothing else is asked."""
MOST_WORKERS = 16
_LOADS = {"burst": "burst", "fixed": "schedule", "by-index": "ramp"}
"""Patterns that have no number of their own."""


def settle(config: Config, command: str) -> Setting:
    """Checks all that can be checked before the load; makes nothing yet.

    Raises `UsageError`; `TargetError` when the server has to name its model and does not, or is waited for in vain.
    """
    targets = [
        target for address in config.endpoint.urls if (target := _target(address, config.endpoint.virtual))
    ]
    tokenizer = tokens.load(config.input.tokenizer)
    _ = tokenizer.words
    phases = schedule.phases(config.load, config.input)
    objectives: list[Objective] = []
    if config.slo.goodput or config.slo.objectives:
        from loadstone.metrics import _objectives  # numpy and polars: only when they are needed this early

        config = _objectives.settled(config, phases)
        objectives = _objectives.of_run(config)
    source = registry.load("sources", source_of(config.input))
    distinct = source.distinct(config.input)
    started = datetime.now(UTC)
    seed = secrets.randbelow(2**32) if config.input.seed is None else config.input.seed
    looked_at = watched(config, objectives, phases, seed) if config.slo.abort else ()
    conversations = source.conversations(config.input, tokenizer, seed)
    check_fit(config.load, phases, seed, lambda: islice(conversations.outlines(), distinct))
    named = _named(config.output.folder)
    if named:
        folder.claimable(named, config.output.force)
    if config.server.wait_for_model_s:
        _wait(targets, config, tokenizer, seed)
    if not config.endpoint.models:
        config = _with_model(config)
    home = named or default_folder(config, phases, started)
    remarks = tuple(_remarks(config, objectives))
    config = msgspec.structs.replace(
        config,
        input=msgspec.structs.replace(config.input, seed=seed),
        load=msgspec.structs.replace(config.load, failed_request_threshold=threshold(config)),
        output=msgspec.structs.replace(config.output, folder=str(home)),
    )
    workers = worker_count(config, phases)
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
        shortages=tuple(shortages(_most_slots(phases), workers, *room)),
        distinct=distinct,
        remarks=remarks,
        case=_priced(config, _case(config)),
        watched=looked_at,
    )


def worker_count(config: Config, phases: Sequence[Phase]) -> int:
    """How many workers: half the cores, no more than there are slots, unless told.

    Where every worker has its own rows, none may be without a slot for a prefill.
    """
    fewest = [min(slots for _, slots in phase.prefill_steps) for phase in phases if phase.prefill_steps]
    asked = config.load.workers
    if asked and fewest and asked > min(fewest):
        raise UsageError(
            f"load.workers = {asked}: a worker would be without a place before the first token, of which there are"
            f" {min(fewest)} (--prefill-concurrency, or the start of its ramp); leave --workers out."
        )
    half = max(1, environment.usable_cores() // 2)
    return asked or max(1, min(half, _most_slots(phases) or half, *fewest, MOST_WORKERS))


def _most_slots(phases: Sequence[Phase]) -> int | None:
    """The greatest number of slots that a phase has; None when one of them has no limit."""
    slots = [phase.slots for phase in phases if phase.slots is not None]
    return max(slots) if len(slots) == len(phases) else None


def threshold(config: Config) -> float:
    """The share of failures at which a run is given up; 1: never, as with an engine that is asked to fail."""
    asked = config.load.failed_request_threshold
    if asked is not None:
        return asked
    engines = (address for address in config.endpoint.urls if address.startswith(ENGINE))
    return 1.0 if any(from_url(address).fault for address in engines) else THRESHOLD


def _remarks(config: Config, objectives: Sequence[Objective]) -> Iterator[str]:
    """What is decided here and changes what a run does."""
    if config.load.failed_request_threshold is None and threshold(config) == 1.0:
        yield (
            "The engine is asked to fail (sim:fault), so no share of failures ends the run; --failed-request-threshold"
            " sets one."
        )
    if config.slo.objectives and not objectives:
        yield (
            'The objectives are about each request, so there is goodput and no verdict; --slo "goodput_attainment>99%" asks'
            " for one."
        )


def _case(config: Config) -> Case | None:
    """What the servers run: as --roofline says, or as the built-in engine was asked; None where nobody knows."""
    model = next(iter(config.endpoint.models), None)
    if config.server.roofline:
        return settled(config.server.roofline, model)
    cases = [case_of(from_url(one)) if one.startswith(ENGINE) else None for one in config.endpoint.urls]
    return cases[0] if all(case == cases[0] for case in cases) else None


def _priced(config: Config, case: Case | None) -> Case | None:
    """The same, when a price can be put on it. Raises `UsageError` for one of devices of which nobody knows how many there are."""
    cost = config.cost
    known = cost.gpus is not None or (case is not None and len(config.endpoint.urls) == 1)
    if cost.gpu_hour_price is not None and not known:
        raise UsageError(
            "cost.gpu_hour_price: of how many devices? Set --gpus (all that serve the load), or --roofline."
        )
    return case


def default_folder(config: Config, phases: Sequence[Phase], started: datetime) -> Path:
    """`artifacts/<model>-<endpoint>-<load>-<time>`, with nothing in a name that a path could mean."""
    first = next(iter(config.endpoint.models), "")
    model = re.sub(r"[^\w.-]+", "_", first).strip(".") or "model"
    model = model.encode()[:MODEL_BYTES].decode("utf-8", "ignore")
    measured = [phase for phase in phases if phase.kind == "measured"]
    load = "series" if config.load.request_rate_series else _load((measured or list(phases))[-1])
    return Path("artifacts") / f"{model}-{config.endpoint.type}-{load}-{started:%Y%m%dT%H%M%S.%f}"[:-3]


def _load(phase: Phase) -> str:
    """A phase's load in a few letters."""
    if phase.pattern in _LOADS:
        return _LOADS[phase.pattern]
    if phase.pattern == "closed":
        return f"concurrency{phase.slots}"
    rate = f"rate{phase.rate or 0:g}"
    return f"users{phase.users}-{rate}" if phase.pattern == "users" else rate


def _named(name: str | None) -> Path | None:
    """The folder that was asked for; `~` means home, which no shell sees behind `--artifact-dir=`."""
    try:
        return Path(name).expanduser() if name else None
    except RuntimeError:
        raise UsageError(f"output.folder = {name!r}: there is no such user; write the path out.") from None


def _target(address: str, virtual: bool) -> Target | None:
    """The server that has this address; None when it means an engine, which is started later. Raises `UsageError`."""
    if address.startswith(ENGINE):
        if from_url(address).network_us is not None and not virtual:
            raise UsageError(
                f"{ENGINE} network_us: has no effect without --virtual: there is a real network; leave it out."
            )
        return None
    return url.parse(address)


def _wait(targets: Sequence[Target], config: Config, tokenizer: Tokenizer, seed: int) -> None:
    """Until every server answers a request like those of the run."""
    turn = small_turn(config.input, tokenizer.words, seed)
    wait_for_models(targets, config, turn, _say)


def _with_model(config: Config) -> Config:
    """The configuration with the model that the first server (or the engine that will be started) has."""
    address = config.endpoint.urls[0]
    if address.startswith(ENGINE):
        model = named(from_url(address)).model
    else:
        target = url.parse(address)
        with patience(_say, f"waiting for {target.url} to list its models (--model NAME saves the question)"):
            model = first_model(reach(target, config.endpoint), config.endpoint)
    return msgspec.structs.replace(config, endpoint=msgspec.structs.replace(config.endpoint, model=model))


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
