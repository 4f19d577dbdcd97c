"""What drafts came to, by vLLM's counters and by SGLang's gauge."""

from __future__ import annotations

import pytest

from loadstone.folder import ScrapeLog
from loadstone.report import ServerSpeculation
from loadstone.telemetry.facts import NO_COUNTER, NO_DRAFT, NOT_ALL_THE_TIME, facts
from loadstone.telemetry.pages import Pages
from loadstone.telemetry.parse import Parser
from loadstone.telemetry.store import Scrape, write


@pytest.fixture
def told(tmp_path):
    """The facts of the stretch from 10 to 60 ns of pages read at 0, 10, 20 ... ns, made by a function of the read."""

    def make(text, from_ns=10, to_ns=60):
        parser = Parser()
        scrapes = [Scrape(10 * n, 10 * n, parser(text(n)), False) for n in range(7)]
        write(tmp_path, [("page", parser.series, scrapes)])
        log = ScrapeLog(page="page", scrapes=7, failed=0)
        return facts(log, Pages.read(tmp_path)["page"], from_ns, to_ns)

    return make


def vllm(drafts, accepted, positions):
    """Two engines that draft two tokens a step; the counters of the second one do not move."""

    def text(n):
        lines = ["vllm:num_requests_running 1"]
        counters = {"drafts": drafts, "draft_tokens": 2 * drafts, "accepted_tokens": accepted}
        for name, each in counters.items():
            lines.append(f"# TYPE vllm:spec_decode_num_{name} counter")
            lines += [
                f'vllm:spec_decode_num_{name}_total{{engine="{e}"}} {each * n * (1 - e) + 7 * e}'
                for e in (0, 1)
            ]
        lines.append("# TYPE vllm:spec_decode_num_accepted_tokens_per_pos counter")
        for place, each in positions.items():
            name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
            lines += [f'{name}{{engine="{e}",position="{place}"}} {each * n * (1 - e)}' for e in (0, 1)]
        return "\n".join(lines) + "\n"

    return text


def test_vllm_counts_drafts_tokens_and_positions(told):
    found = told(vllm(10, 12, {0: 8, 1: 4}))
    assert found.speculation == ServerSpeculation(
        acceptance_length=2.2,
        draft_acceptance_rate=0.6,
        position_acceptance=(0.8, 0.4),
        drafts=50.0,
        draft_tokens=100.0,
        accepted_tokens=60.0,
    )
    assert "speculation" not in found.reasons


def test_positions_with_one_missing_are_not_told(told):
    assert told(vllm(10, 12, {0: 8, 2: 4})).speculation.position_acceptance == ()
    assert told(vllm(10, 12, {})).speculation.acceptance_length == 2.2


def test_without_a_draft_there_is_nothing_to_tell(told):
    found = told(vllm(0, 0, {0: 0}))
    assert (found.speculation, found.reasons["speculation"]) == (None, NO_DRAFT)


def test_counters_that_do_not_cover_the_load_or_are_none(told):
    assert "before and after" in told(vllm(10, 12, {}), to_ns=61).reasons["speculation"]
    assert told(vllm(10, -12, {})).reasons["speculation"] == NO_COUNTER


def sglang(length):
    return lambda n: f"sglang:num_running_reqs 1\n{length(n)}"


def test_sglang_has_a_gauge(told):
    def two(n):
        return "".join(f'sglang:spec_accept_length{{dp_rank="{rank}"}} {2.5 + rank}\n' for rank in (0, 1))

    found = told(sglang(two))
    assert found.speculation == ServerSpeculation(acceptance_length=3.0)


def test_a_gauge_of_nothing_or_with_gaps_tells_nothing(told):
    still = told(sglang(lambda n: "sglang:spec_accept_length 0\n"))
    assert (still.speculation, still.reasons["speculation"]) == (None, NO_DRAFT)
    late = told(sglang(lambda n: "sglang:spec_accept_length 2\n" if n > 3 else ""))
    assert (late.speculation, late.reasons["speculation"]) == (None, NOT_ALL_THE_TIME)
    seldom = told(sglang(lambda n: "sglang:spec_accept_length 2\n"), from_ns=41)
    assert "read only 2 times" in seldom.reasons["speculation"]
