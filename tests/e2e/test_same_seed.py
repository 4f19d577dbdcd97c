"""The same seed asks the same: whatever the number of workers, and again another day."""

from __future__ import annotations

import re

import pytest

OPEN = "--streaming --isl 24 --isl-stddev 6 --osl 4 --osl-stddev 1 --request-rate 100 --request-count 50"
CLOSED = "--streaming --isl 24 --isl-stddev 6 --osl 4 --concurrency 6 --request-count 50"


@pytest.fixture(scope="module")
def engine(simulate):
    """One without a prefix cache: what is asked a second time takes as long as the first, and the certificate has no word to say."""
    return simulate("--step-ms 1 --no-enable-prefix-caching")


@pytest.fixture(scope="module")
def first(good, engine):
    return good(f"--url {engine.url} {OPEN} --seed 42 --workers 1")


@pytest.fixture(scope="module")
def unseeded(good, engine):
    return good(f"--url {engine.url} {CLOSED}")


def texts(run):
    """The prompts in the order of the plan."""
    return [body["messages"][0]["content"] for body in run.bodies]


@pytest.mark.parametrize("workers", [1, 3])
def test_an_open_loop_sends_the_same_at_the_same_times(good, engine, first, workers):
    again = good(f"--url {engine.url} {OPEN} --seed 42 --workers {workers}")
    assert again.requests["worker"].n_unique() == workers
    assert again.bodies == first.bodies
    assert again.due_ns == first.due_ns
    assert again.log.dataset.digest == first.log.dataset.digest
    assert len(set(texts(first))) == len(first.due_ns) == 50


def test_a_warm_up_changes_nothing_of_what_is_measured(good, engine, first):
    warmed = good(f"--url {engine.url} {OPEN} --seed 42 --warmup-request-count 4")
    assert warmed.bodies[4:] == first.bodies
    assert warmed.due_ns == first.due_ns
    assert not set(texts(warmed)[:4]) & set(texts(first))


def test_a_closed_loop_sends_the_same_whoever_sends_it(good, engine):
    one, three = (good(f"--url {engine.url} {CLOSED} --seed 7 --workers {n}") for n in (1, 3))
    assert [len(run.log.workers) for run in (one, three)] == [1, 3]
    assert three.bodies == one.bodies
    assert three.requests["request"].to_list() == one.requests["request"].to_list() == list(range(50))
    assert three.requests["request_bytes"].to_list() == one.requests["request_bytes"].to_list()


def test_another_seed_asks_something_else(good, engine, first):
    other = good(f"--url {engine.url} {OPEN} --seed 43")
    assert not set(texts(other)) & set(texts(first))
    assert other.due_ns != first.due_ns


def test_without_a_seed_every_run_has_its_own_and_tells_it(good, engine, unseeded):
    other = good(f"--url {engine.url} {CLOSED}")
    seeds = [run.report.run.seed for run in (unseeded, other)]
    assert seeds[0] != seeds[1]
    assert not set(texts(unseeded)) & set(texts(other))
    for run, seed in zip((unseeded, other), seeds, strict=True):
        assert run.report.config["input"]["seed"] == run.log.seed == seed
        assert re.search(rf"\bseed {seed}\b", run.out)
        assert re.search(rf"\bseed {seed}\b", run.err)


def test_a_told_seed_repeats_the_run(good, engine, unseeded):
    again = good(f"--url {engine.url} {CLOSED} --random-seed {unseeded.report.run.seed}")
    assert again.bodies == unseeded.bodies


def test_the_stored_configuration_repeats_the_run(good, unseeded):
    again = good(f"--config {unseeded.path}/config.toml")
    assert again.bodies == unseeded.bodies
    assert again.report.config["load"] == unseeded.report.config["load"]
