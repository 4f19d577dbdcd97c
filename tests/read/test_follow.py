from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import msgspec
import polars as pl
import pytest

from loadstone.board import Board, Field
from loadstone.read.follow import decode_all
from loadstone.read.job import Finish


@pytest.fixture
def decoder(run):
    """The decoder's process, told its job."""
    process = subprocess.Popen(
        [sys.executable, "-m", "loadstone.read.follow"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdin.write(msgspec.json.encode(run.job()) + b"\n")
    process.stdin.flush()
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


@pytest.mark.parametrize("order", [msgspec.json.encode(Finish()) + b"\n", b""])
def test_told_to_finish_or_left_alone_it_drains_everything_and_says_so(run, decoder, wire, order):
    recorder = run.recorder()
    recorder.flight(0, [(1, wire.head + wire.token("a") + wire.finish())])
    out, _ = decoder.communicate(order, timeout=30)
    assert json.loads(out) == {"clock_steps": 0, "kernel_stamps": False}
    assert out.count(b"\n") == 1
    assert pl.read_parquet(run.parts / "d0-0.parquet")["request"].to_list() == [0]
    assert decoder.returncode == 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_what_a_decoder_had_not_stored_when_it_was_killed_or_stopped_is_decoded_afterwards(run, wire, how):
    board = Board(run.folder / "board", 1, create=True)
    process = subprocess.Popen([sys.executable, "-m", "loadstone.read.follow"], stdin=subprocess.PIPE)
    try:
        job = run.job(board=str(run.folder / "board"), blocks=1, block=0)
        process.stdin.write(msgspec.json.encode(job) + b"\n")
        process.stdin.flush()
        recorder = run.recorder()
        for request in range(3):
            recorder.flight(request, [(1, wire.head + wire.token("a") + wire.finish())])
        while not board.live().fields[Field.DECODED]:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(how)
        recorder.flight(3, [(1, wire.head + wire.token("a") + wire.finish())])
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        board.close()
    decode_all(run.job())
    parts = [pl.read_parquet(part) for part in run.parts.iterdir()]
    assert sorted(pl.concat(parts)["request"].to_list()) == [0, 1, 2, 3]
    assert run.segments() == []


def test_without_a_job_it_leaves():
    command = [sys.executable, "-m", "loadstone.read.follow"]
    assert subprocess.run(command, input=b"", capture_output=True, timeout=30).stdout == b""


def test_a_recording_can_be_decoded_afterwards(run, wire):
    run.recorder().flight(0, [(1, wire.head + wire.finish())])
    decode_all(run.job())
    assert pl.read_parquet(run.parts / "d0-0.parquet")["request"].to_list() == [0]
