from __future__ import annotations

import msgspec
import pytest

from loadstone.checks import CHECKS, Evidence
from loadstone.checks.roofline import assumed, percent_of_roofline
from loadstone.metrics import all_metrics
from loadstone.roofline.case import settled
from loadstone.roofline.setup import Parallel
from loadstone.summary import measure


@pytest.fixture
def check(tables):
    """The check of a run on 4 A100 with a 70B model, whose floor is 17.3 ms a token."""

    def of(*rows, named=True, case=None):
        case = case or settled("gpu=a100,tensor_parallel_size=4", "llama-3.1-70b")
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


def test_what_else_may_be_faster_is_named(check, answer):
    advice = check(*rows(answer, 100, 5)).advice
    assert "speculation (num_speculative_tokens)" in advice
    assert "prompts that begin alike" in advice
    assert "answers that come from a cache" in advice


def test_against_hardware_that_is_assumed_there_is_no_verdict(check, answer):
    case = settled("gpu=cpu", "llama-3.1-8b")
    assert assumed(case) == "whose figures are assumed (flops)"
    fast = check(*rows(answer, 1e6, 5), case=case)
    assert (fast.verdict, fast.value > 100) == ("NOTE", True)
    assert "faster than llama-3.1-8b bf16 on cpu-2-core can decode" in fast.finding
    assert fast.finding.endswith("whose figures are assumed (flops).")
    assert "loadstone roofline --fit" in fast.advice
    soon = check(*rows(answer, 100, 1e6), case=case)
    assert (soon.verdict, soon.value > 100) == ("NOTE", True)
    assert soon.finding.startswith("a tenth of the first tokens came before")


def test_a_processor_that_was_measured_is_known(check, answer):
    case = settled("gpu=cpu", "llama-3.1-8b")
    fitted = {**case.gpu.sources, "bandwidth": "fitted to runs", "flops": "fitted to runs"}
    measured = msgspec.structs.replace(case, gpu=msgspec.structs.replace(case.gpu, sources=fitted))
    assert assumed(measured) == ""
    assert check(*rows(answer, 1e6, 5), case=measured).verdict == "DEGRADED"


def test_links_count_where_there_are_several_devices():
    gpu = settled("gpu=h100", "llama-3.1-8b").gpu
    guessed = msgspec.structs.replace(gpu, sources={**gpu.sources, "link_bandwidth": "assumed: as PCIe"})
    one = msgspec.structs.replace(settled("gpu=h100", "llama-3.1-8b"), gpu=guessed)
    two = msgspec.structs.replace(one, parallel=Parallel(tensor=2))
    assert assumed(one) == ""
    assert assumed(two) == "whose figures are assumed (link_bandwidth)"
