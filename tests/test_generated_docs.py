"""Pages made from the code are as the code would make them now."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = runpy.run_path(str(DOCS / "generate.py"))["PAGES"]


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_page_is_current(name):
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"
