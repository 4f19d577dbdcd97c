"""What a configuration says of its phases becomes one complete load for each."""

from __future__ import annotations

import math

import pytest

from loadstone.config import LoadConfig, phase_loads
from loadstone.config.phases import place
from loadstone.errors import UsageError


def told(load: LoadConfig) -> list[tuple[str, str, bool, dict[str, object]]]:
    """Name, kind, seamless, and what of the load differs from the defaults."""
    default = LoadConfig()
    return [
        (
            phase.name,
            phase.kind,
            phase.seamless,
            {
                name: value
                for name in LoadConfig.__struct_fields__
                if (value := getattr(phase.load, name)) != getattr(default, name)
            },
        )
        for phase in phase_loads(load)
    ]


def listed(*tables, **base):
    return LoadConfig(phases=tables, **base)


def refusal(load):
    with pytest.raises(UsageError) as caught:
        phase_loads(load)
    return str(caught.value)


def test_nothing_said_is_one_measured_phase():
    assert told(LoadConfig()) == [("measured", "measured", False, {})]


def test_the_measured_phase_has_the_shape_and_nothing_of_other_phases():
    load = LoadConfig(concurrency=4, workers=2, failed_request_threshold=1.0, warmup_request_count=3)
    assert told(load)[1] == ("measured", "measured", False, {"concurrency": 4})


def test_a_warmup_has_the_measured_shape_and_its_own_end():
    load = LoadConfig(
        request_rate=10.0, concurrency=4, duration_s=60.0, grace_s=5.0,
        warmup_request_count=7, warmup_sessions=3, warmup_duration_s=2.0,
    )  # fmt: skip
    end = {"request_count": 7, "sessions": 3, "duration_s": 2.0}
    assert told(load)[0] == ("warmup", "warmup", False, {"request_rate": 10.0, "concurrency": 4, **end})


def test_a_warmup_has_ramps_only_of_its_own():
    load = LoadConfig(
        request_rate=10.0, request_rate_ramp_s=5.0, request_rate_ramp_start=1.0, concurrency=8, concurrency_ramp_s=9.0,
        warmup_duration_s=2.0, warmup_concurrency=4, warmup_concurrency_ramp_s=1.0, warmup_request_rate=5.0,
        warmup_arrival_pattern="constant",
    )  # fmt: skip
    assert told(load)[0][3] == {
        "request_rate": 5.0, "concurrency": 4, "concurrency_ramp_s": 1.0, "duration_s": 2.0, "arrival_pattern": "constant",
    }  # fmt: skip


@pytest.mark.parametrize(
    "measured",
    [
        {"cancellation_percent": 5.0, "cancellation_delay_s": 1.0},
        {"request_count": 9, "stop_when": {"request_latency": 2.0}},
        {"fixed_schedule": True, "fixed_schedule_start_ms": 5.0},
        {"index_ramp_strategy": "linear", "index_ramp_start": 1.0, "index_ramp_end": 5.0, "request_count": 9},
    ],
)
def test_what_is_for_the_measured_phase_only_is_not_warmed_up_with(measured):
    load = LoadConfig(warmup_request_count=3, **measured)
    assert told(load)[0][3] == {"request_count": 3}
    assert told(load)[1][3] == measured


def test_a_conditioned_load_is_not_conditioned_while_it_warms_up():
    load = LoadConfig(request_rate=5.0, conditioned=True, request_count=9, warmup_request_count=3)
    assert [phase.load.conditioned for phase in phase_loads(load)] == [False, True]


def test_a_warmup_of_its_own_rate_takes_the_place_of_every_other_way():
    series = LoadConfig(
        request_rate_series=((0.0, 1.0), (5.0, 9.0)), warmup_request_count=3, warmup_request_rate=2.0
    )
    users = LoadConfig(user_centric_rate=5.0, users=9, warmup_request_count=3, warmup_request_rate=2.0)
    for load in (series, users):
        assert told(load)[0][3] == {"request_count": 3, "request_rate": 2.0}


def test_the_measured_phase_may_begin_while_the_warmup_drains():
    load = LoadConfig(warmup_request_count=3, warmup_handover="seamless")
    assert [phase.seamless for phase in phase_loads(load)] == [False, True]


