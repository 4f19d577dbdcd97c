"""Waits until every server answers: a model may still be loading, or the server not have been started yet.

Whatever a server that is starting may do means "not yet": no connection, no answer in time, 404, 500, 503. Only a
refusal for want of a key is final, since waiting changes nothing about it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from loadstone.config import Config, EndpointConfig
from loadstone.errors import TargetError
from loadstone.load.reach import Reached, reach
from loadstone.plan.turn import Turn
from loadstone.preflight.models import first_model, listed
from loadstone.preflight.question import REFUSED_FOR_GOOD, Refused
from loadstone.preflight.trial import Trial, ask_of, path_of
from loadstone.terminal import printable
from loadstone.wire.url import Target

LEAST_S = 1.0
"""A server is given at least so long for one answer, also when the time is nearly over."""


def wait_for_models(
    targets: Sequence[Target], config: Config, turn: Turn, say: Callable[[str], None]
) -> None:
    """Asks one server after the other until it answers, all within `server.wait_for_model_s`.

    `say` is told what is waited for and why, whenever that changes. Raises `TargetError` when the time is over, or a
    server refuses the key.
    """
    until = time.monotonic() + config.server.wait_for_model_s
    for target in targets:
        _wait(target, config, turn, until, say)


def _wait(target: Target, config: Config, turn: Turn, until: float, say: Callable[[str], None]) -> None:
    wait_s, why = config.server.wait_for_model_s, ""
    while True:
        begun = time.monotonic()
        endpoint = _within(config.endpoint, max(until - begun, LEAST_S))
        if (reason := _not_yet(target, endpoint, config.server.wait_for_model_mode, turn)) is None:
            return
        if begun >= until:
            raise TargetError(
                f"{target.url}: no model answered within {wait_s:g} s (--wait-for-model-timeout). The last try: {reason}"
            )
        if reason != why:
            why = reason
            say(f"waiting up to {wait_s:g} s for a model at {target.url}; not yet: {printable(why)}")
        time.sleep(max(0.0, min(config.server.wait_for_model_interval_s, until - time.monotonic())))


def _not_yet(target: Target, endpoint: EndpointConfig, mode: str, turn: Turn) -> str | None:
    """Why a server does not answer yet; None: it does. Raises `TargetError` when it never will."""
    try:
        _look(reach(target, endpoint), endpoint, mode, turn)
    except Refused as error:
        if error.status in REFUSED_FOR_GOOD:
            raise
        return str(error)
    except TargetError as error:
        return str(error)
    return None


def _within(endpoint: EndpointConfig, seconds: float) -> EndpointConfig:
    """The same with no more than so much time for anything."""
    return msgspec.structs.replace(
        endpoint,
        connect_timeout_s=min(endpoint.connect_timeout_s, seconds),
        timeout_s=min(endpoint.timeout_s, seconds),
    )


def _look(reached: Reached, endpoint: EndpointConfig, mode: str, turn: Turn) -> None:
    """One look at a server, in one of the modes of `server.wait_for_model_mode`. Raises `TargetError`: not yet."""
    models = endpoint.models
    if mode != "inference":
        _are_listed(models, listed(reached, endpoint), reached.target)
    if mode != "models":
        trial = Trial(reached, endpoint, path_of(endpoint, reached.target), turn)
        for model in models or (first_model(reached, endpoint),):
            trial(msgspec.structs.replace(ask_of(endpoint), model=model), "preflight")


def _are_listed(models: Sequence[str], found: Sequence[str], target: Target) -> None:
    """Raises `TargetError` unless all `models`, or any at all when none is named, are among those `found`."""
    missing = [model for model in models if model not in found]
    if missing:
        raise TargetError(f"{target.url} does not list the model {printable(missing[0])!r} yet.")
    if not found:
        raise TargetError(f"{target.url} lists no model yet.")
