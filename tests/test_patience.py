"""What is said when something takes long."""

from __future__ import annotations

import threading

from loadstone import patience as module
from loadstone.patience import patience


def test_what_is_waited_for_is_said_once_it_takes_long(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    said, heard = [], threading.Event()

    def say(line):
        said.append(line)
        heard.set()

    with patience(say, "waiting"):
        assert heard.wait(10)
    assert said == ["waiting"]


def test_what_is_quick_is_not_commented():
    said = []
    with patience(said.append, "waiting"):
        pass
    assert said == []
