"""A run's folder: every request as its metrics have it."""

from __future__ import annotations

import numpy as np
import pytest

from loadstone import compare
from loadstone.compare.importers import read
from loadstone.errors import UsageError
from loadstone.export import report_json
from loadstone.summary import summarise


@pytest.fixture
def home(tmp_path, frame, run_log, answer):
    """Three requests, 100 ms apart, the last one sent before the second."""
    from loadstone import folder as layout

    home = tmp_path / "run"
    home.mkdir()
    rows = [answer(20, 50, 70, sent=0), answer(240, 260, sent=200), answer(150, 160, 190, sent=100)]
    frame(*rows).write_parquet(home / layout.REQUESTS)
    layout.write_run(home, run_log(planned=3))
    report_json.write(summarise(home), home)
    return home


def test_requests_are_in_the_order_of_sending(home):
    requests = read(home).requests
    np.testing.assert_allclose(requests.sent_s, [0, 0.1, 0.2])
    assert (requests.keys - requests.keys.min()).tolist() == [0, 2, 1]
    np.testing.assert_allclose(requests.latencies["time_to_first_token"], [20, 50, 40])
    np.testing.assert_allclose(requests.latencies["request_latency"], [70, 90, 60])
    assert requests.pace.spent.sum() == pytest.approx(0.26)


def test_gaps_are_those_of_inter_token_latency(home):
    run = read(home)
    gaps = run.requests.pooled["inter_token_latency"]
    np.testing.assert_allclose(np.sort(gaps.values), [10, 20, 20, 30, 30])
    above, below = run.requests.pooled_sums["inter_token_latency"]
    assert above.sum() / below.sum() == pytest.approx(run.numbers["inter_token_latency", "mean"].value)


def test_what_the_requests_give_is_what_the_report_says(home):
    run = read(home)
    other = compare.Side("A", (run,))
    for row in compare.report([other, other]).comparisons[0].rows:
        assert row.a == pytest.approx(run.numbers[row.metric, row.stat or "mean"].value), row.metric


def test_a_folder_without_a_report_says_how_to_make_one(home):
    (home / "report.json").unlink()
    with pytest.raises(UsageError, match=r"holds no report.json; `loadstone report .*` makes it"):
        read(home)


def test_a_report_alone_has_no_requests(home):
    run = read(home / "report.json")
    assert run.requests is None
    assert run.asked["model"] == read(home).asked["model"]


def test_a_damaged_report_is_one_sentence(home):
    (home / "report.json").write_text("{}")
    with pytest.raises(UsageError, match="a file of the run is damaged or of another version"):
        read(home)
