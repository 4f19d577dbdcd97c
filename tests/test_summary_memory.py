"""What the report phase adds to memory: at most 24 bytes a token, measured as the peak of a process of its own."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

from loadstone import folder as run_folder
from loadstone.folder import write_run
from loadstone.read.schema import REQUESTS

TOKENS = 128
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process from /proc")
def test_the_report_phase_adds_at_most_24_bytes_a_token(tmp_path, frame, run_log, answer):
    few = frame(*(answer(*(50 + 10.5 * k + (i % 7) for k in range(TOKENS)), lag=0.3) for i in range(200)))
    peaks = {}
    for requests in (200, 20_000):
        folder = tmp_path / str(requests)
        folder.mkdir()
        table = pl.concat([few] * (requests // 200), rechunk=True).select(list(REQUESTS))
        table.write_parquet(folder / run_folder.REQUESTS, row_group_size=819)
        write_run(folder, run_log(planned=requests))
        peaks[requests] = peak_bytes(folder)
    assert peaks[20_000] - peaks[200] <= 24 * TOKENS * (20_000 - 200)
