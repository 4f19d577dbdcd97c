"""The tree describes itself: every leaf has its flags, help and words."""

from __future__ import annotations

from collections import Counter

import pytest

from loadstone.config import Config, options
from loadstone.config.options import by_path, nearest

GROUPS = {
    "Endpoint", "Server", "Input", "Load", "Arrivals", "Ramps", "Stops", "Warm-up and cooldown", "Objectives", "Cost",
    "Repeated runs", "Output",
}  # fmt: skip


def test_every_leaf_of_the_tree_is_an_option():
    leaves = [
        f"{section}.{name}"
        for section in Config.__struct_fields__
        for name in type(getattr(Config(), section)).__struct_fields__
    ]
    assert [option.path for option in options()] == leaves
    assert len(leaves) > 30


def test_every_flag_belongs_to_one_leaf():
    every = [flag for option in options() for flag in option.flags]
    every += [f"--no-{option.flags[0][2:]}" for option in options() if option.kind == "switch"]
    assert len(every) > 150
    assert [flag for flag, times in Counter(every).items() if times > 1] == []


@pytest.mark.parametrize("option", options(), ids=lambda option: option.path)
def test_every_leaf_has_help_and_a_long_flag_first(option):
    assert option.help.endswith(".")
    assert len(option.help) < 120
    assert option.group in GROUPS
    if option.path != "load.phases":
        assert option.flags[0].startswith("--")
        assert option.flags[0] == option.flags[0].lower()


@pytest.mark.parametrize(
    "flags",
    [
        # the field's names, from the two walk-throughs and the other tools' own help
        {"--model", "-m", "--model-names"},
        {"--url", "-u", "--base-url"},
        {"--header", "-H"},
        {"--isl", "--synthetic-input-tokens-mean", "--input-len"},
        {"--isl-stddev", "--synthetic-input-tokens-stddev"},
        {"--osl", "--output-tokens-mean", "--output-len"},
        {"--osl-stddev", "--output-tokens-stddev"},
        {"--random-seed", "--seed"},
        {"--concurrency", "--max-concurrency"},
        {"--arrival-pattern", "--request-rate-mode"},
        {"--arrival-smoothness", "--burstiness", "--vllm-burstiness"},
        {"--request-count", "--num-requests"},
        {"--warmup-request-count", "--num-warmups"},
        {"--artifact-dir", "--output-artifact-dir"},
        {"--num-sessions", "--conversation-num"},
        {"--conversation-turn-mean", "--session-turns-mean"},
        {"--server-profiler", "--profile"},
    ],
    ids=lambda flags: min(flags),
)
def test_spellings_of_the_field_mean_the_same(flags):
    assert any(flags <= set(option.flags) for option in options())


def test_short_flags_are_those_of_the_field():
    shorts = {flag: option.path for option in options() for flag in option.flags if not flag.startswith("--")}
    assert shorts == {"-u": "endpoint.url", "-m": "endpoint.model", "-H": "endpoint.headers"}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("load.request_rate", "a number above 0 or inf"),
        ("load.duration_s", "a number above 0"),
        ("load.concurrency", "a whole number, at least 1"),
        ("input.isl_stddev", "a number, at least 0"),
        ("input.seed", "a whole number from 0 to 9223372036854775807"),
        ("endpoint.streaming", "true or false"),
        ("output.keep", "one of all, faults, none"),
        ("endpoint.model", "a text, not empty"),
        ("endpoint.headers", "a list of texts"),
        ("endpoint.extra_inputs", "a table"),
        ("endpoint.url", "a list of texts or a text, not empty"),
        ("endpoint.url_weights", "a list of numbers above 0"),
        ("load.request_rate_series", "a list of SECONDS:RATE points"),
        ("load.phases", "a list of tables"),
        ("load.stop_when", "a table whose values are each a number above 0"),
        ("load.cancellation_percent", "a number from 0 to 100"),
        ("slo.goodput", "a table whose values are each a number, at least 0"),
    ],
)
def test_a_leaf_says_in_words_what_it_takes(path, words):
    assert by_path()[path].expects == words


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("input.isl_mean", "550"),
        ("load.warmup_request_count", "0"),
        ("endpoint.url", "localhost:8000"),
        ("load.concurrency", ""),
        ("load.cancellation_percent", "0"),
        ("server.reset_kv_cache_path", "/reset_prefix_cache"),
        ("load.concurrency_ramp_strategy", "linear"),
        ("load.phases", ""),
        ("endpoint.url_weights", ""),
        ("endpoint.headers", ""),
        ("output.inputs_json", ""),
    ],
)
def test_a_default_is_shown_as_one_would_type_it(path, shown):
    assert by_path()[path].shown_default == shown


def test_endpoint_types_come_from_the_registry():
    assert {"chat", "completions"} <= set(by_path()["endpoint.type"].choices)


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("load.concurency", "load.concurrency"),
        ("concurrency", "load.concurrency"),
        ("benchmark-duration", "load.duration_s"),
        ("endpoint.stream", "endpoint.streaming"),
        ("session-header", "endpoint.session_headers"),
        ("load.phase", "load.phases"),
        ("num_users", "load.users"),
        ("xyzzy", None),
    ],
)
def test_the_nearest_key(word, path):
    assert nearest(word) == path


@pytest.mark.parametrize("path", ["endpoint.connection_reuse", "output.check_tokens"])
def test_choices_that_need_explaining_are_explained_by_name(path):
    option = by_path()[path]
    assert [choice for choice in option.choices if choice not in option.help] == []
