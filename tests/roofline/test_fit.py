from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.roofline.fit import UNKNOWN_HARDWARE, Point, _bounded, fit
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


OF_EVERY_STEP = ("bandwidth", "compute", "layer_s", "sequence_s")


def values(found):
    return {one.name: one.value for one in found.estimates if one.name in OF_EVERY_STEP}


def reasons(found):
    """Why they are not told, of those that every step has."""
    return {
        one.name: one.reason for one in found.estimates if one.value is None and one.name in OF_EVERY_STEP
    }


def estimate(found, name):
    return next(one for one in found.estimates if one.name == name)


def test_what_was_put_in_comes_out():
    found = fit(points(DECODES + PREFILLS), model)
    assert values(found) == pytest.approx(
        {"bandwidth": 0.7, "compute": 0.4, "layer_s": 25e-6, "sequence_s": 1e-5}, rel=1e-6
    )
    assert found.worst < 1e-8


def test_whoever_has_one_device_is_told_that_links_are_assumed():
    found = fit(points(DECODES + PREFILLS), model)
    assert found.efficiency.link == Efficiency().link
    assert estimate(found, "link") == (
        "link", None, None, 0.5, 0.5, "No measured step waited for links."
    )  # fmt: skip


@pytest.mark.parametrize(("name", "prior"), [("step_s", 0.0), ("latency", 1.0)])
def test_what_a_step_takes_is_not_told_from_its_layers(name, prior):
    found = fit(points(DECODES + PREFILLS), model)
    assert estimate(found, name) == (
        name, None, None, prior, prior, "In runs of one model it cannot be told from layer_s."
    )  # fmt: skip


def with_request(seconds, works):
    """Points whose first tokens take so much longer than the step of their prompt."""
    return [
        one._replace(seconds=one.seconds + seconds) if one.kind == "prefill" else one for one in points(works)
    ]


def test_what_a_request_takes_beside_its_prompt_is_not_taken_for_slow_products():
    found = fit(with_request(0.02, DECODES + PREFILLS), model)
    assert found.efficiency.compute == pytest.approx(0.4, rel=1e-6)
    assert estimate(found, "request_s").value == pytest.approx(0.02, rel=1e-6)
    assert found.worst < 1e-8


def test_prompts_of_one_length_do_not_tell_a_request_from_its_products():
    found = fit(with_request(0.02, [*DECODES, prefill(4000)]), model)
    told = estimate(found, "request_s")
    assert (told.value, told.used) == (None, 0.0)
    assert "prompts that came alone vary too little" in told.reason
    assert found.efficiency.compute < 0.4


def test_points_of_many_steps_count_more_than_those_of_few():
    """A transient of three steps at every batch says that steps are 10 % longer; thousands of steps say that they are not."""
    steady = [point._replace(samples=3000) for point in points(DECODES + PREFILLS)]
    passing = [point._replace(seconds=1.1 * point.seconds, samples=3) for point in points(DECODES)]
    few = fit(steady + passing, model).efficiency
    assert few.bandwidth == pytest.approx(0.7, rel=0.02)
    assert few.layer_s == pytest.approx(25e-6, rel=0.2)
    alike = [point._replace(samples=3000) for point in passing]
    assert abs(fit(steady + alike, model).efficiency.bandwidth - 0.7) > 2 * abs(few.bandwidth - 0.7)


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_one_percent_moves_it_by_less_than_a_tenth(seed):
    found = fit(points(DECODES + PREFILLS, noise=0.01, seed=seed), model)
    assert found.efficiency.bandwidth == pytest.approx(0.7, rel=0.1)
    assert found.efficiency.compute == pytest.approx(0.4, rel=0.1)
    assert found.efficiency.layer_s == pytest.approx(25e-6, abs=16e-6)
    assert found.efficiency.sequence_s == pytest.approx(1e-5, abs=1e-5)
    assert found.rms < 0.015


def test_errors_are_as_large_as_what_noise_does():
    """Of 24 fits the root mean square of (found - true) / error is 1, give or take what 24 draws leave open."""
    found = [fit(points(DECODES + PREFILLS, noise=0.02, seed=seed), model) for seed in range(24)]
    for name, true in (("bandwidth", 0.7), ("compute", 0.4)):
        told = [estimate(one, name) for one in found]
        off = [((one.value - true) / one.error) ** 2 for one in told]
        assert 0.6 < (sum(off) / len(off)) ** 0.5 < 1.5


def test_a_few_wild_points_do_not_pull_it():
    wild = [point._replace(seconds=point.seconds * 3) for point in points(DECODES[::6])]
    found = fit(points(DECODES + PREFILLS) + wild, model)
    assert found.efficiency.bandwidth == pytest.approx(0.7, rel=0.01)
    assert found.efficiency.compute == pytest.approx(0.4, rel=0.01)


