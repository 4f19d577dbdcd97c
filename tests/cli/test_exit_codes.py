"""Every failure leaves through `main`: one sentence, the right exit code, a trace only on request."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from loadstone.__main__ import main
from loadstone.errors import Exit, TargetError, UsageError


@pytest.fixture
def verbs(monkeypatch):
    """Puts functions in the place of what the verbs call; gives what they were called with."""
    calls = []

    def put(act=lambda *_: Exit.DONE):
        def called(*given, **named):
            calls.append((*given, *named.values()))
            return act(*given)

        monkeypatch.setitem(sys.modules, "loadstone.run", SimpleNamespace(run=called))
        monkeypatch.setitem(sys.modules, "loadstone.rebuild", SimpleNamespace(rebuild=called))
        return calls

    monkeypatch.delenv("LOADSTONE_API_KEY", raising=False)
    return put


def failing(error):
    def act(*_):
        raise error

    return act


@pytest.mark.parametrize("code", list(Exit))
def test_the_code_of_a_run_is_the_code_of_the_command(verbs, code):
    verbs(lambda *_: code)
    assert main(["profile"]) == code


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (UsageError("no such folder."), 2, "no such folder."),
        (TargetError("h:1 refused the connection."), 1, "h:1 refused the connection."),
        (TargetError("the server said: a\nb\x1b[2J"), 1, "the server said: a b\\x1b[2J"),
        (KeyboardInterrupt(), 130, "interrupted."),
    ],
)
def test_a_failure_is_one_sentence(verbs, capsys, error, code, sentence):
    verbs(failing(error))
    assert main(["profile"]) == code
    assert capsys.readouterr().err == f"loadstone: error: {sentence}\n"


def test_a_defect_says_so_without_a_trace(verbs, capsys):
    verbs(failing(KeyError("x")))
    assert main(["profile"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("loadstone: error: KeyError: 'x' (test_exit_codes.py:")
    assert "a defect of loadstone" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("flag", ["-v", "--verbose"])
def test_a_defect_has_its_trace_on_request(verbs, capsys, flag):
    verbs(failing(KeyError("x")))
    assert main(["profile", flag]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_run_gets_its_configuration_and_the_command_to_copy(verbs):
    calls = verbs()
    words = ["profile", "-m", "a b", "--api-key", "SECRET", "--concurrency", "4", "--no-inputs-json"]
    assert main(words) == 0
    [(config, command)] = calls
    assert (config.endpoint.model, config.endpoint.api_key, config.load.concurrency) == ("a b", "SECRET", 4)
    assert config.output.inputs_json is False
    assert command == "loadstone profile -m 'a b' --api-key '***' --concurrency 4 --no-inputs-json"


def test_both_walk_throughs_are_understood_as_they_are_written(verbs):
    calls = verbs()
    static = (
        "profile --model M --endpoint-type chat --streaming --url localhost:8000 "
        "--synthetic-input-tokens-mean 128 --synthetic-input-tokens-stddev 0 "
        "--output-tokens-mean 128 --output-tokens-stddev 0 "
        "--extra-inputs min_tokens:128 --extra-inputs ignore_eos:true"
    )
    dynamic = (
        "profile --model M --endpoint-type chat --streaming --url localhost:8000 "
        "--request-rate 10 --arrival-pattern poisson "
        "--synthetic-input-tokens-mean 512 --synthetic-input-tokens-stddev 128 "
        "--output-tokens-mean 128 --output-tokens-stddev 32 --random-seed 42 --request-count 200"
    )
    assert [main(words.split()) for words in (static, dynamic)] == [0, 0]
    first, second = (config for config, _ in calls)
    assert first.endpoint.extra_inputs == {"min_tokens": 128, "ignore_eos": True}
    assert (first.input.isl_mean, first.input.osl_mean) == (128, 128)
    assert (second.load.request_rate, second.load.arrival_pattern) == (10, "poisson")
    assert (second.input.isl_stddev, second.input.osl_stddev, second.input.seed) == (128, 32, 42)
    assert second.load.request_count == 200


def test_verbose_asks_for_a_detailed_log(verbs):
    calls = verbs()
    main(["profile", "-v"])
    main(["profile", "-v", "--log-level", "error"])
    assert [config.output.log_level for config, _ in calls] == ["debug", "error"]


def test_report_rebuilds_the_folder_it_is_given(verbs, tmp_path):
    calls = verbs()
    (tmp_path / "run.json").touch()
    assert main(["report", str(tmp_path)]) == 0
    assert main(["report", str(tmp_path), "--slo", "e2e.p50<1s", "--slo", "ttft.p50<1s"]) == 0
    assert calls == [(tmp_path, ()), (tmp_path, ("e2e.p50<1s", "ttft.p50<1s"))]


def test_simulate_serves_what_it_is_told_and_says_where(monkeypatch, capsys):
    served = []

    def serve(options, announce):
        served.append((options.port, options.step_ms, options.null))
        announce(options.port or 4567)

    monkeypatch.setitem(sys.modules, "loadstone.sim.server", SimpleNamespace(serve=serve))
    assert main(["simulate", "--step-ms", "5", "--null"]) == 0
    assert main(["simulate", "--port", "0", "--host", "::1", "--model", "m"]) == 0
    assert served == [(8000, 5.0, True), (0, 10.0, False)]
    assert capsys.readouterr().out.splitlines() == [
        "http://127.0.0.1:8000 model sim; Ctrl-C ends it",
        "http://[::1]:4567 model m; Ctrl-C ends it",
    ]


def test_simulate_warns_of_a_device_on_which_it_is_known_to_be_too_fast(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "loadstone.sim.server", SimpleNamespace(serve=lambda *_, **__: None))
    assert main(["simulate", "--gpu", "mi300x", "--model", "llama-3.1-8b"]) == 0
    assert capsys.readouterr().err.startswith("caution: published runs on AMD took 1.3 (median) to 1.9 times")
    assert main(["simulate", "--gpu", "h100", "--model", "llama-3.1-8b"]) == 0
    assert capsys.readouterr().err == ""


def test_simulate_refuses_a_flag_that_was_given_and_has_no_effect(capsys):
    assert main(["simulate", "--gpu", "h100", "--model", "llama-3.1-8b", "--step-ms", "10"]) == 2
    assert "--step-ms has no effect: the model on its gpu says" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["profile", "--help-all"], ["--version"]])
def test_a_reader_that_has_gone_is_no_defect(words):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "loadstone", *words], stdout=writer, stderr=subprocess.PIPE, timeout=60
        )
    finally:
        os.close(writer)
    assert done.stderr == b""
    assert done.returncode in (0, 1)
