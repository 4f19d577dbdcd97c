"""The table of names of docs/coming-from.md: what the metrics of the best-known tools are called here."""

from __future__ import annotations

import re
from collections.abc import Iterable

from loadstone.metrics import all_metrics
from loadstone.metrics._namesakes import Namesake, namesakes

TOOLS = ("AIPerf", "GenAI-Perf", "vLLM bench serve", "SGLang bench_serving", "GuideLLM")
MADE = re.compile(r"(<!-- made: metrics -->\n).*?(<!-- end -->)", re.DOTALL)
DIFFERS = " *"


def filled(page: str) -> str:
    """The page, its table made anew."""
    return MADE.sub(lambda mark: f"{mark[1]}\n{_table()}\n\n{mark[2]}", page)


def _table() -> str:
    rows = [
        f"| {' | '.join([f'`{name}`', *(_cell(namesakes(name), tool) for tool in TOOLS)])} |"
        for name in all_metrics()
        if any(one.tool in TOOLS for one in namesakes(name))
    ]
    return "\n".join([f"| here | {' | '.join(TOOLS)} |", "|---" * (len(TOOLS) + 1) + "|", *rows])


def _cell(found: Iterable[Namesake], tool: str) -> str:
    return ", ".join(
        f"`{name}`{DIFFERS if one.differs else ''}" for one in found if one.tool == tool for name in one.names
    )
