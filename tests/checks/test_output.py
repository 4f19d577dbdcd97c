from __future__ import annotations

import pytest

from loadstone.checks.output import output_sanity, synthetic_text

REAL = {"endpoint": {"url": ["http://server:8000"]}}


def answers(answer, short, tokens=50, count=100):
    """A hundred answers, of which `short` have `tokens` of the hundred that were asked for."""
    return [
        answer(
            5, 6, tokens=tokens if number < short else 100, planned_output_tokens=100,
            outcome="ok" if number < short else "ok-length",
        )
        for number in range(count)
    ]  # fmt: skip


def test_answers_of_the_length_asked_for(evidence, answer):
    told = output_sanity(evidence(*answers(answer, 0)))
    assert (told.verdict, told.value) == ("VALID", 0)


def test_where_no_length_was_asked_none_is_wrong(evidence, answer):
    assert output_sanity(evidence(answer(5, 6))).value is None


@pytest.mark.parametrize(
    ("short", "extra", "verdict"),
    [
        (0, {"ignore_eos": True}, "VALID"),
        (1, {}, "NOTE"),
        (50, {}, "NOTE"),
        (4, {"ignore_eos": True}, "NOTE"),
        (5, {"ignore_eos": True}, "DEGRADED"),
        (5, {"min_tokens": 100}, "DEGRADED"),
        (5, {"ignore_eos": False}, "NOTE"),
    ],
)
def test_short_answers(evidence, answer, short, extra, verdict):
    told = output_sanity(evidence(*answers(answer, short), config={"endpoint": {"extra_inputs": extra}}))
    assert (told.verdict, told.value) == (verdict, short)


@pytest.mark.parametrize(("tokens", "verdict"), [(95, "VALID"), (94, "NOTE")])
def test_an_answer_is_short_below_95_percent(evidence, answer, tokens, verdict):
    assert output_sanity(evidence(*answers(answer, 100, tokens))).verdict == verdict


@pytest.mark.parametrize(("stubs", "verdict"), [(1, "NOTE"), (9, "NOTE"), (10, "DEGRADED")])
def test_answers_of_one_token(evidence, answer, stubs, verdict):
    told = output_sanity(evidence(*answers(answer, stubs, tokens=1)))
    assert (told.verdict, told.value) == (verdict, stubs)


@pytest.mark.parametrize(("asked", "verdict"), [(16, "NOTE"), (17, "DEGRADED")])
def test_one_token_is_no_answer_where_more_than_16_were_asked_for(evidence, answer, asked, verdict):
    told = output_sanity(evidence(answer(5, tokens=1, planned_output_tokens=asked)))
    assert (told.verdict, "shorter than asked" in told.finding) == (verdict, verdict == "NOTE")


def looping(answer, loops, sampled=20, ratio=6.0):
    return [answer(5, text_zlib_ratio=ratio if number < loops else 2.0) for number in range(sampled)]


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [((2, 20), "NOTE"), ((1, 20), "VALID"), ((9, 9), "VALID"), ((20, 20, 5.9), "VALID")],
)
def test_answers_that_repeat_themselves(evidence, answer, rows, verdict):
    assert output_sanity(evidence(*looping(answer, *rows), config=REAL)).verdict == verdict


def test_the_built_in_engine_always_repeats_itself(evidence, answer):
    told = output_sanity(evidence(*looping(answer, 20), config={"endpoint": {"url": ["sim:"]}}))
    assert told.verdict == "VALID"


@pytest.mark.parametrize(
    ("steps", "urls", "verdict"),
    [
        (None, REAL["endpoint"]["url"], "VALID"),
        (4, REAL["endpoint"]["url"], "NOTE"),
        (4, ["sim:"], "VALID"),
    ],
)
def test_made_up_text_and_speculation(evidence, answer, steps, urls, verdict):
    told = synthetic_text(evidence(answer(5, draft_steps=steps), config={"endpoint": {"url": urls}}))
    assert told.verdict == verdict


@pytest.mark.parametrize(("model", "verdict"), [("llama-3.1-8b", "VALID"), ("mixtral-8x7b", "NOTE")])
def test_made_up_text_and_experts(evidence, answer, model, verdict):
    import msgspec

    from loadstone.roofline.case import asked, case

    known = msgspec.to_builtins(case(asked(f"gpu=h100-sxm,model={model}", None)))
    told = synthetic_text(evidence(answer(5), config=REAL, environment={"roofline": known}))
    assert told.verdict == verdict
