"""One defect of a stated size for each check that can be wrong by chance, and the good run beside it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from bench.certificate.runs import (
    CAPACITY,
    SECOND_NS,
    STEP_MS,
    Run,
    closed_loop,
    evidence,
    open_loop,
    read_late,
)
from loadstone import checks
from loadstone.checks import (
    Evidence,
    arrivals,
    batching,
    client,
    counters,
    instrument,
    load,
    machine,
    output,
    prefix,
    server,
    stalls,
    steady,
    targets,
    warmth,
)
from loadstone.checks.saturation import saturation
from loadstone.folder import DecodingLog, MachineSpan
from loadstone.report import Check, ServerFacts, ServerTokens

BAD_SEEDS = 1_000_000
"""Bad runs have seeds of their own."""


class Case(NamedTuple):
    """A check, a defect, and how runs with and without it are made from a seed."""

    check: Callable[[Evidence], Check]
    defect: str
    bad: Callable[[int], Evidence]
    good: Callable[[int], Evidence]

    @property
    def name(self) -> str:
        """The check's."""
        return self.check.__name__

    def alarm(self, run: Evidence) -> Check | None:
        """What it says of a run; None when it finds nothing.

        `saturation` gives advice and no verdict: that a server is full is a result.
        """
        found = self.check(run)
        return found if found.verdict != "VALID" or found.advice else None


Defect = Callable[[np.random.Generator, Run], None]


@cache
def good_open(seed: int) -> Evidence:
    """A good run at a rate; one for all checks."""
    return evidence(open_loop(np.random.default_rng(seed)))


@cache
def good_closed(seed: int) -> Evidence:
    """A good closed loop of 8 slots."""
    return evidence(closed_loop(np.random.default_rng(seed), 8))


def case(check: Callable[[Evidence], Check], defect: str, spoil: Defect) -> Case:
    """A case whose bad runs are open loops that were good before `spoil`."""

    def bad(seed: int) -> Evidence:
        rng = np.random.default_rng(BAD_SEEDS + seed)
        run = open_loop(rng)
        spoil(rng, run)
        return evidence(run)

    return Case(check, defect, bad, good_open)


# ---- the client --------------------------------------------------------------------------------


def _busy_worker(rng: np.random.Generator, run: Run) -> None:
    (worker,) = run.log.workers
    run.log.workers = [replace(worker, cpu_ns=int(worker.wall_ns * rng.normal(0.90, 0.03)))]


def _lost(rng: np.random.Generator, run: Run) -> None:
    lost = rng.random(run.requests) < 0.02
    run.columns["outcome"] = ["client-fault" if one else "ok-length" for one in lost]


def _read_in_bunches(rng: np.random.Generator, run: Run) -> None:
    period_ns = int(4 * STEP_MS * 1e6)
    offset = int(rng.integers(period_ns))
    read_late(run, [(offset - times) % period_ns for times in run.arrivals])


def _sent_late(rng: np.random.Generator, run: Run) -> None:
    late = rng.random(run.requests) < 0.05
    _delay(run, np.where(late, rng.exponential(200e6, run.requests), 0).astype(np.int64))


def _sent_slower(rng: np.random.Generator, run: Run) -> None:
    _delay(run, ((run.due - run.due[0]) * 0.03).astype(np.int64))


def _sent_a_bit_slower(rng: np.random.Generator, run: Run) -> None:
    _delay(run, ((run.due - run.due[0]) * 0.005).astype(np.int64))


