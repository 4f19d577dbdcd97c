"""Requests from a file."""

from __future__ import annotations

import json
import os
import random
import tracemalloc
from itertools import islice
from operator import itemgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from loadstone import registry
from loadstone.config import InputConfig
from loadstone.dist import normal_length
from loadstone.errors import UsageError
from loadstone.plan.seeds import derive
from loadstone.plan.turn import Conversation, Turn
from loadstone.sources import Source, source_of, timed
from loadstone.tokens import Tokenless

MS = 1_000_000


class Letters(Tokenless):
    """Every letter is a token."""

    def count(self, text: str) -> int:  # type: ignore[override]
        return len(text)


@pytest.fixture
def config(tmp_path):
    """A config with a file of the lines given: objects, or text as it stands."""

    def make(*lines, **rest):
        file = tmp_path / "requests.jsonl"
        texts = (line if isinstance(line, str | bytes) else json.dumps(line) for line in lines)
        file.write_bytes(b"\n".join(text if isinstance(text, bytes) else text.encode() for text in texts))
        return InputConfig(file=str(file), **rest)

    return make


def taken(config, n=None, seed=42, **rest):
    conversations = timed.conversations(config, Letters(), seed, **rest)
    return [conversations.conversation(number) for number in range(n or timed.distinct(config))]


def turns(config, **rest):
    return [list(one.turns) for one in taken(config, **rest)]


def refusal(config):
    with pytest.raises(UsageError) as refused:
        timed.distinct(config)
    return str(refused.value).removeprefix(str(config.file)).removeprefix(", ")


def test_it_is_the_source_of_its_name():
    source: Source = timed
    assert registry.load("sources", "timed") is source
    assert source_of(InputConfig(file="requests.jsonl")) == "timed"


def test_a_line_is_a_request_of_its_lengths_and_its_moment(config):
    here = config(
        {"timestamp": 1.5, "input_length": 7, "output_length": 3}, {"timestamp": 2, "input_length": 9.0}
    )
    (first,), (second,) = turns(here)
    assert (first.at_ns, first.isl_tokens, first.max_tokens, first.think_ns) == (1_500_000, 7, 3, 0)
    assert (second.at_ns, second.isl_tokens, second.max_tokens) == (2 * MS, 9, None)
    assert [len(turn.text.split()) for turn in (first, second)] == [7, 9]
    assert [one.id for one in taken(here)] == [0, 1]


def test_lengths_that_are_not_given_are_drawn_as_for_any_prompt(config):
    here = config({"timestamp": 0}, {"timestamp": 1}, isl_mean=50, isl_stddev=9, osl_mean=40, osl_stddev=9)
    found = [(turn.isl_tokens, turn.max_tokens) for (turn,) in turns(here)]
    assert found == [
        (normal_length(derive(42, "isl"), n, 50, 9), normal_length(derive(42, "osl"), n, 40, 9))
        for n in (0, 1)
    ]


def test_a_text_is_sent_as_it_is_and_measured(config):
    here = config(
        {"text_input": "Größe?", "input_length": 99}, {"text_input": "b", "output_length": 4}, osl_mean=8
    )
    assert turns(here) == [
        [Turn(text="Größe?", isl_tokens=6, max_tokens=8)],
        [Turn(text="b", isl_tokens=1, max_tokens=4)],
    ]


def test_lines_of_a_session_are_its_turns_wherever_they_stand(config):
    here = config(
        {"session_id": "a", "timestamp": 5, "text_input": "a1"},
        {"timestamp": 6, "text_input": "alone"},
        {"session_id": 7, "timestamp": 1, "text_input": "71", "delay": 0},
        {"session_id": "a", "text_input": "a2", "delay": 250},
        {"session_id": "7", "timestamp": 8, "text_input": "72"},
        {"session_id": "a", "text_input": "a3", "delay": 0.5},
        {"session_id": None, "timestamp": 0, "text_input": "first"},
    )
    told = [[(turn.text, turn.at_ns, turn.think_ns) for turn in one] for one in turns(here)]
    assert told == [
        [("first", 0, 0)],
        [("71", 1 * MS, 0), ("72", 8 * MS, 0)],
        [("a1", 5 * MS, 0), ("a2", None, 250 * MS), ("a3", None, MS // 2)],
        [("alone", 6 * MS, 0)],
    ]
    assert [one.id for one in taken(here)] == [0, 1, 2, 3]


def test_think_times_are_multiplied(config):
    here = config({"session_id": 1}, {"session_id": 1, "delay": 100}, think_ratio=2.5)
    assert [turn.think_ns for turn in turns(here)[0]] == [0, 250 * MS]


def test_what_happens_at_the_same_moment_stays_in_the_order_of_the_file(config):
    here = config(*({"timestamp": n % 3, "text_input": str(n)} for n in range(9)))
    assert [turn.text for (turn,) in turns(here)] == ["0", "3", "6", "1", "4", "7", "2", "5", "8"]


def test_without_timestamps_conversations_are_in_the_order_of_the_file(config):
    here = config(
        {"session_id": "b", "text_input": "b1"}, {"text_input": "c"}, {"session_id": "b", "text_input": "b2"}
    )
    assert [[turn.text for turn in one] for one in turns(here)] == [["b1", "b2"], ["c"]]
    assert {turn.at_ns for one in turns(here) for turn in one} == {None}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), min_size=1, max_size=30))
