"""What the servers' own pages say, beside what we counted: with them, without them, and with a part of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.conftest import ns

from loadstone import folder as run_folder
from loadstone.export import console
from loadstone.folder import ScrapeFault, ScrapeLog, write_run
from loadstone.report import ServerLatency
from loadstone.summary import summarise
from loadstone.telemetry.facts import NO_COUNTER
from loadstone.telemetry.parse import Parser
from loadstone.telemetry.store import Scrape, write

PAGE = "http://a:8000/metrics"
LOG = ScrapeLog(page=PAGE, serves=(0,), scrapes=7, failed=0)


def text(tokens):
    return (
        "vllm:num_requests_running 3\nvllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc 0.25\n"
        f"# TYPE vllm:generation_tokens counter\nvllm:generation_tokens_total {tokens}\n"
        "# TYPE vllm:time_to_first_token_seconds histogram\n"
        f'vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {tokens}\n'
        f"vllm:time_to_first_token_seconds_count {tokens}\n"
        f"vllm:time_to_first_token_seconds_sum {float(tokens) / 128}\n"
    )


@pytest.fixture
def report(tmp_path, frame, run_log):
    """A report of these rows, of a run of a second whose page was read at `counts`: {ms: tokens so far}."""

    def make(*rows, counts=None, log=LOG, **run):
        frame(*rows).write_parquet(tmp_path / run_folder.REQUESTS)
        write_run(tmp_path, replace(run_log(planned=len(rows)), scrapes=[log] if log else [], **run))
        parser = Parser()
        scrapes = [Scrape(ns(at), ns(at), parser(text(count)), False) for at, count in (counts or {}).items()]
        write(tmp_path, [(PAGE, parser.series, scrapes)])
        return summarise(tmp_path)

    return make


def check(report):
    return next(check for check in report.certificate.checks if check.name == "server_tokens")


EVEN = {-1: 100, 100: 101, 300: 102, 500: 103, 700: 104, 900: 105, 1100: 106}


def test_both_counts_stand_beside_each_other(report, answer):
    found = report(answer(50, 60, 70), answer(80, 90, 99, target=0), counts=EVEN)
    [server] = found.server
    assert (server.page, server.serves, server.scrapes, server.failed, server.engine) == (
        PAGE,
        (0,),
        7,
        0,
        "vllm",
    )
    assert (server.running_mean, server.waiting_max, server.kv_cache_usage_mean) == (3.0, 1.0, 0.25)
    assert server.generation_tokens == 6.0
    assert (server.tokens.server, server.tokens.ours, server.tokens.uncounted) == (6.0, 6, 0)
    assert (check(found).verdict, check(found).value) == ("VALID", 0.0)
    assert check(found).finding == "the server counted 6 output tokens, we 6."
    assert found.run.files["server_metrics"] == "server_metrics.parquet"


def test_a_latency_of_the_server_stands_beside_ours(report, answer):
    [server] = report(answer(50, 60, 70), answer(80, 95, 99), counts=EVEN).server
    assert server.time_to_first_token == ServerLatency(
        server_ms=7.8125, server_count=6.0, ours_ms=65.0, ours_count=2, apart_ms=57.1875
    )
    assert server.reasons["inter_token_latency"] == "the page has no such metric"


def test_a_latency_is_that_of_the_servers_that_the_page_tells_of(report, answer, run_log):
    config = run_log().config | {"endpoint": run_log().config["endpoint"] | {"url": ["a", "b"]}}
    rows = answer(50, 60, 70, target=0), answer(80, 95, 99, target=1)
    [server] = report(*rows, counts=EVEN, config=config).server
    assert (server.time_to_first_token.ours_ms, server.time_to_first_token.ours_count) == (50.0, 1)


def test_a_latency_that_we_do_not_know_has_a_reason(report, answer):
    [server] = report(answer(50, outcome="reset"), counts=EVEN).server
    latency = server.time_to_first_token
    assert (latency.server_ms, latency.ours_ms, latency.apart_ms) == (7.8125, None, None)
    assert latency.reason


def test_the_summary_has_a_line_of_it(report, answer):
    shown = console.render(report(answer(50, 60, 70), counts=EVEN), width=100, color=False)
    assert (
        "the server's own page: running 3 (max 3) · waiting 1 (max 1) · KV cache 25 % (max 25 %)"
        in shown.splitlines()
    )


def test_a_server_that_counts_otherwise_is_noted(report, answer):
    found = report(answer(50, 60, 70), counts=EVEN)
    assert (check(found).verdict, check(found).value) == ("NOTE", 100.0)
    assert check(found).finding == (
        "the server counted 6 output tokens, we 3: 100 % more than ours. Others may have sent requests meanwhile, or it counts"
        " tokens that it does not send."
    )
    assert found.certificate.verdict != "INVALID"


@pytest.mark.parametrize("wrong", ["-3", "NaN"])
def test_a_count_below_zero_or_of_no_number_is_compared_with_nothing(report, answer, wrong):
    found = report(answer(50, 60, 70), counts=EVEN | {500: wrong})
    [server] = found.server
    assert (server.tokens.server, server.tokens.ours, server.tokens.reason) == (None, 3, NO_COUNTER)
    assert server.generation_tokens is None
    assert check(found).verdict == "VALID"
    assert check(found).finding.endswith(f"is not known: {NO_COUNTER}.")


def test_fewer_by_the_server_has_another_reason(report, answer):
    found = check(report(answer(50, 60, 70, tokens=12), counts=EVEN))
    assert (found.verdict, found.value) == ("NOTE", -50.0)
    assert "50 % fewer than ours. Its page may tell of a part of the servers" in found.finding


def test_tokens_of_requests_that_failed_are_the_servers_alone(report, answer):
    found = report(
        answer(50, 60, 70), answer(80, outcome="reset", tokens=None) | {"output_tokens": None}, counts=EVEN
    )
    assert (found.server[0].tokens.ours, found.server[0].tokens.uncounted) == (3, 1)
    assert (
        "It counts tokens of the 1 request that failed, were cut off or told no count" in check(found).finding
    )


def test_where_no_answer_has_a_count_ours_is_not_known(report, answer):
    row = answer(80, outcome="reset", tokens=None) | {"output_tokens": None}
    tokens = report(row, counts=EVEN).server[0].tokens
    assert (tokens.server, tokens.ours, tokens.uncounted) == (6.0, None, 1)
    assert tokens.reason == "no answer of ours has a count of its tokens"


def test_where_nothing_was_asked_ours_is_none_at_all(report, answer):
    tokens = report(answer(50, 60, 70, target=1), counts=EVEN).server[0].tokens
    assert (tokens.ours, tokens.uncounted, tokens.reason) == (0, 0, None)


def test_a_page_of_its_own_address_is_compared_with_nothing(report, answer):
    found = report(answer(50, 60, 70), counts=EVEN, log=replace(LOG, serves=()))
    assert found.server[0].tokens.server == 6.0
    assert found.server[0].tokens.ours is None
    assert check(found).value is None
    assert "which of our requests it tells of is not known" in check(found).finding


@pytest.mark.parametrize("counts", [{100: 101, 1100: 106}, {-1: 100, 900: 106}])
def test_pages_on_one_side_of_the_load_only_do_not_tell_of_the_whole(report, answer, counts):
    found = report(answer(50, 60, 70), counts=counts)
    assert found.server[0].tokens.server is None
    assert "the page was not read both before the load and after its last answer" in check(found).finding


def test_pages_of_a_run_whose_main_died_are_told_without_their_account(report, answer):
    [server] = report(answer(50, 60, 70), counts=EVEN, log=None).server
    assert (server.page, server.scrapes, server.failed, server.running_mean) == (PAGE, 7, None, 3.0)


def test_a_page_that_was_not_there_has_its_reason_and_no_line(report, answer):
    fault = ScrapeFault(at_ns=1, http_status=404, fault="HTTP 404")
    log = ScrapeLog(page=PAGE, serves=(0,), scrapes=0, failed=1, faults=[fault])
    found = report(answer(50, 60, 70), log=log)
    [server] = found.server
    assert (server.scrapes, server.failed, server.tokens) == (0, 1, None)
    assert server.reasons["tokens"] == "no page was read: HTTP 404"
    assert (check(found).verdict, check(found).value) == ("VALID", None)
    assert "own page" not in console.render(found, width=100, color=False)


def test_what_was_lost_with_its_process_has_its_reason(report, answer):
    log = ScrapeLog(page=PAGE, serves=(0,))
    [server] = report(answer(50, 60, 70), log=log, scrape_fault="the process died").server
    assert (server.scrapes, server.failed, server.resets) == (None, None, None)
    assert set(server.reasons.values()) == {"the process died"}


def test_what_its_process_had_stored_before_it_died_is_told_as_far_as_it_goes(report, answer):
    counts = {at: tokens for at, tokens in EVEN.items() if at <= 300}
    log = ScrapeLog(page=PAGE, serves=(0,))
    found = report(answer(50, 60, 70), counts=counts, log=log, scrape_fault="the process died")
    [server] = found.server
    assert (server.scrapes, server.engine, server.generation_tokens) == (3, "vllm", None)
    assert server.reasons["generation_tokens"].endswith(": the process died")
    assert server.tokens.reason == "the page was not read both before the load and after its last answer"


def test_a_table_that_is_gone_is_told_to_be_missing(report, answer):
    [server] = report(answer(50, 60, 70)).server
    assert (server.scrapes, server.failed, server.resets) == (7, 0, None)
    assert server.reasons["generation_tokens"].startswith("the table of the pages (server_metrics.parquet)")


def test_a_damaged_table_is_no_reason_to_have_no_report(report, answer, tmp_path):
    report(answer(50, 60, 70), counts=EVEN)
    (tmp_path / run_folder.SERVER_METRICS).write_bytes(b"PAR1")
    [server] = summarise(tmp_path).server
    assert (server.scrapes, server.resets) == (7, None)
    assert set(server.reasons.values()) == {"the table of the pages is damaged"}


def test_without_pages_nothing_is_told(report, answer):
    found = report(answer(50, 60, 70), log=None)
    assert found.server == ()
    assert "server_metrics" not in found.run.files
    assert "its page was not to be read" in check(found).finding
