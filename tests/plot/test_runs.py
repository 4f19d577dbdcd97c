"""Runs are told apart by what differs between them; a folder that cannot be drawn is named, with what to do."""

from __future__ import annotations

import re

import pytest

from loadstone import folder as layout
from loadstone.errors import UsageError
from loadstone.plot._runs import MOST_LABEL, names, read


def labels(*folders, **more):
    return [run.label for run in read(folders, **more)]


def test_one_run_is_called_by_its_load(constant):
    assert labels(constant) == ["constant 10/s"]


def test_a_load_that_comes_back_is_named_again_and_one_that_goes_on_is_not(run_folder, answer, phase_log):
    rates = {"a": 20.0, "b": 20.0, "c": 150.0, "d": 20.0}
    load = {"phases": tuple({"name": name, "request_rate": rate} for name, rate in rates.items())}
    rows = [answer(at * 100 + 50, sent=at * 100, phase=name) for at, name in enumerate(rates)]
    logs = [phase_log(name, at * 100, at * 100 + 100, planned=1) for at, name in enumerate(rates)]
    folder = run_folder("back", *rows, phases=logs, load=load)
    assert labels(folder) == ["poisson 20/s then poisson 150/s then poisson 20/s"]


def test_runs_are_called_by_the_load_that_differs(constant, capped, run_folder, answer):
    poisson = run_folder("p", answer(50, sent=0), rate=10.0, load={"arrival_pattern": "poisson"})
    assert labels(poisson, constant) == ["poisson 10/s", "constant 10/s"]
    assert labels(constant, capped) == ["constant 10/s", "constant 10/s, at most 1 in flight"]


def test_where_loads_are_equal_the_settings_that_differ_are_named():
    configs = [
        {
            "input": {"osl_mean": osl, "seed": osl},
            "load": {"request_count": 5},
            "output": {"folder": str(osl)},
        }
        for osl in (None, 128.0)
    ]
    assert names(["concurrency 8"] * 2, configs, ["a", "b"]) == ["no osl_mean", "osl_mean 128"]


def test_where_loads_differ_their_keys_are_not_named_again():
    configs = [{"load": {"concurrency": 1}}, {"load": {"concurrency": 2}}]
    assert names(["concurrency 1", "concurrency 2"], configs, ["a", "b"]) == [
        "concurrency 1",
        "concurrency 2",
    ]


def test_runs_alike_are_called_by_their_folders_and_then_by_number():
    assert names(["x"] * 2, [{}, {}], ["a", "b"]) == ["a", "b"]
    assert names(["x"] * 2, [{}, {}], ["a", "a"]) == ["a #1", "a #2"]
    assert names(["x", "x", "y"], [{}] * 3, ["a", "b", "c"]) == ["x a", "x b", "y"]


def test_a_label_is_short_and_on_one_line(constant):
    long, hostile = labels(constant, constant, labels=["word " * 50, "a\nb\x1b[2J\u202e"])
    assert len(long) <= MOST_LABEL
    assert hostile == "a b\\x1b[2J\\u202e"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["one"], "--label is given 1 times for 2 folders; give it once for each."),
        (["a", "a"], "--label: two labels read the same, and their runs could not be told apart."),
    ],
)
def test_labels_must_fit_the_folders(constant, given, sentence):
    with pytest.raises(UsageError, match=re.escape(sentence)):
        read([constant, constant], given)


def test_time_counts_from_the_first_dispatch(constant):
    (run,) = read([constant])
    assert run.origin_ns == run.requests["sent_ns"].min()
    ((log, phase),) = run.measured
    assert (log.name, phase.rate) == ("measured", 10.0)


def test_warm_up_is_not_drawn(run_folder, answer):
    rows = [answer(50, sent=0, phase="warmup"), answer(1050, sent=1000)]
    (run,) = read([run_folder("w", *rows)])
    assert len(run.requests) == 1
    assert run.origin_ns == run.requests["sent_ns"][0]


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(
        UsageError, match=r"holds no run\.json; give the folder that a run named at its end\."
    ):
        read([tmp_path])


def test_a_run_without_its_table(constant):
    (constant / layout.REQUESTS).unlink()
    with pytest.raises(
        UsageError, match=r"holds no requests\.parquet; `loadstone report .*constant` makes it"
    ):
        read([constant])


@pytest.mark.parametrize("name", [layout.RUN, layout.REQUESTS])
def test_a_damaged_file(constant, name):
    (constant / name).write_bytes(b'{"id": 3')
    with pytest.raises(UsageError, match=r"constant: a file of the run is damaged"):
        read([constant])


def test_a_table_of_other_columns(constant):
    import polars as pl

    pl.DataFrame({"a": [1]}).write_parquet(constant / layout.REQUESTS)
    with pytest.raises(UsageError, match="damaged, or from another version of loadstone"):
        read([constant])


def test_a_link_is_not_followed(constant, tmp_path):
    (constant / "plots").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="is a link"):
        read([constant])


def test_a_run_that_sent_nothing(run_folder, unsent):
    with pytest.raises(
        UsageError, match="none of its measured requests was sent, so there is nothing to draw"
    ):
        read([run_folder("none", unsent(0), unsent(100))])


def test_a_run_without_requests(run_folder):
    with pytest.raises(UsageError, match="none of its measured requests was sent"):
        read([run_folder("empty")])
