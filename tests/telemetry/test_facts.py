"""A page in the terms that all engines share; every null has its reason."""

from __future__ import annotations

import pytest

from loadstone.folder import ScrapeFault, ScrapeLog
from loadstone.report import ServerLatency
from loadstone.telemetry.facts import LEAST_READS, NO_COUNTER, NO_METRIC, NO_TABLE, NOT_TOLD, facts
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
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{{engine="0",le="+Inf"}} {2 * n}
vllm:time_to_first_token_seconds_count{{engine="0"}} {2 * n}
vllm:time_to_first_token_seconds_sum{{engine="0"}} {0.25 * n}
# TYPE vllm:time_per_output_token_seconds histogram
vllm:time_per_output_token_seconds_bucket{{engine="0",le="+Inf"}} {10 * n}
vllm:time_per_output_token_seconds_count{{engine="0"}} {10 * n}
vllm:time_per_output_token_seconds_sum{{engine="0"}} {n / 8}
"""


def test_a_page_of_vllm(read):
    found = facts(LOG, read(vllm), 10, 60)
    assert (found.page, found.serves, found.scrapes, found.failed, found.engine) == (
        "page",
        (0,),
        9,
        1,
        "vllm",
    )
    assert (found.running_mean, found.running_max) == (6.0, 6.0)
    assert (found.waiting_mean, found.waiting_max) == (3.0, 6.0)
    assert found.kv_cache_usage_mean == pytest.approx((0.5 + 0.3) / 2)
    assert found.kv_cache_usage_max == 0.6
    assert found.prefix_cache_hit_rate == 0.25
    assert (found.preemptions, found.prompt_tokens, found.generation_tokens) == (2.0, 500.0, 40.0)
    assert found.time_to_first_token == ServerLatency(server_ms=125.0, server_count=10.0)
    assert found.inter_token_latency == ServerLatency(server_ms=12.5, server_count=50.0)
    assert (found.resets, found.reasons) == (0, {"speculation": NO_METRIC})


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
    missing = ("preemptions", "time_to_first_token", "inter_token_latency", "speculation")
    assert found.reasons == dict.fromkeys(missing, "the page has no such metric")


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
        "inter_token_latency",
        "kv_cache_usage_max",
        "kv_cache_usage_mean",
        "preemptions",
        "prefix_cache_hit_rate",
        "speculation",
        "time_to_first_token",
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


def test_where_nothing_was_looked_up_there_is_no_share(read):
    text = "# TYPE vllm:prefix_cache_{0} counter\nvllm:prefix_cache_{0}_total 0\n"
    found = facts(LOG, read(lambda n: text.format("hits") + text.format("queries")), 0, 60)
    assert found.prefix_cache_hit_rate is None
    assert found.reasons["prefix_cache_hit_rate"] == "nothing was looked up"


def test_a_page_of_nobody_we_know(read):
    found = facts(LOG, read(lambda n: "DCGM_FI_DEV_GPU_TEMP 40\n"), 0, 60)
    assert (found.engine, found.scrapes) == (None, 9)
    assert set(found.reasons.values()) == {"the page has no metrics of vLLM, SGLang or llama.cpp"}
    assert nulls(found) == set(found.reasons)


def test_a_latency_of_which_nothing_was_observed_has_no_mean(read):
    text = "# TYPE vllm:{0} histogram\nvllm:{0}_bucket{{le='+Inf'}} 0\nvllm:{0}_count 0\nvllm:{0}_sum 0\n"
    page = text.format("time_to_first_token_seconds").replace("'", '"')
    found = facts(LOG, read(lambda n: page), 0, 60)
    assert found.time_to_first_token is None
    assert found.reasons["time_to_first_token"] == "it observed none"


# ---- what is not known ----


def test_counters_of_a_stretch_that_the_pages_do_not_cover_are_not_known(read):
    for from_ns, to_ns in ((-5, 60), (0, 61)):
        found = facts(LOG, read(vllm), from_ns, to_ns)
        assert found.generation_tokens is found.time_to_first_token is found.prefix_cache_hit_rate is None
        assert found.reasons["generation_tokens"] == (
            "the page was not read both before and after the load that was measured"
        )


def test_a_gauge_that_was_not_read_to_the_end_is_not_known(read):
    assert facts(LOG, read(vllm), 0, 80).running_mean == 6.0
    found = facts(LOG, read(vllm), 0, 1_000_000_060, fault="its reader died")
    assert found.running_mean is found.waiting_max is None
    assert found.reasons["waiting_max"] == (
        "the page was last read 1 s before the end of the load that was measured: its reader died"
    )
    assert found.reasons["preemptions"].endswith("load that was measured: its reader died")


def nulls(found):
    return {name for name in found.__struct_fields__ if getattr(found, name) is None}


FAULTS = [ScrapeFault(at_ns=1, http_status=404, fault="HTTP 404")]


@pytest.mark.parametrize(
    ("told", "fault", "why"),
    [
        ({"scrapes": 0, "failed": 1, "faults": FAULTS}, None, "no page was read: HTTP 404"),
        ({"scrapes": 0, "failed": 0}, None, "no page was read"),
        ({"scrapes": 120, "failed": 0}, None, NO_TABLE),
        ({}, None, NOT_TOLD),
        ({}, "its reader died", "its reader died"),
    ],
)
def test_without_rows_every_null_has_the_true_reason(told, fault, why):
    found = facts(ScrapeLog(page="page", **told), None, 0, 60, fault)
    assert (found.scrapes, found.failed) == (told.get("scrapes"), told.get("failed"))
    assert found.resets is None
    assert found.reasons == dict.fromkeys(nulls(found), why)


def test_where_the_reader_told_nothing_its_rows_are_counted(read):
    found = facts(ScrapeLog(page="page"), read(vllm), 0, 60)
    assert (found.scrapes, found.failed, found.reasons) == (
        7,
        None,
        {"failed": NOT_TOLD, "speculation": NO_METRIC},
    )


# ---- ranks ----


def sglang(*series):
    return lambda n: "".join(f"sglang:num_running_reqs{{{labels}}} {value}\n" for labels, value in series)


@pytest.mark.parametrize(
    ("series", "running"),
    [
        ([('tp_rank="10",pp_rank="0"', 7), ('tp_rank="2",pp_rank="0"', 5)], 5.0),
        ([('tp_rank="0",pp_rank="1"', 7), ('tp_rank="1",pp_rank="0"', 5)], 5.0),
        ([(f'tp_rank="{n}",dp_rank="{n}",moe_ep_rank="{n}"', 3) for n in range(4)], 12.0),
        ([(f'tp_rank="{n}",dp_rank="{n // 2}"', 3) for n in range(4)], 6.0),
        ([('engine="0"', 2), ('engine="1"', 3)], 5.0),
        ([('tp_rank="0",model_name="a"', 2), ('tp_rank="1",model_name="a"', 2), ('model_name="b"', 3)], 5.0),
    ],
    ids=[
        "by number",
        "first stage",
        "attention in data parallel",
        "two ranks a replica",
        "engines",
        "models",
    ],
)
def test_of_ranks_that_work_on_the_same_requests_one_is_counted(read, series, running):
    found = facts(LOG, read(sglang(*series)), 0, 60)
    assert (found.running_mean, found.running_max) == (running, running)


@pytest.mark.parametrize("value", ["-1", "NaN", "+Inf"])
def test_what_cannot_be_a_counter_counts_nothing(read, value):
    def text(n):
        wrong = value if n == 3 else n
        return f"""\
vllm:prompt_tokens_total {n}
vllm:generation_tokens_total{{n="{n}"}} {wrong}
vllm:prefix_cache_queries_total {10 * n}
vllm:prefix_cache_hits_total {wrong}
vllm:time_to_first_token_seconds_count {n}
vllm:time_to_first_token_seconds_sum {wrong}
"""

    found = facts(LOG, read(text), 10, 50)
    assert found.prompt_tokens == 4.0
    for name in ("generation_tokens", "prefix_cache_hit_rate", "time_to_first_token"):
        assert getattr(found, name) is None
        assert found.reasons[name] == NO_COUNTER
    assert found.resets == 0
