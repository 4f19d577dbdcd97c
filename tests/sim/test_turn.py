"""Answers under way: what is sent at which token, and what the truth says of it afterwards."""

from __future__ import annotations

import json
import re
from array import array
from typing import Any

from tests.sim.api.told import CHAT, RESPONSES, asked

from loadstone.sim.api.spell import spell
from loadstone.sim.http import LAST_CHUNK, STREAM_HEAD
from loadstone.sim.options import SimOptions
from loadstone.sim.truth import TruthRow
from loadstone.sim.turn import Turn


def turn(path: str = CHAT, options: SimOptions = SimOptions(model="m"), **call: Any) -> Turn:
    found = asked(path, options, **call)
    truth = TruthRow(request_id="r", received_ns=1, read_ns=2, prompt_tokens=found.prompt_tokens)
    return Turn(found, spell(found, 1, 7), truth, True)


def unchunked(data: bytes) -> list[bytes]:
    """The chunks of a response's body."""
    found = []
    while data:
        size, _, rest = data.partition(b"\r\n")
        count = int(size, 16)
        found.append(rest[:count])
        data = rest[count + 2 :]
    return found


def test_head_and_opening_travel_with_the_first_token_and_the_closing_with_the_last() -> None:
    whole = turn(stream=True, max_tokens=3)
    first, second, third = (whole.advance(whole.parts[0], 1, at_ns) for at_ns in (10, 20, 30))
    assert first.startswith(STREAM_HEAD)
    assert [chunk.count(b"data: ") for chunk in unchunked(first[len(STREAM_HEAD) :])] == [1, 1]
    assert [chunk.count(b"data: ") for chunk in unchunked(second)] == [1]
    assert third.endswith(LAST_CHUNK)
    assert [chunk.count(b"data: ") for chunk in unchunked(third)] == [1, 2, 0]
    assert whole.over
    assert whole.parts[0].over


def test_several_tokens_at_once_are_a_chunk_each() -> None:
    whole = turn(stream=True, max_tokens=6)
    part = whole.parts[0]
    one_by_one = turn(stream=True, max_tokens=6).at_once(5)
    assert whole.advance(part, 2, 1) + whole.advance(part, 3, 2) + whole.advance(part, 1, 3) == one_by_one


def test_numbered_events_are_sent_in_the_order_of_their_numbers() -> None:
    for tokens in (1, 3):
        whole = turn(RESPONSES, stream=True, max_output_tokens=6)
        sent = b"".join(whole.advance(whole.parts[0], tokens, at_ns) for at_ns in range(1, 6 // tokens + 1))
        numbers = [int(number) for number in re.findall(rb'"sequence_number":(\d+)', sent)]
        assert numbers == list(range(2 + 2 + 6 + 4)), "begun, opened, deltas, closed and completed"


def test_choices_are_sequences_that_end_by_themselves() -> None:
    whole = turn(stream=True, max_tokens=2, n=2)
    one, other = whole.parts
    sent = [whole.advance(part, 1, 5) for part in (other, one, other, one)]
    assert sent[0].startswith(STREAM_HEAD)
    assert [b"[DONE]" in data for data in sent] == [False, False, False, True]
    assert [b'"finish_reason":"length"' in data for data in sent] == [False, False, True, True]
    assert (other.choice, other.out, whole.out, whole.over) == (1, 2, 4, True)


def test_an_unstreamed_answer_comes_with_the_last_token_of_all() -> None:
    whole = turn(max_tokens=2, n=2)
    one, other = whole.parts
    assert [whole.advance(part, 1, 5) for part in (one, one, other)] == [b"", b"", b""]
    assert whole.row().tokens == 0
    data = whole.advance(other, 1, 9)
    assert json.loads(data.partition(b"\r\n\r\n")[2])["usage"]["completion_tokens"] == 4
    assert whole.row() == TruthRow(
        request_id="r", received_ns=1, read_ns=2, first_sent_ns=9, last_sent_ns=9, prompt_tokens=6, tokens=4,
        bytes_sent=len(data), end="length",
    )  # fmt: skip


def test_cached_tokens_are_those_of_the_first_choice_once_it_is_scheduled() -> None:
    whole = turn(max_tokens=1, n=2)
    one, other = whole.parts
    one.scheduled_ns, one.cached_tokens = 3, 4
    other.scheduled_ns, other.cached_tokens = 3, 5
    data = whole.advance(one, 1, 5) + whole.advance(other, 1, 5)
    usage = json.loads(data.partition(b"\r\n\r\n")[2])["usage"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": 4}
    assert b"cached" not in turn(max_tokens=1).at_once(5)


def test_cached_tokens_are_known_when_another_choice_comes_first() -> None:
    wishes = {"include_usage": True, "continuous_usage_stats": True}
    whole = turn(max_tokens=2, n=2, stream=True, stream_options=wishes)
    one, other = whole.parts
    one.scheduled_ns, one.cached_tokens = 3, 4
    other.scheduled_ns, other.cached_tokens = 3, 5
    assert b'"cached_tokens":4' in whole.advance(other, 1, 5)


def test_parts_keep_no_times_and_have_a_draw_of_their_own() -> None:
    one, other = turn(max_tokens=2, n=2).parts
    one.note_times(array("q", [1, 2]))
    assert not one.times()
    assert None not in (one.draw, other.draw)
    assert one.draw != other.draw
    assert one.draw == turn(max_tokens=2, n=2).parts[0].draw


def test_parts_bear_what_the_engine_has_to_know() -> None:
    options = SimOptions(model="m", scheduling_policy="priority", block_size=4)
    one, other = turn(CHAT, options, max_tokens=9, n=2, priority=3).parts
    assert (one.prompt_tokens, one.output_tokens, one.priority, one.reason) == (6, 9, 3, "length")
    assert len(one.keys) == 3
    assert one.keys[0] == other.keys[0]
    assert one.keys[2] != other.keys[2]


def test_a_called_tool_ends_by_itself() -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    whole = turn(max_tokens=5, tools=tools, tool_choice="required")
    assert whole.parts[0].reason == "stop"
    whole.at_once(5)
    assert whole.row().end == "stop"


def test_embeddings_bring_no_tokens() -> None:
    whole = turn("/v1/embeddings", input=["a b", "c"])
    assert [part.prompt_tokens for part in whole.parts] == [2, 1]
    assert (whole.at_once(5), whole.unspelt, whole.over, whole.row().end) == (b"", True, False, "closed")
    assert [whole.spell() for _ in range(5)] == [
        False,
        False,
        False,
        False,
        True,
    ]  # around and for each of two texts
    data = whole.spelt(6)
    assert len(json.loads(data.partition(b"\r\n\r\n")[2])["data"]) == 2
    row = whole.row()
    assert (whole.unspelt, whole.over, row.tokens, row.end, row.prompt_tokens) == (False, True, 0, "done", 3)
    assert (row.first_sent_ns, row.last_sent_ns, row.bytes_sent) == (6, 6, len(data))


def test_the_truth_of_a_client_that_leaves_has_the_tokens_it_was_sent() -> None:
    whole = turn(stream=True, max_tokens=9)
    whole.advance(whole.parts[0], 2, 5)
    assert (whole.row().tokens, whole.row().end) == (2, "closed")
