"""A simulation that is cut off: what came of its requests is stored as far as it can be, and the rest is said to be lost."""

from __future__ import annotations

import errno
import shlex

import pytest
from tests.virtual.conftest import Simulated

from loadstone.cli.profile import profile
from loadstone.errors import InterruptedRun, LoadstoneError
from loadstone.rebuild import rebuild
from loadstone.virtual import client, conduct, table

LOAD = "--osl 8 --concurrency 4 --request-count 60"
ENDED = 25
UNSTORED = "the simulation was cut off before what came of it was stored"


class Killed(BaseException):
    """Nothing is done any more, as after SIGKILL."""


@pytest.fixture
def cut_off(tmp_path, monkeypatch):
    """`cut_off(error, words)`: a simulation that an error ended after `ENDED` requests, and what is told of it."""

    def cut_off(error, words=LOAD, part=table.PART_REQUESTS):
        ended = iter(range(1, 10_000))
        count = client.Client._count

        def counting(self, *told):
            count(self, *told)
            if error is not None and next(ended) == ENDED:
                if isinstance(error, Killed):
                    patched.setattr(table.Parts, "flush", lambda parts: None)
                raise error

        folder = tmp_path / "run"
        arguments = shlex.split(
            f"--url sim:step_ms=5 --virtual --streaming --isl 16 --extra-inputs ignore_eos:true --seed 3 --ui none"
            f" --artifact-dir {folder} {words}"
        )
        with monkeypatch.context() as patched:
            patched.setattr(table, "PART_REQUESTS", part)
            patched.setattr(client.Client, "_count", counting)
            with pytest.raises(BaseException) as told:
                profile.main(arguments, standalone_mode=False, obj=arguments)
        return Simulated(folder, None), told.value

    return cut_off


def checks(run):
    return {check.name: check for check in run.report.certificate.checks}


def test_left_at_once_it_has_stored_what_had_ended(cut_off):
    run, told = cut_off(KeyboardInterrupt())
    assert isinstance(told, InterruptedRun)
    assert str(told) == (
        f"interrupted; `loadstone report {run.path}` makes the report of what was stored; requests under way are lost,"
        " --random-seed 3 makes them again."
    )
    rebuild(run.path)
    assert run.report.outcomes.counts["ok-length"] == ENDED
    run.adds_up()


def test_killed_it_says_what_is_lost_and_how_it_is_made_again(cut_off):
    run, _ = cut_off(Killed(), part=10)
    rebuild(run.path)
    counts = run.report.outcomes.counts
    assert counts["ok-length"] == 20
    assert counts.get("client-fault", 0) == run.report.load.lost
    assert "not-sent" not in counts
    assert run.report.load.never_due == run.report.load.not_sent == 0
    certificate = run.report.certificate
    assert (certificate.verdict, certificate.headline) == ("DEGRADED", checks(run)["stored"].finding)
    assert "what ended after the last part was stored is lost" in certificate.headline
    assert checks(run)["stored"].advice == "Give --random-seed 3 to make it again."
    assert any("--random-seed 3 makes it again" in notice for notice in run.report.run.notices)


def test_what_was_due_and_not_stored_is_lost_and_not_never_sent(cut_off):
    run, _ = cut_off(Killed(), "--osl 8 --osl-stddev 6 --request-rate 300 --request-count 100", part=10)
    rebuild(run.path)
    rows = [row for row in run.rows if row["outcome"] not in ("ok", "ok-length")]
    assert rows
    assert {(row["outcome"], row["fault"]) for row in rows} == {("client-fault", UNSTORED)}
    assert f"{len(rows)} lost" in (run.path / "summary.txt").read_text()
    assert checks(run)["stored"].value == len(rows)
    assert f"of {len(rows)} requests due by then nobody knows" in run.report.certificate.headline


def test_killed_before_anything_was_stored_it_does_not_say_that_nothing_was_sent(cut_off):
    run, _ = cut_off(Killed())
    rebuild(run.path)
    certificate = run.report.certificate
    assert certificate.verdict == "INVALID"
    assert certificate.headline == "the simulation was cut off before anything that came of it was stored."
    summary = (run.path / "summary.txt").read_text()
    assert "of no request is known what came of it" in summary
    assert "no request was sent" not in summary
    assert "no request was sent" not in (run.path / "report.json").read_text()


def test_a_disk_that_is_full_is_no_reason_to_call_nothing_lost(cut_off, monkeypatch):
    written = []
    write_part = table.write_part

    def full(rows, path):
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        write_part(rows, path)

    monkeypatch.setattr(table, "write_part", full)
    run, told = cut_off(None, part=10)
    assert type(told) is LoadstoneError
    assert str(told) == (
        "no space left for this run: what came of requests after the last part was stored is lost."
        f" `loadstone report {run.path}` makes the report of what was stored, when there is space; --random-seed 3 makes"
        " all of it again."
    )
    rebuild(run.path)
    assert run.report.outcomes.counts["ok-length"] == 10
    assert run.report.certificate.verdict == "DEGRADED"


def test_a_defect_stores_what_had_ended_too(cut_off):
    run, told = cut_off(ZeroDivisionError("a defect"))
    assert isinstance(told, ZeroDivisionError)
    rebuild(run.path)
    assert run.report.outcomes.counts["ok-length"] == ENDED


def test_a_run_to_its_end_has_stored_everything(simulate):
    run = simulate(LOAD, step_ms=5)
    assert (checks(run)["stored"].verdict, checks(run)["stored"].value) == ("VALID", 0)


def test_it_is_stored_every_now_and_then_and_the_table_is_the_same(simulate, monkeypatch):
    words = "--osl 8 --osl-stddev 4 --concurrency 4 --request-count 800"
    whole = simulate(words, step_ms=5)
    for name in ("SHOW_S", "STORE_S"):
        monkeypatch.setattr(conduct, name, 0.0)
    flushed = []
    flush = table.Parts.flush

    def noted(parts):
        flushed.append(len(parts._rows))
        flush(parts)

    monkeypatch.setattr(table.Parts, "flush", noted)
    cut_up = simulate(words, step_ms=5)
    assert len(flushed) > 2
    assert all(flushed[:-1])
    tables = [(run.path / "requests.parquet").read_bytes() for run in (whole, cut_up)]
    assert tables[0] == tables[1]
