"""Names of KV blocks: equal beginnings have equal ones, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.sim.keys import Keys, Tokens, of_prompt
from loadstone.sim.vocabulary import bare_ids
from loadstone.sim.words import bare

SIZE = 4
prompts = st.lists(st.sampled_from("abcde"), max_size=20) | st.lists(st.integers(0, 2**63 - 1), max_size=20)


def keys(prompt: Tokens, start: int = 0, output: int = 0, size: int = SIZE) -> Keys:
    return Keys(prompt, of_prompt(prompt, size), start, output, size)


def spelt(prompt: Tokens, start: int, output: int) -> list[object]:
    words = not prompt or isinstance(prompt[0], str)
    return [*prompt, *(bare(start, output) if words else bare_ids(start, output))]


def test_only_full_blocks_have_keys() -> None:
    assert [len(keys(["a"] * tokens)) for tokens in (0, 3, 4, 7, 8)] == [0, 0, 1, 1, 2]
    assert len(keys(["a"] * 3, output=6)) == 2


@given(prompts, st.integers(0, 100), st.integers(0, 40), st.integers(1, 9))
def test_the_keys_of_an_answer_are_those_of_its_words_behind_the_prompt(
    prompt: Tokens, start: int, output: int, size: int
) -> None:
    assert list(keys(prompt, start, output, size)) == of_prompt(spelt(prompt, start, output), size)  # type: ignore[arg-type]


@given(prompts, prompts, prompts)
def test_keys_are_equal_as_far_as_the_tokens_are(common: Tokens, one: Tokens, other: Tokens) -> None:
    first, second = [*common, *one], [*common, *other]
    if len({type(token) for token in [*first, *second]}) > 1:
        return
    same = sum(
        first[: n * SIZE] == second[: n * SIZE] for n in range(1, min(len(first), len(second)) // SIZE + 1)
    )
    found = [a == b for a, b in zip(of_prompt(first, SIZE), of_prompt(second, SIZE), strict=False)]
    assert found == [True] * same + [False] * (len(found) - same)


def test_a_block_is_not_known_without_those_before_it() -> None:
    assert of_prompt([*"abcd", *"efgh"], SIZE)[1] != of_prompt([*"xbcd", *"efgh"], SIZE)[1]
    assert of_prompt([1, 2, 3, 4], SIZE) != of_prompt([1, 2, 4, 3], SIZE)
    assert of_prompt([*"abcd"], SIZE) != of_prompt(["a b", "c", "d", ""], SIZE)


def test_keys_are_worked_out_as_far_as_they_are_looked_at() -> None:
    found = keys(["a"] * 6, 3, 1000)
    first = list(islice(found, 3))
    assert len(found._known) == 3
    assert first == [found[at] for at in range(3)]
    assert list(found) == [found[at] for at in range(len(found))]


def test_keys_are_a_sequence() -> None:
    found = keys(["a"] * 6, 3, 10)
    every = list(found)
    assert found[-1] == every[3]
    assert found[1:3] == every[1:3]
    assert found[::-1] == every[::-1]
    assert found[9:] == []
    assert keys(["a"] * 6, 3, 10)[3] == every[3]
    for index in (4, -5):
        with pytest.raises(IndexError, match=r"of 4"):
            found[index]


def test_keys_are_the_same_in_every_process() -> None:
    code = "from tests.sim.test_keys import keys; print(list(keys(['ä', 'b', 'c'], 5, 30)), list(keys([1, 2, 3], 5, 30)))"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True, check=True, text=True, timeout=60,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert said == {f"{list(keys(['ä', 'b', 'c'], 5, 30))} {list(keys([1, 2, 3], 5, 30))}\n"}
