"""`python -m bench [NAME ...]`: measures what the project promises, and fails when a bar is missed.

`--smoke` (or BENCH=smoke) is the short form: it shows that everything can be measured, and judges
only what the machine's load cannot change.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import table
from bench.client import BenchFailed
from bench.ground import Ground, Unmeasured
from bench.table import Item

MEASUREMENTS = (
    "help_cost",
    "prompts",
    "fixed_cost",
    "same_seed",
    "open_loop",
    "full_rate",
    "closed_loop",
    "cpu_per_token",
    "stamps",
    "truth",
    "sim_server",
    "memory",
    "million",
    "soak",
    "published",
    "engine_speed",
    "certificate",
    "coverage",
    "rates",
)
ON_REQUEST = ("calibration", "compare_power", "against")
"""What needs a server of somebody else's."""


def main(words: Sequence[str] | None = None) -> int:
    """The exit code: 0, or 1 when a bar is missed or something was not measured."""
    asked = _parser().parse_args(words)
    short = asked.smoke or os.environ.get("BENCH") == "smoke"
    found: list[Item] = []
    failures: list[str] = []
    unmeasured: list[str] = []
    with tempfile.TemporaryDirectory(prefix="loadstone-bench-") as folder:
        for name in asked.names or MEASUREMENTS:
            print(f"{name} ...", file=sys.stderr, flush=True)
            try:
                found += _repeated(name, Path(folder), short)
            except Unmeasured as error:
                unmeasured.append(f"{name}: not measured: {error}")
            except BenchFailed as error:
                failures.append(f"{name}: failed: {error}")
    if short:
        found = [item if item.exact else item._replace(bar=None) for item in found]
    print(table.render(found), *unmeasured, *failures, f"kept in {table.keep(found, short)}", sep="\n")
    missing = failures if short else failures + unmeasured
    return int(bool(missing) or not all(item.passed for item in found))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        choices=[[], *MEASUREMENTS, *ON_REQUEST],
        metavar="NAME",
        help=f"{', '.join(MEASUREMENTS)}; when named only: {', '.join(ON_REQUEST)}",
    )
    parser.add_argument("--smoke", action="store_true", help="the short form; judges no times")
    return parser


def _repeated(name: str, folder: Path, short: bool) -> list[Item]:
    measurement = importlib.import_module(f"bench.{name}")
    repeats = 1 if short else measurement.REPEATS
    return table.merge([measurement.measure(Ground(folder, repeat, short)) for repeat in range(repeats)])


if __name__ == "__main__":
    sys.exit(main())
