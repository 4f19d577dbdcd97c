"""What several servers and models get of the load, and results for each of them by itself."""

from __future__ import annotations

import polars as pl
import pytest
from tests.e2e.shapes import Recorded

QUICK = "--isl 16 --osl 1"


@pytest.fixture(scope="module")
def nulls(simulate):
    return [simulate("--null --model a,b,c"), simulate("--null --model a,b,c")]


def to(servers):
    return " ".join(f"--url {server.url}" for server in servers)


@pytest.fixture(scope="module")
def halves(good, nulls):
    return good(f"{to(nulls)} --model a,b,c {QUICK} --request-rate 300 --request-count 120 --workers 2")


def own(run, column, number):
    return run.requests.filter(pl.col(column) == number)


def test_in_turn_every_server_gets_an_exact_half(halves):
    assert halves.requests["target"].to_list() == [0, 1] * 60
    assert halves.requests["model"].to_list() == [0, 1, 2] * 40
    assert halves.counts == {"ok-length": 120}


@pytest.mark.parametrize(("column", "count"), [("target", 2), ("model", 3)])
def test_each_has_its_own_results_and_they_add_up(halves, nulls, column, count):
    groups = {"target": halves.report.targets, "model": halves.report.models}[column]
    names = {"target": [server.url for server in nulls], "model": ["a", "b", "c"]}[column]
    assert [group.name for group in groups] == names
    assert [group.counts for group in groups] == [{"ok-length": 120 // count}] * count
    for number, group in enumerate(groups):
        rows = own(halves, column, number)
        result = group.metrics["request_latency"]
        assert (group.planned, result.count) == (len(rows), len(rows))
        assert result.mean == pytest.approx(((rows["done_ns"] - rows["sent_ns"]) / 1e6).mean(), rel=1e-9)
        assert group.metrics["error_rate"].mean == 0


def test_the_servers_saw_what_the_table_says(halves, nulls):
    for number, server in enumerate(nulls):
        asked = {f"{halves.log.id}-{row}" for row in own(halves, "target", number)["request"]}
        truth = server.truth(halves, len(asked))
        assert {name for name in truth if "preflight" not in name} == asked


def test_weights_share_the_load_within_what_chance_allows(good, nulls):
    run = good(f"{to(nulls)} {QUICK} --url-weights 3,1 --request-rate inf --request-count 400 --seed 1")
    first = len(own(run, "target", 0))
    assert first == pytest.approx(300, abs=4 * (400 * 0.75 * 0.25) ** 0.5)
    assert first != 300, "drawn for each conversation"
    assert [group.planned for group in run.report.targets] == [first, 400 - first]
    assert [row.target for row in Recorded(run, "measured").plan] == run.requests["target"].to_list()


def test_a_conversation_stays_with_its_server_and_model(good, nulls):
    run = good(
        f"{to(nulls)} --model a,b,c {QUICK} --url-strategy random --model-selection-strategy random"
        " --conversation-turn-mean 3 --num-sessions 20 --concurrency 4"
    )
    places = run.requests.group_by("conversation").agg(
        pl.col("target").n_unique(), pl.col("model").n_unique(), pl.len()
    )
    assert set(places.drop("conversation").rows()) == {(1, 1, 3)}
    assert run.requests["target"].n_unique() == 2
    assert run.requests["model"].n_unique() == 3


def test_the_quicker_server_gets_more_where_the_least_busy_is_asked(good, simulate):
    """Of four requests in flight the slow one keeps about half; the quick one has answered 20 times as often."""
    servers = [simulate("--step-ms 200"), simulate("--step-ms 10")]
    run = good(f"{to(servers)} {QUICK} --url-strategy least-in-flight --concurrency 4 --request-count 60")
    slow, quick = (len(own(run, "target", number)) for number in (0, 1))
    assert slow + quick == 60
    assert quick > 2 * slow > 0
    assert [group.planned for group in run.report.targets] == [slow, quick]
    assert run.report.targets[0].metrics["request_latency"].p50 > 150
