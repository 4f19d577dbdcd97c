"""docs/against-other-tools.md: what stands in it between two marks is made from the last whole measurement, the rest by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from bench.against import CONCURRENCY, ISL, KEPT, OSL, RATE, SITUATIONS, STEP_MS, Measured, Side, middle
from bench.against.figures import FIGURES, Figure, key
from bench.against.tools import TOOLS
from bench.published.page import table
from bench.table import figure

PAGE = Path(__file__).parents[2] / "docs" / "against-other-tools.md"
MADE = re.compile(r"(<!-- made: (?P<name>[a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
ERRORS = {"time_to_first_token": "time to first token", "request_latency": "request latency"}


def markdown() -> str:
    """The page, its tables made anew."""
    found = kept()
    made = {"conditions": conditions(found), "names": names(), "errors": errors(found), "costs": costs(found)}
    made |= {
        f"situation-{number}": situation(found.situations[one.name]) for number, one in enumerate(SITUATIONS)
    }
    return MADE.sub(lambda mark: f"{mark[1]}\n{made[mark['name']]}\n\n{mark[3]}", PAGE.read_text("utf-8"))


def kept() -> Measured:
    """The last whole measurement."""
    return msgspec.json.decode(KEPT.read_bytes(), type=Measured)


def conditions(found: Measured) -> str:
    """When and on what."""
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    work = "; ".join(f"{one.name}: {one.requests} requests, {one.rounds} rounds" for one in SITUATIONS)
    return (
        f"Measured {found.date}, {found.cores} cores shared by client and server, load average at the beginning"
        f" {found.load:.1f}. {versions}. Prompts of {ISL} tokens, answers of {OSL} (`ignore_eos`), chat, streamed; a step of the"
        f" built-in engine takes {STEP_MS} ms, the rate is {RATE:g}/s, the closed loop {CONCURRENCY}. {work}."
    )


def situation(sides: Mapping[str, Side]) -> str:
    """What each program says, and beside it the server of that program's own requests, where it knows."""
    known = any(side.truth for side in sides.values())
    head = [""] + [word for tool in TOOLS for word in ((tool, "truth") if known else (tool,))]
    verdicts = ", ".join(sides["loadstone"].verdicts)
    said = f"\n\nloadstone's own verdict on its measurement, round by round: {verdicts}." if verdicts else ""
    return table(head, [_row(one, sides, known) for one in FIGURES]) + said


def names() -> str:
    """Which field of which file each row is."""
    rows = [
        [
            f"`{one.name}`",
            f"`{one.aiperf[0]}`" + (", max" if one.aiperf[1] == "max" else "") if one.aiperf else "-",
            f"`{_vllm(one.vllm)}`" if one.vllm else "`failed`" if one.name == "error_rate" else "-",
        ]
        for one in FIGURES
        if one.stat == "mean"
    ]
    return table(
        ("row, and our metric", "AIPerf: `profile_export_aiperf.json`", "vllm bench serve: result file"), rows
    )


def errors(found: Measured) -> str:
    """By how much the times of single requests differ from the server's."""
    rows = [
        [
            name,
            f"{words}, {stat}",
            *(_shown(side.errors.get(f"{metric}.{stat}", [])) for side in sides.values()),
        ]
        for name, sides in found.situations.items()
        if any(side.errors for side in sides.values())
        for metric, words in ERRORS.items()
        for stat in ("p50", "p99")
    ]
    return table(("load", "too long by, ms", *TOOLS), rows)


def costs(found: Measured) -> str:
    """What the whole program took."""
    rows = [
        [name, what, *(_shown(getattr(side, field)) for side in sides.values())]
        for name, sides in found.situations.items()
        for what, field in (
            ("from start to exit, s", "wall_s"),
            ("processor time of all its processes, s", "cpu_s"),
        )
    ]
    return table(("load", "", *TOOLS), rows)


def _row(one: Figure, sides: Mapping[str, Side], known: bool) -> list[str]:
    stat = "" if one.unit != "ms" else f" {one.stat}"
    cells = [f"`{one.name}`{stat}, {one.unit}"]
    for tool in TOOLS:
        cells.append(_shown(sides[tool].told.get(key(one), [])))
        if known:
            cells.append(_shown(sides[tool].truth.get(key(one), [])))
    return cells


def _vllm(field: str) -> str:
    return field.removeprefix("mean_")


def _shown(values: list[float]) -> str:
    """The median over rounds; `-` where there is none."""
    found = middle(values)
    return "-" if found is None else figure(found)
