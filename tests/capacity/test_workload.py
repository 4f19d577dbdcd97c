"""What is asked of a fleet: words, presets, files; lengths and moments."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.capacity.workload import PRESETS, Dealt, Workload, lengths, longest, requests, workload
from loadstone.errors import UsageError

SECOND = 1_000_000_000


def made(asked, rate=10.0, count=1000, dealt=None, seed=0):
    return list(requests(asked, rate, count, 16, seed, dealt))


def test_a_name_pairs_and_a_file(tmp_path):
    path = tmp_path / "load.toml"
    path.write_text("[input]\nisl_mean = 300\nisl_stddev = 30\nosl_mean = 40\n")
    assert workload("chat") == PRESETS["chat"]
    assert workload("isl=5, osl=7,isl-stddev=2") == Workload(isl=5, isl_stddev=2, osl=7)
    assert workload(str(path)) == Workload(isl=300, isl_stddev=30, osl=40)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("chta", "Did you mean chat"),
        ("isl=5", "osl is missing"),
        ("isl=5,osl=5,ols=3", "is not KEY=VALUE"),
        ("isl=5,osl=5,osl=3", "given twice"),
        ("isl=5,osl=0", "osl = 0"),
        ("isl=5,osl=1,prefix=5", "leaves nothing"),
        ("nowhere.toml", "cannot be read"),
    ],
)
def test_what_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        workload(text)


@given(mean=st.integers(1, 5000), stddev=st.integers(0, 2000), seed=st.integers(0, 99))
def test_lengths_are_whole_and_within_their_bounds(mean, stddev, seed):
    found = lengths(np.random.default_rng(seed), mean, stddev, 50)
    assert all(1 <= length <= mean + 4 * stddev for length in found)
    assert found[:20] == lengths(np.random.default_rng(seed), mean, stddev, 20)


def test_lengths_have_their_mean_and_their_deviation():
    found = lengths(np.random.default_rng(1), 512, 100, 50_000)
    assert np.mean(found) == pytest.approx(512, abs=2)
    assert np.std(found) == pytest.approx(100, abs=2)


def test_the_same_requests_come_at_every_rate():
    slow, fast = made(PRESETS["chat"], 10), made(PRESETS["chat"], 20)
    assert [(one.prompt_tokens, one.output_tokens) for _, one in slow] == [
        (one.prompt_tokens, one.output_tokens) for _, one in fast
    ]
    assert all(abs(a - 2 * b) <= 2 for (a, _), (b, _) in zip(slow, fast, strict=True))


def test_no_request_is_longer_than_the_longest():
    asked = Workload(isl=100, isl_stddev=90, osl=50, prefix=99)
    assert longest(asked) == 100 + 360 + 50
    assert max(one.prompt_tokens + one.output_tokens for _, one in made(asked)) <= longest(asked)


def test_shared_beginnings_have_equal_keys():
    asked = Workload(isl=64, osl=16, prefix=32, prefixes=2)
    found = [list(one.keys) for _, one in made(asked, count=50)]
    assert {len(keys) for keys in found} == {5}
    assert {tuple(keys[:2]) for keys in found} == {(0, 1), (2, 3)}
    assert len({key for keys in found for key in keys[2:]}) == 50 * 3


def test_nothing_shared_has_no_keys():
    assert all(not one.keys for _, one in made(Workload(isl=64, osl=16), count=5))


def gaps_s(dealt, smoothness=1.0, count=40_000, rate=10.0):
    moments = [at for at, _ in made(Workload(isl=1, osl=1, smoothness=smoothness), rate, count, dealt)]
    return np.diff(moments) / SECOND


@pytest.mark.parametrize("dealt", [Dealt(1), Dealt(5), Dealt(5, 2), Dealt(5, 5), Dealt(1000, 8)])
def test_what_is_dealt_comes_at_its_rate(dealt):
    assert gaps_s(dealt).mean() == pytest.approx(0.1, rel=0.03)


def test_of_n_replicas_one_gets_every_nth_request():
    """Gaps of Poisson arrivals vary by their mean; the sum of n of them by a root of n less."""
    assert gaps_s(None).std() == pytest.approx(0.1, rel=0.03)
    assert gaps_s(Dealt(25)).std() == pytest.approx(0.1 / 5, rel=0.03)
    assert gaps_s(Dealt(25), smoothness=4).std() == pytest.approx(0.1 / 10, rel=0.03)


def test_all_replicas_together_get_all_requests():
    whole = list(islice(requests(PRESETS["chat"], 10, 100, 16, 3), 100))
    dealt = made(PRESETS["chat"], 10, 100, Dealt(4, 4), seed=3)
    assert [at for at, _ in whole] == [at for at, _ in dealt]
