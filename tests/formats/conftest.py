"""One small run on the virtual clock, whose numbers are known exactly."""

from __future__ import annotations

import msgspec
import pytest

from loadstone.cli.entry import enter
from loadstone.report import Report

RUN = (
    "profile --url sim: --virtual --streaming --request-rate 20 --isl 24 --osl 12 --osl-stddev 3 --request-count 30"
    " --random-seed 7 --ui none --goodput ttft:25"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "one"
    assert enter([*RUN.split(), "--artifact-dir", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def report(home):
    return msgspec.json.decode((home / "report.json").read_bytes(), type=Report)


@pytest.fixture(scope="module")
def rows(home):
    return [msgspec.json.decode(line) for line in (home / "requests.jsonl").read_bytes().splitlines()]
