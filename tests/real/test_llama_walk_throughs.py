"""Both walk-throughs, as they are written, against a server that nobody here wrote."""

from __future__ import annotations

import polars as pl
import pytest

from loadstone.errors import Exit

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

STATIC = (
    "--model tiny --endpoint-type chat --streaming "
    "--synthetic-input-tokens-mean 128 --synthetic-input-tokens-stddev 0 "
    "--output-tokens-mean 128 --output-tokens-stddev 0 "
    "--extra-inputs min_tokens:128 --extra-inputs ignore_eos:true"
)
DYNAMIC = (
    "--model tiny --endpoint-type chat --streaming --request-rate 10 --arrival-pattern poisson "
    "--synthetic-input-tokens-mean 512 --synthetic-input-tokens-stddev 128 "
    "--output-tokens-mean 128 --output-tokens-stddev 32 --random-seed 42 --request-count 200"
)


@pytest.fixture(scope="module")
def static(profile):
    return profile(*STATIC.split())


@pytest.fixture(scope="module")
def dynamic(profile):
    return profile(*DYNAMIC.split())


@pytest.fixture(params=["static", "dynamic"])
def walk(request):
    """Either of them."""
    return request.getfixturevalue(request.param)


def test_every_request_of_the_static_load_succeeds(static):
    assert static.code == Exit.DONE, static.said
    assert static.outcomes == {"ok-length": 50}


def test_every_request_of_the_dynamic_load_succeeds(dynamic):
    assert dynamic.code == Exit.DONE, dynamic.said
    assert dynamic.outcomes == {"ok-length": 200}


def test_the_client_is_not_at_fault(walk):
    """A server too slow for the load is a finding; the measurement can be believed."""
    checks = {check["name"]: check for check in walk.report["certificate"]["checks"]}
    assert walk.report["certificate"]["verdict"] != "INVALID", walk.said
    assert (checks["processes"]["value"], checks["lost_requests"]["value"]) == (0, 0)


def test_the_server_counted_the_same(walk):
    """Requests and tokens: what was planned, and one request before it that asked for one token."""
    requests, preflight = walk.requests, walk.log["preflight"]
    assert walk.counted["requests"] == len(requests) + 1
    assert walk.counted["prompt_tokens"] == requests["usage_prompt_tokens"].sum() + preflight["prompt_tokens"]
    assert walk.counted["output_tokens"] == requests["planned_output_tokens"].sum() + 1


def test_prompts_have_exactly_the_tokens_planned(walk):
    """In the server's count as well: the same few more for every one, those of the chat template."""
    preflight = walk.log["preflight"]
    template = preflight["prompt_tokens"] - preflight["content_tokens"]
    added = walk.requests["usage_prompt_tokens"] - walk.requests["planned_input_tokens"]
    assert template > 0
    assert added.unique().to_list() == [template]


def test_every_token_is_seen_to_arrive(walk):
    """This model says whole words, so the server sends each token by itself; nothing is missed or seen twice."""
    seen = walk.requests.select(
        pl.col("arrival_ns").list.len().cast(pl.Int64),
        pl.col("read_ns").list.len().cast(pl.Int64),
        "output_tokens",
        "usage_completion_tokens",
    )
    asked = walk.requests["planned_output_tokens"].to_list()
    assert [column.to_list() for column in seen] == [asked] * 4
    assert walk.requests["output_tokens_source"].unique().to_list() == ["usage"]


def test_instants_are_in_order(walk):
    instants = walk.requests.select("due_ns", "sent_ns", "first_ns", "last_ns", "done_ns")
    rows = instants.rows()
    assert [sorted(row) for row in rows] == [list(row) for row in rows]
    arrivals = walk.requests["arrival_ns"].to_list()
    assert all(sorted(column) == column for column in arrivals)


def test_a_connection_that_the_server_closes_after_each_answer_is_no_failure(static):
    """It says keep-alive and hangs up all the same; the next request sees that, or meets a dead connection and goes again."""
    requests = static.requests
    assert requests["connect_ns"].null_count() == 0
    assert requests["retries"].is_in([0, 1]).all()
    assert static.report["outcomes"]["retries"] == requests["retries"].sum()


def test_the_static_load_is_static(static):
    lengths = static.report["metrics"]["output_sequence_length"]
    assert (lengths["min"], lengths["max"], lengths["count"]) == (128, 128, 50)
    assert static.requests["planned_input_tokens"].unique().to_list() == [128]


def test_the_dynamic_load_is_what_was_asked(dynamic):
    lengths = dynamic.requests.select("planned_input_tokens", "planned_output_tokens")
    isl, osl = lengths.mean().row(0)
    assert abs(isl - 512) <= 28
    assert abs(osl - 128) <= 20
    assert dynamic.requests["sent_ns"].null_count() == 0


def test_a_server_slower_than_the_rate_is_saturated_and_the_run_valid(profile):
    words = "--model tiny --streaming --request-rate 200 --request-count 120 --isl 16 --osl 48"
    run = profile(*words.split())
    assert run.code == Exit.DONE, run.said
    assert run.report["run"]["saturated"] is True
    assert run.report["certificate"]["verdict"] != "INVALID"
    assert run.counted["requests"] == 121
