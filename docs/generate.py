"""Writes the pages of this folder that are made from the code: `make docs`. A test holds that they are current."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # the bench stands beside the package

from bench.against import page as against
from bench.certificate import page as certificate
from bench.published import page as published

from loadstone.config import docs as config
from loadstone.metrics import _docs as metrics
from loadstone.metrics._namesakes import _page as names
from loadstone.sim.faults import listing as faults

HERE = Path(__file__).parent

PAGES = {
    "configuration.md": config.table,
    "config.schema.json": config.schema,
    "metrics.md": metrics.markdown,
    "faults.md": faults.markdown,
    "roofline-validation.md": published.markdown,
    "certificate.md": certificate.markdown,
    "against-other-tools.md": against.markdown,
    "coming-from.md": lambda: names.filled((HERE / "coming-from.md").read_text("utf-8")),
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
