"""docs/certificate.md: what stands in it between two marks is made here and from the checks' docstrings, the rest by hand."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from bench.certificate import FALSE_ALARMS_PERCENT, KEPT, POWER_PERCENT, Rates
from bench.certificate.defects import EXACT
from bench.published.page import table
from loadstone.checks import _docs

PAGE = Path(__file__).parents[2] / "docs" / "certificate.md"
MADE = re.compile(r"(<!-- made: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def markdown() -> str:
    """The page, its tables and sections made anew."""
    made = {"rates": _rates, "exact": _exact, "checks": _checks}
    return MADE.sub(
        lambda found: f"{found[1]}\n{made[found['name']]()}\n\n{found[3]}", PAGE.read_text("utf-8")
    )


def kept() -> list[Rates]:
    """The rates of the last whole measurement."""
    return msgspec.json.decode(KEPT.read_bytes(), type=list[Rates])


def _rates() -> str:
    rows = [
        [
            one.check,
            one.defect,
            "VALID, with advice" if one.says == "VALID" else one.says,
            f"{one.false_alarms:.3g} %",
            f"{one.power:.3g} %",
        ]
        for one in kept()
    ]
    head = ("check", "defect", "says", "false alarms", "found")
    runs = min(one.runs for one in kept())
    bars = f"at most {FALSE_ALARMS_PERCENT:g} % and at least {POWER_PERCENT:g} %"
    none = 300 / runs  # the rule of three
    return (
        f"{table(head, rows)}\n\n{runs} good and {runs} bad runs a check; the bars are {bars}. None of {runs} means less than"
        f" {none:.2g} % (95 %)."
    )


def _exact() -> str:
    return ", ".join(f"`{name}`" for name in EXACT) + "."


def _checks() -> str:
    return _docs.sections({one.check: (one.finding, one.advice) for one in kept() if one.finding}).rstrip()
