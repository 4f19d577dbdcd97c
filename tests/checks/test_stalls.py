from __future__ import annotations

import pytest

from loadstone.checks import stalls
from loadstone.folder import DecodingLog, WorkerLog

MS = 1_000_000


def worker(**more):
    """A worker over ten seconds."""
    return WorkerLog(worker=0, cpu_ns=0, wall_ns=10_000 * MS, flights=100, reads=0, **more)


def test_without_a_word_of_the_workers_nothing_is_known(evidence, answer):
    for check in (stalls.loop_stalls, stalls.garbage_collection, stalls.decoder_lag):
        told = check(evidence(answer(5), workers=[worker()]))
        assert (told.name, told.verdict, told.value) == (check.__name__, "VALID", None)


@pytest.mark.parametrize(
    ("longest", "together", "verdict"),
    [(99, 99, "VALID"), (100, 99, "NOTE"), (100, 100, "DEGRADED"), (60, 100, "DEGRADED")],
)
def test_loops_that_stood_still(evidence, answer, longest, together, verdict):
    log = worker(stall_ns=longest * MS, stalled_ns=together * MS, write_ns=MS)
    told = stalls.loop_stalls(evidence(answer(5), workers=[worker(stall_ns=0, stalled_ns=0), log]))
    assert (told.verdict, told.value) == (verdict, longest)


@pytest.mark.parametrize(("write", "disk"), [(60, False), (100, True)])
def test_a_write_that_took_half_of_the_stall_is_its_reason(evidence, answer, write, disk):
    log = worker(stall_ns=200 * MS, stalled_ns=200 * MS, write_ns=write * MS)
    told = stalls.loop_stalls(evidence(answer(5), workers=[log]))
    assert ("a write of the recording took 100 ms" in told.finding) == disk
    assert ("--artifact-dir" in told.advice) == disk


@pytest.mark.parametrize(("count", "verdict"), [(0, "VALID"), (1, "NOTE")])
def test_garbage_collections(evidence, answer, count, verdict):
    told = stalls.garbage_collection(evidence(answer(5), workers=[worker(collections=count)]))
    assert (told.verdict, told.value) == (verdict, count)


@pytest.mark.parametrize(
    ("behind", "took_ms", "verdict"), [(9, 5000, "VALID"), (10, 1999, "VALID"), (10, 2000, "NOTE")]
)
def test_decoders_behind(evidence, answer, behind, took_ms, verdict):
    log = DecodingLog(behind=behind, took_ns=took_ms * MS)
    told = stalls.decoder_lag(evidence(answer(5), workers=[worker()], decoding=log))
    assert (told.verdict, told.value) == (verdict, took_ms / 1000)
