"""Runs on the virtual clock, and what their engines say of them; in this process, since there is nothing to wait for."""

from __future__ import annotations

import shlex
from functools import cached_property
from itertools import count

import polars as pl
import pytest
from tests.folders import Folder

from loadstone.cli.profile import profile
from loadstone.sim.truth import read_truth

EVEN = "step_us_per_sequence=0,prefill_us_per_token=0"
"""An engine whose steps all take `step_ms`."""


class Simulated(Folder):
    """The folder of a simulated run, and the truth."""

    def __init__(self, path, code):
        super().__init__(path)
        self.code = code

    @cached_property
    def rows(self):
        """The rows of the measured phases as dictionaries."""
        measured = [phase.name for phase in self.log.phases if phase.kind == "measured"]
        return self.table.filter(pl.col("phase").is_in(measured)).to_dicts()

    @cached_property
    def truth(self):
        """What the engines say, by the number of the request."""
        files = sorted(self.path.parent.glob(f"{self.path.name}-truth*"))
        found = [row for file in files for row in read_truth(file)]
        return {int(row.request_id.rpartition("-")[2]): row for row in found}

    def adds_up(self):
        outcomes = self.report.outcomes
        assert outcomes.planned == sum(outcomes.counts.values()) == len(self.rows)

    def metric(self, name):
        return self.report.metrics[name]


@pytest.fixture(scope="module")
def simulate(tmp_path_factory):
    """`simulate("--concurrency 2", step_ms=5)`: a run of engines with these keys, streaming, with its truth written.

    A tuple has the values of a key for one engine after the other. `isl=False` leaves the prompts to a file. Without a word
    there is no way between client and server; None: as long a one as by default.
    """
    home, serial = tmp_path_factory.mktemp("virtual"), count()

    def run(words="", engines=1, streaming=True, seed=1, even=True, isl=True, network_us=0, **keys):
        folder = home / f"run{next(serial)}"
        urls = []
        for number in range(engines):
            given = {"network_us": network_us, **keys}
            own = {key: value[number] if isinstance(value, tuple) else value for key, value in given.items()}
            own["truth"] = f"{folder}-truth{number}"
            asked = [f"{key}={value}" for key, value in own.items() if value is not None]
            urls.append(f"--url sim:{','.join([*asked, EVEN] if even else asked)}")
        arguments = [
            *shlex.split(" ".join(urls)), "--virtual", "--artifact-dir", str(folder), "--seed", str(seed), "--ui", "none",
            "--extra-inputs", "ignore_eos:true",
            *(["--isl", "16"] if isl and "--isl " not in words else []),
            *(["--streaming"] if streaming else []), *shlex.split(words),
        ]  # fmt: skip
        code = profile.main(arguments, standalone_mode=False, obj=arguments)
        return Simulated(folder, code)

    return run
