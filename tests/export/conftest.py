"""Reports made by hand, for the tests of the exporters."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from loadstone.report import (
    Arrivals,
    Certificate,
    Check,
    LoadFacts,
    MetricResult,
    Outcomes,
    PhaseFacts,
    Report,
    RunFacts,
    Series,
)

SHAPE = {"min": 0.91, "p1": 0.92, "p5": 0.93, "p10": 0.94, "p25": 0.96, "p50": 1.0, "p75": 1.04}
TAIL = {"mean": 1.02, "std": 0.11, "p90": 1.1, "p95": 1.2, "p99": 1.5, "p99_9": 1.8, "max": 1.9}


def spread(unit: str, middle: float, **more: object) -> MetricResult:
    numbers = {stat: share * middle for stat, share in {**SHAPE, **TAIL}.items()}
    return msgspec.convert({"unit": unit, "better": "lower", "count": 200, **numbers, **more}, MetricResult)


def single(unit: str, value: float) -> MetricResult:
    return MetricResult(unit=unit, better="higher", count=200, mean=value)


def missing(unit: str, reason: str) -> MetricResult:
    return MetricResult(unit=unit, better="lower", reason=reason)


HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J",
    "\u202egnp.exe\u2066\u200b",
    "=cmd|' /C calc'!A0",
    "<script>alert(1)</script>",
    '"}, {"a": "',
    "a\r\nb\u2028c",
)
"""What a server or a run folder of somebody else may put wherever it has a say."""

METRICS = {
    "time_to_first_token": spread("ms", 57.0, thin=("p99_9",)),
    "time_to_first_output_token": spread("ms", 57.0, thin=("p99_9",)),
    "inter_token_latency": spread("ms", 10.0),
    "request_latency": spread("ms", 1337.0, thin=("p99_9",)),
    "output_token_throughput": single("tokens/s", 1254.3),
    "request_throughput": single("requests/s", 9.871),
}
RUN = RunFacts(
    id="r1",
    command="loadstone profile --model M --url localhost:8000 --concurrency 8",
    started="2026-11-29T15:30:00Z",
    duration_s=20.437,
    end="complete",
    seed=42,
    saturated=False,
    notices=(),
    files={"report": "report.json", "requests": "requests.parquet"},
)
CONFIG = {
    "endpoint": {"model": "M", "type": "chat", "streaming": True, "url": "http://localhost:8000"},
    "load": {"concurrency": 8},
}
COUNTS = {"ok": 150, "ok-length": 50, "reset": 0}
LOAD = LoadFacts(
    arrivals=(Arrivals(phase="measured", words="concurrency 8", pattern="closed", slots=8),), timed=False, offered=200, sent=200,
    not_sent=0, lost=0, never_due=0, late=None, queued_at_end=None, queued_most=None, queue_growing=None, growth=None, cancelled_as_planned=0, asked_rate=None,
    offered_rate=None, sent_rate=9.9, completed_rate=9.8, send_lag_p50_ms=0.1, send_lag_p99_ms=0.2, send_lag_max_ms=0.3,
    bound_by=None, bound_why=None,
)  # fmt: skip
PHASE = PhaseFacts(
    name="measured", planned=200, counts=COUNTS, metrics=METRICS, kind="measured", handover="drained", start_s=0.0,
    stop_s=20.0, end_s=20.5, offered=200, sent=200, not_sent=0, offered_rate=None, completed_rate=9.8, queued_most=None,
    saturated=None, arrivals="concurrency 8",
)  # fmt: skip
VALID = Report(
    loadstone_version="0.1.0",
    run=RUN,
    certificate=Certificate(verdict="VALID", headline="The client kept its times.", checks=()),
    metrics=METRICS,
    outcomes=Outcomes(planned=200, counts=COUNTS),
    load=LOAD,
    phases=(PHASE,),
    series=Series(step_s=1.0, offered=(), sent=(), completed=(), in_flight=()),
    config=CONFIG,
    environment={},
)


def check(verdict: str, finding: str, advice: str) -> Check:
    facts = {"name": "n", "verdict": verdict, "value": None, "unit": "", "finding": finding, "advice": advice}
    return msgspec.convert(facts, Check)


@pytest.fixture(params=HOSTILE, ids=["escapes", "bidi", "formula", "script", "json", "lines"])
def hostile(request: pytest.FixtureRequest) -> str:
    text: str = request.param
    return text


@pytest.fixture
def valid() -> Report:
    return VALID


@pytest.fixture
def invalid() -> Report:
    checks = (
        check("DEGRADED", "Send lag p99 was 3 ms.", "Lower the rate."),
        check("INVALID", "Worker 0 was busy 99 % of the time.", "Set --workers 2."),
        check("NOTE", "The server runs on this host.", "Use two machines."),
    )
    certificate = Certificate(
        verdict="INVALID", headline="Worker 0 was busy 99 % of the time.", checks=checks
    )
    return msgspec.structs.replace(VALID, certificate=certificate)


@pytest.fixture
def all_failed() -> Callable[[str], Report]:
    """Makes a report in which nothing succeeded; the server's words are the argument."""

    def make(message: str) -> Report:
        faults = ({"outcome": "http-error", "message": message, "count": 199, "sample": "faults/1.bin"},)
        return msgspec.structs.replace(
            VALID,
            metrics={name: missing(result.unit, "no request succeeded.") for name, result in METRICS.items()},
            outcomes=Outcomes(planned=200, counts={"http-error": 199, "cut": 1}, faults=faults),
        )

    return make
