"""One ended flight in, its row out, whatever the bytes are.

One rule: nothing that a server sends, and no defect of ours in reading it, ends the decoder or loses the request. What
cannot be read becomes the client's fault, with the words of the defect, and its bytes are kept as a sample.
"""

from __future__ import annotations

from itertools import accumulate, takewhile
from pathlib import Path

from loadstone import folder as run_folder
from loadstone import registry
from loadstone.endpoints import Endpoint
from loadstone.read import columns
from loadstone.read.answer import Answer
from loadstone.read.columns import Decoded
from loadstone.read.counting import checked
from loadstone.read.decode import Reader
from loadstone.read.faults import SAMPLE_BYTES, Evidence
from loadstone.read.flights import Flight
from loadstone.read.hidden import Hidden
from loadstone.read.job import Job
from loadstone.recording import WireEnd
from loadstone.wire.http1 import frame


class Interpreter:
    """Reads the answers of one run."""

    def __init__(self, job: Job) -> None:
        self._job = job
        endpoint: Endpoint = registry.load("endpoints", job.endpoint)  # the contract tests hold it to that
        self._reader = Reader(endpoint, job.streaming)
        self._hidden = Hidden(job.secrets)
        self._evidence = Evidence(Path(job.folder) / run_folder.FAULTS)

    def __call__(self, worker: int, flight: Flight) -> Decoded:
        """The row of one flight."""
        row = self._row(flight)
        reads = flight.reads
        if row.scalars["fault"] is not None and self._hidden:
            reads = self._hidden.reads(reads)
            if reads is not flight.reads:
                row = self._row(
                    flight._replace(reads=reads)
                )  # words of the server may have been cut within a secret
        row.scalars["worker"] = worker
        row.scalars["request_id"] = f"{self._job.id_prefix}{flight.facts.request}"
        if row.scalars["fault"] is not None:
            self.keep(row, reads)
        return row

    def keep(self, row: Decoded, reads: list[bytes]) -> None:
        """Keeps the response of a request that failed, if it is the first of its kind."""
        name, fault = row.scalars["outcome"], row.scalars["fault"]
        if self._job.keep != "none" and self._evidence.wants(name, fault):
            raw = _beginning(reads, SAMPLE_BYTES)
            self._evidence.keep(name, fault, row.scalars["request_id"], raw)

    def _row(self, flight: Flight) -> Decoded:
        try:
            return self._understood(flight)
        except Exception as error:
            defect = self._hidden.text(f"its answer could not be decoded: {error!r}")
            return columns.undecodable(flight, defect)

    def _understood(self, flight: Flight) -> Decoded:
        response = frame(flight.reads, self._job.max_response_bytes)
        answer = self._reader(response, complete=flight.facts.end == WireEnd.COMPLETE)
        check = checked(flight.facts.request, self._job.check_tokens)
        if self._hidden:
            flight, answer = self._discreet(flight, answer)
        return columns.decoded(flight, answer, response.arrived, check)

    def _discreet(self, flight: Flight, answer: Answer) -> tuple[Flight, Answer]:
        """The same without secrets in what a table keeps of the worker's and the server's words."""
        hidden, reply = self._hidden.text, answer.reply
        if flight.words:
            flight = flight._replace(words=hidden(flight.words))
        if reply is not None:
            reply.error = hidden(reply.error) if reply.error else reply.error
            reply.finish_reason = hidden(reply.finish_reason) if reply.finish_reason else reply.finish_reason
        if answer.excerpt or answer.fault:
            fault = None if answer.fault is None else hidden(answer.fault)
            answer = answer._replace(excerpt=hidden(answer.excerpt), fault=fault)
        return flight, answer


def _beginning(reads: list[bytes], most_bytes: int) -> bytes:
    """As many reads as are needed for so many bytes."""
    ends = accumulate(map(len, reads), initial=0)
    return b"".join(read for read, _ in zip(reads, takewhile(most_bytes.__gt__, ends), strict=False))
