"""The KV cache as blocks."""

from __future__ import annotations

from loadstone.sim.blocks import KvBlocks


def stored(blocks: KvBlocks, *keys: int) -> None:
    """A sequence with these full blocks has come and gone."""
    blocks.take(len(keys))
    blocks.give(keys, blocks.name(keys), len(keys))


def there(blocks: KvBlocks, *keys: int) -> list[int]:
    return [key for key in keys if blocks.match([key], 1)]


def test_blocks_are_taken_and_given_back() -> None:
    blocks = KvBlocks(8)
    blocks.take(6)
    assert (blocks.free, blocks.usage) == (2, 0.75)
    blocks.give((), 0, 6)
    assert (blocks.free, blocks.usage) == (8, 0)


def test_a_beginning_is_found_up_to_the_first_block_that_is_not_there() -> None:
    blocks = KvBlocks(8)
    stored(blocks, 1, 2, 3)
    assert blocks.match((1, 2, 3, 4), 4) == 3
    assert blocks.match((1, 2, 3, 4), 2) == 2
    assert blocks.match((1, 9, 3), 3) == 1
    assert blocks.match((9, 2, 3), 3) == 0


def test_blocks_of_a_sequence_can_be_found_while_it_runs() -> None:
    blocks = KvBlocks(8)
    blocks.take(2)
    assert blocks.name((1, 2)) == 2
    assert blocks.match((1, 2), 2) == 2
    assert blocks.idle((1, 2)) == 0


def test_shared_blocks_are_free_when_nobody_uses_them() -> None:
    blocks = KvBlocks(8)
    stored(blocks, 1, 2)
    assert (blocks.free, blocks.idle((1, 2))) == (8, 2)
    blocks.share((1, 2))
    blocks.share((1, 2))
    assert (blocks.free, blocks.idle((1, 2))) == (6, 0)
    blocks.give((1, 2), 2, 2)
    assert blocks.free == 6
    blocks.give((1, 2), 2, 2)
    assert blocks.free == 8


def test_the_one_unused_for_longest_goes_first_and_the_end_before_the_beginning() -> None:
    blocks = KvBlocks(4)
    stored(blocks, 1, 2)
    stored(blocks, 3, 4)
    gone = []
    for _ in range(4):
        before = there(blocks, 1, 2, 3, 4)
        blocks.take(1)
        gone += [key for key in before if not blocks.match([key], 1)]
    assert gone == [2, 1, 4, 3]


def test_use_makes_a_block_young_again() -> None:
    blocks = KvBlocks(2)
    stored(blocks, 1)
    stored(blocks, 2)
    blocks.share((1,))
    blocks.give((1,), 1, 1)
    blocks.take(1)
    assert there(blocks, 1, 2) == [1]


def test_blank_blocks_are_taken_before_those_that_hold_something() -> None:
    blocks = KvBlocks(3)
    stored(blocks, 1)
    blocks.take(2)
    assert there(blocks, 1) == [1]
    blocks.take(1)
    assert there(blocks, 1) == []


def test_a_block_that_is_not_full_holds_nothing_worth_having() -> None:
    blocks = KvBlocks(2)
    blocks.take(2)
    blocks.give((1,), blocks.name((1,)), 2)
    blocks.take(1)
    assert there(blocks, 1) == [1]


def test_a_copy_bears_no_key_while_another_block_does() -> None:
    blocks = KvBlocks(6)
    blocks.take(3)
    assert blocks.name((1, 2, 3)) == 3
    blocks.take(3)
    assert blocks.name((1, 2, 4)) == 0, "the keys behind it wait with it"
    assert there(blocks, 4) == []
    blocks.give((1, 2, 4), 0, 3)
    assert there(blocks, 1, 2, 3, 4) == [1, 2, 3, 4]
    assert blocks.free == 3
    blocks.give((1, 2, 3), 3, 3)
    assert (blocks.free, blocks.idle((1, 2, 3, 4))) == (6, 4)


def test_a_copy_gets_the_key_when_the_other_block_is_gone() -> None:
    blocks = KvBlocks(3)
    stored(blocks, 1)
    blocks.take(1)
    assert blocks.name((1,)) == 0
    blocks.take(2)
    assert there(blocks, 1) == []
    blocks.give((1,), 0, 1)
    assert there(blocks, 1) == [1]


def test_what_was_not_computed_after_all_is_not_found() -> None:
    blocks = KvBlocks(4)
    blocks.take(3)
    assert blocks.name((1, 2, 3)) == 3
    blocks.forget((2, 3))
    blocks.give((1,), 1, 3)
    assert there(blocks, 1, 2, 3) == [1]
    assert blocks.free == 4


def test_a_reset_forgets_all_unless_blocks_are_in_use() -> None:
    blocks = KvBlocks(4)
    stored(blocks, 1)
    blocks.take(1)
    assert not blocks.reset()
    assert there(blocks, 1) == [1]
    blocks.give((), 0, 1)
    assert blocks.reset()
    assert (there(blocks, 1), blocks.free) == ([], 4)
