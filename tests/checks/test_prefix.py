from __future__ import annotations

import pytest

from loadstone.checks.prefix import prefix_cache_leak
from loadstone.folder import DatasetLog, PreflightLog
from loadstone.report import ServerFacts


def preflight(template):
    return PreflightLog(
        request_id="p", http_status=200, latency_ms=1, content_tokens=10, prompt_tokens=10 + template
    )


def usage(answer, cached, prompt=1000, **more):
    return answer(5, usage_cached_tokens=cached, usage_prompt_tokens=prompt, input_tokens=prompt, **more)


@pytest.mark.parametrize(
    ("cached", "verdict", "percent"),
    [(46, "VALID", 0), (55, "VALID", 0.9), (56, "NOTE", 1), (95, "NOTE", 4.9), (96, "DEGRADED", 5)],
)
def test_what_is_cached_beyond_the_template_and_a_block(evidence, answer, cached, verdict, percent):
    told = prefix_cache_leak(evidence(usage(answer, cached), preflight=preflight(30)))
    assert (told.verdict, told.value) == (verdict, pytest.approx(percent))


def test_a_template_of_unknown_length_may_have_64_tokens(evidence, answer):
    assert prefix_cache_leak(evidence(usage(answer, 80))).value == 0
    assert prefix_cache_leak(evidence(usage(answer, 180))).value == 10


def test_more_cached_tokens_than_the_prompt_has_are_no_count(evidence, answer):
    assert prefix_cache_leak(evidence(usage(answer, 300, prompt=100))).value is None


def test_the_page_of_the_server_tells_where_its_answers_do_not(evidence, answer):
    page = ServerFacts(page="m", prefix_cache_hit_rate=0.5)
    row = answer(5, input_tokens=1000)
    told = prefix_cache_leak(evidence(row, preflight=preflight(84), server=[page]))
    assert (told.verdict, told.value) == ("DEGRADED", pytest.approx(40))


@pytest.mark.parametrize(("reused", "verdict"), [(1, "VALID"), (2, "NOTE")])
def test_prompts_sent_twice_where_the_server_tells_nothing(evidence, answer, run_log, reused, verdict):
    dataset = DatasetLog(
        source="synthetic",
        tokenizer="builtin",
        lengths_exact=True,
        unique_prompts=False,
        reused=reused,
        digest="0",
    )
    told = prefix_cache_leak(evidence(*[answer(5)] * 100, dataset=dataset))
    assert (told.verdict, told.value) == (verdict, None)


@pytest.mark.parametrize("shared", [{"entries": 5}, {"file": "trace.jsonl"}])
def test_prompts_that_the_input_shares_are_no_leak(evidence, answer, shared):
    told = prefix_cache_leak(evidence(usage(answer, 900), config={"input": shared}))
    assert (told.verdict, told.value) == ("VALID", None)


def test_a_later_turn_begins_with_the_earlier_ones(evidence, answer):
    rows = [usage(answer, 900, conversation=1, turn=turn) for turn in (0, 1)]
    assert prefix_cache_leak(evidence(*rows)).value is None


@pytest.mark.parametrize(("seed", "word"), [(7, "--random-seed"), (None, "--isl")])
def test_the_same_seed_asks_the_same_again(evidence, answer, seed, word):
    told = prefix_cache_leak(evidence(usage(answer, 900), config={"input": {"seed": seed}}))
    assert word in told.advice
