"""`loadstone plan` as a user calls it."""

from __future__ import annotations

import importlib.util
import json

import pytest
from tests.calibrations import written

from loadstone.__main__ import main
from loadstone.errors import Exit
from loadstone.roofline.case import Asked

SLO = "ttft.p99<200ms,itl.p99<30ms"
WORDS = [
    *("plan", "--model", "llama-3.1-8b", "--slo", SLO, "--rate", "40", "--workload", "isl=128,osl=16"),
    *("--gpu", "h100", "--max-num-batched-tokens", "512", "--processes", "1"),
]


def test_the_first_line_is_the_answer(loadstone):
    done = loadstone(*WORDS, "-tp", "1", columns=80)
    first = done.stdout.splitlines()[0]
    assert done.returncode == Exit.DONE
    assert first == "1 x h100-sxm serves 40 requests/s of isl=128,osl=16 for 3.99 USD an hour (bf16)."
    assert "vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 1" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_the_number_of_processes_changes_nothing(loadstone):
    one = loadstone(*WORDS, "-tp", "1,2", "--json")
    two = loadstone(*WORDS[:-1], "2", "-tp", "1,2", "--json")
    assert one.stdout == two.stdout
    assert json.loads(one.stdout)["best"]["devices"] == 1


def test_a_question_answered_no_has_an_exit_code_of_its_own(capsys):
    assert main([*WORDS[:4], "itl.p99<1ms", *WORDS[5:], "-tp", "1"]) == Exit.SLO_MISSED
    out = capsys.readouterr().out
    assert out.startswith("Nothing keeps the objectives at 40 requests/s")
    assert "Nearest:" in out


def test_the_answer_goes_to_a_file_too(tmp_path, capsys):
    path = tmp_path / "new" / "plan.json"
    assert main([*WORDS, "-tp", "1", "-o", str(path)]) == 0
    assert json.loads(path.read_text())["question"]["rate"] == 40
    assert capsys.readouterr().out.endswith(f"\n\n{path}\n")


def test_the_model_of_a_calibration_need_not_be_said_again(tmp_path, capsys):
    path = written(tmp_path / "a.toml", Asked(gpu="h100", model="llama-3.1-8b"))
    without = [word for word in WORDS if word not in ("--model", "llama-3.1-8b")]
    assert main([*without, "-tp", "1", "--calibration", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["question"]["model"] == "llama-3.1-8b"
    assert (found["caution"], found["best"]["gpu"]) == (None, "h100-sxm")


@pytest.mark.skipif(importlib.util.find_spec("vl_convert") is None, reason="needs loadstone[plot]")
def test_the_curve_is_drawn(tmp_path):
    path = tmp_path / "plan.svg"
    assert main([*WORDS, "-tp", "1", "-o", str(path)]) == 0
    text = path.read_text()
    assert "time to first token p99, ms" in text
    assert "inter token latency p99, ms" in text
    plain = text.replace("\xa0", " ")
    assert "Capacity of llama-3.1-8b, simulated" in plain
    assert "1 x h100-sxm serves 40 requests/s of isl=128,osl=16" in plain
    assert "at efficiencies that are assumptions" in plain


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--gpu", "h10"], "Did you mean h100?"),
        (["--rate", "3"], "--rate is given 2 times"),
        (["--workload", "chat"], "--workload is given 2 times"),
        (["--price", "a100=1"], "--price a100: not among the devices"),
        (["--price", "h100"], "is not GPU=USD"),
        (["--price", "h100=1,h100=2"], "given twice"),
        (["--quantization", "fp9"], "Did you mean fp8?"),
        (["-tp", "0"], "0 is not a whole number above 0"),
        (["-tp", "3"], "nothing to try"),
        (["--headroom", "95"], "from 0 to 90"),
        (["--slo", "foo<3ms"], "there is no foo"),
        (["--slo", "itl.p99<3ms"], "limited twice"),
        (["-o", "plan.pdf"], "must end with"),
        (["--calibration", "nowhere.toml"], "cannot be read"),
        (["--max-num-seqs", "1024"], "nothing to try"),
        (["--gpus", "h100"], "There is no option --gpus"),
    ],
)
def test_what_is_refused(more, said, capsys):
    assert main([*WORDS, *more]) == Exit.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["--model", "--slo", "--rate"])
def test_what_has_to_be_said(missing, capsys):
    at = WORDS.index(missing)
    assert main([*WORDS[:at], *WORDS[at + 2 :]]) == Exit.USAGE
    assert f"{missing} is missing" in capsys.readouterr().err
