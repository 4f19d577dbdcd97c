"""Runs that were not asked the same are not compared, or it is said first."""

from __future__ import annotations

import numpy as np
import pytest

from loadstone import compare
from loadstone.compare import asked
from loadstone.compare.sides import Side
from loadstone.errors import UsageError

SAME = {"model": "m", "endpoint": "chat", "streaming": True, "load": "poisson 10", "seed": 1, "dataset": "x"}


@pytest.mark.parametrize(
    ("fact", "value", "sentence"),
    [
        ("model", "n", "B was asked for another model: n instead of m."),
        ("endpoint", "completions", "B was asked for another endpoint: completions instead of chat."),
        ("streaming", False, "B was asked for another way to answer: whole answers instead of streaming."),
        ("load", "poisson 20", "B was asked for another load: poisson 20 instead of poisson 10."),
    ],
)
def test_another_load_is_refused(side, fact, value, sentence):
    a, b = side("A", asked=SAME), side("B", asked={**SAME, fact: value})
    with pytest.raises(UsageError) as error:
        compare.report([a, b])
    assert str(error.value).startswith(sentence)
    assert "--anyway" in str(error.value)
    found = compare.report([a, b], anyway=True).comparisons[0]
    assert found.refused == (sentence,)


def test_other_prompts_and_another_seed_are_a_warning(side, requests):
    other = requests([10.0, 12.0])._replace(prompts=np.array([7, 8]))
    b = side("B", of=other, asked={**SAME, "seed": 2, "dataset": "e" * 64})
    found = compare.report([side("A", asked=SAME), b]).comparisons[0]
    assert found.refused == ()
    assert found.warnings == (
        "B was asked for another seed: 2 instead of 1.",
        "B was asked for other prompts: 2 of 2 differ.",
    )
    assert found.unpaired_because == "their prompts are not the same"


def test_prompts_that_are_the_same_as_far_as_both_went_are_no_warning(side):
    """A closed loop that time ended: the digest is that of as many as it came to."""
    a = side("A", [10.0, 12.0, 13.0], asked=SAME, planned=3)
    b = side("B", [10.0, 12.0], asked={**SAME, "dataset": "y"}, planned=2)
    found = compare.report([a, b]).comparisons[0]
    assert found.warnings == ()
    assert found.pairs == 2


@pytest.mark.parametrize(
    ("planned", "sentence"),
    [
        (3, "B was asked for other prompts: eeeeeeeeeeee instead of x."),
        (2, "Whether B was asked for other prompts cannot be told: they are not equally many."),
    ],
)
def test_without_requests_a_digest_tells_of_equally_many_alone(run, planned, sentence):
    a = run(asked=SAME, planned=3)._replace(requests=None)
    b = run(asked={**SAME, "dataset": "e" * 64}, planned=planned)._replace(requests=None)
    assert [one.sentence for one in asked.differences(Side("A", (a,)), Side("B", (b,)))] == [sentence]


def test_what_only_one_tells_may_differ_and_that_is_said(side):
    a, b = side("A", asked=SAME), side("B", asked={"model": "m"})
    assert asked.differences(a, b) == []
    assert asked.unknown(a, b) == ["endpoint", "streaming", "load", "seed", "dataset"]


def test_longer_answers_that_nobody_asked_for_are_told(side, requests):
    longer = requests([10.0, 12.0])
    longer = longer._replace(output_tokens=longer.output_tokens * 1.2)
    (one,) = asked.differences(side("A"), side("B", of=longer))
    assert one.sentence == "B had longer answers: 12 tokens on average instead of 10."
    assert not one.refused
    slightly = longer._replace(output_tokens=longer.output_tokens / 1.2 * 1.04)
    assert asked.differences(side("A"), side("B", of=slightly)) == []


def test_where_it_ran_is_a_note(side):
    a, b = side("A", surroundings={"host": "one"}), side("B", surroundings={"host": "two"})
    found = compare.report([a, b]).comparisons[0]
    assert found.notes == ("host: one for A, two for B.",)
    assert found.warnings == ()


def test_a_run_that_cannot_be_believed_says_so(side):
    found = compare.report([side("A"), side("B", verdict="INVALID", headline="why")]).comparisons[0]
    assert (found.b.certificate, found.b.headline) == ("INVALID", "why")
    assert found.a.certificate is None
