"""Runs as they would stand in a folder, made without one: the built-in engine on a virtual clock, and a client that reads it.

The engine decodes 16 sequences at a time in steps of 10 ms, a prompt takes 4 ms, and answers have 12 tokens on average: it
completes 80 requests/s. A good open load is 400 Poisson requests at 15 to 65 requests/s, drawn evenly. The client sends 0.2 ms late and reads 0.1 ms late on
average (exponential), and one read in a hundred up to 5 ms late. That is assumed; it makes 0.9 ms at p99 for sending, where a
real run on two busy cores had 0.7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.checks import Evidence
from loadstone.config import Config, EndpointConfig, LoadConfig
from loadstone.folder import (
    ClockLog,
    DatasetLog,
    DecodingLog,
    MachineLog,
    MachineSpan,
    PhaseLog,
    PreflightLog,
    RunLog,
    WorkerLog,
)
from loadstone.metrics import Tables, all_metrics
from loadstone.read.schema import REQUESTS
from loadstone.report import MetricResult, ServerFacts
from loadstone.sim import sequence
from loadstone.sim.build import deployment
from loadstone.sim.deployment import Deployment
from loadstone.sim.options import SimOptions
from loadstone.summary import measure

Ints = NDArray[np.int64]
SECOND_NS = 1_000_000_000
START_NS = 1_000 * SECOND_NS
NEVER_NS = 1 << 62
SLOTS_OF_THE_ENGINE = 16
STEP_MS = 10.0
TOKENS = 12.0
PROMPT = 200
TEMPLATE = 20
REQUESTS_A_RUN = 400
CAPACITY = 80.0
"""Requests per second, measured with all of them due at once."""
RATES = (15.0, 65.0)
CORES = 2


class Numbered(sequence.Sequence):
    """A request of a run."""

    __slots__ = ("number",)

    def __init__(self, number: int, tokens: int) -> None:
        super().__init__(PROMPT, tokens)
        self.number = number


@dataclass
class Run:
    """A run before it becomes tables: what a defect changes. Times are ns; a request is one entry."""

    due: Ints
    sent: Ints
    arrivals: list[Ints]
    """When its tokens came."""
    reads: list[Ints]
    """When each was read."""
    load: LoadConfig
    log: RunLog
    columns: dict[str, list[Any]] = field(default_factory=dict)
    """Further columns, or other values than those made from the above."""
    server: tuple[ServerFacts, ...] = ()

    @property
    def requests(self) -> int:
        """How many there are."""
        return len(self.due)


class Measured(dict[str, MetricResult]):
    """Metrics that are made when a check asks for them."""

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        self._tables = tables

    def __missing__(self, name: str) -> MetricResult:
        self[name] = measure(all_metrics()[name], self._tables)
        return self[name]


def open_loop(rng: np.random.Generator, rate: float | None = None, requests: int = REQUESTS_A_RUN) -> Run:
    """Poisson requests at a rate; None: one that the server has room for."""
    rate = rng.uniform(*RATES) if rate is None else rate
    due = START_NS + np.cumsum(rng.exponential(1 / rate, requests) * SECOND_NS).astype(np.int64)
    sent = due + _late(rng, requests)
    lengths = 1 + rng.poisson(TOKENS - 1, requests)
    came = _served(sent.tolist(), lengths.tolist(), None)
    load = LoadConfig(request_rate=rate, request_count=requests)
    return _run(rng, due, sent, came, load, lengths)


def closed_loop(
    rng: np.random.Generator, slots: int, spread: float = 0.3, requests: int = REQUESTS_A_RUN
) -> Run:
    """So many slots; the lengths of answers deviate by `spread` of their mean."""
    drawn = rng.normal(2 * TOKENS, spread * 2 * TOKENS, requests)
    lengths = np.maximum(1, np.rint(drawn)).astype(int)
    late = _late(rng, requests).tolist()
    came = _served(late, lengths.tolist(), slots)
    # A slot's next request is due when the one before has ended.
    ends = sorted(times[-1] for times in came)
    due = np.array([START_NS] * slots + ends[: requests - slots], np.int64)
    sent = due + np.array(late, np.int64)
    load = LoadConfig(concurrency=slots, request_count=requests)
    return _run(rng, due, sent, came, load, lengths)


def evidence(run: Run) -> Evidence:
    """What the checks look at."""
    first = [times[0] if len(times) else None for times in run.arrivals]
    last = [times[-1] if len(times) else None for times in run.arrivals]
    asked = [max(len(times), 1) for times in run.arrivals]
    columns: dict[str, Any] = {
        "request": list(range(run.requests)),
        "request_id": [str(number) for number in range(run.requests)],
        "phase": ["measured"] * run.requests,
        "worker": [0] * run.requests,
        "target": [0] * run.requests,
        "outcome": ["ok-length"] * run.requests,
        "retries": [0] * run.requests,
        "streamed": [True] * run.requests,
        "due_ns": run.due,
        "sent_ns": run.sent,
        "written_ns": run.sent,
        "first_ns": first,
        "first_answer_ns": first,
        "last_ns": last,
        "done_ns": last,
        "first_read_ns": [times[0] if len(times) else None for times in run.reads],
        "kernel_stamps": [True] * run.requests,
        "input_tokens": [PROMPT + TEMPLATE] * run.requests,
        "usage_prompt_tokens": [PROMPT + TEMPLATE] * run.requests,
        "usage_cached_tokens": [16] * run.requests,
        "output_tokens": asked,
        "output_tokens_source": ["usage"] * run.requests,
        "planned_output_tokens": asked,
        "arrival_ns": [times.tolist() for times in run.arrivals],
        "read_ns": [times.tolist() for times in run.reads],
        **run.columns,
    }
    given = {
        name: pl.Series(name, columns[name], kind, strict=False)
        if name in columns
        else pl.Series(name, [None] * run.requests, kind)
        for name, kind in REQUESTS.items()
    }
    tables = Tables.read(pl.DataFrame(given).lazy(), run.log)
    return Evidence(tables, Measured(tables), run.server)


def read_late(run: Run, lag_ns: list[Ints]) -> None:
    """Reads every token so much later; what waits together in a socket is read together, and bears the last one's stamp."""
    for number, arrived in enumerate(run.arrivals):
        read = np.maximum.accumulate(arrived + lag_ns[number])
        # A read takes all that has come by then.
        by = np.searchsorted(arrived, read, "right") - 1
        by = np.maximum.accumulate(by)
        takes = np.unique(by)
        owner = takes[np.searchsorted(takes, np.arange(len(arrived)))]
        run.arrivals[number] = arrived[owner]
        run.reads[number] = np.maximum(read[np.searchsorted(by, owner)], arrived[owner])