def test_every_line_is_one_turn_and_conversations_are_sorted(tmp_path_factory, lines):
    lines = sorted(lines, key=itemgetter(1))
    file = tmp_path_factory.mktemp("timed") / "f.jsonl"
    file.write_text(
        "".join(
            json.dumps({"session_id": session or None, "timestamp": at, "text_input": str(line)}) + "\n"
            for line, (session, at) in enumerate(lines)
        )
    )
    found = turns(InputConfig(file=str(file)))
    assert sorted(int(turn.text) for one in found for turn in one) == list(range(len(lines)))
    begins = [one[0].at_ns for one in found]
    assert begins == sorted(begins)
    for one in found:
        numbers = [int(turn.text) for turn in one]
        assert numbers == sorted(numbers)
        assert len({lines[number][0] for number in numbers}) == 1
        assert len(numbers) == 1 or lines[numbers[0]][0] != 0


def test_the_file_is_asked_again_when_it_is_over(config):
    here = config(
        {"session_id": 1, "input_length": 5}, {"session_id": 1, "input_length": 6}, {"input_length": 7}
    )
    assert timed.distinct(here) == 2
    found = taken(here, 6)
    assert [one.turns for one in found] == [one.turns for one in found[:2]] * 3
    assert [one.id for one in found] == list(range(6))


def test_outlines_have_the_moments_but_no_content(config):
    here = config(
        {"session_id": 1, "timestamp": 3, "text_input": "a"},
        {"session_id": 1, "delay": 4},
        {"timestamp": 2, "input_length": 7},
    )
    outlines = list(islice(timed.conversations(here, Letters(), 42).outlines(), 5))
    assert outlines == [
        Conversation(
            id=one.id, turns=tuple(Turn(at_ns=turn.at_ns, think_ns=turn.think_ns) for turn in one.turns)
        )
        for one in taken(here, 5)
    ]


def test_the_seed_decides_the_prompts_and_every_turn_has_its_own(config):
    here = config(*({"session_id": n % 4, "input_length": 20} for n in range(40)))
    texts = [turn.text for one in turns(here) for turn in one]
    assert len(set(texts)) == 40
    assert turns(here) == turns(here)
    assert not {turn.text for one in turns(here, seed=1) for turn in one} & set(texts)


def test_the_template_is_taken_off_only_when_lengths_include_it(config):
    here = config({"input_length": 30}, {"input_length": 5}, {"text_input": "abc"})
    included = structs.replace(here, isl_includes_template=True)
    assert [turn.isl_tokens for (turn,) in turns(here, template_tokens=11)] == [30, 5, 3]
    assert [turn.isl_tokens for (turn,) in turns(included, template_tokens=11)] == [19, 1, 3]


def test_without_a_tokenizer_the_length_of_a_text_is_unknown(config):
    conversations = timed.conversations(config({"text_input": "abc"}), Tokenless(), 42)
    assert conversations.conversation(0).turns[0].isl_tokens is None


