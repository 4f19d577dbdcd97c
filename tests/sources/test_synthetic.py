from __future__ import annotations

import math
import statistics
from itertools import islice

import pytest
from msgspec import structs

from loadstone import registry
from loadstone.config import InputConfig
from loadstone.dist import normal_length
from loadstone.errors import UsageError
from loadstone.plan.seeds import derive
from loadstone.plan.turn import Conversation, Turn
from loadstone.sources import Source, source_of, synthetic
from loadstone.tokens import Tokenless
from loadstone.tokens.prompts import Prompts
from loadstone.tokens.words import COMMON, Words


class WithIds(Tokenless):
    """Counts nothing either, but has ids."""

    words = Words(first=COMMON, rest=COMMON, first_ids=tuple(range(256)), rest_ids=tuple(range(256)))


def taken(n: int, config: InputConfig, seed: int = 42, start: int = 0, **rest: int) -> list[Conversation]:
    conversations = synthetic.conversations(config, Tokenless(), seed, **rest)
    return [conversations.conversation(number) for number in range(start, start + n)]


def turns(n: int, config: InputConfig, **rest: int) -> list[Turn]:
    return [turn for conversation in taken(n, config, **rest) for turn in conversation.turns]


def test_it_is_the_source_of_its_name() -> None:
    source: Source = synthetic
    assert registry.load("sources", "synthetic") is source


def test_it_is_meant_where_no_file_is_given() -> None:
    assert source_of(InputConfig()) == "synthetic"


def test_each_conversation_is_one_turn_and_bears_its_number() -> None:
    conversations = taken(5, InputConfig())
    assert [conversation.id for conversation in conversations] == [0, 1, 2, 3, 4]
    assert [len(conversation.turns) for conversation in conversations] == [1] * 5


def test_lengths_are_those_asked_for() -> None:
    for turn in turns(20, InputConfig(isl_mean=128, osl_mean=64)):
        assert turn.text is not None
        assert (len(turn.text.split()), turn.isl_tokens, turn.max_tokens) == (128, 128, 64)


def test_without_an_output_length_the_server_decides() -> None:
    assert {turn.max_tokens for turn in turns(20, InputConfig(osl_stddev=5))} == {None}


def test_any_part_can_be_had_without_those_before_it() -> None:
    config = InputConfig(isl_mean=100, isl_stddev=30, osl_mean=50, osl_stddev=9)
    assert taken(9, config, start=90) == taken(100, config)[90:99]


def test_the_seed_decides_everything() -> None:
    config = InputConfig(isl_mean=100, isl_stddev=30)
    assert taken(30, config, seed=1) == taken(30, config, seed=1)
    assert taken(30, config, seed=1) != taken(30, config, seed=2)


def test_other_output_lengths_leave_the_prompts_as_they_were() -> None:
    config = InputConfig(isl_mean=100, isl_stddev=30)
    with_osl = InputConfig(isl_mean=100, isl_stddev=30, osl_mean=50, osl_stddev=9)
    assert [turn.text for turn in turns(30, config)] == [turn.text for turn in turns(30, with_osl)]


def test_prompts_are_unique_and_start_differently() -> None:
    texts = [turn.text or "" for turn in turns(256, InputConfig(isl_mean=16))]
    assert len(set(texts)) == 256
    assert len({text.split()[0] for text in texts}) == 256


def test_entries_are_reused_in_turn_with_their_lengths() -> None:
    config = InputConfig(isl_mean=100, isl_stddev=30, osl_mean=50, osl_stddev=9, entries=4)
    asked = turns(12, config)
    assert asked == asked[:4] * 3
    assert len({turn.text for turn in asked}) == 4
    assert [conversation.id for conversation in taken(12, config)] == list(range(12))


def test_the_template_is_taken_off_only_when_lengths_include_it() -> None:
    included = InputConfig(isl_mean=128, isl_includes_template=True)
    assert {turn.isl_tokens for turn in turns(9, included, template_tokens=11)} == {117}
    assert {turn.isl_tokens for turn in turns(9, InputConfig(isl_mean=128), template_tokens=11)} == {128}


def test_a_template_longer_than_the_prompt_leaves_one_token() -> None:
    included = InputConfig(isl_mean=8, isl_includes_template=True)
    (turn,) = turns(1, included, template_tokens=50)
    assert turn.isl_tokens == 1
    assert turn.text in COMMON


def test_prompts_as_token_ids() -> None:
    config = InputConfig(isl_mean=12, token_ids=True)
    (turn,) = synthetic.conversations(config, WithIds(), 42).conversation(0).turns
    (as_text,) = turns(1, InputConfig(isl_mean=12))
    assert turn.text is None
    assert as_text.text is not None
    assert turn.token_ids == tuple(COMMON.index(word) for word in as_text.text.split())


def test_token_ids_without_a_vocabulary_are_refused_at_once() -> None:
    with pytest.raises(UsageError, match="--prompt-token-ids needs a tokenizer"):
        synthetic.conversations(InputConfig(token_ids=True), Tokenless(), 42)


