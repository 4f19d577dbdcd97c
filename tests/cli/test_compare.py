"""`loadstone compare` as a user calls it: exit codes, formats, one sentence when it cannot be done."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.compare.conftest import VLLM, VLLM_DETAILS

from loadstone.__main__ import main
from loadstone.compare import Comparison


def vllm(slower=1.0, count=200):
    import numpy as np

    ttfts = (0.02 + np.random.default_rng(1).gamma(4, 0.005, count)) * slower
    return {
        **VLLM,
        **VLLM_DETAILS,
        "completed": count,
        "num_prompts": count,
        "ttfts": ttfts.tolist(),
        "itls": [[0.01, 0.01]] * count,
        "input_lens": [100] * count,
        "output_lens": [3] * count,
        "total_input_tokens": 100 * count,
        "start_times": [100 + 0.1 * number for number in range(count)],
        "errors": [""] * count,
        "mean_ttft_ms": float(ttfts.mean() * 1000),
    }


@pytest.fixture
def files(tmp_path):
    def write(*values):
        paths = [tmp_path / f"{number}.json" for number in range(len(values))]
        for path, value in zip(paths, values, strict=True):
            path.write_text(json.dumps(value))
        return [str(path) for path in paths]

    return write


def test_two_files_are_compared_on_stdout(files, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    paths = files(vllm(), vllm(1.1))
    assert main(["compare", *paths, "--pair"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[0] == f"A: {paths[0]} (vllm bench serve, 200 requests)"
    assert "time to first token mean: B is 10 % slower [10, 10]." in out
    assert "\x1b" not in out


def test_a_regression_beyond_the_limit_is_exit_code_3(files, capsys):
    paths = files(vllm(), vllm(1.1))
    assert main(["compare", *paths, "--pair", "--fail-on", "5"]) == 3
    assert "Worse beyond the limit: B: time_to_first_token.mean" in capsys.readouterr().out
    assert main(["compare", *paths, "--pair", "--fail-on", "15"]) == 0
    assert main(["compare", *reversed(paths), "--pair", "--fail-on", "5"]) == 0


def test_a_limit_is_not_kept_where_nothing_was_compared(files, capsys):
    """Summaries alone tell nothing of chance, so nobody knows whether B is worse."""
    summaries = files(VLLM, {**VLLM, "mean_ttft_ms": 60.0})
    assert main(["compare", *summaries]) == 0
    capsys.readouterr()
    assert main(["compare", *summaries, "--fail-on", "5"]) == 4
    out, err = capsys.readouterr()
    assert "time to first token mean (ms)" in out
    assert err == "--fail-on 5: undecided, since no row of B could be compared.\n"


def test_several_runs_beside_one_are_refused(files, capsys):
    a1, a2, b = files(vllm(), vllm(), vllm(1.2))
    for sides in ([f"{a1},{a2}", b], [b, f"{a1},{a2}"]):
        assert main(["compare", *sides, "--fail-on", "5"]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "so nothing can be compared; name two runs or more of each side" in err
        assert err.count("\n") == 1


def test_json_is_of_the_published_form(files, capsys):
    assert main(["compare", *files(vllm(), vllm()), "--format", "json", "--metric", "ttft"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Comparison)
    assert found.schema_version == "1.1"
    assert {row.metric for row in found.comparisons[0].rows} == {"time_to_first_token"}


def test_everything_is_compared_with_the_first(files, capsys):
    words = ["--format", "markdown", "--label", "old", "--label", "new", "--label", "newer"]
    assert main(["compare", *files(vllm(), vllm(), vllm()), *words]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line.startswith("##")] == [
        "## new against old",
        "## newer against old",
    ]


def test_another_model_is_refused_unless_anyway(files, capsys):
    paths = files(vllm(), {**vllm(), "model_id": "other"})
    assert main(["compare", *paths]) == 2
    assert "B was asked for another model: other instead of m." in capsys.readouterr().err
    assert main(["compare", *paths, "--anyway"]) == 0
    assert "B was asked for another model: other instead of m." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["one"], "compare takes two sides or more, and one is one"),
        (["a", "b", "--metric", "tttf"], "--metric tttf: is no metric that is compared"),
        (["a", "b", "--headline", "ttft.p42"], "the statistics are mean, p50, p90 and p99"),
        (["a", "b", "--label", "x"], "--label is given 1 times for 2 sides"),
        (["a", "b"], "a: cannot be read"),
        (["a", "b", "--fail-on", "-1"], "--fail-on"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_exit_code_2(words, sentence, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
