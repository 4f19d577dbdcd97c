"""How often the text of an answer repeats itself, as the column `text_zlib_ratio` tells it."""

from __future__ import annotations

from random import Random

import pytest

from loadstone.read.columns import PACKED_BYTES, PACKED_LEAST_BYTES, zlib_ratio


def letters(count, seed=1):
    return "".join(Random(seed).choices("abcdefghijklmnopqrstuvwxyz", k=count))


def test_a_loop_packs_to_a_tenth_and_letters_at_random_hardly_at_all():
    assert zlib_ratio("and then " * 200) > 30
    assert zlib_ratio(letters(300) * 20) > 10
    assert 1 < zlib_ratio(letters(2000)) < 2


@pytest.mark.parametrize("chars", [0, PACKED_LEAST_BYTES - 1])
def test_a_short_text_is_not_judged(chars):
    assert zlib_ratio("a" * chars) is None
    assert zlib_ratio("a" * PACKED_LEAST_BYTES) > 20


def test_only_the_end_counts_for_there_a_loop_is():
    loop = "on and on " * (PACKED_BYTES // 10 + 1)
    assert zlib_ratio(letters(50_000) + loop) == zlib_ratio(loop[-PACKED_BYTES:])


def test_bytes_are_counted_and_no_text_is_too_strange():
    assert zlib_ratio("é" * (PACKED_LEAST_BYTES // 2)) is not None
    assert zlib_ratio("\ud800" * 1000) > 20
