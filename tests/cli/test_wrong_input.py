"""Wrong input: exit code 2, one clear sentence on stderr, nothing on stdout, nothing started."""

from __future__ import annotations

import re

import pytest

from loadstone.cli.elsewhere import ADVICE
from loadstone.config import options

NO_WARMUP = (
    "has no effect without a warm-up; set --warmup-request-count, --num-warmup-sessions or --warmup-duration."
)
CASES = [
    (["profil"], "There is no verb 'profil'. Did you mean profile?"),
    (
        ["xyz"],
        "There is no verb 'xyz'. Known: profile, report, compare, plot, roofline, calibrate, simulate, plan, explain.",
    ),
    (["profile", "--concurency", "3"], "There is no option --concurency. Did you mean --concurrency?"),
    (["profile", "--concurency=3"], "There is no option --concurency. Did you mean --concurrency?"),
    (["profile", "--qqqq"], "There is no option --qqqq. --help-all lists them."),
    (["compare", "--help-all"], "There is no option --help-all. --help lists them."),
    (["report", "--qqqq"], "There is no option --qqqq. --help lists them."),
    *(
        (["profile", flag, "x"], f"There is no option {flag}. --help-all lists them.")
        for flag in ("--sonnet", "--label", "--lora-modules")
    ),
    *(
        (["profile", flag, "x"], f"There is no option {flag}. {advice}")
        for flag, advice in (
            ("--num-prompt", ADVICE["--num-prompts"]),
            ("--percentile-metric", "Every metric has every percentile; leave it out."),
            ("--profile-export-file", "The folder of results is --artifact-dir; the names in it are fixed."),
            ("--service-kind", "The API shape is --endpoint-type, such as chat or completions."),
            ("--warmup-requests", "Requests before the measurement are --warmup-request-count."),
            (
                "--flush-cache",
                "The cache is emptied with --reset-kv-cache --reset-kv-cache-path /flush_cache.",
            ),
        )
    ),
    (["--versoin"], "There is no option --versoin. Did you mean --version?"),
    (
        ["profile", "--num-prompts", "9"],
        "There is no option --num-prompts. It counts requests in one tool and prompts in another; "
        "say --request-count or --num-dataset-entries.",
    ),
    (
        ["profile", "--ignore-eos"],
        "There is no option --ignore-eos. Send it as a request field: --extra-inputs ignore_eos:true.",
    ),
    (
        ["profile", "--request-rate", "-3"],
        "load.request_rate = -3: must be a number above 0 or inf. For a closed loop set --concurrency; "
        "to send everything at once give inf.",
    ),
    (["profile", "--concurrency", "0"], "load.concurrency = 0: must be a whole number, at least 1."),
    (
        ["profile", "--concurrency", "1", "--max-concurrency", "2"],
        "load.concurrency: --concurrency is given 2 times; give it once.",
    ),
    (
        ["profile", "--arrival-pattern", "poisson"],
        "load.arrival_pattern = poisson: has no effect in a closed loop; set --request-rate or leave it out.",
    ),
    (
        ["profile", "--request-rate", "inf"],
        "load.request_rate = inf: sends everything at once, so something has to say how much; set --request-count.",
    ),
    (
        ["profile", "--url", "a", "--url", "b", "--url-weights", "1,2,3"],
        "endpoint.url_weights = 1,2,3: must be 2 numbers, one for each url.",
    ),
    (
        ["profile", "--request-rate-series", "0:1,60"],
        "load.request_rate_series = 0:1,60: must be SECONDS:RATE separated by commas, such as 0:1,60:20, or JSON: "
        "[[0, 1], [60, 20]].",
    ),
    (["profile", "--warmup-concurrency", "3"], f"load.warmup_concurrency = 3: {NO_WARMUP}"),
    (
        ["profile", "--set", 'load.phases=[{"name": "a", "request_rat": 3}]'],
        "load.phases[0].request_rat: there is no such key of a phase. Did you mean request_rate?",
    ),
    (
        ["profile", "--stop-when", "ttft:5", "--request-count", "9"],
        "load.stop_when.time_to_first_token: needs --streaming.",
    ),
    (
        ["profile", "--keep", "fault"],
        "output.keep = fault: must be one of all, faults, none. Did you mean faults?",
    ),
    (
        ["profile", "--set", "load.concurency=3"],
        "--set load.concurency: there is no such key. Did you mean load.concurrency?",
    ),
    (["profile", "--config", "none.toml"], "none.toml: cannot be read: No such file or directory."),
    (
        ["profile", "--extra-inputs", "min_tokens"],
        "endpoint.extra_inputs = min_tokens: must be NAME:VALUE or a JSON object, such as min_tokens:128.",
    ),
    (
        ["profile", "--goodput", "ttft"],
        'slo.goodput = ttft: must be "METRIC:NUMBER ...", such as "time_to_first_token:200".',
    ),
    (["profile", "--model", "\udcff"], "an argument is not text in the encoding of this terminal (UTF-8)."),
    (["profile", "--url"], "Option '--url' requires an argument."),
    (
        ["profile", "extra"],
        "1 word belongs to no flag. Quote a value that holds spaces: --header 'NAME: VALUE'.",
    ),
    (["profile", "--cacert", "x"], "There is no option --cacert. The authorities to trust are --ca FILE."),
    (["report"], "Missing argument 'FOLDER'."),
    (["report", "nowhere"], "nowhere: holds no run.json; give the folder that a run named at its end."),
    (["simulate", "--step-mss", "1"], "There is no option --step-mss. Did you mean --step-ms?"),
    (["simulate", "--port", "70000"], "port = 70000: must be a whole number from 0 to 65535."),
]


