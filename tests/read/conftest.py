"""Writes recordings as a worker does, from a script: what was read when."""

from __future__ import annotations

import os

import msgspec
import pytest

from loadstone.folder import ClockLog, DatasetLog, PhaseLog, RunLog, WorkerLog, write_run
from loadstone.plan.store import Draft, Writer
from loadstone.read.decoder import Decoder
from loadstone.read.job import Job
from loadstone.recording import (
    CLOCK,
    END,
    END_FACTS,
    PAIR,
    REDIRECTED,
    RESENT,
    ROW,
    START,
    WireEnd,
    segment_name,
)

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
)
MS = 1_000_000


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value):
    """One event of a stream, in one HTTP chunk; bytes are sent as they are."""
    return chunk(value if isinstance(value, bytes) else b"data: " + msgspec.json.encode(value) + b"\n\n")


def token(text, **more):
    """A chat chunk with one piece of content."""
    return event({"choices": [{"delta": {"content": text}}], **more})


def finish(reason="stop", usage=None):
    """The last chunk of a chat stream, the end mark and the end of the message."""
    last = {"choices": [{"delta": {}, "finish_reason": reason}]}
    return event(last if usage is None else last | {"usage": usage}) + event(b"data: [DONE]\n\n") + chunk(b"")


class Recorder:
    """One worker's recording. Every call writes at once; times are monotonic ns."""

    OFFSET_NS = 1_700_000_000_000_000_000

    def __init__(self, folder, worker=0):
        self.folder, self.worker, self.segment, self.serial = folder, worker, -1, 0
        folder.mkdir(parents=True, exist_ok=True)
        self.next_segment()

    def path(self, suffix, segment=None):
        return self.folder / (
            segment_name(self.worker, self.segment if segment is None else segment) + suffix
        )

    def next_segment(self):
        self.segment += 1
        self.path(".dat").touch()
        self.path(".idx").touch()

    def append(self, suffix, data):
        with self.path(suffix).open("ab") as file:
            file.write(data)

    def row(self, serial, code, at_ns, first=0, second=0):
        self.append(".idx", ROW.pack(serial, code, at_ns, PAIR.pack(first, second)))

    def clock(self, at_ns, offset_ns=OFFSET_NS):
        self.row(0, CLOCK, at_ns, offset_ns)

    def start(self, request, sent_ns=0, due_ns=0):
        self.serial += 1
        self.row(self.serial, START, sent_ns, request, due_ns)
        return self.serial

    def resent(self, serial, at_ns):
        self.row(serial, RESENT, at_ns)

    def redirected(self, serial, at_ns):
        self.row(serial, REDIRECTED, at_ns)

    def read(self, serial, data, at_ns, arrival_ns=None, offset_ns=OFFSET_NS):
        """Bytes read at `at_ns`; without `arrival_ns` the kernel gave no stamp."""
        self.append(".dat", data)
        stamp = (0, 0) if arrival_ns is None else divmod(arrival_ns + offset_ns, 1_000_000_000)
        self.row(serial, len(data), at_ns, *stamp)

    def end(
        self, serial, at_ns, request, wire=WireEnd.COMPLETE, words="", sent_ns=0, phase=0, target=0, **facts
    ):
        told = dict.fromkeys(
            (
                "due",
                "sent",
                "written",
                "connect",
                "tcp",
                "connected",
                "begun",
                "status",
                "retries",
                "redirects",
                "body_bytes",
            ),
            0,
        )
        told |= facts | {"sent": sent_ns}
        packed = END_FACTS.pack(
            request, told["due"], told["sent"], told["written"], told["connect"], told["tcp"],
            told["connected"], told["begun"], wire, told["status"], told["retries"], told["redirects"], phase, target,
            told["body_bytes"],
        ) + words.encode()  # fmt: skip
        self.append(".dat", packed)
        self.row(serial, END, at_ns, len(packed))

    def flight(self, request, reads, lag_ns=0, sent_ns=0, end_ns=None, **facts):
        """A whole flight: `reads` are (arrival, bytes); each is read `lag_ns` after it arrived."""
        serial = self.start(request, sent_ns)
        for arrival_ns, data in reads:
            self.read(serial, data, arrival_ns + lag_ns, arrival_ns)
        last_ns = reads[-1][0] + lag_ns if reads else sent_ns
        self.end(serial, last_ns if end_ns is None else end_ns, request, sent_ns=sent_ns, **facts)
        return serial


