"""How often each check of the certificate is wrong: false alarms on good runs, and defects of a stated size that it finds.

    python -m bench certificate          200 good and 200 bad runs a check, a few minutes
    python -m bench certificate --smoke  20 of each

The runs are made here: the built-in engine on a virtual clock serves them, and a client with the lateness of a real one
reads them (`runs`); `defects` puts one defect of a stated size into each bad one. What no simulator has, such as stolen time,
is drawn around its mean. Every run has a seed of its own, so the table is the same every time.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.certificate.defects import CASES, Case
from bench.ground import Ground
from bench.table import Item

REPEATS = 1
RUNS, RUNS_SHORT = 200, 20
FALSE_ALARMS_PERCENT = 5.0
POWER_PERCENT = 90.0
KEPT = Path(__file__).parent / "rates.json"
"""The rates of the last whole measurement, from which the page is made."""


class Rates(msgspec.Struct, frozen=True):
    """How a check did."""

    check: str
    defect: str
    says: str
    """Its most frequent verdict on the bad runs."""
    false_alarms: float
    """Percent of the good runs."""
    power: float
    """Percent of the bad runs."""
    runs: int
    finding: str
    """What it said of the first bad run of which it said that ..."""
    advice: str
    """... and what to do."""


def measure(ground: Ground) -> list[Item]:
    """The rates of every check; kept for the page when they are of the long form."""
    runs = RUNS_SHORT if ground.short else RUNS
    found = [rates(case, runs) for case in CASES]
    if not ground.short:
        KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return [item for one in found for item in _items(one)]


def rates(case: Case, runs: int) -> Rates:
    """One check on so many good and bad runs."""
    wrong = sum(case.alarm(case.good(seed)) is not None for seed in range(runs))
    right = [found for seed in range(runs) if (found := case.alarm(case.bad(seed)))]
    verdicts = [found.verdict for found in right]
    says = max(dict.fromkeys(verdicts), key=verdicts.count, default="VALID")
    told = next((found for found in right if found.verdict == says), None)
    return Rates(
        check=case.name,
        defect=case.defect,
        says=says,
        false_alarms=100 * wrong / runs,
        power=100 * len(right) / runs,
        runs=runs,
        finding=told.finding if told else "",
        advice=told.advice if told else "",
    )


def _items(one: Rates) -> tuple[Item, Item]:
    return (
        Item(f"{one.check}: false alarms", "%", [one.false_alarms], FALSE_ALARMS_PERCENT),
        Item(f"{one.check}: power ({one.defect})", "%", [one.power], POWER_PERCENT, "at least"),
    )
