"""Percent of roofline: a server that takes twice the floor is at 50 %."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.conftest import ns

from loadstone.folder import PhaseLog
from loadstone.metrics import Missing, Number, all_metrics
from loadstone.metrics._decoding import alone, course, undisturbed
from loadstone.metrics.roofline import points
from loadstone.roofline.case import settled
from loadstone.roofline.setup import FLOOR
from loadstone.roofline.work import decodes, prompt

ITL = "inter_token_latency_of_roofline"
OUTPUT = "output_token_throughput_of_roofline"
TTFT = "time_to_first_token_of_roofline"


@pytest.fixture(scope="module")
def case():
    return settled("gpu=h100", "llama-3.1-8b")


@pytest.fixture
def placed(tables, case):
    """The tables of a run that was told what it measures."""

    def make(*rows, case=case, **run):
        told = {} if case is None else {"roofline": msgspec.to_builtins(case)}
        return tables(*rows, environment=told, **run)

    return make


PHASES = [
    PhaseLog(
        name=kind, kind=kind, first_row=0, planned=1, start_ns=ns(0), stop_ns=ns(1e5), end_ns=ns(1e5), seamless=True
    )
    for kind in ("warmup", "measured")
]  # fmt: skip
"""A warm-up whose last answers come while the first ones are measured."""
FLOOR_BUT_EXPERTS = msgspec.structs.replace(FLOOR, least=False)


def step_ms(case, batch, context=10):
    return 1e3 * case.roofline().parts(decodes(batch, context, case.roofline().window)).total


def stream(answer, start_ms, gap_ms, tokens=101, **columns):
    return answer(*(start_ms + gap_ms * k for k in range(tokens)), **columns)


def share(name, tables):
    return all_metrics()[name].result(tables)


@pytest.mark.parametrize("name", [ITL, OUTPUT, TTFT])
def test_without_a_roofline_there_is_none(placed, answer, name):
    found = share(name, placed(stream(answer, 50, 10), case=None))
    assert found.reason == "no roofline was named (--roofline gpu=NAME,model=NAME)."


def test_twice_the_floor_is_half_of_it(placed, answer, case):
    one = stream(answer, 50, 2 * step_ms(case, 1, 60))
    assert share(ITL, placed(one)).value == pytest.approx(50, rel=1e-4)


def test_the_batch_that_runs_counts(placed, answer, case):
    gap = 2 * step_ms(case, 64, 1050)
    rows = [stream(answer, 50, gap, input_tokens=1000) for _ in range(64)]
    assert share(ITL, placed(*rows)).value == pytest.approx(50, rel=1e-3)
    assert step_ms(case, 64, 1050) > 1.3 * step_ms(case, 1, 1050)


def test_batches_that_change_are_weighed_by_their_time(placed, answer, case):
    gap = 2 * step_ms(case, 1, 60)
    lone, early = stream(answer, 50, gap), stream(answer, 50, gap, tokens=51)
    both, one = step_ms(case, 2, 60), step_ms(case, 1, 60)
    possible = 2 * 50 * gap / both + 50 * gap / one
    assert share(ITL, placed(lone, early)).value == pytest.approx(100 * 150 / possible, rel=3e-4)


def test_requests_that_failed_run_with_the_others(placed, answer, case):
    gap = 2 * step_ms(case, 2, 10_060)
    good = stream(answer, 50, gap, input_tokens=10_000)
    bad = stream(answer, 50, gap, input_tokens=10_000, outcome="http-5xx")
    assert share(ITL, placed(good, bad)).value == pytest.approx(50, rel=1e-3)


def test_engines_share_what_runs(placed, answer):
    two = settled("gpu=h100,data_parallel_size=2", "llama-3.1-8b")
    gap = 2 * step_ms(two, 8, 10_060)
    rows = [stream(answer, 50, gap, input_tokens=10_000) for _ in range(16)]
    assert share(ITL, placed(*rows, case=two)).value == pytest.approx(50, rel=1e-3)


def test_speculation_is_taken_to_be_right(placed, answer, case):
    draft = settled("gpu=h100,num_speculative_tokens=3", "llama-3.1-8b")
    gap = 2 * step_ms(case, 1, 60)
    found = share(ITL, placed(stream(answer, 50, gap), case=draft))
    assert found.value == pytest.approx(12.5, rel=1e-3)


def test_the_output_of_the_window_counts_what_prefill_took(placed, answer, case):
    gap = 2 * step_ms(case, 1, 60)
    first_ms = 100 * gap
    found = share(OUTPUT, placed(stream(answer, first_ms, gap)))
    assert found.value == pytest.approx(100 * 100 / (200 * gap) * step_ms(case, 1, 60), rel=1e-4)


def staggered(answer, step, tokens, requests=400, every=1):
    """Answers of so few tokens, one begun every so many steps; each first token is that of a step of a prompt."""
    return [
        stream(answer, begun * every * step, step, tokens, sent=(begun * every - 1) * step)
        for begun in range(1, requests + 1)
    ]


def test_short_answers_that_follow_each_other_do_not_come_faster_than_they_can(placed, answer, case):
    """Of two tokens one is of a prompt's step. What decodes alone bring is half of all tokens, and no more than they can."""
    step = 2 * step_ms(case, 1, 11)
    tables = placed(*staggered(answer, step, tokens=2))
    itl, output = share(ITL, tables).value, share(OUTPUT, tables).value
    assert itl == pytest.approx(50, rel=1e-3)
    assert output == pytest.approx(50, rel=0.01)


