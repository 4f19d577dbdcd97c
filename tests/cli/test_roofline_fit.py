"""`loadstone roofline --fit`, of runs of the engine on the virtual clock, whose truth is known."""

from __future__ import annotations

import json
import tomllib

import pytest


@pytest.fixture
def run(loadstone):
    """Makes a run of so many streams with an engine of these options."""

    def make(folder, engine, concurrency=4, isl=400, stddev=0, *more):
        done = loadstone(
            "profile", "--url", f"sim:{engine}", "--virtual", "--streaming", "--isl", str(isl),
            "--isl-stddev", str(stddev), "--osl", "100", "--extra-inputs", "ignore_eos:true", "--random-seed", "1",
            "--concurrency", str(concurrency), "--request-count", str(max(2 * concurrency, 8)),
            "--output-artifact-dir", folder, *more,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    return make


LLAMA = "gpu=h100,model=llama-3.1-8b"


def test_an_engine_needs_no_flags_and_its_fit_is_marked(loadstone, run, tmp_path):
    run("a", LLAMA)
    done = loadstone("roofline", "--fit", "a", "-o", "a.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert "! All runs are of the built-in engine" in done.stdout
    made = tomllib.loads((tmp_path / "a.toml").read_text())
    assert (made["setup"]["gpu"], made["setup"]["model"]) == ("h100-sxm", "llama-3.1-8b")
    assert made["simulated"] is True
    assert made["notes"][0].startswith("All runs are of the built-in engine")


def test_runs_of_two_models_are_refused(loadstone, run):
    run("a", LLAMA)
    run("b", "gpu=h100,model=qwen3-0.6b")
    done = loadstone(
        "roofline", "--fit", "a", "b", "--gpu", "h100", "--model", "llama-3.1-8b", "-o", "x.toml"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "a and b: the runs are of more than one model" in done.stderr


def test_a_run_is_not_fitted_as_another_model(loadstone, run):
    run("a", "gpu=h100,model=qwen3-0.6b")
    done = loadstone("roofline", "--fit", "a", "--gpu", "h100", "--model", "llama-3.1-8b")
    assert done.returncode == 2
    assert "the engine was qwen3-0.6b bf16 on h100-sxm, and not llama-3.1-8b" in done.stderr


def test_speculation_is_refused(loadstone, run):
    run("a", f"{LLAMA},num_speculative_tokens=3")
    done = loadstone("roofline", "--fit", "a")
    assert done.returncode == 2
    assert "with speculation (3 draft tokens) a gap is no step of one token" in done.stderr


def test_short_answers_that_follow_each_other_are_no_wrong_count(loadstone):
    done = loadstone(
        "profile", "--url", f"sim:{LLAMA}", "--virtual", "--streaming", "--isl", "8", "--osl", "2",
        "--extra-inputs", "ignore_eos:true", "--request-rate", "1500", "--request-count", "600",
    )  # fmt: skip
    assert done.returncode == 0
    assert "VALID" in done.stdout
    assert "DEGRADED" not in done.stdout


def test_two_devices_with_links_are_found(loadstone, run, tmp_path):
    """Links, bandwidth and compute are known to the engine; prompts of several lengths and several batches tell them."""
    engine = "gpu=h100,model=llama-3.1-8b,tensor_parallel_size=2"
    run("a", engine, 1, 3000, 1500)
    run("b", engine, 8, 1000, 400)
    run("c", engine, 32, 200, 50)
    done = loadstone("roofline", "--fit", "a", "b", "c", "-o", "x.toml")
    assert (done.returncode, done.stderr) == (0, "")
    made = tomllib.loads((tmp_path / "x.toml").read_text())
    assert made["worst_percent"] < 2
    told = made["told"]
    assert told["bandwidth"]["value"] == pytest.approx(0.8, rel=0.02)
    assert told["link"]["used"] == made["reached"]["link"]
    assert told["compute"]["used"] == pytest.approx(0.5, rel=0.05)


def test_a_fit_as_json_is_what_the_file_says(loadstone, run, tmp_path):
    run("a", LLAMA)
    done = loadstone("roofline", "--fit", "a", "--json", "-o", "a.toml")
    assert (done.returncode, done.stderr) == (0, "a.toml\n")
    assert json.loads(done.stdout) == tomllib.loads((tmp_path / "a.toml").read_text())
