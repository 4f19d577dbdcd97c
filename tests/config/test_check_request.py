"""Headers, paths, and shares of servers and models that make no request are refused."""

from __future__ import annotations

import pytest

from loadstone.config import Config, EndpointConfig, ServerConfig, check
from loadstone.errors import UsageError

SEVERAL = ("a", "b", "c")


def refusal(**sections):
    with pytest.raises(UsageError) as caught:
        check(Config(**sections))
    return str(caught.value)


@pytest.mark.parametrize(
    ("endpoint", "sentence"),
    [
        (
            {"url_strategy": "random"},
            "url_strategy = random: has no effect on one url; give several with --url.",
        ),
        ({"url_weights": (1.0,)}, "url_weights = 1: has no effect on one url; give several with --url."),
        (
            {"url": SEVERAL, "url_weights": (3.0, 1.5)},
            "url_weights = 3,1.5: must be 3 numbers, one for each url.",
        ),
        (
            {"url": SEVERAL, "url_weights": (3.0, 1.0, 1.0), "url_strategy": "least-in-flight"},
            "url_weights = 3,1,1: has no effect with endpoint.url_strategy = least-in-flight; leave one of them out.",
        ),
        ({"url": SEVERAL, "url_strategy": "weighted"}, "url_strategy = weighted: needs --url-weights."),
        ({"model_strategy": "random"}, "model_strategy = random: has no effect on one model; give several"),
        ({"model": "m", "model_weights": (1.0, 2.0)}, "model_weights = 1,2: has no effect on one model"),
        (
            {"model": "m,n", "model_weights": (1.0,)},
            "model_weights = 1: must be 2 numbers, one for each model.",
        ),
        (
            {"model": "m,n", "model_weights": (1.0, 2.0), "model_strategy": "random"},
            "model_weights = 1,2: has no effect with endpoint.model_strategy = random; leave one of them out.",
        ),
        ({"model": "m,n", "model_strategy": "weighted"}, "model_strategy = weighted: needs --model-weights."),
        ({"model": "m,,n"}, "model = m,,n: holds an empty name."),
        ({"model": "m,n,m"}, "model: m is given twice; for a greater share use --model-weights."),
        (
            {"session_headers": ("X Session",)},
            "session_headers: what is given is no header's name",
        ),
        ({"session_headers": ("X-Request-ID",)}, "session_headers: X-Request-ID is set by loadstone itself."),
        ({"session_headers": ("Authorization",)}, "session_headers: Authorization has another meaning"),
        ({"session_headers": ("X-A", "x-a")}, "session_headers: x-a is given twice."),
        ({"session_headers": ("X-A",), "headers": ("x-a: 1",)}, "session_headers: X-A is given twice."),
        ({"session_end_header": "X-End"}, "session_end_header: a header without a colon; write NAME:VALUE."),
        ({"session_end_header": "Host: h"}, "session_end_header: Host is set by loadstone itself."),
        (
            {"session_headers": ("X-A",), "session_end_header": "x-a: 1"},
            "session_end_header: x-a is given twice.",
        ),
    ],
)
def test_an_endpoint_that_cannot_be_asked_so(endpoint, sentence):
    assert refusal(endpoint=EndpointConfig(**endpoint)).startswith(f"endpoint.{sentence}")


@pytest.mark.parametrize(
    "endpoint",
    [
        {"url": SEVERAL, "url_strategy": "least-in-flight"},
        {"url": SEVERAL, "url_weights": (3.0, 1.0, 1.0)},
        {"url": SEVERAL, "url_weights": (3.0, 1.0, 1.0), "url_strategy": "weighted"},
        {"url": ("sim:", "sim:", "http://h:1")},
        {"model": "m, n", "model_weights": (1.0, 2.0)},
        {"model": "m,n", "model_strategy": "random"},
        {"session_headers": ("X-Session-ID", "X-Session-Affinity"), "session_end_header": "X-Session-End: 1"},
    ],
)
def test_an_endpoint_that_can(endpoint):
    config = Config(endpoint=EndpointConfig(**endpoint))
    assert check(config) is config


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        ({"wait_for_model_mode": "both"}, "wait_for_model_mode = both: has no effect without --wait-for-model-timeout."),
        ({"wait_for_model_interval_s": 1.0}, "wait_for_model_interval_s = 1: has no effect without --wait-for-"),
        ({"reset_kv_cache_path": "/flush"}, "reset_kv_cache_path: has no effect without --reset-kv-cache."),
        ({"reset_kv_cache_timeout_s": 1.0}, "reset_kv_cache_timeout_s = 1: has no effect without --reset-kv-cache."),
        ({"profiler_start_path": "/a"}, "profiler_start_path: has no effect without --server-profiler."),
        ({"profiler_stop_path": "/a"}, "profiler_stop_path: has no effect without --server-profiler."),
        (
            {"profiler": True, "profiler_stop_path": "/a?key=hunter2 x"},
            "profiler_stop_path: must be ASCII without spaces; percent-encode what is not.",
        ),
        ({"reset_kv_cache": True, "reset_kv_cache_path": "/a#b"}, "reset_kv_cache_path: holds a #, which no server"),
    ],
)  # fmt: skip
def test_a_question_to_the_server_that_is_not_asked(server, sentence):
    assert refusal(server=ServerConfig(**server)).startswith(f"server.{sentence}")


def test_questions_to_the_server_that_are_asked():
    config = Config(
        server=ServerConfig(
            wait_for_model_s=30.0, wait_for_model_mode="both", wait_for_model_interval_s=1.0, strict=True,
            reset_kv_cache=True, reset_kv_cache_path="/flush_cache", reset_kv_cache_timeout_s=5.0,
            profiler=True, profiler_start_path="/a", profiler_stop_path="/b",
        )
    )  # fmt: skip
    assert check(config) is config