SEVERAL = InputConfig(isl_mean=30, isl_stddev=9, osl_mean=50, osl_stddev=9, turns_mean=4, turns_stddev=2)


def thinks(config: InputConfig, n: int = 2000) -> list[int]:
    return [turn.think_ns for one in taken(n, config) for turn in one.turns[1:]]


def test_with_one_turn_the_prompts_are_those_of_the_streams_by_number() -> None:
    prompts = Prompts(Tokenless.words, derive(42, "prompts"))
    for number, turn in enumerate(turns(30, InputConfig(isl_mean=100, isl_stddev=30))):
        length = normal_length(derive(42, "isl"), number, 100, 30)
        assert turn == Turn(text=prompts.text(number, length), isl_tokens=length)


def test_turns_are_as_many_as_asked_for() -> None:
    assert [len(one.turns) for one in taken(50, InputConfig(turns_mean=3))] == [3] * 50
    several = [len(one.turns) for one in taken(4000, InputConfig(isl_mean=1, turns_mean=12, turns_stddev=3))]
    assert abs(statistics.mean(several) - 12) < 4 * 3 / 4000**0.5
    assert abs(statistics.stdev(several) - 3) < 4 * 3 / 8000**0.5
    assert (
        min(len(one.turns) for one in taken(500, InputConfig(isl_mean=1, turns_mean=2, turns_stddev=3))) == 1
    )


def test_every_turn_has_a_prompt_of_its_own() -> None:
    texts = [turn.text for turn in turns(200, SEVERAL)]
    assert len(set(texts)) == len(texts) > 600
    assert {len((turn.text or "").split()) - (turn.isl_tokens or 0) for turn in turns(200, SEVERAL)} == {0}


def test_more_turns_leave_those_there_were() -> None:
    single = structs.replace(SEVERAL, turns_mean=1.0, turns_stddev=0.0)
    ten = structs.replace(SEVERAL, turns_mean=10.0, turns_stddev=0.0)
    several = taken(40, SEVERAL)
    assert [one.turns[0] for one in several] == turns(40, single)
    for few, many in zip(several, taken(40, ten), strict=True):
        shared = min(len(few.turns), 10)
        assert few.turns[:shared] == many.turns[:shared]


def test_other_think_times_leave_the_prompts_and_the_number_of_turns() -> None:
    thoughtful = structs.replace(SEVERAL, think_mean_ms=900.0, think_stddev_ms=300.0)
    plain = [structs.replace(turn, think_ns=0) for turn in turns(40, thoughtful)]
    assert plain == turns(40, SEVERAL)
    assert {one.turns[0].think_ns for one in taken(40, thoughtful)} == {0}


def test_think_times_are_as_long_as_asked_for() -> None:
    config = InputConfig(isl_mean=1, turns_mean=2, think_mean_ms=900)
    assert set(thinks(config, 9)) == {900_000_000}
    assert set(thinks(structs.replace(config, think_ratio=0.5), 9)) == {450_000_000}
    assert set(thinks(structs.replace(config, think_ratio=0.0), 9)) == {0}
    drawn = thinks(structs.replace(config, think_stddev_ms=200.0))
    assert abs(statistics.mean(drawn) - 900e6) < 4 * 200e6 / 2000**0.5
    assert abs(statistics.stdev(drawn) - 200e6) < 4 * 200e6 / 4000**0.5


def test_think_times_are_cut_at_0_and_not_heaped_there() -> None:
    half = thinks(InputConfig(isl_mean=1, turns_mean=2, think_stddev_ms=100))
    assert min(half) > 0
    assert abs(statistics.mean(half) - 100e6 * (2 / math.pi) ** 0.5) < 4 * 61e6 / 2000**0.5


def test_a_think_time_beyond_all_measure_fits_the_plan() -> None:
    assert set(thinks(InputConfig(turns_mean=2, think_mean_ms=1e9, think_ratio=1e9), 3)) == {1 << 60}


@pytest.mark.parametrize("entries", [None, 3])
def test_outlines_have_the_turns_and_their_times_but_no_content(entries: int | None) -> None:
    config = structs.replace(SEVERAL, think_mean_ms=900.0, think_stddev_ms=300.0, entries=entries)
    outlines = list(islice(synthetic.conversations(config, Tokenless(), 42).outlines(), 30))
    assert outlines == [
        Conversation(id=one.id, turns=tuple(Turn(think_ns=turn.think_ns) for turn in one.turns))
        for one in taken(30, config)
    ]


def test_only_entries_repeat() -> None:
    assert synthetic.distinct(InputConfig()) is None
    assert synthetic.distinct(InputConfig(entries=4)) == 4
    assert [one.turns for one in taken(8, structs.replace(SEVERAL, entries=4))] == [
        one.turns for one in taken(4, SEVERAL)
    ] * 2