@pytest.mark.parametrize("text", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n \n"])
def test_blank_lines_and_a_mark_of_the_encoding_do_not_matter(tmp_path, text, end):
    file = tmp_path / "f.jsonl"
    lines = [text + '{"text_input": "a"}', '{"text_input": "b"}']
    file.write_bytes(end.join([*lines, ""]).encode())
    assert [turn.text for (turn,) in turns(InputConfig(file=str(file)))] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1, 2]", 'must be a JSON object, such as {"timestamp": 0, "input_length": 100}.'),
        ("7", 'must be a JSON object, such as {"timestamp": 0, "input_length": 100}.'),
        ({"timestamp": "3"}, 'timestamp is "3"; give milliseconds, a number from 0 to 9e+12.'),
        ({"timestamp": -1}, "timestamp is -1; give milliseconds, a number from 0 to 9e+12."),
        ({"timestamp": True}, "timestamp is true; give milliseconds, a number from 0 to 9e+12."),
        (
            {"timestamp": 18 * 10**14},
            "timestamp is 1800000000000000; give milliseconds, a number from 0 to 9e+12.",
        ),
        ({"delay": [1]}, "delay is [1]; give milliseconds, a number from 0 to 9e+12."),
        ({"input_length": 0}, "input_length is 0; give tokens, a whole number from 1 to 10,000,000."),
        ({"input_length": 1.5}, "input_length is 1.5; give tokens, a whole number from 1 to 10,000,000."),
        ({"output_length": True}, "output_length is true; give tokens, a whole number from 1 to 10,000,000."),
        (
            {"output_length": 1e300},
            "output_length is 1e300; give tokens, a whole number from 1 to 10,000,000.",
        ),
        ({"session_id": ""}, 'session_id is ""; give a text or a whole number, or leave it out.'),
        ({"session_id": 1.5}, "session_id is 1.5; give a text or a whole number, or leave it out."),
        ({"session_id": False}, "session_id is false; give a text or a whole number, or leave it out."),
        ({"text_input": ""}, 'text_input is ""; give the text of the prompt, or leave it out.'),
        ({"text_input": ["a"]}, 'text_input is ["a"]; give the text of the prompt, or leave it out.'),
        (
            {"text_input": {"a" * 60: 1}},
            'text_input is {"' + "a" * 38 + "...; give the text of the prompt, or leave it out.",
        ),
        ({"hash_ids": [1]}, "hash_ids is not supported yet; give input_length or text_input instead."),
        ({"messages": []}, "messages is not supported yet; give input_length or text_input instead."),
        ({"payload": {}}, "payload is not supported yet; give input_length or text_input instead."),
        (
            {"input_length": 1},
            "has no timestamp, but the first request has one; give one to the first turn of every conversation, "
            "or to none.",
        ),
        ('{"payload": ' + "[" * 100_000, "is nested too deeply; no key needs that."),
        ({"input_lenght": 5}, 'there is no key "input_lenght". Did you mean input_length?'),
        (
            {"prompt": "a", "timestamp": 1},
            'there is no key "prompt". Known: timestamp, delay, session_id, input_length, output_length, text_input, '
            "hash_ids, messages, payload.",
        ),
        (
            {"\x1b" + 80 * "k": 1},
            'there is no key "\\u001b' + 33 * "k" + ".... Known: timestamp, delay, session_id, "
            "input_length, output_length, text_input, hash_ids, messages, payload.",
        ),
        (
            '{"timestamp": %s}' % ("9" * 5000),
            "timestamp holds a number of thousands of digits; give milliseconds, a number from 0 to 9e+12.",
        ),
        (
            '{"input_length": %s}' % ("9" * 5000),
            "input_length holds a number of thousands of digits; give tokens, a whole number from 1 to 10,000,000.",
        ),
        (
            {"timestamp": 1, "delay": 5},
            "has a delay, which counts from the answer before, but it is the first turn of "
            "its conversation; give it a timestamp instead, or the session_id of the turn that it follows.",
        ),
    ],
)
def test_a_line_that_is_not_as_it_should_be_is_named(config, line, message):
    assert refusal(config({"timestamp": 0}, "", line)) == f"line 3: {message}"


@pytest.mark.parametrize(
    "line", ['{"timestamp": 1', "timestamp: 1", b'{"text_input": "\xff"}', '{"timestamp": NaN}']
)
def test_a_line_that_is_no_json_is_named(config, line):
    message = refusal(config({"timestamp": 0}, line))
    assert message.startswith("line 2: is not valid JSON (")
    assert message.endswith("); give one object a line.")


def test_a_timestamp_where_the_first_has_none(config):
    assert refusal(config({"input_length": 1}, {"timestamp": 1})).startswith(
        "line 2: has a timestamp, but the first request has none;"
    )


def test_the_turns_of_a_conversation_do_not_go_back(config):
    first, second = (
        {"session_id": 1, "timestamp": 1_764_000_001_500},
        {"session_id": 1, "timestamp": 1_764_000_001_500},
    )
    between = [{"session_id": 2, "timestamp": 7}, {"session_id": 1, "delay": 2}]
    assert len(turns(config(first, second, *between))[1]) == 3
    assert refusal(config(first, second, *between, {"session_id": 1, "timestamp": 1_764_000_001_499.5})) == (
        "line 5: timestamp is 1764000001499.5, but an earlier turn of its conversation has 1764000001500; put the turns in their order."
    )


def test_a_later_turn_may_have_a_timestamp_or_not(config):
    here = config({"session_id": 1, "timestamp": 1}, {"session_id": 1}, {"session_id": 1, "timestamp": 2})
    assert [turn.at_ns for turn in turns(here)[0]] == [MS, None, 2 * MS]


