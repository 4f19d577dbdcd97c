"""Published measurements: the data is whole, the engine is driven as they were, and how far off it may be."""

from __future__ import annotations

import msgspec
import pytest
from bench.published import FITTED_BAR, page
from bench.published.compare import KINDS, Compared, compared, first, groups, rms
from bench.published.page import FAR, MADE, PAGE, TABLES
from bench.published.play import LONGEST_PROMPT, Served, lengths, requests, serve, summary
from bench.published.points import FIGURES, Load, Point, points
from bench.published.starts import held, starts
from hypothesis import given
from hypothesis import strategies as st

from loadstone.roofline import gpus
from loadstone.sim import build
from loadstone.sim.options import SimOptions


def test_there_are_points_enough_on_h100_and_a100():
    known = points().points
    assert len(known) >= 20
    assert sum(point.gpu in ("h100", "a100") for point in known) >= 10
    assert len({point.id for point in known}) == len(known)


def test_what_a_point_names_is_there_and_nothing_else():
    known = points()
    assert {point.source for point in known.points} == set(known.sources)
    assert {point.defaults for point in known.points} == set(known.defaults)
    assert {point.reason for point in known.points} - {None} == set(known.reasons)
    assert {name for point in known.points for name in point.measured} == set(FIGURES)
    assert {start.source for start in starts().starts} == set(starts().sources)


def test_the_fitted_points_are_within_the_bar_and_none_of_them_far_off():
    fitted = groups()[0]
    assert fitted.name.startswith("fitted")
    assert 7.0 < rms(first(fitted.rows)) * 100 < FITTED_BAR
    assert all(abs(row.error) < 0.2 for row in first(fitted.rows))


@pytest.mark.parametrize(
    ("begins", "bar"),
    [
        ("held out: dense", 0.21),
        ("held out: Mixtral", 0.20),
        ("held out: gpt-oss", 0.30),
        ("held out: MI300X", 0.31),
        ("held out: DeepSeek", 0.55),
        ("in doubt, on an H100 PCIe", 0.05),
    ],
)
def test_the_groups_are_as_far_off_as_the_page_says(begins: str, bar: float):
    (group,) = (one for one in groups() if one.name.startswith(begins))
    assert rms(first(group.rows)) < bar


def test_five_of_six_dense_models_are_within_a_quarter():
    (dense,) = (group for group in groups() if group.name.startswith("held out: dense"))
    errors = [abs(row.error) for row in first(dense.rows)]
    assert sum(error <= FAR for error in errors) >= len(errors) * 5 / 6
    assert sum(error <= 0.155 for error in errors) > len(errors) / 2


def test_what_is_far_off_has_a_reason():
    assert [row.point.id for row in compared() if abs(row.error) > FAR and row.point.reason is None] == []


def test_every_point_is_in_one_group_and_those_in_doubt_in_both_of_theirs():
    found = [row for group in groups() for row in group.rows]
    doubtful = [row for row in compared() if row.point.use == "device in doubt"]
    assert len(found) == len(compared()) + len(doubtful)
    assert len(groups()) == len(KINDS) + 2


def test_a_model_that_is_too_fast_has_a_negative_error_in_times_and_in_rates():
    point = points().points[0]
    assert Compared(point, "duration_s", 2.0, 1.5).error == -0.25
    assert Compared(point, "output_tok_s", 300.0, 400.0).error == -0.25
    assert Compared(point, "requests_s", 4.0, 2.0).error == 1.0


def test_every_table_stands_once_in_the_page():
    assert sorted(found["name"] for found in MADE.finditer(PAGE.read_text("utf-8"))) == sorted(TABLES)


def test_what_is_printed_has_a_line_for_every_figure():
    assert len(page.text().splitlines()) == 1 + len(compared())


# ---- the load ---------------------------------------------------------------------------------------------


@given(st.integers(1, 500), st.integers(0, 200_000), st.integers(0, 9))
def test_lengths_have_their_sum(count: int, more: int, seed: int):
    found = lengths(count, count + more, None, seed)
    assert (len(found), sum(found), min(found) >= 1) == (count, count + more, True)
    assert found == lengths(count, count + more, None, seed)


def test_prompts_of_a_dataset_are_cut_and_the_sum_stays():
    found = lengths(1000, 217_393, LONGEST_PROMPT, 1)
    assert (sum(found), max(found)) == (217_393, LONGEST_PROMPT)


def test_no_two_requests_share_a_block():
    keys = [key for one in requests(Load(requests=3, input=40, output=24)) for key in one.keys]
    assert keys == list(range(12))


def test_so_many_are_served_at_a_time_and_the_next_begins_when_one_ends():
    engine = SimOptions(step_ms=10, step_us_per_sequence=0, prefill_us_per_token=0)
    load = Load(requests=4, concurrency=2, input=16, output=3)
    served = list(serve(build.deployment(engine), requests(load), 2))
    ms = 1_000_000
    assert served == [
        Served(0, (10 * ms, 30 * ms), 3),
        Served(0, (10 * ms, 30 * ms), 3),
        Served(30 * ms, (40 * ms, 60 * ms), 3),
        Served(30 * ms, (40 * ms, 60 * ms), 3),
    ]
    assert summary(served, load) == pytest.approx(
        {
            "duration_s": 0.06,
            "requests_s": 4 / 0.06,
            "output_tok_s": 12 / 0.06,
            "total_tok_s": 76 / 0.06,
            "tpot_ms": 10.0,
            "tpot_p50_ms": 10.0,
            "ttft_ms": 10.0,
        }
    )


def test_a_load_in_a_few_words():
    assert Load(requests=8, input=32, output=128).words == "8 x 32/128 at once"
    assert Load(requests=9, concurrency=4, input_total=9, output_total=9).words == "ShareGPT, 4 at a time"


def test_a_point_with_a_field_that_does_not_exist_is_refused():
    fields = msgspec.to_builtins(points().points[0]) | {"latency": 1}
    with pytest.raises(msgspec.ValidationError, match="latency"):
        msgspec.convert(fields, Point)


# ---- memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["M1", "M2", "M8", "M12", "M13", "M15", "M16", "M17", "M18"])
def test_the_kv_cache_is_that_of_the_start_within_six_percent(id: str):
    (start,) = (one for one in starts().starts if one.id == id)
    error = held(start).error
    assert error is not None
    assert abs(error) < 0.06


def test_what_did_not_start_does_not():
    lacking = {one.id for one in starts().starts if one.logged.get("kv_gib", 1) <= 0}
    assert lacking == {one.id for one in starts().starts if held(one).kv_gib is None} == {"M6", "M14"}


def test_every_device_is_known():
    assert {gpus.find(one.gpu).name for one in starts().starts} <= set(gpus.GPUS)
