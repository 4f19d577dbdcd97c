"""`loadstone explain`: every metric in the words of its docstring, by whatever name it is asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from loadstone.cli.explain import MOST_REMARKS, explain
from loadstone.metrics import names
from loadstone.metrics._namesakes._screens import SCREENS


@pytest.fixture
def told():
    """What is printed for some words, at a width."""

    def ask(*words, columns=80):
        done = CliRunner(env={"COLUMNS": str(columns)}).invoke(explain, words, standalone_mode=False)
        assert done.exception is None, done.exception
        return done.output

    return ask


def test_a_metric_is_defined_with_its_unit_its_lack_and_its_namesakes(told):
    page = told("tpot", columns=100)
    assert page.startswith(
        "time_per_output_token\n  One request's mean time a token after the first: (last - first) /"
    )
    assert (
        "\n  unit  ms, lower is better\n  null  without --streaming, when no request succeeded\n  also  tpot\n"
        in page
    )
    assert "\nElsewhere\n  AIPerf, inter_token_latency: (request_latency - TTFT) / (OSL - k)" in page
    assert "\n  vLLM bench serve, tpot: (latency - ttft) / (n - 1)" in page
    assert "\n    Differs: " in page
    assert "\nLatency: how long a user waited\n  Over successes only;" in page
    assert page.endswith("\n  More: docs/metrics.md, chapter Latency.\n")


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_what_holds_for_all_of_a_chapter_takes_few_lines(told, columns):
    for page in told(*names(), columns=columns).split("\n\n\n"):
        lines = page.rstrip().splitlines()
        headings = [at for at, line in enumerate(lines) if not line.startswith(" ") and line]
        assert len(lines) - headings[-1] - 1 <= MOST_REMARKS + 1 or lines[headings[-1]] == "Elsewhere"


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("Mean TPOT (ms)", "time_per_output_token"),
        ("Mean TPOT (ms):", "time_per_output_token"),
        ("P99 ITL (ms)", "inter_token_latency"),
        ("P99.9 E2EL (ms):", "request_latency"),
        ("Max ITL (ms):", "inter_token_latency"),
        ("Request goodput (req/s)", "goodput"),
        ("Total generated tokens:", "total_output_tokens"),
        ("Peak output token throughput (tok/s):", "peak_output_token_throughput"),
        ("Peak concurrent requests:", "peak_concurrency"),
        ("Benchmark duration (s):", "benchmark_duration"),
        ("Output Token Throughput Per User (tokens/sec/user)", "output_token_throughput_per_user"),
        ("output token throughput per user", "output_token_throughput_per_user"),
        ("HTTP Waiting (TTFB) (ms)", "http_req_waiting"),
        ("Request Error Rate (%)", "error_rate"),
        ("TTST", "time_to_second_token"),
    ],
)
def test_a_metric_is_found_by_what_other_tools_screens_call_it(told, word, name):
    assert told(word).startswith(f"{name}\n")


def test_words_on_screens_mean_metrics_that_there_are():
    assert set(SCREENS.values()) <= set(names())
    assert not set(SCREENS) & set(names())


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_wider_than_the_screen_or_than_can_be_read(told, columns):
    for words, most in (((), columns), (names(), min(columns, 100))):
        assert max(map(len, told(*words, columns=columns).splitlines())) <= most


def test_without_a_metric_all_are_listed_by_chapter(told):
    lines = told(columns=100).splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == list(names())
    assert lines[0] == "Latency: how long a user waited"
    assert lines[-1] == "loadstone explain METRIC tells more of one."


def test_nothing_is_cut_off_in_a_file(loadstone):
    listed = loadstone("explain", COLUMNS="").stdout
    assert "…" not in listed
    assert max(map(len, listed.splitlines())) > 140


def test_a_statistic_behind_the_name_is_let_be(told):
    assert told("ttft.p99").startswith("time_to_first_token\n")


def test_several_metrics_follow_each_other(told):
    page = told("itl", "goodput")
    assert page.startswith("inter_token_latency\n")
    assert "\n\n\ngoodput\n" in page


def test_a_slip_is_met_with_the_word_that_was_meant(loadstone):
    done = loadstone("explain", "time_to_frist_token")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "loadstone: error: there is no metric 'time_to_frist_token'. Did you mean time_to_first_token?\n"
    )
    assert "loadstone explain lists them" in loadstone("explain", "xyzzy").stderr


def test_names_are_completed_other_tools_too(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "loadstone"],
        env={
            **os.environ,
            "_LOADSTONE_COMPLETE": "bash_complete",
            "COMP_WORDS": "loadstone explain adj",
            "COMP_CWORD": "2",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "plain,adjusted_request_latency\n" in done.stdout
    assert "plain,adj_request_latency\n" in done.stdout
