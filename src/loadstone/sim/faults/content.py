"""What a stream may hold besides plain text and a usage: the ways of real servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadstone.sim.faults.family import Family, Play
from loadstone.sim.faults.script import FIRST_NS, GAP_NS, Beat, Event, Script, ended, paced, sse
from loadstone.sim.faults.steps import Steps

FAMILY = Family("Content of a stream")
THOUGHTS = 2
"""Tokens of reasoning before the answer."""
LATE_NS = 300_000_000
USAGE_LATE_NS = 500_000_000


# ---- what brings a token ----


@FAMILY.fault("ok", needs="chat")
def role_first(script: Script) -> Steps:
    """Names the role, with an empty text, 300 ms before the first token."""
    first, *others = ended(paced(b"", script.words()), script.closing())
    role = Beat(FIRST_NS, script.opening())
    return script.stream([role, first._replace(pause_ns=LATE_NS), *others])


@FAMILY.fault("ok", needs="stream")
def hidden_first_token(script: Script) -> Steps:
    """Brings an empty text as the first of its tokens (a special token that is not shown)."""
    return script.stream(script.beats([script.text(""), *script.words()[1:]]))


def _thinking(*fields: str) -> Play:
    """The first tokens of the answer are reasoning, in all of `fields`."""

    def play(script: Script) -> Steps:
        words = [script.word(index) for index in range(script.asked.output_tokens)]
        thoughts = [script.delta(dict.fromkeys(fields, word)) for word in words[:THOUGHTS]]
        return script.stream(script.beats([*thoughts, *map(script.text, words[THOUGHTS:])]))

    return play


for _name, _fields in {
    "reasoning-content": ("reasoning_content",),
    "reasoning": ("reasoning",),
    "reasoning-both": ("reasoning_content", "reasoning"),
}.items():
    _where = " and ".join(f"`{field}`" for field in _fields)
    FAMILY.add(
        _name, f"Brings the first two tokens as {_where}, the others as content.", "ok", _thinking(*_fields),
        needs="chat",
    )  # fmt: skip


@FAMILY.fault("ok-length", needs="chat")
def reasoning_only(script: Script) -> Steps:
    """Brings nothing but `reasoning_content` until the limit is reached."""
    thoughts = [
        script.delta({"reasoning_content": script.word(index)}) for index in range(script.asked.output_tokens)
    ]
    return script.stream(script.beats(thoughts, script.closing("length")))


@FAMILY.fault("ok-tool-calls", needs="chat")
def tool_calls(script: Script) -> Steps:
    """Brings nothing but the name and arguments of a tool call."""
    pieces = ["", '{"', 'place":', ' "nor', 'th"}'][: script.asked.output_tokens]
    calls = [script.delta({"tool_calls": [_call(index, piece)]}) for index, piece in enumerate(pieces)]
    return script.stream(script.beats(calls, script.closing("tool_calls")))


def _call(index: int, arguments: str) -> Event:
    if index == 0:
        function = {"name": "look_up", "arguments": arguments}
        return {"index": 0, "id": "call_1", "type": "function", "function": function}
    return {"index": 0, "function": {"arguments": arguments}}


@FAMILY.fault("ok", needs="chat")
def tool_calls_null(script: Script) -> Steps:
    """Says `tool_calls: null` and `function_call: null` in every delta."""
    nothing = {"tool_calls": None, "function_call": None}
    words = (script.word(index) for index in range(script.asked.output_tokens))
    return script.stream(script.beats([script.delta({"content": word, **nothing}) for word in words]))


@FAMILY.fault("ok", needs="stream")
def coarse(script: Script) -> Steps:
    """Brings ten tokens in two chunks of five."""
    words = [script.word(index) for index in range(10)]
    texts = [script.text("".join(words[:5])), script.text("".join(words[5:]))]
    closing = script.closing(usage=script.usage(10))
    return script.stream(ended(paced(script.opening(), texts, tokens=5), closing))


@FAMILY.fault("ok", needs="stream")
def one_token(script: Script) -> Steps:
    """Ends after one token."""
    return script.stream(script.beats(script.words()[:1], script.closing(usage=script.usage(1))))


@FAMILY.fault("ok", needs="stream")
def fewer_tokens(script: Script) -> Steps:
    """Ends after two tokens."""
    some = script.words()[:2]
    return script.stream(script.beats(some, script.closing(usage=script.usage(len(some)))))


@FAMILY.fault("ok-length", needs="stream")
def more_tokens(script: Script) -> Steps:
    """Brings three tokens more than it should."""
    count = script.asked.output_tokens + 3
    words = [script.text(script.word(index)) for index in range(count)]
    return script.stream(script.beats(words, script.closing("length", script.usage(count))))


@FAMILY.fault("ok", needs="stream")
def spaces(script: Script) -> Steps:
    """Brings twenty spaces a token, which a tokenizer would count otherwise."""
    return script.stream(script.beats([script.text(" " * 20)] * script.asked.output_tokens))


@FAMILY.fault("ok", needs="stream")
def two_choices(script: Script) -> Steps:
    """Brings two choices, interleaved, of as many tokens each."""
    count = script.asked.output_tokens
    both = [script.text(script.word(token), index=choice) for token in range(count) for choice in (0, 1)]
    finishes = b"".join(sse(script.text("", "stop", choice)) for choice in (0, 1))
    closing = script.closing(usage=script.usage(2 * count)).partition(b"\n\n")[2]
    return script.stream(script.beats(both, finishes + closing))


@FAMILY.fault("ok", needs="stream")
def content_filter(script: Script) -> Steps:
    """Ends with the finish reason `content_filter`."""
    return script.stream(script.beats(closing=script.closing("content_filter")))


@FAMILY.fault("ok", needs="stream")
def finish_with_text(script: Script) -> Steps:
    """Gives the finish reason in the event of the last token, and an empty one in those before."""
    *others, last = (script.word(index) for index in range(script.asked.output_tokens))
    events = [*(script.text(word, "") for word in others), script.text(last, "stop")]
    return script.stream(script.beats(events, script.closing().partition(b"\n\n")[2]))


@FAMILY.fault("ok", needs="stream")
def pings(script: Script) -> Steps:
    """Sends `event: ping` before the first token and between the others."""
    ping = sse({"type": "ping"}, "ping")
    first, *others = script.beats()
    early = Beat(GAP_NS, ping)
    rest = [beat._replace(data=ping + beat.data) for beat in others]
    return script.stream([early, first._replace(pause_ns=FIRST_NS - GAP_NS), *rest])


# ---- what brings none ----


def _early(odd: Callable[[Script], Event]) -> Play:
    """An odd event comes alone 30 ms before the first token, and again before the others."""

    def play(script: Script) -> Steps:
        event = sse(odd(script))
        first, *others = script.beats()
        early = Beat(FIRST_NS - 30_000_000, event)
        rest = [beat._replace(data=event + beat.data) for beat in others]
        return script.stream([early, first._replace(pause_ns=30_000_000), *rest])

    return play


FAMILY.add(
    "delta-null", "Mixes in events whose delta is null.", "ok",
    _early(lambda script: script.delta(None)), needs="chat",
)  # fmt: skip
for _name, _fields_of, _does in (
    ("choices-null", {"choices": None}, "Mixes in events whose choices are null."),
    ("choices-missing", {}, "Mixes in events without choices."),
    ("usage-null", {"choices": [], "usage": None}, "Mixes in events without a choice whose usage is null."),
):
    FAMILY.add(
        _name, _does, "ok", _early(lambda script, fields=_fields_of: script.bare(**fields)),  # type: ignore[misc]
        needs="stream",
    )  # fmt: skip


# ---- usage ----


@FAMILY.fault("ok", needs="stream")
def usage_late(script: Script) -> Steps:
    """Sends the usage and `[DONE]` 500 ms after the last token."""
    finish, _, rest = script.closing(usage=script.usage()).partition(b"\n\n")
    return script.stream([*script.beats(closing=finish + b"\n\n"), Beat(USAGE_LATE_NS, rest)])


@FAMILY.fault("ok", needs="stream")
def usage_in_last(script: Script) -> Steps:
    """Gives the usage in the event of the last token, and in none of its own."""
    *others, last = script.words()
    return script.stream(script.beats([*others, {**last, "usage": script.usage()}], _without_usage(script)))


@FAMILY.fault("ok", needs="stream")
def usage_cumulative(script: Script) -> Steps:
    """Gives the usage so far in every event of a token."""
    events = [{**word, "usage": script.usage(at + 1)} for at, word in enumerate(script.words())]
    return script.stream(script.beats(events, _without_usage(script)))


@FAMILY.fault("ok", needs="stream")
def usage_missing(script: Script) -> Steps:
    """Gives no usage, also when asked for."""
    return script.stream(script.beats(closing=_without_usage(script)))


def _without_usage(script: Script) -> bytes:
    finish, *_, done = script.closing().split(b"\n\n")[:-1]
    return b"%b\n\n%b\n\n" % (finish, done)


@FAMILY.fault("empty", needs="stream")
def usage_without_text(script: Script) -> Steps:
    """Claims its tokens in the usage but brings no text."""
    closing = script.closing(usage=script.usage())
    return script.stream([Beat(script.span_ns, script.opening() + closing)])


def _claiming(claim: Callable[[int], Any]) -> Play:
    """A usage with another number of completion tokens."""

    def play(script: Script) -> Steps:
        usage = script.usage(claim(script.asked.output_tokens))
        return script.stream(script.beats(closing=script.closing(usage=usage)))

    return play


for _name, _does, _claim in (
    ("usage-zero", "Claims 0 tokens for a text.", lambda tokens: 0),
    ("usage-doubled", "Claims twice the tokens it brings.", lambda tokens: 2 * tokens),
    ("usage-float", "Gives the tokens in its usage as a float, `5.0`.", float),
    ("usage-string", 'Gives the tokens in its usage as a text, `"5"`.', str),
    ("usage-bool", "Gives the tokens in its usage as `true`.", bool),
    ("usage-negative", "Claims -5 tokens.", lambda tokens: -tokens),
    ("usage-absurd", "Claims 10^18 tokens.", lambda tokens: 10**18),
):
    FAMILY.add(_name, _does, "ok", _claiming(_claim), needs="stream")