@pytest.mark.parametrize(
    ("measured", "kept"),
    [
        ({"concurrency": 8, "concurrency_ramp_s": 5.0, "request_count": 9}, {"concurrency": 8}),
        ({"request_rate": 5.0, "request_rate_ramp_s": 5.0, "duration_s": 9.0, "grace_s": 1.0}, {"request_rate": 5.0}),
        ({"request_rate_series": ((0.0, 1.0), (5.0, 9.0))}, {"request_rate": 9.0}),
        ({"user_centric_rate": 5.0, "users": 9}, {"user_centric_rate": 5.0, "users": 9}),
        (
            {
                "index_ramp_strategy": "linear", "index_ramp_start": 1.0, "index_ramp_end": 5.0, "request_count": 9,
                "arrival_smoothness": 2.0,
            },
            {"request_rate": 5.0, "arrival_smoothness": 2.0},
        ),
        ({"cancellation_percent": 5.0}, {"cancellation_percent": 5.0}),
    ],
)  # fmt: skip
def test_a_cooldown_goes_on_as_the_load_ended(measured, kept):
    [_, cooldown] = told(LoadConfig(cooldown_duration_s=3.0, **measured))
    assert cooldown == ("cooldown", "cooldown", True, {**kept, "duration_s": 3.0})


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        (
            LoadConfig(warmup_concurrency=3),
            "load.warmup_concurrency = 3: has no effect without a warm-up; set --warmup-request-count, "
            "--num-warmup-sessions or --warmup-duration.",
        ),
        (LoadConfig(warmup_handover="seamless"), "load.warmup_handover = seamless: has no effect without a warm-up"),
        (LoadConfig(warmup_grace_s=0.0), "load.warmup_grace_s = 0: has no effect without a warm-up"),
        (
            LoadConfig(warmup_request_count=3, warmup_grace_s=0.0),
            "load.warmup_grace_s = 0: has no effect without --warmup-duration; all answers are awaited anyway.",
        ),
        (
            LoadConfig(warmup_request_count=3, warmup_request_rate=3.0),
            "load.warmup_request_rate = 3: has no effect in a closed loop; set --request-rate, or list the phases",
        ),
        (
            LoadConfig(warmup_request_count=3, warmup_arrival_pattern="constant"),
            "load.warmup_arrival_pattern = constant: has no effect in a closed loop",
        ),
        (
            LoadConfig(warmup_request_count=3, warmup_concurrency_ramp_s=3.0),
            "load.warmup_concurrency_ramp_s = 3: has no effect without --warmup-concurrency, with which it ends.",
        ),
        (
            LoadConfig(warmup_request_count=3, warmup_request_rate_ramp_s=3.0),
            "load.warmup_request_rate_ramp_s = 3: has no effect without a --warmup-request-rate, with which it ends.",
        ),
        (
            LoadConfig(request_rate="inf", request_count=9, warmup_duration_s=3.0),
            "load.request_rate = inf: in phase warmup: sends everything at once, and a duration does not say how much; "
            "set --warmup-request-count.",
        ),
        (
            LoadConfig(request_rate="inf", request_count=9, cooldown_duration_s=3.0),
            "load.request_rate = inf: in phase cooldown: sends everything at once, and a duration does not say how much; "
            "set --cooldown-request-count.",
        ),
        (
            LoadConfig(fixed_schedule=True, cooldown_request_count=3),
            "load.cooldown_request_count: there is no load to keep up after a fixed schedule.",
        ),
        (
            LoadConfig(request_rate_series=((0.0, 1.0), (5.0, 0.0)), cooldown_duration_s=3.0),
            "load.cooldown_duration_s: there is no load to keep up: load.request_rate_series ends at 0.",
        ),
    ],
)  # fmt: skip
def test_warmup_and_cooldown_that_cannot_be(load, sentence):
    assert refusal(load).startswith(sentence)


def test_listed_phases_are_the_load_with_their_own_keys_over_it():
    load = listed(
        {"name": "warm", "kind": "warmup", "duration_s": 30},
        {"name": "steady.1", "request_count": 3000},
        {"name": "twice", "handover": "seamless", "request_rate": 20, "request_count": 6000},
        {"name": "cool-down", "kind": "cooldown", "handover": "seamless", "duration_s": 5},
        request_rate=10.0,
        concurrency=4,
        workers=2,
    )
    base = {"request_rate": 10.0, "concurrency": 4}
    assert told(load) == [
        ("warm", "warmup", False, {**base, "duration_s": 30.0}),
        ("steady.1", "measured", False, {**base, "request_count": 3000}),
        ("twice", "measured", True, {**base, "request_rate": 20.0, "request_count": 6000}),
        ("cool-down", "cooldown", True, {**base, "duration_s": 5.0}),
    ]