def _late(rng: np.random.Generator, requests: int) -> Ints:
    return (rng.exponential(0.2e6, requests)).astype(np.int64)


def _lags(rng: np.random.Generator, came: Sequence[Ints]) -> list[Ints]:
    """How late a good client reads each token."""
    found = []
    for times in came:
        lag = rng.exponential(0.1e6, len(times))
        lag[rng.random(len(times)) < 0.01] += rng.uniform(0, 5e6)
        found.append(lag.astype(np.int64))
    return found


def _served(sent: list[int], lengths: list[int], slots: int | None) -> list[Ints]:
    """When the tokens of every request come. With slots a request is sent when one frees, so much later than that as `sent`
    says.
    """
    engines: Deployment[Numbered] = deployment(
        SimOptions(
            step_ms=STEP_MS,
            max_num_seqs=SLOTS_OF_THE_ENGINE,
            step_us_per_sequence=50,
            prefill_us_per_token=20,
        )
    )
    came: list[Ints] = [np.empty(0, np.int64)] * len(lengths)
    waiting = _arrivals(sent, lengths) if slots is None else iter(())
    coming = [(START_NS + sent[n], Numbered(n, lengths[n])) for n in range(slots or 0)]
    coming = sorted(coming, key=lambda one: one[0]) or [next(waiting)]
    following = slots or 0
    left = len(lengths)
    while left:
        at_ns = coming[0][0] if coming else NEVER_NS
        ends_ns = engines.next_ns
        now_ns = at_ns if ends_ns is None else min(at_ns, ends_ns)
        engines.finish(now_ns)
        for ended in engines.ended:
            came[ended.number] = np.array(ended.times(), np.int64)
            left -= 1
            if slots is not None and following < len(lengths):
                coming.append((now_ns + sent[following], Numbered(following, lengths[following])))
                coming.sort(key=lambda one: one[0])
                following += 1
        while coming and coming[0][0] == now_ns:
            engines.add(coming.pop(0)[1])
            if slots is None and (one := next(waiting, None)):
                coming.append(one)
        engines.begin(now_ns, coming[0][0] if coming else NEVER_NS)
    return came


