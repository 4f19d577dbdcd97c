"""The tables of docs/roofline-validation.md: what stands in that page between two marks is made here, the rest by hand."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.published.compare import NEARBY, Compared, compared, first, groups, rms
from bench.published.points import FIGURES, Point, points
from bench.published.starts import Held, held, starts
from bench.table import figure
from loadstone.roofline import models
from loadstone.roofline.setup import Efficiency
from loadstone.roofline.weights import weights_of

PAGE = Path(__file__).parents[2] / "docs" / "roofline-validation.md"
MADE = re.compile(r"(<!-- made: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
FAR = 0.25
"""Errors above it need a reason."""


def markdown() -> str:
    """The page, its tables made anew."""
    return MADE.sub(
        lambda found: f"{found[1]}\n{TABLES[found['name']]()}\n\n{found[3]}", PAGE.read_text("utf-8")
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown of a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(share: float) -> str:
    """A signed share in whole percent."""
    return f"{share * 100:+.0f} %"


def setup(point: Point) -> str:
    """Model and devices of a point in a few words."""
    shape = models.by_name(point.model)
    weights = point.weights or (weights_of(shape) if shape else "fp16")
    return f"{point.model} {weights}, {point.tensor} x {point.gpu}"


def row(one: Compared) -> list[str]:
    """One figure of a point."""
    return [
        one.point.id,
        setup(one.point),
        one.point.load.words,
        FIGURES[one.figure],
        f"{one.published:,}",
        figure(one.model),
        percent(one.error),
    ]


HEAD = ("", "model, devices", "load", "figure", "published", "model", "error")


def defaults() -> str:
    """The efficiencies that the engine assumes."""
    found = Efficiency()
    return table(
        ("bandwidth", "compute", "a step", "a layer", "a sequence", "links"),
        [
            [
                f"{found.bandwidth:g} of the peak",
                f"{found.compute:g} of the peak",
                f"{found.step_s * 1e6:g} us",
                f"{found.layer_s * 1e6:g} us",
                f"{found.sequence_s * 1e6:g} us",
                f"{found.link:g} of the peak",
            ]
        ],
    )


def summary() -> str:
    """Each group in one line; TTFT apart."""
    rows = []
    for group in groups():
        one = first(group.rows)
        worst = max(one, key=lambda row: abs(row.error))
        errors = [row.error for row in one]
        rows.append(
            [
                group.name,
                str(len(one)),
                f"{rms(one) * 100:.1f} %",
                percent(statistics.median(errors)),
                f"{sum(abs(error) <= FAR for error in errors)} of {len(one)}",
                f"{percent(worst.error)} ({worst.point.id})",
            ]
        )
    return table(
        ("group", "points", "rms of errors", "median error", f"within {FAR * 100:.0f} %", "worst"), rows
    )


def fitted() -> str:
    """The points to which the defaults were fitted."""
    return table(HEAD, [row(one) for one in compared() if one.point.use == "fitted"])


def held_out() -> str:
    """The others, whose devices are known."""
    return table(HEAD, [row(one) for one in compared() if one.point.use == "held out"])


def doubtful() -> str:
    """Those whose device is in doubt, on both devices that come into question."""
    both = zip(
        (one for one in compared() if one.point.use == "device in doubt"), compared(NEARBY), strict=True
    )
    return table(
        (*HEAD[:-2], "as stated", "error", f"as {NEARBY}", "error"),
        [[*row(stated), figure(nearby.model), percent(nearby.error)] for stated, nearby in both],
    )


def reasons() -> str:
    """What is likely to be the reason where a point is far off."""
    found: dict[str, list[str]] = {}
    for one in compared():
        if one.point.reason is not None and abs(one.error) > FAR:
            ids = found.setdefault(one.point.reason, [])
            if one.point.id not in ids:
                ids.append(one.point.id)
    return "\n".join(f"- {', '.join(ids)}: {points().reasons[key]}." for key, ids in found.items())


def conditions() -> str:
    """Version, flags, source and notes of each point; neighbours that share them in one line."""
    merged: dict[tuple[str, ...], list[str]] = {}
    for point in points().points:
        flags = ", ".join(f"{name}={value}" for name, value in point.flags.items())
        key = (point.version, point.defaults, flags, point.note, point.source)
        merged.setdefault(key, []).append(point.id)
    return table(
        ("points", "vLLM", "defaults", "flags", "note", "source"),
        [
            [", ".join(ids), version, kind, flags, note, points().sources[source]]
            for (version, kind, flags, note, source), ids in merged.items()
        ],
    )


def kv_cache() -> str:
    """Memory at the start, ours beside what was logged."""
    return table(
        (
            "",
            "model, devices, utilization",
            "weights GiB",
            "activations GiB",
            "KV cache GiB",
            "tokens",
            "error",
            "source",
        ),
        [memory_row(held(start)) for start in starts().starts],
    )


def memory_row(one: Held) -> list[str]:
    """One start: logged / ours."""
    start = one.start
    tensor = f"{start.tensor} x {start.gpu}"
    note = f" ({start.note})" if start.note else ""
    return [
        start.id,
        f"{start.model}{' ' + start.weights if start.weights else ''}, {tensor}, {start.utilization:g}",
        pair(start.logged.get("weights_gib"), one.weights_gib),
        pair(start.logged.get("activation_gib"), one.activation_gib),
        pair(start.logged.get("kv_gib"), one.kv_gib, "does not start"),
        pair(start.logged.get("kv_tokens"), one.kv_tokens, "-"),
        "-" if one.error is None else percent(one.error),
        starts().sources[start.source] + note,
    ]


def pair(logged: float | None, ours: float | None, lacking: str = "-") -> str:
    """What was logged and what we say."""
    said = "-" if logged is None else f"{logged:,g}" if logged < 1000 else f"{logged:,.0f}"
    return f"{said} / {lacking if ours is None else figure(ours)}"


def text() -> str:
    """What `python -m bench published` prints."""
    rows = [["", *HEAD[1:]], *map(row, compared())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(r, widths, strict=True)).rstrip() for r in rows
    )


TABLES: dict[str, Callable[[], str]] = {
    "defaults": defaults,
    "summary": summary,
    "fitted": fitted,
    "held-out": held_out,
    "in-doubt": doubtful,
    "reasons": reasons,
    "conditions": conditions,
    "kv-cache": kv_cache,
}
