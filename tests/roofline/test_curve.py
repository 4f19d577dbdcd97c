from __future__ import annotations

import pytest

from loadstone.errors import UsageError
from loadstone.roofline.case import settled
from loadstone.roofline.curve import TPOT, TTFT, closely, curve, doubling
from loadstone.roofline.memory import OutOfMemory
from loadstone.roofline.setup import FLOOR, Efficiency
from loadstone.roofline.work import decodes, prompt, together


@pytest.fixture(scope="module")
def case():
    return settled("gpu=h100", "llama-3.1-8b")


def of(case, efficiency=FLOOR, **more):
    asked = {"prompt_tokens": 200, "output_tokens": 100, **more}
    return curve(case, efficiency, **asked)


def test_batches_double_up_to_the_largest():
    assert doubling(1) == [1]
    assert doubling(8) == [1, 2, 4, 8]
    assert doubling(11) == [1, 2, 4, 8, 11]


def test_a_line_has_its_ends_and_no_batch_twice():
    found = closely(374)
    assert (found[0], found[-1]) == (1, 374)
    assert found == sorted(set(found))


def test_the_context_is_the_mean_over_a_request(case):
    assert of(case).context == 250
    assert of(case, context=1000).context == 1000


def test_a_row_is_the_cost_of_its_step(case):
    found = of(case, batches=[1, 64])
    steps = [case.roofline().parts(decodes(batch, 250)).total for batch in (1, 64)]
    assert [row.step_s for row in found.rows] == steps
    assert [row.tokens_s for row in found.rows] == [1 / steps[0], 64 / steps[1]]
    assert [row.tokens_s_sequence for row in found.rows] == [1 / steps[0], 1 / steps[1]]


def test_it_is_flat_below_b_sat_and_linear_above(case):
    found = of(case, context=8, batches=[1, 100, 400, 800])
    one, hundred, four, eight = (row.step_s for row in found.rows)
    assert found.b_sat == pytest.approx(989.4e12 / 3.35e12, rel=0.002)
    assert hundred / one < 1.01
    assert eight / four == pytest.approx(2, rel=0.01)
    assert [row.bound for row in found.rows] == ["weights", "weights", "compute", "compute"]


def test_the_floor_is_the_weights_at_the_datasheet_however_slow_the_rest(case):
    slow = of(case, Efficiency(bandwidth=0.1), context=1)
    assert slow.floor_s == of(case, context=1).floor_s
    assert slow.floor_s == pytest.approx(15.0e9 / 3.35e12, rel=0.01)


def test_beyond_s_crit_decode_is_never_bound_by_compute(case):
    assert of(case).s_crit == pytest.approx(388, abs=1)
    assert not of(case).attention_computes
    assert of(case, context=380).compute_from is not None
    assert of(case, context=400).compute_from is None


def test_most_of_a_step_is_products_from_the_batch_that_is_told(case):
    found = of(case)
    rows = of(case, batches=[found.compute_from - 1, found.compute_from]).rows
    assert [row.bound for row in rows] == ["weights", "compute"]


def test_no_row_is_above_the_ceiling_of_this_very_cost(case):
    found = of(case, Efficiency(), context=1152)
    real = case.roofline(Efficiency())
    assert all(row.tokens_s < found.most_tokens_s for row in found.drawn)
    great = real.parts(decodes(10**9, 1152)).total
    assert found.most_tokens_s == pytest.approx(10**9 / great, rel=1e-4)


def test_replicas_that_share_experts_are_all_as_busy_and_the_floor_takes_the_others_to_be_idle():
    deep = settled("gpu=h200,data_parallel_size=8,enable_expert_parallel=true", "deepseek-v3")
    found = of(deep, batches=[64])
    assert (found.expert_replicas, found.experts) == (8, 256)
    assert found.rows[0].step_s == deep.roofline(FLOOR).parts(decodes(64, 250)).total
    assert found.floor_s == deep.roofline().parts(decodes(1, 250)).total


def test_the_largest_batch_is_what_the_kv_cache_and_the_scheduler_allow(case):
    found = of(case, context=1000)
    assert found.kv_batch == found.memory.blocks // 63
    assert found.largest == min(found.kv_batch, 1024)
    assert found.rows[-1].batch == found.largest
    assert of(case, max_num_seqs=7).largest == 7
    assert [row.fits for row in of(case, max_num_seqs=7, batches=[7, 8]).rows] == [True, False]


def test_an_objective_gives_the_last_batch_that_keeps_it(case):
    found = of(case, context=1000, slo={TPOT: 0.02}).objectives[0]
    steps = [case.roofline().parts(decodes(found.largest + more, 1000)).total for more in (0, 1)]
    assert steps[0] <= 0.02 < steps[1]
    assert found.row.step_s == steps[0]
    assert found.why == "a larger one takes longer"


def test_an_objective_that_nothing_breaks_ends_at_what_can_run(case):
    found = of(case, slo={TPOT: 10}, max_num_seqs=16).objectives[0]
    assert (found.largest, found.why) == (16, "the most that can run")


def test_an_objective_that_one_sequence_breaks_is_not_kept(case):
    found = of(case, slo={TPOT: 0.001}).objectives[0]
    assert (found.largest, found.row) == (None, None)
    assert found.why.startswith("one sequence alone takes 4.")


def test_a_first_token_waits_for_half_a_step_and_shares_the_next_ones(case):
    real = case.roofline()
    shared = [together(decodes(7, 250), prompt(*chunk)) for chunk in ((93, 0), (93, 93), (14, 186))]
    expected_s = real.parts(decodes(7, 250)).total / 2 + sum(real.parts(work).total for work in shared)
    for limit_s, largest in ((expected_s * 1.0001, 7), (expected_s * 0.9999, 6)):
        found = of(case, slo={TTFT: limit_s}, max_num_batched_tokens=100, max_num_seqs=7)
        assert found.objectives[0].largest == largest


def test_a_prompt_is_taken_in_as_the_token_budget_cuts_it(case):
    found = of(case, max_num_batched_tokens=80)
    parts = [case.roofline().parts(prompt(*chunk)).total for chunk in ((80, 0), (80, 80), (40, 160))]
    assert found.prefill_s == sum(parts)
    assert (found.prefill_steps, found.max_num_seqs) == (3, 80)
    assert of(case, prompt_tokens=20_000).prefill_steps == 3


def test_decodes_that_take_all_tokens_of_a_step_leave_no_first_token(case):
    found = of(case, max_num_batched_tokens=8, slo={TTFT: 1000.0}).objectives[0]
    assert (found.largest, found.why) == (7, "a larger one takes longer")


def test_more_sequences_than_tokens_of_a_step_are_refused(case):
    with pytest.raises(UsageError, match="--max-num-seqs 9: a step has 8 tokens"):
        of(case, max_num_batched_tokens=8, max_num_seqs=9)


def test_engines_behind_one_address_bring_their_tokens_together():
    two = settled("gpu=h100,data_parallel_size=2", "llama-3.1-8b")
    one = settled("gpu=h100", "llama-3.1-8b")
    assert of(two, batches=[8]).rows[0].tokens_s == 2 * of(one, batches=[8]).rows[0].tokens_s
    assert of(two, batches=[8]).rows[0].step_s == of(one, batches=[8]).rows[0].step_s


def test_longer_than_the_model_is_refused(case):
    with pytest.raises(UsageError, match="goes to 131,072"):
        of(case, prompt_tokens=131072)


def test_a_model_that_does_not_fit_says_what_would_help():
    with pytest.raises(OutOfMemory, match="--tensor-parallel-size 4"):
        of(settled("gpu=h100", "llama-3.1-70b"))