def _delay(run: Run, later_ns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    """Sends requests so much later, and their answers come so much later."""
    run.sent = run.sent + later_ns
    run.arrivals = [times + late for times, late in zip(run.arrivals, later_ns, strict=True)]
    run.reads = [times + late for times, late in zip(run.reads, later_ns, strict=True)]


def _stalled(rng: np.random.Generator, run: Run) -> None:
    (worker,) = run.log.workers
    stalls_ns = rng.uniform(60e6, 200e6, 1 + int(worker.wall_ns * 0.03 / 130e6))
    stalls_ns *= worker.wall_ns * 0.03 / stalls_ns.sum()
    run.log.workers = [
        replace(worker, stall_ns=int(stalls_ns.max()), stalled_ns=int(stalls_ns.sum()), write_ns=1_000_000)
    ]


def _behind(rng: np.random.Generator, run: Run) -> None:
    run.log.decoding = DecodingLog(
        behind=int(rng.normal(100, 15)), took_ns=int(rng.normal(5, 0.5) * SECOND_NS)
    )


def _unstamped(rng: np.random.Generator, run: Run) -> None:
    run.columns["kernel_stamps"] = (rng.random(run.requests) >= 0.05).tolist()


# ---- the machine -------------------------------------------------------------------------------


def _spans(run: Run, change: Callable[[int, MachineSpan], MachineSpan]) -> None:
    log = run.log.machine
    assert log is not None
    run.log.machine = replace(log, spans=[change(number, span) for number, span in enumerate(log.spans)])


def _steal(rng: np.random.Generator, run: Run) -> None:
    def stolen(number: int, span: MachineSpan) -> MachineSpan:
        share = min(rng.gamma(2, 0.04), 1.0)
        return replace(span, steal_ns=int(share * span.cpu_ns), most_stolen=share)

    _spans(run, stolen)


def _throttled(rng: np.random.Generator, run: Run) -> None:
    assert run.log.machine is not None
    half = len(run.log.machine.spans) // 2

    def slower(number: int, span: MachineSpan) -> MachineSpan:
        factor = 0.8 if number >= half else 1.0
        return replace(span, mhz_min=(span.mhz_min or 0) * factor, mhz_max=(span.mhz_max or 0) * factor)

    _spans(run, slower)


def _crowded(rng: np.random.Generator, run: Run) -> None:
    run.log.server_local = True
    run.log.config["endpoint"]["url"] = "sim:"

    def crowded(number: int, span: MachineSpan) -> MachineSpan:
        busy = min(1.0, rng.normal(0.97, 0.02))
        return replace(
            span,
            busy_ns=int(busy * span.cpu_ns),
            ours_ns=int((busy - rng.normal(0.2, 0.05)) * span.cpu_ns),
            steal_ns=0,
        )

    _spans(run, crowded)


def _dropped(rng: np.random.Generator, run: Run) -> None:
    assert run.log.machine is not None
    mean = 0.02 * run.requests / len(run.log.machine.spans)
    _spans(run, lambda number, span: replace(span, tcp_retransmits=int(rng.poisson(mean))))


def _short_of_memory(rng: np.random.Generator, run: Run) -> None:
    _spans(run, lambda number, span: replace(span, memory_pressure_ns=int(rng.exponential(0.03) * SECOND_NS)))


# ---- the server --------------------------------------------------------------------------------


def _failing(rng: np.random.Generator, run: Run) -> None:
    failed = rng.random(run.requests) < 0.15
    run.columns["outcome"] = ["http-server-error" if one else "ok-length" for one in failed]


def _overloaded(seed: int) -> Evidence:
    return evidence(open_loop(np.random.default_rng(BAD_SEEDS + seed), rate=1.3 * CAPACITY))


def _cold(rng: np.random.Generator, run: Run) -> None:
    _slow(run, slice(0, 1), 20 * STEP_MS)


def _warming(rng: np.random.Generator, run: Run) -> None:
    first = run.requests // 10
    _slow(run, slice(0, first), 3 * STEP_MS)


def _slow(run: Run, which: slice, by_ms: float) -> None:
    """Answers of some requests come so much later."""
    for number in range(run.requests)[which]:
        later = int(by_ms * 1e6)
        run.arrivals[number] = run.arrivals[number] + later
        run.reads[number] = run.reads[number] + later


def _drifting(rng: np.random.Generator, run: Run) -> None:
    for number in range(run.requests):
        share = number / run.requests
        for times in (run.arrivals, run.reads):
            times[number] = times[number] + ((times[number] - run.sent[number]) * share).astype(np.int64)


def _silent(rng: np.random.Generator, run: Run) -> None:
    _two_servers(rng, run)
    half = run.sent[run.requests // 2]
    gone = np.array(
        [sent > half and target == 1 for sent, target in zip(run.sent, run.columns["target"], strict=True)]
    )
    run.columns["outcome"] = ["timeout-first-token" if one else "ok-length" for one in gone]
    ended = [
        int(sent + 30 * SECOND_NS) if one else int(times[-1])
        for sent, times, one in zip(run.sent, run.arrivals, gone, strict=True)
    ]
    run.arrivals = [times[:0] if one else times for times, one in zip(run.arrivals, gone, strict=True)]
    run.reads = [times[:0] if one else times for times, one in zip(run.reads, gone, strict=True)]
    run.columns["done_ns"] = ended


def _two_servers(rng: np.random.Generator, run: Run) -> None:
    run.log.config["endpoint"]["url"] = ["http://one:8000", "http://two:8000"]
    run.columns["target"] = rng.integers(0, 2, run.requests).tolist()


def _good_two(seed: int) -> Evidence:
    rng = np.random.default_rng(seed)
    run = open_loop(rng)
    _two_servers(rng, run)
    return evidence(run)


def _counting(rng: np.random.Generator, run: Run, apart: float) -> None:
    ours = int(sum(run.columns["output_tokens"]))
    counted = ServerTokens(server=ours * (1 + apart), ours=ours)
    run.server = (ServerFacts(page="http://server:8000/metrics", tokens=counted),)


def _good_counts(seed: int) -> Evidence:
    rng = np.random.default_rng(seed)
    run = open_loop(rng)
    _counting(rng, run, rng.normal(0, 0.002))
    return evidence(run)


def _locked(seed: int) -> Evidence:
    return evidence(closed_loop(np.random.default_rng(BAD_SEEDS + seed), 8, spread=0.0))


# ---- the work ----------------------------------------------------------------------------------


def _cached(rng: np.random.Generator, run: Run) -> None:
    hit = rng.random(run.requests) < 0.1
    run.columns["usage_cached_tokens"] = np.where(hit, 208, 16).tolist()


def _batched(rng: np.random.Generator, run: Run) -> None:
    """Four tokens at a time: the last of four brings them."""
    for number, times in enumerate(run.arrivals):
        sends = np.unique(np.append(np.arange(0, len(times), 4), len(times) - 1))
        run.arrivals[number], run.reads[number] = times[sends], run.reads[number][sends]


def _short(rng: np.random.Generator, run: Run) -> None:
    early = rng.random(run.requests) < 0.10
    asked = run.columns["planned_output_tokens"]
    run.columns["planned_output_tokens"] = [
        tokens * 2 if one else tokens for tokens, one in zip(asked, early, strict=True)
    ]


CASES = (
    case(client.client_cpu, "the busiest worker uses 90 % of a core (± 3)", _busy_worker),
    case(client.lost_requests, "2 % of the requests lost", _lost),
    case(client.client_lag, "tokens read every 40 ms only, where they come every 10", _read_in_bunches),
    case(client.first_tokens, "tokens read every 40 ms only, where they come every 10", _read_in_bunches),
    case(client.send_lag, "5 % of the requests sent 200 ms late (exponential)", _sent_late),
    case(arrivals.offered_load, "sent at 97 % of the rate", _sent_slower),
    case(arrivals.arrival_fidelity, "sent at 99.5 % of the rate", _sent_a_bit_slower),
    case(stalls.loop_stalls, "a loop stands still for 3 % of the time, about 130 ms each", _stalled),
    case(stalls.decoder_lag, "a quarter of the requests not decoded at the end, 5 s of work", _behind),
    case(instrument.kernel_stamps, "5 % of the answers without stamps", _unstamped),
    case(machine.machine_steal, "8 % of the time stolen", _steal),
    case(machine.other_load, "others use 20 % of cores that are 97 % busy, the engine here", _crowded),
    case(machine.clock_rate, "the clock rate falls by 20 % halfway", _throttled),
    case(machine.kernel_drops, "2 segments sent again for 100 requests", _dropped),
    case(machine.memory_pressure, "some process waits for memory 3 % of the time", _short_of_memory),
    case(server.failures, "15 % of the requests fail", _failing),
    Case(saturation, "offered 30 % more than the server can do", _overloaded, good_open),
    case(server.cold_start, "the first answer 200 ms later, without a warm-up", _cold),
    case(warmth.warm_up_leak, "the first tenth of the first tokens 30 ms later", _warming),
    case(steady.steady_state, "latencies double over the run", _drifting),
    Case(
        targets.silent_targets,
        "one of two servers says nothing from halfway on",
        case(targets.silent_targets, "", _silent).bad,
        _good_two,
    ),
    Case(
        counters.server_tokens,
        "the server counts 3 % more tokens",
        case(counters.server_tokens, "", lambda rng, run: _counting(rng, run, rng.normal(0.03, 0.005))).bad,
        _good_counts,
    ),
    Case(load.cohort_lock, "8 slots, all answers of one length", _locked, good_closed),
    case(prefix.prefix_cache_leak, "a tenth of the prompts found in the cache", _cached),
    case(batching.batched_tokens, "four tokens at a time", _batched),
    case(output.output_sanity, "10 % of the answers half as long as forced", _short),
)
"""In the order of the certificate's questions: client, machine, server, work."""

EXACT = tuple(sorted({check.__name__ for check in checks.CHECKS} - {one.name for one in CASES}))
"""Checks that chance cannot make wrong: they tell a fact, such as that a process died."""
