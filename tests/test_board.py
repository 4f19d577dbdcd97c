from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loadstone.board import BUCKETS, FIELDS, WORDS, Board, Field, Histogram, Live, bucket, bucket_middle_us


@pytest.fixture
def board(tmp_path):
    one = Board(tmp_path / "board", 3, create=True)
    yield one
    one.close()


@given(st.integers(1, 2**39 - 1))
@example(2**39 - 1)
def test_the_middle_of_a_bucket_is_within_a_sixteenth_of_every_value_in_it(value_us):
    assert abs(bucket_middle_us(bucket(value_us)) - value_us) <= value_us / 16


@given(st.integers(-(2**40), 2**42), st.integers(-(2**40), 2**42))
def test_buckets_are_in_the_order_of_their_values(one, other):
    low, high = sorted((one, other))
    assert 0 <= bucket(low) <= bucket(high) < BUCKETS


def test_every_bucket_holds_its_own_middle():
    assert [bucket(int(bucket_middle_us(index))) for index in range(BUCKETS)] == list(range(BUCKETS))


@pytest.mark.parametrize(
    ("value_us", "index"), [(-5, 0), (0, 0), (1, 1), (7, 7), (8, 8), (15, 15), (16, 16), (2**60, 319)]
)
def test_buckets_by_hand(value_us, index):
    assert bucket(value_us) == index


def test_fields_fit_into_a_block():
    assert len(Field) <= FIELDS
    assert FIELDS + len(Histogram) * BUCKETS == WORDS


def test_a_new_board_is_all_zeros(board):
    live = board.live()
    assert live.fields == [0] * FIELDS
    assert live.histograms == [[0] * BUCKETS] * len(Histogram)
    assert live.quantile_us(Histogram.TTFT, 0.5) is None


def test_blocks_are_added_up(board):
    for index in range(3):
        block = board.block(index)
        block[Field.SENT] += 10**index
        block[FIELDS + Histogram.ITL * BUCKETS + 5] += 1 + index
    live = board.live()
    assert live.fields[Field.SENT] == 111
    assert live.histograms[Histogram.ITL][5] == 6
    assert sum(live.fields) == 111
    assert sum(map(sum, live.histograms)) == 6


def test_a_block_is_its_processes_own(board):
    board.block(1)[:] = memoryview(bytes([1] * 8 * WORDS)).cast("q")
    assert not any(board.block(0))
    assert not any(board.block(2))
    assert all(board.block(1))


def test_another_process_writes_to_the_same_board(board, tmp_path):
    code = (
        "import sys; from pathlib import Path; from loadstone.board import Board, Field;"
        "Board(Path(sys.argv[1]), 3).block(2)[Field.TOKENS] = 77"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "board"], check=True)
    assert board.live().fields[Field.TOKENS] == 77


def test_quantiles_are_those_of_the_counts():
    histograms = [[0] * BUCKETS for _ in Histogram]
    for value_us in range(1, 1_001):
        histograms[Histogram.LATENCY][bucket(value_us)] += 1
    live = Live([0] * FIELDS, histograms)
    for share, value_us in [(0.5, 500), (0.99, 990), (1.0, 1_000)]:
        assert live.quantile_us(Histogram.LATENCY, share) == pytest.approx(value_us, rel=1 / 8)
    assert live.quantile_us(Histogram.LATENCY, 0.0) == 1.0


def test_a_block_that_is_still_held_does_not_keep_the_board_from_being_closed(tmp_path):
    one = Board(tmp_path / "board", 1, create=True)
    held = one.block(0)
    one.close()
    held[Field.SENT] += 1
    assert held[Field.SENT] == 1
