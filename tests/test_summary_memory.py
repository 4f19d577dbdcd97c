"""What the report phase adds to memory: at most 24 bytes a token, and none beyond two million samples of a pool.

Measured as the peak of a process of its own.
"""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

from loadstone import folder as run_folder
from loadstone.folder import write_run
from loadstone.metrics._pools import EXACT
from loadstone.read.schema import REQUESTS
from loadstone.read.tables import RANGE_ENTRIES

PEAK = """
import sys
from pathlib import Path
from loadstone.summary import summarise
summarise(Path(sys.argv[1]))
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")))
"""


def peak_bytes(folder):
    return int(subprocess.run([sys.executable, "-c", PEAK, folder], capture_output=True, check=True).stdout)


@pytest.fixture
def peak_of(tmp_path, frame, run_log, answer):
    """The peak of the report of a run with so many requests of so many tokens, in row groups as a run writes them."""

    def measured(requests, tokens):
        folder = tmp_path / f"{requests}-{tokens}"
        folder.mkdir()
        few = frame(*(answer(*(50 + 10.5 * k + (i % 7) for k in range(tokens)), lag=0.3) for i in range(200)))
        table = pl.concat([few] * (requests // 200), rechunk=True).select(list(REQUESTS))
        table.write_parquet(folder / run_folder.REQUESTS, row_group_size=RANGE_ENTRIES // tokens)
        write_run(folder, run_log(planned=requests))
        return peak_bytes(folder)

    return measured


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process from /proc")
def test_the_report_phase_adds_at_most_24_bytes_a_token_while_samples_are_exact(peak_of):
    assert peak_of(15_000, 128) - peak_of(200, 128) <= 24 * 128 * (15_000 - 200)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process from /proc")
def test_beyond_what_fits_tokens_take_no_more_memory(peak_of):
    """Kept one by one, the 7.2 million tokens more would take 115 MB."""
    assert EXACT < 20_000 * 127
    assert peak_of(20_000, 488) - peak_of(20_000, 128) <= 60e6