def test_what_does_nothing_beside_a_phases_own_keys_is_left_out_there():
    load = listed(
        {"name": "a", "request_rate": "inf", "request_count": 5},
        {"name": "b", "request_rate_series": "0:1,5:9"},
        {"name": "c", "user_centric_rate": 5, "users": 3},
        {"name": "d"},
        request_rate=10.0,
        arrival_pattern="constant",
        concurrency=2,
    )
    assert [phase[3] for phase in told(load)] == [
        {"request_rate": "inf", "request_count": 5, "concurrency": 2},
        {"request_rate_series": ((0.0, 1.0), (5.0, 9.0)), "arrival_pattern": "constant", "concurrency": 2},
        {"user_centric_rate": 5.0, "users": 3},
        {"request_rate": 10.0, "arrival_pattern": "constant", "concurrency": 2},
    ]


def test_a_null_takes_a_key_of_the_load_back():
    load = listed({"name": "closed", "request_rate": None}, {"name": "open"}, request_rate=5.0, concurrency=3)
    assert [phase.load.request_rate for phase in phase_loads(load)] == [None, 5.0]


def test_a_listed_warmup_and_cooldown_do_not_stop_by_a_criterion():
    load = listed(
        {"name": "w", "kind": "warmup"}, {"name": "m"}, {"name": "c", "kind": "cooldown"},
        request_count=9, stop_when={"request_latency": 2.0}, cancellation_percent=5.0,
    )  # fmt: skip
    assert [bool(phase.load.stop_when) for phase in phase_loads(load)] == [False, True, False]
    assert [phase.load.cancellation_percent for phase in phase_loads(load)] == [0.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        (
            [{"name": "a", "request_rate": 0}],
            "load.phases[0].request_rate = 0: must be a number above 0 or inf. For a closed loop set --concurrency; "
            "to send everything at once give inf.",
        ),
        ([{"name": "a", "concurrency": 100_001}], "load.phases[0].concurrency = 100001: must be at most 100,000."),
        ([{"name": "a", "duration_s": "5"}], 'load.phases[0].duration_s = "5": must be a number above 0.'),
        ([{"name": "a", "request_rate": math.nan}], "load.phases[0].request_rate = nan: must be a number above 0 or inf."),
        ([{"name": math.nan}], "load.phases[0].name = nan: must be 1 to 40 letters"),
        ([{"name": "a", "kind": math.nan}], "load.phases[0].kind = nan: must be one of warmup"),
        ([{"name": "a", "stop_when": {"x": math.nan}}], "load.phases[0].stop_when = {'x': nan}: must be a table"),
        ([{"name": "a", "request_count": "5"}], 'load.phases[0].request_count = "5": must be a whole number, at least 1.'),
        ([{"name": "a", "duration_s": 1e-10}], "load.phases[0].duration_s = 1e-10: must be at least 0.001;"),
        (
            [{"name": "a", "concurency": 1}],
            "load.phases[0].concurency: there is no such key of a phase. Did you mean concurrency?",
        ),
        ([{"name": "a", "workers": 1}], "load.phases[0].workers: is not for one phase; give it in [load]."),
        ([{"name": "a", "warmup_sessions": 1}], "load.phases[0].warmup_sessions: there is no such key of a phase."),
        ([{}], "load.phases[0].name: must be 1 to 40 letters, digits and signs of - _ . that name it."),
        ([{"name": ""}], "load.phases[0].name = : must be 1 to 40"),
        ([{"name": 3}], "load.phases[0].name = 3: must be 1 to 40"),
        ([{"name": "a b"}], "load.phases[0].name = a b: must be 1 to 40"),
        ([{"name": "a" * 41}], f"load.phases[0].name = {'a' * 41}: must be 1 to 40"),
        ([{"name": "a"}, {"name": "a"}], "load.phases[1].name = a: is the name of load.phases[0] too; give another."),
        (
            [{"name": "a", "kind": "warm"}],
            "load.phases[0].kind = warm: must be one of warmup, measured, cooldown. Did you mean warmup?",
        ),
        ([{"name": "a", "handover": "x"}], "load.phases[0].handover = x: must be one of drained, seamless."),
        (
            [{"name": "a", "handover": "seamless"}],
            "load.phases[0].handover = seamless: is the first phase, which follows no other.",
        ),
        (
            [{"name": "a", "kind": "warmup", "request_count": 1}],
            "load.phases: none of them is measured; leave out the kind of one.",
        ),
        (
            [{"name": "a"}, {"name": "b", "kind": "warmup", "request_count": 1}],
            "load.phases[1].kind = warmup: must come before all measured phases.",
        ),
        (
            [{"name": "a", "kind": "cooldown", "request_count": 1}, {"name": "b"}],
            "load.phases[0].kind = cooldown: must come after all measured phases.",
        ),
        (
            [{"name": "a", "kind": "warmup"}, {"name": "b"}],
            "load.phases[0]: has no end; give it request_count, sessions or duration_s.",
        ),
        (
            [{"name": "a", "kind": "warmup", "sessions": 1, "stop_when": {"request_latency": 2}}, {"name": "b"}],
            "load.phases[0].stop_when = request_latency:2: is for measured phases.",
        ),
        (
            [{"name": "a", "kind": "warmup", "sessions": 1, "cancellation_percent": 10}, {"name": "b"}],
            "load.phases[0].cancellation_percent = 10: is not for a warm-up.",
        ),
        (
            [{"name": "a", "arrival_pattern": "poisson"}],
            "load.phases[0].arrival_pattern = poisson: has no effect in a closed loop; set request_rate or leave it out.",
        ),
        (
            [{"name": "a"}, {"name": "b", "request_rate": "inf", "duration_s": 3}],
            "load.phases[1].request_rate = inf: sends everything at once, and a duration does not say how much; "
            "set request_count.",
        ),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_names_the_place(tables, sentence):
    assert refusal(listed(*tables)).startswith(sentence)


def test_keys_beside_a_list():
    assert refusal(listed({"name": "a"}, warmup_request_count=3)) == (
        "load.warmup_request_count = 3: has no effect beside load.phases; list a phase of that kind there."
    )
    assert refusal(listed({"name": "a", "concurrency": 3}, concurrency=5)) == (
        "load.concurrency = 5: has no effect in any of load.phases; leave it out."
    )
    assert refusal(listed({"name": "a"}, arrival_pattern="poisson")) == (
        "load.arrival_pattern = poisson: has no effect in any of load.phases; leave it out."
    )


def test_a_key_of_the_load_that_cannot_be_in_one_phase_names_the_phase():
    load = listed({"name": "a", "request_count": 3}, {"name": "b", "duration_s": 3}, request_rate="inf")
    assert refusal(load).startswith("load.request_rate = inf: in phase b: sends everything at once")


def test_a_list_has_an_end():
    tables = [{"name": str(at)} for at in range(101)]
    assert refusal(listed(*tables)) == "load.phases: are 101; give at most 100."
    assert len(phase_loads(listed(*tables[:100]))) == 100


def test_the_place_of_a_key():
    single = LoadConfig(concurrency=5, warmup_request_count=3, warmup_concurrency=2)
    assert [place(single, at, "concurrency") for at in (0, 1)] == [
        "load.warmup_concurrency",
        "load.concurrency",
    ]
    assert place(single, 0, "fixed_schedule") == "load.fixed_schedule"
    several = listed({"name": "a", "concurrency": 2}, {"name": "b"}, concurrency=5)
    assert [place(several, at, "concurrency") for at in (0, 1)] == [
        "load.phases[0].concurrency",
        "load.concurrency",
    ]


def test_what_vllm_wants_beside_its_ramp_asks_for_nothing():
    ramp = {
        "index_ramp_strategy": "linear",
        "index_ramp_start": 1.0,
        "index_ramp_end": 5.0,
        "request_count": 9,
    }
    as_there = LoadConfig(**ramp, request_rate="inf", arrival_smoothness=1.0, warmup_request_count=2)
    assert told(as_there) == told(LoadConfig(**ramp, warmup_request_count=2))


def test_the_burstiness_of_everything_at_once_is_one():
    burst = {"request_rate": "inf", "request_count": 9}
    assert told(LoadConfig(**burst, arrival_smoothness=1.0)) == told(LoadConfig(**burst))
    assert "arrival_smoothness = 2: has no effect when everything is sent at once" in refusal(
        LoadConfig(**burst, arrival_smoothness=2.0)
    )