def _arrivals(sent: list[int], lengths: list[int]) -> Iterator[tuple[int, Numbered]]:
    order = sorted(range(len(sent)), key=sent.__getitem__)
    return iter([(sent[number], Numbered(number, lengths[number])) for number in order])


def _run(
    rng: np.random.Generator, due: Ints, sent: Ints, came: list[Ints], load: LoadConfig, lengths: NDArray[Any]
) -> Run:
    end = max(int(times[-1]) for times in came)
    run = Run(due, sent, came, list(came), load, _log(rng, load, len(due), end))
    read_late(run, _lags(rng, came))
    run.columns["output_tokens"] = run.columns["planned_output_tokens"] = lengths.tolist()
    return run


def _log(rng: np.random.Generator, load: LoadConfig, requests: int, end_ns: int) -> RunLog:
    """The account of a good run on a machine that is a third busy."""
    endpoint = EndpointConfig(url="http://server:8000", streaming=True, extra_inputs={"ignore_eos": True})
    wall_ns = end_ns - START_NS
    phase = PhaseLog(
        name="measured",
        kind="measured",
        first_row=0,
        planned=requests,
        start_ns=START_NS,
        stop_ns=end_ns,
        end_ns=end_ns,
    )
    worker = WorkerLog(
        worker=0, cpu_ns=int(wall_ns * rng.uniform(0.1, 0.5)), wall_ns=wall_ns, flights=requests, reads=requests,
        stall_ns=int(rng.exponential(8e6)), stalled_ns=0, write_ns=int(rng.exponential(1e6)), collections=0,
    )  # fmt: skip
    return RunLog(
        id="r", command="loadstone profile", loadstone_version="0", started="2026-01-01T00:00:00Z", end="complete",
        seed=1, config=msgspec.to_builtins(Config(endpoint=endpoint, load=load)), phases=[phase], workers=[worker],
        clock=ClockLog(kernel_stamps=True, steps=0),
        dataset=DatasetLog(
            source="synthetic", tokenizer="builtin", lengths_exact=True, unique_prompts=True, reused=0, digest="0"
        ),
        preflight=PreflightLog(
            request_id="p", http_status=200, latency_ms=20, content_tokens=8, prompt_tokens=8 + TEMPLATE
        ),
        server_local=False, host_busy_share=0.3, environment={"clock_source": "tsc", "memory_bytes": 16 << 30},
        notices=[], machine=machine(rng, wall_ns), decoding=DecodingLog(behind=int(rng.poisson(3)), took_ns=400_000_000),
    )  # fmt: skip


def machine(rng: np.random.Generator, wall_ns: int) -> MachineLog:
    """A good machine: 0.1 % stolen on average, a clock rate within 2 %, a lost segment in one run of twenty."""
    seconds = max(12, wall_ns // SECOND_NS)
    spans = []
    for second in range(seconds):
        cpu_ns = CORES * SECOND_NS
        steal_ns = int(min(rng.exponential(0.001), 1.0) * cpu_ns)
        ours_ns = int(cpu_ns * rng.uniform(0.2, 0.4))
        mhz = float(3000 * (1 + rng.normal(0, 0.02)))
        spans.append(
            MachineSpan(
                phase="measured", start_ns=START_NS + second * SECOND_NS, end_ns=START_NS + (second + 1) * SECOND_NS,
                cpu_ns=cpu_ns, busy_ns=ours_ns + steal_ns + int(cpu_ns * rng.uniform(0, 0.06)), ours_ns=ours_ns,
                steal_ns=steal_ns, most_stolen=steal_ns / cpu_ns, throttles=0,
                tcp_retransmits=int(rng.poisson(0.05 / seconds)), tcp_drops=0, packet_drops=0,
                cpu_pressure_ns=0, io_pressure_ns=0, memory_pressure_ns=int(rng.exponential(1e5)), swapped_in_bytes=0,
                mhz_min=mhz, mhz_max=mhz, least_available_bytes=8 << 30,
            )
        )  # fmt: skip
    return MachineLog(spans=spans)
