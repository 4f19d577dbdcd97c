"""`loadstone roofline`, and the roofline of a run, through the real command."""

from __future__ import annotations

import json
import tomllib

import pytest
from rich.cells import cell_len
from tests.calibrations import written

from loadstone.roofline.case import Asked

H100 = ("--gpu", "h100", "--model", "llama-3.1-8b")


@pytest.mark.parametrize("columns", [20, 30, 40, 60])
def test_the_page_fits_a_narrow_terminal(loadstone, columns):
    done = loadstone("roofline", *H100, "--batch", "1,8,4096", columns=columns, PYTHONIOENCODING="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert max(map(cell_len, lines)) <= columns
    assert "  (does not fit)" in lines
    assert ("tok/s all" in done.stdout) == (columns >= 30)


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_the_page_fits_the_terminal(loadstone, columns):
    done = loadstone("roofline", *H100, "--slo", "tpot<20ms", columns=columns, PYTHONIOENCODING="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(cell_len, done.stdout.splitlines())) <= columns
    for word in (
        "B_sat",
        "S_crit",
        "floor",
        "prefill",
        "KV cache is full",
        "bound by",
        "tpot < 20 ms: batch",
    ):
        assert word in done.stdout
    assert "\x1b" not in done.stdout


def test_a_terminal_of_another_alphabet_gets_plain_characters(loadstone):
    done = loadstone("roofline", *H100, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "*****" in done.stdout
    assert done.stdout.isascii()


def test_json_is_what_the_page_shows(loadstone):
    words = ("roofline", *H100, "--floor", "--isl", "200", "--osl", "100", "--slo", "tpot<10ms,ttft<500ms")
    found = json.loads(loadstone(*words, "--json").stdout)
    assert found["words"] == "llama-3.1-8b bf16 on h100-sxm"
    assert (found["context"], found["efficiency"]["bandwidth"], found["efficiency_source"]) == (
        250,
        1.0,
        "datasheet",
    )
    assert [row["batch"] for row in found["rows"]] == [2**k for k in range(11)]
    assert found["rows"][0]["step_s"] == found["floor_s"]
    assert [one["name"] for one in found["objectives"]] == ["time_per_output_token", "time_to_first_token"]
    assert "drawn" not in found


@pytest.mark.parametrize(
    ("gpu", "b_sat", "floor_ms", "s_crit"),
    [
        ("h100", 295, 4.48, 387),
        ("h200", 206, 3.12, 555),
        ("a100", 153, 7.36, 748),
        ("mi300x", 247, 2.83, 464),
    ],
)
def test_the_datasheet_floor_of_an_8b_model(loadstone, gpu, b_sat, floor_ms, s_crit):
    words = ("--gpu", gpu, "--model", "llama-3.1-8b", "--floor", "--context", "1", "--json")
    found = json.loads(loadstone("roofline", *words).stdout)
    assert found["b_sat"] == pytest.approx(b_sat, rel=0.004)
    assert found["s_crit"] == pytest.approx(s_crit, rel=0.004)
    assert found["floor_s"] == found["rows"][0]["step_s"] == pytest.approx(floor_ms / 1e3, rel=0.004)


def test_the_page_says_what_it_assumes_of_experts_and_replicas(loadstone):
    deep = ("--gpu", "h200", "--model", "deepseek-v3", "-dp", "8", "--enable-expert-parallel")
    page = " ".join(loadstone("roofline", *deep, "--floor", "--context", "20000").stdout.split())
    assert "at the datasheet's figures, every token with the same experts: no real step is faster" in page
    assert "all 8 replicas are taken to have the same batch" in page
    assert "S_crit none: attention itself is bound by compute" in page
    page = " ".join(loadstone("roofline", *H100).stdout.split())
    assert "compute at this context no batch is bound by it" in page
    assert "experts" not in page


def test_a_long_prompt_is_taken_in_by_several_steps(loadstone):
    page = " ".join(loadstone("roofline", *H100, "--isl", "20000").stdout.split())
    assert "for a prompt of 20,000 tokens that comes alone in 3 steps of 8,192" in page


def test_batches_and_limits_are_those_asked_for(loadstone):
    words = ("--batch", "8,1", "--max-num-seqs", "4", "--gpu-memory-utilization", "0.5", "--context", "500")
    found = json.loads(loadstone("roofline", *H100, *words, "--json").stdout)
    assert [(row["batch"], row["fits"]) for row in found["rows"]] == [(1, True), (8, False)]
    assert (found["largest"], found["context"]) == (4, 500)


def test_an_objective_that_no_batch_keeps_has_an_exit_code_of_its_own(loadstone):
    for more in ((), ("--json",), ("-o", "x.json")):
        assert loadstone("roofline", *H100, "--slo", "tpot<5ms", *more).returncode == 3
        assert loadstone("roofline", *H100, "--slo", "tpot<20ms", *more).returncode == 0


def test_what_published_runs_say_against_the_model_is_on_the_page_in_json_and_in_the_figure(
    loadstone, tmp_path
):
    deep = ("--gpu", "h200", "--model", "deepseek-v3", "-tp", "8")
    said = "published runs of DeepSeek took 2.4 (median) to 3.0 times as long as the roofline says"
    assert f"caution: {said}" in " ".join(loadstone("roofline", *deep).stdout.split())
    assert json.loads(loadstone("roofline", *deep, "--json").stdout)["caution"].startswith(said)
    assert loadstone("roofline", *deep, "-o", "x.svg").returncode == 0
    svg = (tmp_path / "x.svg").read_text()
    assert "Caution: published runs of DeepSeek" in svg.replace("\xa0", " ")
    assert "assumed, from vLLM" in svg.replace("\xa0", " ")
    for words in ((*deep, "--floor"), H100):
        assert "caution" not in loadstone("roofline", *words).stdout
        assert json.loads(loadstone("roofline", *words, "--json").stdout)["caution"] is None


def test_files_are_written_where_asked(loadstone, tmp_path):
    for name in ("x.json", "x.svg"):
        done = loadstone("roofline", *H100, "-o", name)
        assert (done.returncode, done.stdout) == (0, f"{name}\n")
    assert json.loads((tmp_path / "x.json").read_text())["gpu"] == "h100-sxm"
    svg = (tmp_path / "x.svg").read_text()
    assert "B_sat" in svg
    assert "output tokens/s" in svg


@pytest.mark.parametrize("columns", [80, 120])
def test_the_lists_fit_the_terminal_and_name_their_sources(loadstone, columns):
    short = loadstone("roofline", "--list", columns=columns)
    assert max(map(cell_len, short.stdout.splitlines())) <= columns
    assert "h100-sxm" in short.stdout
    assert "llama-3.1-405b" in short.stdout
    assert "--gpu FILE.toml" in short.stdout
    whole = loadstone("roofline", "--list-sources", columns=columns)
    assert whole.stdout.startswith(short.stdout.rstrip("\n"))
    assert "datasheet" in whole.stdout


def test_the_lists_as_json(loadstone):
    found = json.loads(loadstone("roofline", "--list", "--json").stdout)
    first = found["gpus"][0]
    assert first["bandwidth"] > 1e11
    assert first["sources"]["bandwidth"]
    assert {"h100-sxm", "mi300x"} <= {gpu["name"] for gpu in found["gpus"]}
    assert "llama-3.1-405b" in {model["name"] for model in found["models"]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gpu", "h100"), "--model is missing"),
        ((*H100, "--gpu-memory-utilization", "nan"), "nan is not in the range"),
        ((*H100, "--batch", ""), "give whole numbers above 0"),
        ((*H100, "--batch", "1,,2"), "give whole numbers above 0"),
        ((*H100, "--batch", "99999999999999999999"), "the largest is 1,000,000"),
        ((*H100, "-dp", "999999999999999"), "data_parallel_size = 999999999999999: must be at most 65,536"),
        ((*H100, "--slo", "tpot<1e400ms"), "has to be above 0, and finite"),
        (("--list", "x"), "--list: x has no effect beside it"),
        (("--list", "--floor"), "--list: floor has no effect beside it"),
        (("--gpu", "h1000", "--model", "llama-3.1-8b"), "Did you mean h100?"),
        (("--gpu", "h100", "--model", "llama-3.1-70b"), "Out of memory"),
        ((*H100, "--batch", "x"), "give whole numbers above 0"),
        ((*H100, "--slo", "e2e<1s"), "--slo"),
        ((*H100, "--slo", "tpot.p99<1s"), "a roofline knows no distribution"),
        ((*H100, "--slo", "tpot<1s,itl<2s"), "limited twice"),
        ((*H100, "-o", "x.pdf"), "must end with .png"),
        ((*H100, "-tp", "3"), "cannot share evenly"),
        ((*H100, "-tp", "0"), "tensor_parallel_size = 0: must be 1 or more"),
        ((*H100, "-dp", "0"), "data_parallel_size = 0: must be 1 or more"),
        ((*H100, "run"), "run folders are for --fit"),
        (("--calibration", "none.toml"), "cannot be read"),
        (("--fit",), "name the folders of runs"),
        (("--fit", "nowhere", *H100), "holds no run.json"),
        (("--fit", "x", *H100, "-o", "x.json"), "must end with .toml"),
    ],
)
def test_what_cannot_be_is_one_sentence_and_exit_code_2(loadstone, words, said):
    done = loadstone("roofline", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_help_imports_neither_numpy_nor_what_draws(loadstone):
    done = loadstone("roofline", "--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert not [
        line
        for line in done.stderr.splitlines()
        if line.endswith((" numpy", " polars", " altair", " tokenizers"))
    ]


def simulated(loadstone, folder, concurrency, *more):
    """A run of the engine on the virtual clock, whose steps are those of the roofline it was given."""
    return loadstone(
        "profile", "--url", "sim:gpu=h100,model=llama-3.1-8b", "--virtual", "--streaming",
        "--isl", "400", "--osl", "300", "--extra-inputs", "ignore_eos:true", "--random-seed", "1",
        "--concurrency", str(concurrency), "--request-count", str(2 * concurrency),
        "--output-artifact-dir", folder, *more,
    )  # fmt: skip


def test_a_fit_finds_the_engine_that_was_measured(loadstone, tmp_path):
    for batch in (1, 8, 32):
        assert simulated(loadstone, f"run{batch}", batch).returncode == 0
    done = loadstone("roofline", "--fit", "run1", "run8", "run32", *H100, "-o", "h100.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "error of the model" in done.stdout
    made = tomllib.loads((tmp_path / "h100.toml").read_text())
    assert made["runs"] == ["run1", "run8", "run32"]
    assert made["setup"]["model"] == "llama-3.1-8b"
    assert made["worst_percent"] < 0.5
    assert made["told"]["bandwidth"]["value"] == pytest.approx(0.8, rel=0.01)
    assert "value" not in made["told"]["step_s"]
    assert {point["kind"] for point in made["points"]} == {"decode", "prefill"}
    found = json.loads(
        loadstone("roofline", "--calibration", "h100.toml", "--isl", "400", "--osl", "300", "--batch", "16", "--json").stdout
    )  # fmt: skip
    assert found["efficiency_source"] == "measured: h100.toml"
    for words, source in (
        (("--gpu", "h100-sxm"), "measured: h100.toml"),
        (("--gpu", "a100"), "h100.toml: measured with llama-3.1-8b bf16 on h100-sxm, assumed here"),
        (("-tp", "2"), "h100.toml: measured with llama-3.1-8b bf16 on h100-sxm, assumed here"),
        (("--quantization", "fp8"), "h100.toml: measured with llama-3.1-8b bf16 on h100-sxm, assumed here"),
    ):
        other = loadstone("roofline", "--calibration", "h100.toml", *words, "--json")
        assert json.loads(other.stdout)["efficiency_source"] == source
    assert simulated(loadstone, "run16", 16).returncode == 0
    report = json.loads((tmp_path / "run16" / "report.json").read_text())
    measured_s = report["metrics"]["inter_token_latency"]["p50"] / 1e3
    assert found["rows"][0]["step_s"] == pytest.approx(measured_s, rel=0.01)


def test_expert_parallel_of_a_calibration_can_be_turned_off(loadstone, tmp_path):
    setup = Asked(gpu="h100", model="qwen3-30b-a3b", tensor_parallel_size=2, enable_expert_parallel=True)
    written(tmp_path / "moe.toml", setup)
    kept = loadstone("roofline", "--calibration", "moe.toml", "--json")
    assert json.loads(kept.stdout)["efficiency_source"] == "measured: moe.toml"
    off = loadstone("roofline", "--calibration", "moe.toml", "--no-enable-expert-parallel", "--json")
    assert json.loads(off.stdout)["efficiency_source"].endswith("assumed here")


def test_a_run_of_the_engine_is_compared_with_its_roofline(loadstone, tmp_path):
    done = simulated(loadstone, "run", 4)
    assert "ITL of roofline" in done.stdout
    assert "output of roofline" in done.stdout
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    share = report["metrics"]["inter_token_latency_of_roofline"]
    assert share["unit"] == "%"
    assert 50 < share["mean"] < 70
    assert report["environment"]["roofline"]["gpu"]["name"] == "h100-sxm"
    assert "inter_token_latency_of_roofline,%,mean," in (tmp_path / "run" / "report.csv").read_text()


def test_what_a_run_is_compared_with_can_be_named(loadstone, tmp_path):
    named = "gpu=a100,model=llama-3.1-70b,tensor_parallel_size=4"
    done = simulated(loadstone, "run", 4, "--roofline", named)
    assert "(" in done.stdout
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["metrics"]["inter_token_latency_of_roofline"]["mean"] > 200


def test_a_roofline_that_is_no_case_stops_the_run_before_it_starts(loadstone, tmp_path):
    done = simulated(loadstone, "run", 4, "--roofline", "gpu=h100,modl=x")
    assert done.returncode == 2
    assert "Did you mean model?" in done.stderr
    assert not (tmp_path / "run").exists()
