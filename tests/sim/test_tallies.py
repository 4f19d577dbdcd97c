"""What the steps of a deployment add to the counts: who got tokens, in which order, and what is no token."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.api.told import CHAT, asked

from loadstone.sim.api.spell import spell
from loadstone.sim.cost import Linear
from loadstone.sim.deployment import Deployment
from loadstone.sim.engine import Engine, Limits
from loadstone.sim.options import SimOptions
from loadstone.sim.tallies import Tallies
from loadstone.sim.tally import Tally
from loadstone.sim.truth import TruthRow
from loadstone.sim.turn import Part, Turn

MS = 1_000_000


class Served:
    """A deployment whose steps are handed out as they end, at their own times."""

    def __init__(self, engines: int = 1, prefills: int = 0, **limits: Any) -> None:
        cost, told = Linear(10 * MS, 0, 0), Limits(**limits)
        self.deployment: Deployment[Part] = Deployment(
            [Engine(cost, told) for _ in range(engines)],
            prefills=[Engine(cost, told._replace(prefill_only=True)) for _ in range(prefills)],
        )
        self.tallies = Tallies(self.deployment)

    @property
    def tally(self) -> Tally:
        return self.tallies.tallies[0]

    def add(self, path: str = CHAT, **call: Any) -> Turn:
        found = asked(path, SimOptions(model="m"), **call)
        truth = TruthRow(request_id="r", received_ns=0, read_ns=0, prompt_tokens=found.prompt_tokens)
        turn = Turn(found, spell(found, 1, 7), truth, True)
        for part in turn.parts:
            self.deployment.add(part)
        return turn

    def step(self, now_ns: int) -> list[tuple[int, int]]:
        """Plays to the end of the step under way; choices and tokens in the order in which they were handed out."""
        self.deployment.begin(now_ns)
        ends_ns = self.deployment.next_ns
        assert ends_ns is not None
        self.deployment.finish(ends_ns)
        told = []
        for served in self.tallies.served():
            batch = self.tallies.batch(served, ends_ns)
            for part, tokens in served.parts:
                part.owner.advance(part, tokens, ends_ns)
                batch.out(part, tokens, ends_ns)
                told.append((part.choice, tokens))
            batch.close()
        return told


def test_tokens_come_in_the_order_of_the_batch_also_those_that_are_the_last() -> None:
    served = Served()
    turn = served.add(n=3, max_tokens=3, ignore_eos=True)
    turn.parts[0].output_tokens = turn.parts[2].output_tokens = 2
    assert [served.step(now_ns) for now_ns in (0, 10 * MS, 20 * MS)] == [
        [(0, 1), (1, 1), (2, 1)],
        [(0, 1), (1, 1), (2, 1)],
        [(1, 1)],
    ]


def test_what_generates_nothing_has_no_tokens_on_the_page() -> None:
    served = Served()
    served.add("/v1/embeddings", input=["a b c", "d e", "f"])
    served.step(0)
    tally = served.tally
    assert (tally.prompt_tokens, tally.generation_tokens, tally.request_generation.sum) == (6, 0, 0)
    assert (tally.first_token.count, tally.inter_token.count, tally.per_output_token.count) == (0, 0, 0)
    assert (tally.latency.count, tally.queue.count, tally.request_prompt.sum) == (3, 3, 6)
    assert (tally.choices.sum, tally.choices.count, tally.longest_choice.sum) == (3, 3, 0)
    assert tally.step_tokens.sum == 6


def test_an_answer_counts_once_with_all_its_choices() -> None:
    served = Served()
    turn = served.add(n=3, max_tokens=4, ignore_eos=True)
    turn.parts[1].output_tokens = 2
    for now_ns in range(0, 40 * MS, 10 * MS):
        served.step(now_ns)
    tally = served.tally
    assert turn.over
    assert (tally.choices.sum, tally.choices.count) == (3, 1)
    assert (tally.longest_choice.sum, tally.longest_choice.count) == (4, 1)
    assert tally.request_generation.count == 3


@pytest.mark.parametrize("tokens", [2, 7, 9])
def test_accepted_drafts_are_counted_past_the_end_of_an_answer(tokens: int) -> None:
    served = Served(draft_rates=(1.0, 1.0, 1.0))
    turn = served.add(max_tokens=tokens, ignore_eos=True)
    now_ns = 0
    while not turn.over:
        served.step(now_ns)
        now_ns += 10 * MS
    tally, (drafted, accepted) = served.tally, served.deployment.engines[0].drafts
    assert (3 * tally.drafts, sum(tally.accepted)) == (drafted, accepted)
    assert drafted == accepted
    assert len(set(tally.accepted)) == 1


def test_engines_that_only_take_prompts_in_draft_nothing() -> None:
    served = Served(prefills=1, draft_rates=(0.5,))
    assert [tally.draft_tokens for tally in served.tallies.tallies] == [1, 0]


def test_the_truth_names_the_engine_of_the_first_choice() -> None:
    served = Served(engines=2)
    served.add(max_tokens=1)
    turn = served.add(n=2, max_tokens=2, ignore_eos=True)
    for now_ns in (0, 10 * MS):
        served.step(now_ns)
    assert [part.engine for part in turn.parts] == [1, 0]
    assert turn.truth.engine == 1
