"""A page in the terms that all engines share; every null has its reason."""

from __future__ import annotations

import pytest

from loadstone.folder import ScrapeFault, ScrapeLog
from loadstone.telemetry.facts import LEAST_READS, facts
from loadstone.telemetry.pages import Pages
from loadstone.telemetry.parse import Parser
from loadstone.telemetry.store import Scrape, write

LOG = ScrapeLog(page="page", serves=(0,), scrapes=9, failed=1)


@pytest.fixture
def read(tmp_path):
    """Pages that were read at 0, 10, 20 ... ns, made from a text with `{}` for the number of the read."""

    def make(text, reads=7):
        parser = Parser()
        scrapes = [Scrape(10 * n, 10 * n, parser(text(n)), False) for n in range(reads)]
        write(tmp_path, [("page", parser.series, scrapes)])
        return Pages.read(tmp_path)["page"]

    return make


def vllm(n):
    """Two engines; the first one's queue grows by one a read."""
    return f"""\
vllm:num_requests_running{{engine="0"}} 4
vllm:num_requests_running{{engine="1"}} 2
vllm:num_requests_waiting{{engine="0"}} {n}
vllm:num_requests_waiting{{engine="1"}} 0
vllm:kv_cache_usage_perc{{engine="0"}} 0.5
vllm:kv_cache_usage_perc{{engine="1"}} 0.{n}
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{{engine="0"}} {100 * n}
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{{engine="0"}} {25 * n}
# TYPE vllm:num_preemptions counter
vllm:num_preemptions_total{{engine="0"}} {n // 3}
# TYPE vllm:prompt_tokens counter
vllm:prompt_tokens_total{{engine="0"}} {100 * n}
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{{engine="0"}} {7 * n}
vllm:generation_tokens_total{{engine="1"}} {1000 + n}
"""


def test_a_page_of_vllm(read):
    found = facts(LOG, read(vllm), 10, 60)
    assert (found.page, found.serves, found.scrapes, found.failed, found.engine) == (
        "page",
        (0,),
        7,
        1,
        "vllm",
    )
    assert (found.running_mean, found.running_max) == (6.0, 6.0)
    assert (found.waiting_mean, found.waiting_max) == (3.0, 6.0)
    assert found.kv_cache_usage_mean == pytest.approx((0.5 + 0.3) / 2)
    assert found.kv_cache_usage_max == 0.6
    assert found.prefix_cache_hit_rate == 0.25
    assert (found.preemptions, found.prompt_tokens, found.generation_tokens) == (2.0, 500.0, 40.0)
    assert (found.resets, found.reasons) == (0, {})


def test_a_page_of_sglang_which_tells_the_same_again_by_priority(read):
    def text(n):
        return f"""\
sglang:num_running_reqs{{tp_rank="0",priority=""}} 3
sglang:num_running_reqs{{tp_rank="0",priority="1"}} 3
sglang:num_queue_reqs{{tp_rank="0"}} 1
sglang:token_usage{{tp_rank="0"}} 0.25
# TYPE sglang:prompt_tokens counter
sglang:prompt_tokens_total {10 * n}
# TYPE sglang:cached_tokens counter
sglang:cached_tokens_total{{cache_source="device"}} {4 * n}
sglang:cached_tokens_total{{cache_source="host"}} {n}
# TYPE sglang:generation_tokens counter
sglang:generation_tokens_total {2 * n}
"""

    found = facts(LOG, read(text), 0, 60)
    assert (found.engine, found.running_mean, found.waiting_mean, found.kv_cache_usage_mean) == (
        "sglang",
        3.0,
        1.0,
        0.25,
    )
    assert (found.prefix_cache_hit_rate, found.prompt_tokens, found.generation_tokens) == (0.5, 60.0, 12.0)
    assert found.preemptions is None
    assert found.reasons == {"preemptions": "the page has no such metric"}


def test_a_page_of_llama_cpp(read):
    def text(n):
        return f"""\
llamacpp:requests_processing 1
llamacpp:requests_deferred 2
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total {n}
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total {3 * n}
"""

    found = facts(LOG, read(text), 0, 60)
    assert (found.engine, found.running_mean, found.waiting_max) == ("llama.cpp", 1.0, 2.0)
    assert (found.prompt_tokens, found.generation_tokens) == (6.0, 18.0)
    assert sorted(found.reasons) == [
        "kv_cache_usage_max",
        "kv_cache_usage_mean",
        "preemptions",
        "prefix_cache_hit_rate",
    ]


def test_a_server_that_was_started_again_counted_from_nothing(read):
    text = "# TYPE vllm:generation_tokens counter\nvllm:generation_tokens_total {}\n"
    counts = [50, 60, 70, 5, 9, 9, 9]
    found = facts(LOG, read(lambda n: text.format(counts[n])), 0, 60)
    assert (found.generation_tokens, found.resets) == (29.0, 1)


def test_a_gauge_that_was_read_too_seldom_is_not_told(read):
    found = facts(LOG, read(vllm, LEAST_READS), 1, 100)
    assert found.running_mean is found.running_max is None
    assert found.reasons["running_mean"].startswith(
        "the page was read only 4 times while the load was measured"
    )
    assert found.generation_tokens == 32.0


def test_where_nothing_was_looked_up_there_is_no_share(read):
    text = "# TYPE vllm:prefix_cache_{0} counter\nvllm:prefix_cache_{0}_total 0\n"
    found = facts(LOG, read(lambda n: text.format("hits") + text.format("queries")), 0, 60)
    assert found.prefix_cache_hit_rate is None
    assert found.reasons["prefix_cache_hit_rate"] == "nothing was looked up"


def test_a_page_of_nobody_we_know(read):
    found = facts(LOG, read(lambda n: "DCGM_FI_DEV_GPU_TEMP 40\n"), 0, 60)
    assert (found.engine, found.scrapes) == (None, 7)
    assert list(found.reasons) == ["engine"]


def test_a_page_that_was_not_read():
    fault = ScrapeFault(at_ns=1, http_status=404, fault="HTTP 404")
    found = facts(ScrapeLog(page="page", failed=1, faults=[fault]), None, 0, 60)
    assert (found.scrapes, found.failed, found.reasons) == (0, 1, {"scrapes": "no page was read: HTTP 404"})
    assert facts(ScrapeLog(page="page"), None, 0, 60).reasons == {"scrapes": "no page was read"}
