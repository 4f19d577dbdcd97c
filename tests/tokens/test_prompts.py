from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import UsageError
from loadstone.tokens.prompts import SLOTS, Prompts, zipf_slots
from loadstone.tokens.words import COMMON, Words, common

WORDS = Words(
    first=COMMON[:7],
    rest=COMMON[:20],
    first_ids=tuple(range(100, 107)),
    rest_ids=tuple(range(200, 220)),
)


def test_the_same_seed_gives_the_same_prompts_in_any_order() -> None:
    there = [Prompts(WORDS, 5).text(index, 30) for index in range(50)]
    back = [Prompts(WORDS, 5).text(index, 30) for index in reversed(range(50))]
    assert there == back[::-1]


def test_a_prompt_is_the_same_in_another_process_and_python_hash_seed() -> None:
    code = (
        "from loadstone.tokens.prompts import Prompts; from loadstone.tokens.words import common;"
        "print(Prompts(common(''), 42).text(7, 12))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == Prompts(common(""), 42).text(7, 12)


def test_a_known_prompt_stays_as_it_is() -> None:
    assert Prompts(common(""), 42).text(7, 12) == (
        "people green has as the idea their between at for in worker"
    )


def test_another_seed_gives_other_prompts() -> None:
    ours, theirs = ({Prompts(WORDS, seed).text(i, 30) for i in range(50)} for seed in (1, 2))
    assert len(ours) == len(theirs) == 50
    assert not ours & theirs


def test_a_longer_prompt_continues_the_shorter_one_of_its_index() -> None:
    prompts = Prompts(WORDS, 5)
    assert prompts.text(3, 40).startswith(prompts.text(3, 39) + " ")


@given(seed=st.integers(0, 2**63 - 1), firsts=st.integers(1, 12), rests=st.integers(1, 12))
def test_two_words_spell_every_index_below_the_capacity(seed: int, firsts: int, rests: int) -> None:
    prompts = Prompts(Words(first=COMMON[:firsts], rest=COMMON[:rests]), seed)
    assert prompts.capacity(2) == firsts * rests
    assert len({prompts.text(index, 2) for index in range(firsts * rests)}) == firsts * rests


@given(seed=st.integers(0, 2**63 - 1))
def test_a_first_word_comes_back_only_after_all_others(seed: int) -> None:
    prompts = Prompts(WORDS, seed)
    firsts = [prompts.text(index, 5).split()[0] for index in range(21)]
    assert set(firsts[:7]) == set(WORDS.first)
    assert firsts == firsts[:7] * 3


def test_one_token_can_only_tell_as_many_prompts_apart_as_there_are_first_words() -> None:
    prompts = Prompts(WORDS, 5)
    assert prompts.capacity(1) == 7
    assert [len({prompts.text(i, 1) for i in range(n)}) for n in (7, 8)] == [7, 7]


def test_ids_follow_the_words() -> None:
    prompts = Prompts(WORDS, 5)
    for n_tokens in (1, 2, 3, 100):
        first, *rest = prompts.text(9, n_tokens).split()
        assert prompts.ids(9, n_tokens) == (
            100 + COMMON.index(first),
            *(200 + COMMON.index(word) for word in rest),
        )


def test_words_without_ids_cannot_make_token_id_prompts() -> None:
    with pytest.raises(UsageError, match=r"--prompt-token-ids needs a tokenizer.* Use --tokenizer builtin"):
        Prompts(common("There is no vocabulary."), 5).ids(0, 3)


def test_slots_are_shared_out_by_the_law_of_zipf_and_mandelbrot() -> None:
    counts = Counter(zipf_slots(1000))
    assert counts.total() == SLOTS
    assert set(counts) == set(range(1000))
    assert counts[0] / counts[99] == pytest.approx((100 + 2.7) / (1 + 2.7), rel=0.01)


@given(st.integers(1, 70_000))
def test_every_number_of_words_fills_all_slots_in_order(n_words: int) -> None:
    slots = zipf_slots(n_words)
    assert len(slots) == SLOTS
    assert slots == sorted(slots)
    assert slots[-1] < n_words


def test_common_words_are_drawn_as_often_as_their_slots_say() -> None:
    prompts = Prompts(common(""), 5)
    drawn = Counter(word for index in range(200) for word in prompts.text(index, 502).split()[2:])
    share = zipf_slots(len(COMMON)).count(0) / SLOTS
    assert drawn[COMMON[0]] / drawn.total() == pytest.approx(share, rel=0.03)
