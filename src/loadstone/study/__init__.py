"""Several runs as one answer: the same run repeated, or two servers in turn.

What a run says of itself cannot tell how far the next one would differ: another placement in memory, a busier
neighbour, a cache in another state. Only runs tell that. A study is a folder of run folders and `study.json`.
"""

from __future__ import annotations

from loadstone.study.document import read
from loadstone.study.pages import PAGES
from loadstone.study.repeat import rebuild, study

__all__ = ["PAGES", "read", "rebuild", "study"]
