"""Evidence of runs built by hand, for the checks that look at tables and logs alone."""

from __future__ import annotations

import pytest

from loadstone.checks import Evidence


@pytest.fixture
def evidence(tables, run_log):
    """The evidence of a run with these rows, without metrics; `config` goes into its branches, other keywords to `run_log`."""

    def make(*rows, config=None, server=(), **run):
        log = run_log(**{"planned": len(rows), **run})
        for branch, values in (config or {}).items():
            log.config[branch] = log.config.get(branch, {}) | values
        return Evidence(tables(*rows, **run | {"config": log.config}), {}, tuple(server))

    return make