def test_a_line_too_long_is_no_request(config, monkeypatch):
    monkeypatch.setattr(timed, "MOST_LINE_BYTES", 2 << 20)
    here = config({"text_input": "a"}, {"text_input": "a" * (2 << 20)})
    assert refusal(here) == "line 2: is longer than 2 MiB; is it JSONL, a request a line?"


@pytest.mark.parametrize("lines", [[], ["", "  "]])
def test_a_file_without_requests(config, lines):
    assert refusal(config(*lines)) == ": has no requests; give one as a JSON object on each line."


def test_what_is_no_file(tmp_path):
    assert refusal(InputConfig(file=str(tmp_path / "none"))) == ": cannot be read: No such file or directory."
    assert refusal(InputConfig(file=str(tmp_path))) == ": is a folder; give a file."
    os.mkfifo(tmp_path / "pipe")
    assert refusal(InputConfig(file=str(tmp_path / "pipe"))) == (
        ": is a pipe or a device, and is read more than once; give a file."
    )


def test_a_file_that_may_not_be_read(config, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    here = config({})
    monkeypatch.setattr("builtins.open", refuse)
    assert refusal(here) == ": cannot be read: Permission denied."


def test_a_text_that_is_gone_when_its_turn_has_come(config):
    conversations = timed.conversations(config({"text_input": "a"}), Letters(), 42)
    here = config({"input_length": 1})
    with pytest.raises(
        UsageError, match=r"requests\.jsonl: was changed while the run lasted; start again\.$"
    ):
        conversations.conversation(0)
    Path(here.file).write_text("{}x")
    with pytest.raises(UsageError, match="was changed"):
        conversations.conversation(0)
    Path(here.file).unlink()
    with pytest.raises(UsageError, match=r"cannot be read: No such file or directory\.$"):
        conversations.conversation(0)


def test_texts_as_token_ids_are_refused(config):
    class WithIds(Letters):
        words = structs.replace(
            Tokenless.words, first_ids=tuple(range(256)), rest_ids=tuple(range(256)), flaw=None
        )

    texts = config({"text_input": "a"}, {"input_length": 4}, token_ids=True)
    with pytest.raises(
        UsageError, match="text_input cannot be sent as token ids; leave out --prompt-token-ids"
    ):
        timed.conversations(texts, WithIds(), 42)
    lengths = config({"input_length": 4}, token_ids=True)
    (turn,) = timed.conversations(lengths, WithIds(), 42).conversation(0).turns
    assert (turn.text, len(turn.token_ids)) == (None, 4)
    with pytest.raises(UsageError, match="--prompt-token-ids needs a tokenizer"):
        timed.conversations(lengths, Letters(), 42)


def test_of_long_lines_little_is_kept_and_texts_are_read_when_asked_for(tmp_path):
    file = tmp_path / "f.jsonl"
    with file.open("w") as lines:
        for n in range(64):
            lines.write(json.dumps({"timestamp": n, "text_input": f"{n}" * (1 << 19)}) + "\n")
    here = InputConfig(file=str(file))
    tracemalloc.start()
    assert timed.distinct(here) == 64
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert file.stat().st_size > 50 << 20
    assert peak < 8 << 20
    assert taken(here)[63].turns[0].text == "63" * (1 << 19)


def test_a_file_is_indexed_once_and_again_when_it_has_changed(config, monkeypatch):
    lines, read = timed._lines, []
    monkeypatch.setattr(timed, "_lines", lambda file: read.append(file) or lines(file))
    here = config({"input_length": 5}, {"input_length": 6})
    taken(here)
    taken(here)
    assert len(read) == 1
    Path(here.file).write_text('{"input_length": 7}')
    assert [turn.isl_tokens for (turn,) in turns(here)] == [7]
    assert len(read) == 2


def test_a_large_file_in_no_order(tmp_path):
    sessions = list(range(5_000))
    random.Random(7).shuffle(sessions)
    moments = [turn * 5_000 + session for turn in range(4) for session in sessions]
    file = tmp_path / "f.jsonl"
    file.write_text(
        "".join(f'{{"timestamp":{at},"session_id":{at % 5_000},"input_length":1}}\n' for at in moments)
    )
    here = InputConfig(file=str(file))
    assert timed.distinct(here) == 5_000
    outlines = list(islice(timed.conversations(here, Letters(), 42).outlines(), 5_000))
    assert sorted(turn.at_ns for one in outlines for turn in one.turns) == [at * MS for at in range(20_000)]
    begins = [one.turns[0].at_ns for one in outlines]
    assert begins == sorted(begins)
    assert {len(one.turns) for one in outlines} == {4}