@pytest.mark.parametrize(("words", "sentence"), CASES, ids=lambda case: " ".join(case)[:40])
def test_one_sentence_and_nothing_started(loadstone, tmp_path, words, sentence):
    done = loadstone(*words)
    assert done.stderr == f"loadstone: error: {sentence}\n"
    assert (done.returncode, done.stdout) == (2, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["--api-key", "hunter2 hunter2"],
        ["--api-key", "hunter2\nhunter2"],
        ["--api-key=", "hunter2"],
        ["-H", "Authorization:", "Bearer", "hunter2"],
        ["-H", "Authorization Bearer hunter2"],
        ["-H", "Authori zation: hunter2"],
        ["-H", "Authorization: hunter2\r\nX: y"],
        ["-H", "Proxy-Authorization: hunter2"],
        ["--url", "ftp://h/?key=hunter2"],
        ["--url", "ftp://user:hunter2@h"],
        ["--url", "http://user:hunter2@h"],
        ["--url", "http://h:1/é?hunter2"],
        ["--url", "http://h:x/?key=hunter2"],
        ["--url", "a?key=hunter2", "--url", "a?key=hunter2"],
        ["--url", "a", "--url", "http://us:hunter2@b"],
        ["--session-end-header", "X-End hunter2"],
        ["--session-end-header", "Host: hunter2"],
        ["--server-profiler", "--server-profiler-start-path", "/start?key=hunter2 x"],
        ["--reset-kv-cache-path", "/reset?key=hunter2"],
        ["--url", "http://hun\u2100ter:hunter2@h"],
        ["--proxy", "socks5://user:hunter2@h:1"],
        ["--proxy", "http://user:hunter2@h"],
        ["--proxy", "http://user:hunter2@h:1/path"],
        ["--url", "sim:", "--proxy", "http://user:hunter2@h:1"],
        ["--set", "endpoint.api_key:hunter2"],
        ["--set", 'endpoint.api_key="hunter2 x"'],
        ["--set", "endpoint.headers=hunter2"],
        ["--extra-inputs", "api_key=hunter2"],
        ["--extra-inputs", '{"api_key": "hunter2",}'],
        ["--extra-inputs", "api_key:hunter2", "--extra-inputs", "x:" + "[" * 65 + "]" * 65],
    ],
    ids=lambda words: " ".join(words)[:50],
)
def test_a_secret_is_never_echoed(loadstone, words):
    done = loadstone("profile", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("loadstone: error: ")
    assert "hunter2" not in done.stderr


def test_what_a_file_says_cannot_move_the_cursor(loadstone, tmp_path):
    (tmp_path / "a.toml").write_text('[endpoint]\ntype = "\\u001b[2Jx"\n')
    done = loadstone("profile", "-f", "a.toml")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr


def test_advice_names_flags_that_there_are_for_flags_that_there_are_not():
    flags = {flag for option in options() for flag in option.flags}
    assert flags & ADVICE.keys() == set()
    assert {word for advice in ADVICE.values() for word in re.findall(r"--[a-z-]+", advice)} <= flags
