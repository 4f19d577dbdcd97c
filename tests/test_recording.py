from __future__ import annotations

import pytest

from loadstone.recording import END_FACTS, Facts, segment_name, segment_of


@pytest.mark.parametrize("name", [(0, 0), (7, 12), (99, 99_999), (100, 100_000), (1_234, 0)])
def test_a_segments_name_tells_worker_and_number(name):
    assert segment_of(segment_name(*name)) == name


def test_the_struct_has_room_for_every_fact():
    facts = Facts._make(range(1, 1 + len(Facts._fields)))
    assert Facts._make(END_FACTS.unpack(END_FACTS.pack(*facts))) == facts
