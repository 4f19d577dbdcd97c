"""What published runs say of the model's times, held against the page that has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loadstone.roofline import gpus, models
from loadstone.roofline.case import Asked, case
from loadstone.roofline.validation import AMD, DEEPSEEK, FITTED_VERSIONS, GPT_OSS, GROUPS, caution, validity

PAGE = Path(__file__).parents[2] / "docs" / "roofline-validation.md"


def of(model, gpu):
    return validity(models.find(model), gpus.find(gpu))


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.what)
def test_every_figure_is_that_of_the_page(group):
    [line] = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {group.row} |")]
    _, _, rms, median, _, worst = (cell.strip() for cell in line.strip("|").split("|"))
    assert float(rms.removesuffix(" %")) == group.rms_percent
    assert float(median.removesuffix(" %")) == group.median_percent
    assert float(re.match(r"(\S+) %", worst)[1]) == group.worst_percent


def test_the_versions_are_those_of_the_points_that_were_fitted():
    text = PAGE.read_text("utf-8")
    fitted = text.partition("<!-- made: fitted -->")[2].partition("<!-- end -->")[0]
    names = {line.split("|")[1].strip() for line in fitted.splitlines()[4:] if line}
    conditions = text.partition("<!-- made: conditions -->")[2].partition("<!-- end -->")[0]
    rows = [[cell.strip() for cell in line.split("|")] for line in conditions.splitlines() if "|" in line]
    versions = {row[2].split()[0] for row in rows[2:] if names & set(row[1].split(", "))} - {"not"}
    known = sorted(versions, key=lambda version: [int(part) for part in version.split(".")])
    assert f"{known[0]} to {known[-1].removesuffix('.0')}" == FITTED_VERSIONS


def test_times_as_long_follow_from_the_errors():
    assert (round(DEEPSEEK.typical, 1), round(DEEPSEEK.most, 1)) == (2.4, 3.0)
    assert (round(AMD.typical, 1), round(AMD.most, 1)) == (1.3, 1.9)
    assert (round(GPT_OSS.typical, 1), round(GPT_OSS.most, 1)) == (1.2, 2.2)


@pytest.mark.parametrize(
    ("model", "gpu", "standing"),
    [
        ("llama-3.1-8b", "h100", "close"),
        ("llama-3.1-70b", "a100", "close"),
        ("mixtral-8x7b", "h200", "close"),
        ("qwen3-235b-a22b", "h100", "close"),
        ("deepseek-v3", "h200", "fast"),
        ("gpt-oss-20b", "a100", "fast"),
        ("llama-3.1-8b", "mi300x", "fast"),
        ("llama-3.1-8b", "mi325x", "fast"),
        ("llama-3.1-8b", "b200", "untried"),
        ("llama-3.1-8b", "cpu", "untried"),
    ],
)
def test_kinds_of_models_and_devices(model, gpu, standing):
    assert of(model, gpu).standing == standing


def test_both_a_model_and_a_device_are_named_the_worst_first():
    found = of("gpt-oss-120b", "mi300x")
    assert found.groups == (GPT_OSS, AMD)
    assert found.short == "published runs of gpt-oss and on AMD took up to 2.2 times as long"
    assert "and both apply here" in found.caution


def test_the_sentence_says_how_much_and_what_to_do():
    assert of("deepseek-v3", "h200").caution == (
        "published runs of DeepSeek took 2.4 (median) to 3.0 times as long as the roofline says: fit it to a run first"
        " (loadstone roofline --fit; docs/roofline-validation.md)"
    )
    assert of("llama-3.1-8b", "b200").short == "no published run on b200 was held against the roofline"
    assert (of("llama-3.1-8b", "h100").short, of("llama-3.1-8b", "h100").caution) == (None, None)


def test_what_was_fitted_there_needs_no_caution():
    here, elsewhere = (case(Asked(gpu=gpu, model="llama-3.1-8b")) for gpu in ("mi300x", "h100"))
    assert caution(here).groups == (AMD,)
    assert caution(here, here) is None
    assert caution(here, elsewhere).groups == (AMD,)
    assert caution(elsewhere) is None
