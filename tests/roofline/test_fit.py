from __future__ import annotations

from random import Random

import pytest

from loadstone.roofline.fit import UNKNOWN_HARDWARE, Point, fit
from loadstone.roofline.setup import Efficiency
from loadstone.roofline.work import Work

LAYERS = 32
TRUE = Efficiency(bandwidth=0.7, compute=0.4, layer_s=25e-6, sequence_s=1e-5)


def model(efficiency, work, memory=3.35e12, peak=989e12):
    """An 8B model on an H100, in a line: weights or products, and the KV cache."""
    weights = max(15e9 / memory / efficiency.bandwidth, 15e9 * work.new_tokens / peak / efficiency.compute)
    kv = work.kv_tokens * 131072 / memory / efficiency.bandwidth
    return weights + kv + LAYERS * efficiency.layer_s + work.sequences * efficiency.sequence_s


def decode(sequences, context):
    work = Work()
    work.new_tokens = work.sequences = sequences
    work.kv_tokens = work.pairs = sequences * context
    return work


def prefill(tokens):
    work = Work()
    work.new_tokens = work.prefill_tokens = work.kv_tokens = tokens
    work.sequences = 1
    return work


def measured(work, seconds):
    kind = "prefill" if work.prefill_tokens else "decode"
    return Point(
        kind, work, seconds, 1, work.sequences, round(work.kv_tokens / max(work.sequences, 1)), "run"
    )


def points(works, truth=TRUE, noise=0.0, seed=1, **hardware):
    draw = Random(seed)
    return [measured(work, model(truth, work, **hardware) * (1 + noise * draw.gauss(0, 1))) for work in works]


DECODES = [decode(n, context) for n in (1, 2, 4, 8, 16, 32, 64, 128) for context in (100, 500, 2000)]
PREFILLS = [prefill(tokens) for tokens in (1000, 2000, 4000, 8000)]


def values(found):
    return {one.name: one.value for one in found.estimates if one.name != "step_s"}


def reasons(found):
    return {one.name: one.reason for one in found.estimates if one.value is None and one.name != "step_s"}


def test_what_was_put_in_comes_out():
    found = fit(points(DECODES + PREFILLS), model)
    assert values(found) == pytest.approx(
        {"bandwidth": 0.7, "compute": 0.4, "layer_s": 25e-6, "sequence_s": 1e-5}, rel=1e-6
    )
    assert found.efficiency.link == Efficiency().link
    assert found.worst < 1e-8


def test_what_a_step_takes_is_not_told_from_its_layers():
    found = fit(points(DECODES + PREFILLS), model)
    assert found.estimates[-1] == (
        "step_s", None, None, 0.0, "In runs of one model it cannot be told from layer_s."
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_one_percent_moves_it_by_less_than_a_tenth(seed):
    found = fit(points(DECODES + PREFILLS, noise=0.01, seed=seed), model)
    assert found.efficiency.bandwidth == pytest.approx(0.7, rel=0.1)
    assert found.efficiency.compute == pytest.approx(0.4, rel=0.1)
    assert found.efficiency.layer_s == pytest.approx(25e-6, abs=16e-6)
    assert found.efficiency.sequence_s == pytest.approx(1e-5, abs=1e-5)
    assert found.rms < 0.015


def test_errors_are_as_large_as_what_noise_does():
    found = [fit(points(DECODES + PREFILLS, noise=0.02, seed=seed), model) for seed in range(4)]
    off = [abs(one.efficiency.bandwidth - 0.7) / one.estimates[0].error for one in found]
    assert 0.1 < sum(off) / len(off) < 2.5


def test_a_few_wild_points_do_not_pull_it():
    wild = [point._replace(seconds=point.seconds * 3) for point in points(DECODES[::6])]
    found = fit(points(DECODES + PREFILLS) + wild, model)
    assert found.efficiency.bandwidth == pytest.approx(0.7, rel=0.01)
    assert found.efficiency.compute == pytest.approx(0.4, rel=0.01)


def test_without_a_compute_bound_step_compute_keeps_its_prior():
    found = fit(points(DECODES), model)
    assert reasons(found) == {"compute": "No measured step was bound by compute."}
    assert found.efficiency.compute == Efficiency().compute
    assert found.efficiency.bandwidth == pytest.approx(0.7, rel=1e-6)


def test_one_batch_at_one_context_tells_only_how_fast_memory_seems():
    found = fit(points([decode(8, 500)]), model)
    assert set(reasons(found)) == {"compute", "layer_s", "sequence_s"}
    assert found.efficiency.layer_s == Efficiency().layer_s
    assert found.efficiency.sequence_s == Efficiency().sequence_s
    assert found.worst < 1e-9


def test_batches_at_one_context_do_not_tell_a_sequence_from_its_kv_cache():
    found = fit(points([decode(n, 1000) for n in (1, 4, 16, 64)]), model)
    assert "sequence_s" in reasons(found)
    assert found.efficiency.sequence_s == Efficiency().sequence_s
    assert "batches and contexts vary too little" in reasons(found)["sequence_s"]


def test_no_step_is_faster_than_the_datasheet():
    found = fit(points(DECODES, Efficiency(bandwidth=1.4, layer_s=0.0, sequence_s=0.0)), model)
    assert found.efficiency.bandwidth == 1.0
    assert found.estimates[0].reason == "It lies on the bound of what was allowed."
    assert found.estimates[0].error is None


def test_unknown_hardware_is_told_by_what_it_does():
    slow = points(
        DECODES + PREFILLS,
        Efficiency(bandwidth=1, compute=1, layer_s=2e-3, sequence_s=1e-3),
        memory=2e10,
        peak=1e11,
    )
    found = fit(slow, lambda e, w: model(e, w, memory=1e12, peak=1e14), Efficiency(), bounds=UNKNOWN_HARDWARE)
    assert found.efficiency.bandwidth * 1e12 == pytest.approx(2e10, rel=1e-6)
    assert found.efficiency.compute * 1e14 == pytest.approx(1e11, rel=1e-6)


def test_residuals_are_in_the_order_of_the_points():
    found = fit(points(DECODES + PREFILLS), model)
    assert [one.point for one in found.residuals] == points(DECODES + PREFILLS)
    assert found.residuals[0].model_s == pytest.approx(found.residuals[0].point.seconds)


def test_a_fit_needs_points():
    with pytest.raises(ValueError, match="needs points"):
        fit([], model)


@pytest.mark.parametrize("words", ["gpu=h100,model=llama-3.1-8b", "gpu=h200,model=gpt-oss-20b", "gpu=mi300x,model=deepseek-v3,tensor_parallel_size=8"])  # fmt: skip
def test_the_efficiency_of_a_real_shape_is_found(words):
    from loadstone.roofline import work
    from loadstone.roofline.case import settled
    from loadstone.summary.calibrated import model_of

    case = settled(words, None)
    model, window = model_of(case), case.roofline().window
    truth = Efficiency(bandwidth=0.65, compute=0.45, layer_s=30e-6, sequence_s=15e-6)
    works = [
        work.decodes(n, context, window) for n in (1, 4, 16, 64, 256, 512) for context in (100, 1000, 4000)
    ]
    works += [work.prompt(tokens, 0, window) for tokens in (500, 2000, 8000)]
    found = fit([measured(one, model(truth, one)) for one in works], model)
    assert found.worst < 1e-6
    told = {one.name: one.value for one in found.estimates if one.value is not None}
    assert {"bandwidth", "compute"} <= told.keys()
    for name, value in told.items():
        assert value == pytest.approx(getattr(truth, name), rel=1e-4)
