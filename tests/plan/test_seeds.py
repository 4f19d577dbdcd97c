from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from loadstone.plan import seeds

SEEDS = st.integers(0, 2**63 - 1)


def test_a_stream_is_the_hash_of_seed_and_name():
    assert seeds.derive(42, "isl") == int.from_bytes(hashlib.sha256(b"42:isl").digest()[:8], "little")


@given(SEEDS, SEEDS, st.text(max_size=9), st.text(max_size=9))
def test_streams_of_other_names_or_seeds_are_others(one, other, name, another):
    assert (seeds.derive(one, name) == seeds.derive(other, another)) == ((one, name) == (other, another))


def test_drawing_from_one_stream_leaves_another_alone():
    alone = [seeds.stream(1, "b").random() for _ in range(5)]
    first, second = seeds.stream(1, "a"), seeds.stream(1, "b")
    drawn = []
    for _ in range(5):
        first.random()
        drawn.append(second.random())
    assert drawn[0] == alone[0]
    assert len(set(drawn)) == 5
