"""The faults as a list: for the terminal (`loadstone simulate --faults`) and as a page (`docs/faults.md`)."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.sim.faults import FAMILIES, FAULTS, Fault

_NEEDS = {"": "any", "stream": "stream", "chat": "chat stream"}

_HEAD = """\
# Faults

What `loadstone simulate --fault NAME` and `--url sim:fault=NAME` can do; [simulate.md](simulate.md) says how they are asked for.
This page is made from the code (`make docs`); `loadstone simulate --faults` prints the same.

Where nothing else is said, the answer has 5 tokens (fewer when fewer are asked for), the first 70 ms after the request and the
others 20 ms apart, is complete and ends with `stop`. *Outcome* is what a right client calls the end of a streamed request, by
the names of [outputs.md](outputs.md); that of one without a stream is the same unless another is named. *Hits* is the kind of
request that gets the fault; any other is answered well.
"""


def text() -> str:
    """For the terminal: a line a fault, by family."""
    widths = [
        max(map(len, cells)) for cells in zip(*(_cells(fault) for fault in FAULTS.values()), strict=True)
    ]
    parts = []
    for family in FAMILIES:
        rows = (zip(_cells(fault), widths, strict=True) for fault in family.faults)
        lines = ("  ".join(f"{cell:{width}}" for cell, width in row).rstrip() for row in rows)
        parts.append("\n".join([family.title, *(f"  {line}" for line in lines)]))
    return "\n\n".join(parts)


def markdown() -> str:
    """`docs/faults.md`."""
    return _HEAD + "".join(_chapters())


def _chapters() -> Iterator[str]:
    for family in FAMILIES:
        yield f"\n## {family.title}\n\n| fault | outcome | hits | what the server does |\n|---|---|---|---|\n"
        for fault in family.faults:
            name, outcome, hits, does = _cells(fault)
            does = does.replace("|", "\\|").replace("<", "&lt;")
            yield f"| `{name}` | `{outcome}` | {hits} | {does} |\n"


def _cells(fault: Fault) -> tuple[str, str, str, str]:
    """Name, outcome, what must be asked for, what the server does."""
    other = f" Without a stream: `{fault.unstreamed}`." if fault.unstreamed else ""
    return fault.name, fault.outcome, _NEEDS[fault.needs], fault.does + other