@pytest.fixture
def run(tmp_path, make_run):
    """A run folder as workers and main leave it."""
    return make_run(tmp_path)


@pytest.fixture(scope="session")
def make_run():
    """Makes a run folder; for tests that need more than one."""
    return _run


def _run(tmp_path):

    class Run:
        folder = tmp_path
        parts = tmp_path / "parts"
        recording = tmp_path / "recording"

        def recorder(self, worker=0):
            return Recorder(self.recording, worker)

        def job(self, **changes):
            told = {
                "folder": str(tmp_path), "decoder": 0, "workers": [0], "endpoint": "chat", "streaming": True,
                "tokenizer": "none", "keep": "faults", "id_prefix": "r-",
            }  # fmt: skip
            return msgspec.convert(told | changes, Job)

        def decode(self, **changes):
            """Everything decoded; the decoder's last word."""
            return Decoder(self.job(**changes)).finish()

        def plan(
            self,
            phases,
            isl_tokens=7,
            osl_tokens=9,
            due_ns=-1,
            workers=1,
            turns=1,
            firsts=None,
            row=None,
            **changes,
        ):
            """A plan and a run log; `phases` are (name, planned), `changes` those of the log.

            Conversations have so many `turns`; `firsts` are the phases' first rows, `row(i)` further fields of their
            i-th row; `due_ns` may be a function of the phase's number and of i.
            """
            firsts = firsts or [sum(rows for _, rows in phases[:number]) for number in range(len(phases))]
            writer, logs = Writer(tmp_path / "plan", firsts), []
            for number, ((name, planned), first) in enumerate(zip(phases, firsts, strict=True)):
                writer.append(
                    Draft(
                        due_ns(number, i) if callable(due_ns) else due_ns, b"{}", isl_tokens, osl_tokens, (first + i) // turns, i % turns, number,
                        final=i % turns == turns - 1, **(row(i) if row else {}),
                    )
                    for i in range(planned)
                )  # fmt: skip
                logs.append(
                    PhaseLog(
                        name=name, kind="warmup" if name == "warmup" else "measured", first_row=first,
                        planned=planned, start_ns=500, stop_ns=900, end_ns=950,
                    )
                )  # fmt: skip
            writer.close()
            log = _run_log(logs, workers)
            for name, value in changes.items():
                setattr(log, name, value)
            write_run(tmp_path, log)

        def segments(self):
            return sorted(path.name for path in self.recording.iterdir())

        def torn(self, path, bytes_left):
            os.truncate(path, bytes_left)

    return Run()


CONFIG = {
    "endpoint": {"type": "chat", "streaming": True, "max_response_bytes": 1 << 20},
    "input": {"tokenizer": "none"},
    "output": {"keep": "faults", "check_tokens": "none"},
}


def _run_log(phases, workers):
    return RunLog(
        id="r", command="", loadstone_version="0", started="", end="complete", seed=1, config=CONFIG, phases=phases,
        workers=[WorkerLog(worker=w, cpu_ns=0, wall_ns=0, flights=0, reads=0) for w in range(workers)],
        clock=ClockLog(kernel_stamps=True, steps=0),
        dataset=DatasetLog(
            source="", tokenizer="none", lengths_exact=True, unique_prompts=True, reused=0, digest=""
        ),
        preflight=None, server_local=True, host_busy_share=None, environment={}, notices=[],
    )  # fmt: skip


@pytest.fixture(scope="session")
def wire():
    """The bytes that servers send."""

    class Wire:
        head = HEAD
        chunk = staticmethod(chunk)
        event = staticmethod(event)
        token = staticmethod(token)
        finish = staticmethod(finish)
        end = chunk(b"")

    return Wire
