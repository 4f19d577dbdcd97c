"""What a worker tells of its own loop: how late it came round, how long it wrote, whether garbage was collected."""

from __future__ import annotations

import gc
import time

import pytest

from loadstone.load import worker
from loadstone.load.tape import Tape

MS = 1_000_000
pytestmark = pytest.mark.timeout(20)


def answering(peer):
    peer.serve()


def once(monkeypatch, of, name, what):
    """Does `what` before the first call of a method."""
    original, waiting = getattr(of, name), [what]

    def instead(*arguments):
        if waiting:
            waiting.pop()()
        return original(*arguments)

    monkeypatch.setattr(of, name, instead)


def test_a_round_that_took_long_is_a_stall(fly, monkeypatch):
    once(monkeypatch, worker.Worker, "_begun", lambda: time.sleep(0.15))
    (done,) = fly(answering, requests=5).done
    assert done.stall_ns >= 140 * MS  # it began up to a tick before
    assert done.stalled_ns >= done.stall_ns


def test_a_tick_that_is_a_little_late_adds_nothing(fly, monkeypatch):
    monkeypatch.setattr(worker, "STALL_NS", 10**12)
    (done,) = fly(answering, requests=5).done
    assert done.stalled_ns == 0


def test_a_write_that_took_long_is_told(fly, monkeypatch):
    once(monkeypatch, Tape, "flush", lambda: time.sleep(0.05))
    (done,) = fly(answering, requests=5).done
    assert done.write_ns >= 50 * MS


def test_garbage_that_was_collected_is_counted(fly, monkeypatch):
    gc.disable()
    try:
        (quiet,) = fly(answering, requests=5).done
        once(monkeypatch, worker.Worker, "_begun", gc.collect)
        (done,) = fly(answering, requests=5).done
    finally:
        gc.enable()
    assert (quiet.collections, done.collections) == (0, 1)
