from __future__ import annotations

import msgspec
import pytest

from loadstone.checks import CHECKS, Evidence
from loadstone.checks.roofline import percent_of_roofline
from loadstone.metrics import all_metrics
from loadstone.roofline.case import settled
from loadstone.summary import measure


@pytest.fixture
def check(tables):
    """The check of a run on 4 A100 with a 70B model, whose floor is 17.3 ms a token."""

    def of(*rows, named=True):
        case = settled("gpu=a100,tensor_parallel_size=4", "llama-3.1-70b")
        told = {"roofline": msgspec.to_builtins(case)} if named else {}
        found = tables(*rows, environment=told)
        return percent_of_roofline(
            Evidence(found, {name: measure(one, found) for name, one in all_metrics().items()})
        )

    return of


def rows(answer, first_ms, gap_ms, **columns):
    return [answer(*(first_ms + gap_ms * k for k in range(20)), **columns) for _ in range(4)]


def test_it_is_one_of_the_checks():
    assert percent_of_roofline in CHECKS


def test_without_a_roofline_it_has_nothing_to_say(check, answer):
    found = check(*rows(answer, 100, 1), named=False)
    assert (found.verdict, found.value) == ("VALID", None)


def test_slower_than_the_floor_is_possible(check, answer):
    found = check(*rows(answer, 100, 30))
    assert (found.verdict, found.advice) == ("VALID", "")
    assert 50 < found.value < 62
    assert found.finding == "nothing is faster than the roofline of llama-3.1-70b bf16 on 4 x a100-80gb-sxm."


def test_tokens_faster_than_the_floor_degrade_the_run(check, answer):
    found = check(*rows(answer, 100, 5))
    assert found.verdict == "DEGRADED"
    assert found.value > 300
    assert "tokens followed each other faster than llama-3.1-70b" in found.finding
    assert "tokens are counted wrongly, or something else runs" in found.finding
    assert "output_tokens_source" in found.advice


def test_first_tokens_that_come_too_soon_are_prefix_cache_hits(check, answer):
    found = check(*rows(answer, 20, 30, input_tokens=8000))
    assert found.verdict == "DEGRADED"
    assert "most likely prefix-cache hits, of which the server tells nothing" in found.finding
    assert "--enable-prompt-tokens-details" in found.advice


def test_hits_that_the_server_tells_are_none(check, answer):
    assert check(*rows(answer, 40, 30, input_tokens=8000, usage_cached_tokens=7990)).verdict == "VALID"


def test_hits_that_the_server_tells_and_that_do_not_explain_it_are_counted_wrongly(check, answer):
    found = check(*rows(answer, 20, 30, input_tokens=8000, usage_cached_tokens=10))
    assert found.verdict == "DEGRADED"
    assert "though the 40 tokens that the server found in its prefix cache are left out" in found.finding
