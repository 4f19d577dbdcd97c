"""Several answers to one request, interleaved."""

from __future__ import annotations

import numpy as np
import pytest

from loadstone.metrics import per_request
from loadstone.stats import summarise


@pytest.fixture
def two(answer):
    """Two choices in turn: 0 at 50, 70, 90 and 1 at 55, 75, 115."""

    def make(**more):
        columns = {"choices": 2, "chunk_choice": [0, 1, 0, 1, 0, 1], **more}
        return answer(50, 55, 70, 75, 90, 115, **columns)

    return make


def gaps_of(found):
    return sorted(zip(found.values.real.tolist(), found.values.imag.tolist(), strict=True))


def test_gaps_lie_within_one_choice(tables, two, result):
    found = result("inter_token_latency", tables(two()))
    assert gaps_of(found) == [(20.0, 1.0), (20.0, 1.0), (20.0, 1.0), (40.0, 1.0)]


def test_tokens_of_every_choice_count(tables, two, result, mean):
    run = tables(two(tokens=12))
    assert gaps_of(result("inter_token_latency", run)) == [(10.0, 2.0), (10.0, 2.0), (10.0, 2.0), (20.0, 2.0)]
    assert mean("output_sequence_length", run) == 12.0


def test_the_first_token_is_the_first_of_any_choice_and_the_last_the_last(tables, two, mean):
    assert mean("time_to_first_token", tables(two())) == 50.0
    assert mean("request_latency", tables(two())) == 115.0
    assert mean("time_to_second_token", tables(two())) == 20.0


def test_time_a_token_is_over_the_choices(tables, two, mean):
    run = tables(two())
    assert mean("time_per_output_token", run) == (40 + 60) / (6 - 2)
    assert mean("time_per_output_token_corrected", run) == (40 + 60) / 4
    assert mean("output_token_throughput_per_user", run) == 40.0


def test_the_mean_of_the_gaps_is_the_corrected_time_a_token(tables, two, result):
    run = tables(two(tokens=9, chunk_tokens=[2, 1, 1, 1, 3, 1]))
    gaps = summarise(result("inter_token_latency", run).values)
    assert per_request("time_per_output_token_corrected", run)[0] == pytest.approx(gaps.mean)
    assert gaps.count == 6  # nine tokens less those of the first instants, two and one


def test_choices_of_one_read_are_instants_of_their_own(tables, answer, result, mean):
    run = tables(answer(50, 50, 60, 60, choices=2, chunk_choice=[0, 1, 0, 1]))
    assert gaps_of(result("inter_token_latency", run)) == [(10.0, 1.0), (10.0, 1.0)]
    assert mean("undated_events", run) == 0.0
    assert mean("undated_first_tokens", run) == 0.0


def test_requests_of_one_and_of_several_choices_keep_their_places(tables, two, answer):
    run = tables(answer(10, 13), two(), answer(10, 17), two(outcome="reset"))
    assert np.array_equal(
        per_request("time_per_output_token_corrected", run), [3.0, 25.0, 7.0, np.nan], equal_nan=True
    )


def test_choices_that_were_not_told_are_one_stream(tables, two, result):
    found = result("inter_token_latency", tables(two(chunk_choice=None)))
    assert [gap for gap, _ in gaps_of(found)] == [5.0, 5.0, 15.0, 15.0, 25.0]


def test_lags_are_seen_of_every_choice(tables, two, result):
    assert result("client_lag", tables(two(lag=0.5))).values.tolist() == [0.5] * 6


def test_one_choice_never_reads_which(tables, answer, result, monkeypatch):
    from loadstone.metrics import Tables

    asked = []
    parts = Tables.parts
    monkeypatch.setattr(Tables, "parts", lambda run, *names: asked.append(names) or parts(run, *names))
    result("inter_token_latency", tables(answer(50, 60)))
    assert asked and not any("chunk_choice" in names for names in asked)
