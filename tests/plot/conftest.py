"""Run folders made by hand: a `requests.parquet` and a `run.json`, as a run leaves them."""

from __future__ import annotations

import pytest


@pytest.fixture
def run_folder(tmp_path, frame, run_log):
    """A folder with these requests; keywords go to `run_log`."""
    from loadstone import folder as layout

    def make(name, *rows, **run):
        home = tmp_path / name
        home.mkdir()
        frame(*rows).write_parquet(home / layout.REQUESTS)
        layout.write_run(home, run_log(**{"planned": len(rows), **run}))
        return home

    return make


@pytest.fixture
def constant(run_folder, answer):
    """200 requests, 10 a second, each sent up to 0.2 ms late and answered after 250 ms."""
    rows = [
        answer(at + 50, at + 250, sent=at + 0.2 * (number % 2), due=at)
        for number, at in enumerate(range(0, 20_000, 100))
    ]
    return run_folder("constant", *rows, rate=10.0, load={"arrival_pattern": "constant"}, end_ms=20_000)


@pytest.fixture
def capped(run_folder, answer, unsent):
    """10 requests, one every 100 ms, one slot, 400 ms an answer: 3 sent, 7 not, stopped at 1 s."""
    sent = [answer(at + 400, sent=at, due=due) for due, at in ((0, 0), (100, 400), (200, 800))]
    rest = [unsent(due) for due in range(300, 1000, 100)]
    load = {"arrival_pattern": "constant"}
    return run_folder("capped", *sent, *rest, rate=10.0, cap=1, load=load, end_ms=1000)