def test_without_a_compute_bound_step_compute_keeps_its_prior():
    found = fit(points(DECODES), model)
    assert reasons(found) == {"compute": "No measured step was bound by compute."}
    assert found.efficiency.compute == Efficiency().compute
    assert estimate(found, "compute").used == Efficiency().compute
    assert found.efficiency.bandwidth == pytest.approx(0.7, rel=1e-6)


def test_what_can_only_be_bounded_says_by_what_and_uses_it():
    """With the prior in its place these steps would have been bound by compute: it must be higher."""
    low = Efficiency(compute=0.02)
    found = fit(
        points(DECODES, Efficiency(bandwidth=0.7, compute=1.0, layer_s=25e-6, sequence_s=1e-5)), model, low
    )
    told = estimate(found, "compute")
    assert (told.value, told.prior, told.used) == (None, 0.02, found.efficiency.compute)
    assert told.used > 0.3
    assert told.reason == f"No measured step was bound by compute. It is {told.used:.2g} or more."


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
    assert all(
        one.used == getattr(found.efficiency, one.name) for one in found.estimates if one.name != "request_s"
    )
    told = {one.name: one.value for one in found.estimates if one.value is not None}
    assert {"bandwidth", "compute"} <= told.keys()
    for name, value in told.items():
        assert value == pytest.approx(getattr(truth, name, 0.0), rel=1e-4, abs=1e-9)


def on_eight_devices(truth, prompts=(64, 256, 1000, 4000, 8000)):
    """A fit of steps of a 70B model on 8 devices that come so near to the datasheet."""
    from loadstone.roofline import work
    from loadstone.roofline.case import settled
    from loadstone.summary.calibrated import model_of

    model = model_of(settled("gpu=h100,model=llama-3.1-70b,tensor_parallel_size=8", None))
    works = [work.decodes(n, context) for n in (1, 4, 16, 64, 256) for context in (200, 1000, 3000)]
    works += [work.prompt(tokens) for tokens in prompts]
    return fit([measured(one, model(truth, one)) for one in works], model)


@pytest.mark.parametrize("link", [0.25, 0.8])
def test_links_are_told_by_prompts_on_several_devices(link):
    truth = Efficiency(bandwidth=0.8, compute=0.5, layer_s=60e-6, sequence_s=20e-6, link=link)
    found = on_eight_devices(truth)
    assert found.worst < 1e-6
    for name in ("bandwidth", "compute", "layer_s", "link"):
        assert estimate(found, name).value == pytest.approx(getattr(truth, name), rel=1e-3)


def test_a_prior_that_the_points_contradict_is_not_kept_however_alike_others_are():
    """Each batch has one context, so that six parameters look alike. With a wrong one kept, bandwidth would come to 0.88."""
    from loadstone.roofline import work
    from loadstone.roofline.case import settled
    from loadstone.summary.calibrated import model_of

    truth = Efficiency(bandwidth=0.65, compute=0.4, layer_s=30e-6, sequence_s=10e-6)
    model = model_of(settled("gpu=h100,model=llama-3.1-8b", None))
    batches = ((1, 3000), (2, 2900), (4, 1500), (8, 1400), (16, 800), (32, 700), (64, 400))
    works = [work.decodes(n, context) for n, context in batches]
    works += [work.prompt(tokens) for tokens in (1535, 2458, 3967, 6327)]
    found = fit([measured(one, model(truth, one))._replace(samples=50) for one in works], model)
    for name in ("bandwidth", "compute", "layer_s", "sequence_s"):
        assert estimate(found, name).value == pytest.approx(getattr(truth, name), rel=1e-4)


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 12))
def test_nothing_within_bounds_is_nearer_than_what_is_found(seed, unknowns, points):
    draw = np.random.default_rng(seed)
    slopes, at = draw.normal(size=(points, unknowns)), draw.normal(size=points)
    low = draw.normal(size=unknowns)
    high = low + draw.exponential(size=unknowns)
    theta = low + draw.random(unknowns) * (high - low)
    free, one = np.ones(unknowns, dtype=bool), np.ones(unknowns)
    found = _bounded(slopes, at, theta, np.ones(points), free, low, high, one)

    def far(place):
        return np.sum((at + slopes @ (place - theta) - 1) ** 2)

    assert (found >= low).all()
    assert (found <= high).all()
    for _ in range(30):
        other = np.clip(found + draw.normal(size=unknowns) * draw.choice([0.01, 0.1, 1]), low, high)
        assert far(found) <= far(other) * (1 + 1e-9) + 1e-9