def test_no_window_brings_more_than_could_have_come_in_it(placed, answer, case):
    step = step_ms(case, 4, 40)
    for tokens in (2, 3, 5, 17):
        tables = placed(*staggered(answer, step, tokens, every=max(1, tokens // 4)))
        assert share(OUTPUT, tables).value <= share(ITL, tables).value * 1.001


def test_what_runs_outside_the_window_is_not_of_its_batches(placed, answer, case):
    """A warm-up of 32 long answers, over before the measured ones begin, does not raise what those could have brought."""
    gap = 2 * step_ms(case, 1, 60)
    begin = 200 * gap
    warm = [stream(answer, 50, gap, phase="warmup") for _ in range(32)]
    lone = stream(answer, begin, gap, sent=begin - gap)
    both = placed(*warm, lone, phases=PHASES)
    assert share(OUTPUT, both).value == pytest.approx(share(OUTPUT, placed(lone)).value, rel=1e-6)


def test_answers_of_other_phases_run_beside_the_measured_ones(placed, answer, case):
    gap = 2 * step_ms(case, 2, 10_060)
    rows = [stream(answer, 50, gap, input_tokens=10_000, phase=name) for name in ("warmup", "measured")]
    assert share(ITL, placed(*rows, phases=PHASES)).value == pytest.approx(50, rel=1e-3)


def test_gaps_beside_a_prompt_of_another_phase_are_no_steps(tables, answer):
    rows = tables(
        answer(*(100 + 10 * k for k in range(11)), input_tokens=50),
        answer(*(150 + 10 * k for k in range(3)), sent=125, input_tokens=70, phase="warmup"),
        phases=PHASES,
    )
    found = undisturbed(rows, course(rows))
    assert sorted(found.decoding.tolist()) == [1, 1, 1, 1, 1, 2, 2]


def test_equal_prompts_may_all_choose_the_same_experts(placed, answer):
    """Eight equal prompts that go through the same 8 of 128 experts are slower than the floor, not four times as fast."""
    moe = settled("gpu=h100", "qwen3-30b-a3b")
    expected = 1e3 * moe.roofline(FLOOR_BUT_EXPERTS).parts(decodes(8, 60)).total
    least = step_ms(moe, 8, 60)
    assert expected > 3 * least
    rows = [stream(answer, 50, 1.1 * least) for _ in range(8)]
    assert share(ITL, placed(*rows, case=moe)).value == pytest.approx(100 / 1.1, rel=1e-3)


def test_a_replica_whose_neighbours_are_idle_is_no_faster_than_it_can_be(placed, answer):
    ep = settled("gpu=h200,data_parallel_size=8,enable_expert_parallel=true", "deepseek-v3")
    lone = 1e3 * ep.roofline(others=0.0).parts(decodes(1, 4146)).total
    prefill_ms = 1e3 * ep.roofline(others=0.0).parts(prompt(4096)).total
    tables = placed(stream(answer, prefill_ms, lone, input_tokens=4096), case=ep)
    assert share(TTFT, tables).values == pytest.approx([100], rel=1e-6)
    assert share(ITL, tables).value == pytest.approx(100, rel=1e-3)


def test_replicas_that_share_experts_have_the_tokens_of_all_to_route(placed, answer):
    ep = settled("gpu=h200,data_parallel_size=8,enable_expert_parallel=true", "deepseek-v3")
    gap = 2 * 1e3 * ep.roofline(others=1.0).parts(decodes(64, 60)).total
    rows = [stream(answer, 50, gap) for _ in range(512)]
    assert share(ITL, placed(*rows, case=ep)).value == pytest.approx(50, rel=1e-3)


def test_a_prompt_alone_is_the_floor_of_its_first_token(placed, answer, case):
    prefill_ms = 1e3 * case.roofline().parts(prompt(4096)).total
    found = share(TTFT, placed(stream(answer, 4 * prefill_ms, 10, input_tokens=4096)))
    assert found.values == pytest.approx([25], rel=1e-6)


def test_cached_tokens_that_the_server_tells_are_not_computed(placed, answer, case):
    prefill_ms = 1e3 * case.roofline().parts(prompt(1024, 3072)).total
    told = stream(answer, 2 * prefill_ms, 10, input_tokens=4096, usage_cached_tokens=3072)
    silent = stream(answer, 2 * prefill_ms, 10, input_tokens=4096)
    found = share(TTFT, placed(told, silent)).values
    assert found[0] == pytest.approx(50, rel=1e-6)
    assert found[1] > 150


@pytest.mark.parametrize("name", [ITL, OUTPUT, TTFT])
def test_several_servers_have_no_common_roofline(placed, answer, name):
    rows = [stream(answer, 50, 10, target=0), stream(answer, 50, 10, target=1)]
    assert share(name, placed(*rows)).reason.startswith("requests went to several servers")


@pytest.mark.parametrize("name", [ITL, OUTPUT])
def test_one_token_has_no_gap(placed, answer, name):
    assert share(name, placed(answer(50))) == Missing("no answer brought more than one token as a stream.")


def test_a_model_with_windows_is_faster_than_one_without(placed, answer):
    gpt = settled("gpu=h100", "gpt-oss-20b")
    gap = 2 * step_ms(gpt, 1, 30_050)
    found = share(ITL, placed(stream(answer, 50, gap, input_tokens=30_000), case=gpt))
    assert isinstance(found, Number)
    assert found.value == pytest.approx(50, rel=1e-3)


def test_what_runs_and_how_much_context_it_has(tables, answer):
    rows = tables(
        answer(*(100 + 10 * k for k in range(11)), input_tokens=50),
        answer(*(150 + 10 * k for k in range(11)), sent=90, input_tokens=70),
    )
    found = course(rows)
    at_s = np.array([0.125, 0.175, 0.225, 0.3])
    assert found.decoding(at_s).tolist() == [1, 2, 1, 0]
    assert found.context(at_s) == pytest.approx([53.5, 58.5 + 73.5, 78.5, 0])
    assert found.before_first(np.array([0.0, 0.1, 0.16]), np.array([0.05, 0.12, 0.2])).tolist() == [1, 1, 0]


def test_gaps_while_a_prompt_is_taken_in_are_no_steps(tables, answer):
    rows = tables(
        answer(*(100 + 10 * k for k in range(11)), input_tokens=50),
        answer(*(150 + 10 * k for k in range(3)), sent=125, input_tokens=70),
    )
    found = undisturbed(rows, course(rows))
    # The gaps of the first answer between 120 and 150 are left out.
    assert sorted(found.decoding.tolist()) == [1, 1, 1, 1, 1, 2, 2, 2, 2]
    assert found.seconds == pytest.approx([0.01] * 9)


def test_only_prompts_that_were_alone_are_prefills(tables, answer):
    rows = tables(
        answer(100, 110, 120, sent=0, input_tokens=500),
        answer(300, 310, 320, sent=200, input_tokens=600, usage_cached_tokens=64),
        answer(340, 350, sent=315, input_tokens=700),
    )
    found = alone(rows, course(rows))
    assert found.seconds == pytest.approx([0.1, 0.1])
    assert (found.prompt.tolist(), found.cached.tolist()) == ([500, 600], [0, 64])


def test_points_are_medians_of_what_is_alike(tables, answer):
    rows = [stream(answer, 1000 * k + 100, 10, tokens=21, sent=1000 * k, input_tokens=512) for k in range(4)]
    decode, prefill = points(tables(*rows), "here")
    assert (decode.kind, decode.sequences, decode.samples, decode.source) == ("decode", 1, 80, "here")
    assert decode.seconds == pytest.approx(0.01)
    assert decode.tokens == pytest.approx(523, abs=1)
    assert (prefill.kind, prefill.tokens, prefill.samples) == ("prefill", 512, 4)
    assert prefill.seconds == pytest.approx(0.1)
    assert decode.work.kv_tokens == decode.tokens
    assert prefill.work.new_tokens == 512


def test_one_step_of_many_answers_is_no_point(tables, answer):
    """64 gaps that are one step; with eight steps there is a point, and it counts as eight."""

    def of(steps):
        rows = [stream(answer, 100, 10, tokens=steps + 1, sent=0, input_tokens=1000) for _ in range(64)]
        return [point for point in points(tables(*rows), "here") if point.kind == "decode"]

    assert of(1) == of(7) == []
    [point] = of(8)
    assert (point.sequences, point.samples) == (64, 8)


def test_steps_of_engines_side_by_side_are_steps_of_each(tables, answer):
    rows = [stream(answer, 100, 10, tokens=5, sent=0, input_tokens=1000) for _ in range(16)]
    [point] = [one for one in points(tables(*rows), "here", replicas=2) if one.kind == "decode"]
    assert (point.sequences, point.samples) == (8, 8)


def test_a_run_without_streams_has_no_points(tables, answer):
    assert points(tables(answer(50)), "here") == []
