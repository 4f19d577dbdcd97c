"""Conversations of several turns: one after the other, think times between, on one connection, and given up as a whole."""

from __future__ import annotations

from collections import Counter, defaultdict

import polars as pl
import pytest
from tests.e2e.shapes import Recorded, peak

ASK = "--model m --streaming --isl 16 --conversation-turn-mean 3"
THINK_NS = 20_000_000
FAILED = "an earlier turn of its conversation failed"


def by_conversation(table):
    """The rows of every conversation, in the order of its turns."""
    return [rows.sort("turn") for rows in table.partition_by("conversation", maintain_order=True)]


def calls_by_conversation(server):
    """What a server was asked, by conversation of three turns, in the order in which it came."""
    found = defaultdict(list)
    for call in server.posts:
        if call.row is not None:
            found[call.row // 3].append(call)
    return found


# ---- in their order -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def talked(good, scripted_for_all):
    """Eight conversations at three places, by two workers, on connections of their own; and the server that had them."""
    server = scripted_for_all()
    run = good(
        f"--url {server.url} {ASK} --num-sessions 8 --concurrency 3 --conversation-turn-delay-mean 20 --workers 2"
        " --connection-reuse-strategy sticky-user-sessions --session-header X-Session-ID"
        " --session-header X-Affinity --session-end-header 'X-Session-End: yes'"
    )
    return run, server


def test_every_conversation_goes_on_to_its_last_turn(talked):
    run, _ = talked
    assert run.counts == {"ok": 24}
    assert run.requests["conversation"].to_list() == [n for n in range(8) for _ in range(3)]
    assert run.requests["turn"].to_list() == [0, 1, 2] * 8
    run.adds_up()


def test_a_turn_is_due_its_think_time_after_the_answer_before(talked):
    run, _ = talked
    for row in Recorded(run, "measured").plan:
        assert (row.follows, row.due_ns) == ((1, THINK_NS) if row.turn else (0, -1))
    for turns in by_conversation(run.requests):
        later = turns[1:]
        assert (later["due_ns"] >= turns["done_ns"][:-1] + THINK_NS).all()
        assert (later["sent_ns"] >= later["due_ns"]).all()
        assert later["worker"].n_unique() == 1


def test_a_conversation_keeps_its_place_to_its_end(talked):
    run, _ = talked
    spans = run.requests.group_by("conversation").agg(pl.col("sent_ns").min(), pl.col("done_ns").max())
    assert peak(spans) == 3


def test_a_turn_says_again_what_was_asked_before(talked):
    _, server = talked
    for calls in calls_by_conversation(server).values():
        asked = [[m["content"] for m in call.body["messages"] if m["role"] == "user"] for call in calls]
        assert [len(prompts) for prompts in asked] == [1, 2, 3]
        assert asked[2][:2] == asked[1]
        assert asked[1][:1] == asked[0]


def test_a_conversation_has_one_connection_to_itself(talked):
    _, server = talked
    for calls in calls_by_conversation(server).values():
        assert [call.nth for call in calls] == [0, 1, 2]
    first = [call for call in server.posts if call.row is not None and call.nth == 0]
    assert len(first) == 8


def test_session_headers_tell_conversations_apart(talked):
    _, server = talked
    ids = set()
    for calls in calls_by_conversation(server).values():
        told = {(call.headers["x-session-id"], call.headers["x-affinity"]) for call in calls}
        assert len(told) == 1
        ids |= told
    assert len(ids) == 8
    assert all(session == affinity != "" for session, affinity in ids)


def test_the_end_of_a_session_is_told_with_its_last_turn_alone(talked):
    _, server = talked
    for calls in calls_by_conversation(server).values():
        assert [call.headers.get("x-session-end") for call in calls] == [None, None, "yes"]


def test_connections_are_shared_unless_asked_otherwise(good, scripted):
    server = scripted()
    run = good(f"--url {server.url} {ASK} --num-sessions 6 --concurrency 2 --workers 1")
    assert run.counts == {"ok": 18}
    assert max(call.nth for call in server.posts if call.row is not None) > 2
    assert not any("session" in name for call in server.posts for name in call.headers)


# ---- of different lengths -------------------------------------------------------------------------------


def test_a_count_of_requests_ends_the_last_conversation_early(good, scripted):
    server = scripted()
    run = good(
        f"--url {server.url} {ASK} --conversation-turn-stddev 1 --request-count 40 --request-rate 100 --seed 3"
        " --session-end-header 'X-Session-End: yes'"
    )
    assert run.counts == {"ok": 40}
    turns = Counter(run.requests["conversation"])
    assert len(set(turns.values())) > 1
    ended = {call.row for call in server.posts if "x-session-end" in call.headers}
    assert ended == set(run.requests.group_by("conversation").agg(pl.col("request").max())["request"])


# ---- given up -------------------------------------------------------------------------------------------


def fails_at(*rows):
    def script(call, wire):
        if call.row in rows:
            wire.refuse("500 Internal Server Error", "no")
        else:
            wire.answer(call)

    return script


@pytest.fixture(scope="module", params=["--concurrency 3", "--request-rate 60"])
def given_up(good, scripted_for_all, request):
    """Of ten conversations number 2 fails at its first turn, 4 at its second, and 6 at its last."""
    server = scripted_for_all(fails_at(6, 13, 20))
    run = good(f"--url {server.url} {ASK} --num-sessions 10 --max-error-rate 1 {request.param}")
    return run, server


def test_what_follows_a_failed_turn_is_not_sent_and_says_why(given_up):
    run, server = given_up
    assert run.counts == {"ok": 24, "http-server-error": 3, "not-sent": 3}
    left = run.requests.filter(pl.col("outcome") == "not-sent")
    assert left.select("request", "turn").rows() == [(7, 1), (8, 2), (14, 2)]
    assert set(left["fault"]) == {FAILED}
    assert left["due_ns"].null_count() == left["sent_ns"].null_count() == 3
    assert {call.row for call in server.posts} == {None, *range(30)} - {7, 8, 14}
    run.adds_up()


def test_a_turn_that_was_never_due_was_not_offered(given_up):
    run, _ = given_up
    load = run.report.load
    assert (load.offered, load.sent, load.not_sent, load.never_due) == (27, 27, 0, 3)
    assert run.report.outcomes.not_sent == ({"reason": FAILED, "count": 3},)
    assert run.number("error_rate") == pytest.approx(100 * 3 / 27, rel=1e-9)
    assert sum(run.report.series.offered) == 27
