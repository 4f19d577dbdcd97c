"""Every kind of request against llama.cpp: what it counts, what it ignores, and how it says no."""

from __future__ import annotations

import pytest

from loadstone.errors import Exit

pytestmark = pytest.mark.real

CHAT = "--model tiny --isl 32 --osl 6 --request-count 6 --random-seed 3"
TEXT = f"--endpoint-type completions {CHAT}"


def test_text_prompts_are_counted_by_the_server_as_they_were_made(profile):
    """Without a chat template there is nothing besides them."""
    run = profile(*TEXT.split(), "--streaming", "--isl-stddev", "12")
    requests = run.requests
    assert run.outcomes == {"ok-length": 6}
    assert requests["planned_input_tokens"].n_unique() > 1
    assert requests["usage_prompt_tokens"].to_list() == requests["planned_input_tokens"].to_list()
    assert run.log["preflight"]["prompt_tokens"] == run.log["preflight"]["content_tokens"]


def test_token_ids_are_those_that_the_server_makes_of_the_text(profile, llama):
    text = profile(*TEXT.split(), "--streaming")
    ids = profile(*TEXT.split(), "--streaming", "--prompt-token-ids")
    assert ids.outcomes == {"ok-length": 6}
    assert ids.requests["usage_prompt_tokens"].to_list() == [32] * 6
    assert [body["prompt"] for body in ids.bodies] == [
        llama.token_ids(body["prompt"]) for body in text.bodies
    ]


def test_without_streaming_the_whole_answer_is_measured(profile):
    run = profile(*CHAT.split())
    metrics = run.report["metrics"]
    assert run.code == Exit.DONE, run.said
    assert run.outcomes == {"ok-length": 6}
    assert run.requests["usage_completion_tokens"].to_list() == [6] * 6
    assert metrics["request_latency"]["count"] == 6
    assert metrics["time_to_first_token"]["p50"] is None
    assert "--streaming" in metrics["time_to_first_token"]["reason"]
    assert run.counted["requests"] == 7


def test_warm_up_is_counted_by_the_server_and_not_measured(profile):
    run = profile(*CHAT.split(), "--streaming", "--warmup-request-count", "5", "--concurrency", "3")
    everything, preflight = run.every_request, run.log["preflight"]
    assert run.report["outcomes"]["planned"] == 6
    assert run.report["outcomes"]["warmup"] == {"ok-length": 5}
    assert run.counted["requests"] == 6 + 5 + 1
    assert run.counted["output_tokens"] == 11 * 6 + 1
    assert (
        run.counted["prompt_tokens"] == everything["usage_prompt_tokens"].sum() + preflight["prompt_tokens"]
    )


def test_prompts_are_found_in_the_servers_cache_only_when_the_seed_is_given_again(profile):
    """Of others only what the chat template puts before the content, which is fewer tokens than the whole template."""
    words = "--model tiny --streaming --isl 32 --osl 6 --request-count 6"
    fresh = profile(*words.split())
    again = profile(*words.split(), "--random-seed", str(fresh.report["run"]["seed"]))
    template = fresh.log["preflight"]["prompt_tokens"] - fresh.log["preflight"]["content_tokens"]
    assert fresh.requests["usage_cached_tokens"].null_count() == 0
    assert fresh.requests["usage_cached_tokens"].max() < template
    assert fresh.counted["cached_tokens"] - fresh.requests["usage_cached_tokens"].sum() in range(template)
    assert again.requests["usage_cached_tokens"].to_list() == [32 + template - 1] * 6


def test_the_template_can_be_taken_off_the_length(profile):
    run = profile(*CHAT.split(), "--streaming", "--isl-includes-template")
    assert run.requests["usage_prompt_tokens"].to_list() == [32] * 6


def test_a_field_that_the_server_does_not_know_does_no_harm(profile):
    run = profile(*CHAT.split(), "--streaming", "--extra-inputs", "no_such_field:true")
    assert run.outcomes == {"ok-length": 6}
    assert all(body["no_such_field"] is True for body in run.bodies)


def test_the_model_is_the_one_that_the_server_lists(profile):
    run = profile("--streaming", *CHAT.removeprefix("--model tiny").split())
    assert run.report["config"]["endpoint"]["model"] == "tiny"
    assert run.outcomes == {"ok-length": 6}


def test_prompts_longer_than_the_context_fail_in_the_servers_words(profile):
    run = profile(*CHAT.replace("--isl 32", "--isl 3000").split(), "--streaming")
    (fault,) = run.report["outcomes"]["faults"]
    assert run.code == Exit.FAILED, run.said
    assert run.outcomes == {"http-invalid": 6}
    assert run.requests["http_status"].to_list() == [400] * 6
    assert "request (3008 tokens) exceeds the available context size" in fault["message"]
    assert "HTTP 400: request (3008 tokens) exceeds the available" in run.said


def test_a_path_that_is_not_there_is_told_before_the_load(profile):
    run = profile(*CHAT.split(), "--endpoint", "/v1/nothing")
    assert run.code == Exit.FAILED
    assert "/v1/nothing" in run.said
    assert "HTTP 404: File Not Found" in run.said
    assert run.counted["requests"] == 0
    assert not run.folder.exists()


def test_an_answer_left_unfinished_at_the_end_is_cut(profile):
    words = "--model tiny --streaming --isl 16 --osl 1500 --concurrency 2 --extra-inputs ignore_eos:true"
    run = profile(*words.split(), "--benchmark-duration", "1", "--benchmark-grace-period", "0")
    requests = run.requests
    assert run.outcomes == {"cut": 2}
    assert requests["first_ns"].null_count() == 0
    assert run.counted["requests"] == 3
    assert sum(map(len, requests["arrival_ns"])) <= run.counted["output_tokens"] < 2 * 1500
