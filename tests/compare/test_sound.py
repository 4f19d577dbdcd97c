"""Numbers that no run can have are one sentence with the file and the field, and none of Python's words."""

from __future__ import annotations

import copy

import pytest
from tests.compare.conftest import AIPERF, SGLANG, VLLM, VLLM_DETAILS, aiperf_record, guidellm

from loadstone.compare import sides
from loadstone.compare.importers import read
from loadstone.errors import UsageError

PYTHON = (
    "Error",
    "math domain",
    "NoneType",
    "not supported",
    "out of range",
    "division",
    "recursion",
    "convert",
)
DETAILED = {**VLLM, **VLLM_DETAILS}
REPORT = {
    "schema_version": "1.2",
    "loadstone_version": "1",
    "certificate": {"verdict": "VALID", "headline": ""},
    "config": {
        "endpoint": {"model": "m", "path": None, "type": "chat", "streaming": True, "extra_inputs": {}},
        "input": {
            "file": None,
            "turns_mean": 1,
            "isl_mean": 9,
            "isl_stddev": 0,
            "osl_mean": 9,
            "osl_stddev": 0,
        },
        "load": {},
    },
    "load": {"arrivals": []},
    "outcomes": {"planned": 9},
    "run": {"seed": 1},
    "environment": {},
    "metrics": {"time_to_first_token": {"mean": 20.0, "intervals": {"mean": {"low": 19.0, "high": 21.0}}}},
}


def of_ours(mean=20.0, **ends):
    found = copy.deepcopy(REPORT)
    told = found["metrics"]["time_to_first_token"]
    told["mean"] = mean
    told["intervals"]["mean"] |= ends
    return found


def refused(path):
    """The one sentence; the file stands in it and Python does not."""
    with pytest.raises(UsageError) as raised:
        read(path)
    text = str(raised.value)
    assert text.startswith(str(path))
    assert not any(word in text.removeprefix(str(path)) for word in PYTHON)
    return text


def test_the_report_that_is_spoiled_here_is_sound_itself(written):
    assert read(written("report.json", of_ours())).numbers["time_to_first_token", "mean"] == (20, 19, 21)


@pytest.mark.parametrize(
    ("spoiled", "sentence"),
    [
        (of_ours(0), "time_to_first_token.mean is 0, which no mean latency can be"),
        (of_ours(-5), "time_to_first_token.mean is -5, which cannot be"),
        (of_ours(1e308), "time_to_first_token.mean is 1e+308, which cannot be"),
        (of_ours(10**400), "time_to_first_token.mean is no finite number"),
        (of_ours("20"), "time_to_first_token.mean is no finite number"),
        (
            of_ours(low=50.0, high=10.0),
            "the interval of time_to_first_token.mean ends at 10, before it begins",
        ),
        (of_ours(low=1.0, high=1e300), "the interval of time_to_first_token.mean is from 1 to 1e+300"),
        ({**REPORT, "config": {}}, "it lacks endpoint"),
        ({**VLLM, "completed": -1}, "completed is no number of requests"),
        ({**VLLM, "completed": 1, "failed": -1}, "failed is no number of requests"),
        ({**VLLM, "completed": "two"}, "completed is no number of requests"),
        ({**VLLM, "mean_ttft_ms": 10**400}, "mean_ttft_ms is no finite number"),
        ({**VLLM, "request_throughput": -1}, "request_throughput is -1, which cannot be"),
        (
            {**DETAILED, "ttfts": [-1.0, 0.04, 0]},
            "time_to_first_token of a request is -1000, which cannot be",
        ),
        ({**DETAILED, "itls": [[-1.0, 3], [0.01], []]}, "inter_chunk_latency of a request is -1000"),
        ({**DETAILED, "ttfts": [1e308, 0.04, 0]}, "time_to_first_token of a request is inf"),
        ({**DETAILED, "output_lens": [-4, 3, 0]}, "number of output tokens of a request is -4"),
        ({**SGLANG, "completed": -1}, "completed is no number of requests"),
        ({**SGLANG, "mean_ttft_ms": -3}, "time_to_first_token.mean is -3"),
        ({**AIPERF, "request_error_rate": {"unit": "%", "avg": 250}}, "error_rate is 250, which cannot be"),
        ({**AIPERF, "time_to_first_token": 5}, "time_to_first_token is no object"),
        (aiperf_record(1, ttft=-20.0), "time_to_first_token of a request is -20"),
    ],
)
def test_a_number_that_cannot_be_is_told_with_its_field(written, spoiled, sentence):
    assert sentence in refused(written("x.json", spoiled))


def spoiled(value):
    """The same file with every one of its values replaced, one at a time, by each that is nothing there."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        for wrong in (None, -1, 10**400, 1e308, "x", [], {"a": 1}, *spoiled(part)):
            found = copy.copy(value)
            found[key] = wrong
            yield found
        if isinstance(value, dict):
            yield {name: one for name, one in value.items() if name != key}


@pytest.mark.slow
@pytest.mark.parametrize(
    "whole", [DETAILED, {**SGLANG, **VLLM_DETAILS}, AIPERF, aiperf_record(1), guidellm(1)]
)
def test_whatever_is_spoiled_a_file_is_read_or_refused_in_one_sentence(written, whole):
    """Nothing else is raised, and warnings are errors."""
    for found in spoiled(whole):
        path = written("x.json", found)
        try:
            sides([str(path)])
        except UsageError as error:
            text = str(error).removeprefix(str(path))
            assert not any(word in text for word in PYTHON), text


def test_a_gap_of_nothing_is_a_gap(written):
    run = read(
        written("x.json", {**DETAILED, "itls": [[0.0, 0.0, 0.0], [0.0, 0.02], []], "median_itl_ms": 0.0})
    )
    assert run.numbers["inter_chunk_latency", "p50"].value == 0


def test_what_is_nested_too_deeply_is_told(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000 + "]" * 100_000)
    assert "nested too deeply" in refused(path)


def test_a_file_that_memory_could_not_hold_is_not_read(written, monkeypatch):
    monkeypatch.setattr("loadstone.compare.importers._document.LARGEST_BYTES", 2 * 2**20)
    path = written("x.json", {**VLLM, "generated_texts": "a" * 2**21})
    assert "is larger than 2 MB, more than compare reads" in refused(path)


@pytest.mark.parametrize(
    ("named", "sentence"), [(",", "',': names no run"), ("x" * 5000, "no file can have")]
)
def test_a_side_that_is_no_path_is_told_briefly(named, sentence):
    with pytest.raises(UsageError, match=sentence) as raised:
        sides([named])
    assert len(str(raised.value)) < 200
