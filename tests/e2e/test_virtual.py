"""Every shape of load on the virtual clock, by the command as a person types it: what is offered, sent and told."""

from __future__ import annotations

import json
import signal
from itertools import groupby

import polars as pl
import pytest

from loadstone.sim.truth import read_truth

ENGINE = "--url sim:step_ms=2 --virtual --streaming --extra-inputs ignore_eos:true --isl 64 --osl 8 --ui none"
TRACE = [
    {"timestamp": 1000, "input_length": 64, "output_length": 8},
    {"timestamp": 1200, "input_length": 96, "output_length": 8, "session_id": "a"},
    {"delay": 150, "input_length": 32, "output_length": 8, "session_id": "a"},
]
SHAPES = {
    "closed loop": ("--concurrency 8 --request-count 100", 100),
    "constant": ("--request-rate 50 --arrival-pattern constant --request-count 50", 50),
    "poisson": ("--request-rate 50 --request-count 50", 50),
    "conditioned": ("--request-rate 50 --conditioned-arrivals --request-count 50", 50),
    "gamma": ("--request-rate 50 --arrival-smoothness 0.5 --request-count 50", 50),
    "burst": ("--request-rate inf --request-count 100", 100),
    "burst through slots": ("--request-rate inf --request-count 100 --concurrency 8", 100),
    "series": ("--request-rate-series 0:20,1:100,2:20 --duration 2", None),
    "rate ramp": (
        "--request-rate 100 --arrival-pattern constant --request-rate-ramp-duration 2 --duration 2",
        100,
    ),
    "exponential ramp": (
        "--request-rate 100 --request-rate-ramp-duration 2 --duration 2 --request-rate-ramp-start 10"
        " --request-rate-ramp-strategy exponential",
        None,
    ),
    "ramp by index": (
        "--ramp-up-strategy linear --ramp-up-start-rps 20 --ramp-up-end-rps 80 --request-count 100",
        100,
    ),
    "conversations": (
        "--concurrency 4 --num-sessions 8 --conversation-turn-mean 3 --conversation-turn-delay-mean 100"
        " --conversation-turn-delay-stddev 20",
        24,
    ),
    "users": ("--user-centric-rate 40 --num-users 20 --conversation-turn-mean 3 --request-count 80", 80),
    "capped and drained": (
        "--request-rate 200 --arrival-pattern constant --concurrency 2 --duration 1 --drain-queue",
        200,
    ),
    "slots over time": ("--concurrency 8 --concurrency-ramp-duration 1 --duration 2", None),
    "slots going down": (
        "--concurrency 2 --concurrency-ramp-start 8 --concurrency-ramp-duration 1 --duration 2",
        None,
    ),
    "prefill": ("--request-rate 100 --prefill-concurrency 2 --request-count 100", 100),
    "prefill ramp": (
        "--request-rate 100 --prefill-concurrency 4 --prefill-concurrency-ramp-duration 1 --request-count 100",
        100,
    ),
    "warm-up": ("--concurrency 8 --request-count 100 --warmup-request-count 20", 100),
    "warm-up by sessions": ("--concurrency 8 --request-count 100 --num-warmup-sessions 10", 100),
    "seamless": (
        "--request-rate 50 --arrival-pattern constant --duration 1 --warmup-duration 1 --warmup-handover seamless"
        " --cooldown-duration 0.5",
        50,
    ),
    "seamless closed loop": (
        "--concurrency 4 --request-count 60 --warmup-request-count 20 --warmup-handover seamless"
        " --cooldown-request-count 20",
        60,
    ),
    "seamless count at a capped rate": (
        "--request-rate 80 --concurrency 3 --request-count 60 --warmup-request-count 20 --warmup-handover seamless",
        60,
    ),
    "cancellation": (
        "--concurrency 4 --request-count 100 --request-cancellation-rate 20 --request-cancellation-delay 0.01",
        100,
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_run_to_its_end(profile, shape):
    words, planned = SHAPES[shape]
    run = profile(f"{ENGINE} {words} --random-seed 42")
    counts = run.report.outcomes.counts
    measured = [phase.name for phase in run.log.phases if phase.kind == "measured"]
    assert (run.code, run.log.simulated, run.report.run.simulated) == (0, True, True), run.err
    assert run.out.startswith("SIMULATED: ")
    assert sum(counts.values()) == run.report.outcomes.planned
    assert planned in (None, run.report.outcomes.planned)
    rows = run.table.filter(pl.col("phase").is_in(measured))
    assert set(rows["outcome"]) <= {"ok-length", "cancelled-as-planned", "cut"}
    assert run.report.load.not_sent == run.report.load.never_due == 0
    assert run.report.certificate.verdict == "VALID"


def test_a_rate_above_the_cap_leaves_some_unsent(profile):
    run = profile(
        f"{ENGINE} --request-rate 400 --arrival-pattern constant --concurrency 2 --duration 2 --random-seed 42"
    )
    load = run.report.load
    assert load.offered == load.sent + load.not_sent == 800
    assert load.not_sent > 300
    assert load.bound_by == "cap"
    assert run.report.run.saturated
    assert run.report.outcomes.counts["not-sent"] == load.not_sent


def test_a_schedule_from_a_file_is_kept_to_the_nanosecond(profile, tmp_path):
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(json.dumps(line) + "\n" for line in TRACE))
    run = profile(
        f"{ENGINE} --input-file {trace} --fixed-schedule --fixed-schedule-auto-offset".replace(
            "--isl 64 --osl 8", ""
        )
    )
    due_ns, done_ns = run.table["due_ns"].to_list(), run.table["done_ns"].to_list()
    assert due_ns[1] - due_ns[0] == 200_000_000
    assert due_ns[2] - done_ns[1] == 150_000_000
    assert run.table["sent_ns"].to_list() == due_ns


def test_phases_of_a_file_follow_each_other(profile, tmp_path):
    day = tmp_path / "day.toml"
    day.write_text(
        """
        [load]
        arrival_pattern = "constant"
        request_rate = 50
        [[load.phases]]
        name = "warm"
        kind = "warmup"
        request_count = 20
        [[load.phases]]
        name = "day"
        duration_s = 1
        [[load.phases]]
        name = "rush"
        handover = "seamless"
        request_rate = 150
        duration_s = 1
        [[load.phases]]
        name = "cool"
        kind = "cooldown"
        handover = "seamless"
        duration_s = 0.5
        """
    )
    run = profile(f"-f {day} {ENGINE}")
    warm, measured, rush, cool = run.log.phases
    assert [phase.planned for phase in run.log.phases] == [20, 50, 150, 25]
    assert measured.start_ns == warm.end_ns
    assert rush.start_ns == measured.start_ns + 1_000_000_000
    assert cool.start_ns == rush.start_ns + 1_000_000_000


def test_the_same_seed_gives_the_same_table_to_the_byte(profile):
    words = f"{ENGINE} --request-rate 80 --request-count 200 --osl-stddev 3 --isl-stddev 9 --random-seed"
    one, two, other = (profile(f"{words} {seed}") for seed in (7, 7, 8))
    tables = [(run.path / "requests.parquet").read_bytes() for run in (one, two, other)]
    assert tables[0] == tables[1] != tables[2]
    assert one.report.metrics == two.report.metrics


SMALL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8,
    "num_attention_heads": 16, "num_key_value_heads": 4, "intermediate_size": 2816, "vocab_size": 32000,
    "max_position_embeddings": 256, "torch_dtype": "bfloat16",
}  # fmt: skip
"""A model whose context is so short that it matters."""
TOLD = (
    "outcome", "fault", "http_status", "finish_reason", "choices", "output_tokens", "usage_prompt_tokens",
    "usage_cached_tokens", "usage_reasoning_tokens", "planned_output_tokens", "chunk_choice", "chunk_tokens",
)  # fmt: skip
"""What a real server says of a request and the virtual one has to say too."""
ALIKE = {
    "steps": ("step_ms=1", "--extra-inputs ignore_eos:true --osl 4"),
    "lengths": ("step_ms=1,output_tokens=lognormal:12+0.7", "--extra-inputs min_tokens:2 --osl 40"),
    "device": (
        "gpu=h100,hf_config_path=small.json",
        "--isl 120 --isl-stddev 90 --failed-request-threshold 1",
    ),
    "choices": ("step_ms=1,reasoning=3", "--extra-inputs n:3 --osl 20 --per-chunk-usage"),
    "drafts": (
        "step_ms=1,num_speculative_tokens=3",
        "--extra-inputs ignore_eos:true --osl 15",
    ),
    "apart": ("gpu=h100,model=qwen3-0.6b,prefill_replicas=2,data_parallel_size=2", "--osl 6"),
    "replicas": ("step_ms=1,data_parallel_size=3", "--extra-inputs ignore_eos:true --osl 4"),
}


def steps(row):
    """How many tokens each step brought: they are sent at one instant."""
    return [len(list(together)) for _, together in groupby(row.sent_ns)]


@pytest.mark.parametrize("engine", ALIKE)
def test_the_same_is_asked_and_told_as_by_a_real_server(profile, tmp_path, engine):
    keys, words = ALIKE[engine]
    (tmp_path / "small.json").write_text(json.dumps(SMALL))
    keys = keys.replace("small.json", str(tmp_path / "small.json"))
    isl = "" if "--isl " in words else "--isl 24 --isl-stddev 6"
    words = f"--streaming {isl} {words} --concurrency 1 --request-count 40 --seed 42"
    runs, truths = [], []
    for more in ("", "--virtual"):
        truth = tmp_path / f"truth{more}"
        runs.append(profile(f"--url sim:{keys},truth={truth} {words} {more}"))
        rows = {row.request_id.rpartition("-")[2]: row for row in read_truth(truth)}
        truths.append(
            [rows[str(request)] for request in runs[-1].requests["request"] if str(request) in rows]
        )
    real, simulated = runs
    assert simulated.bodies == real.bodies
    assert simulated.log.dataset.digest == real.log.dataset.digest
    for column in TOLD:
        assert simulated.requests[column].to_list() == real.requests[column].to_list(), column
    for field in ("prompt_tokens", "cached_tokens", "tokens", "preemptions", "engine", "end"):
        assert [getattr(row, field) for row in truths[1]] == [getattr(row, field) for row in truths[0]], field
    if engine != "choices":  # the tokens of each step, of one sequence
        assert [steps(row) for row in truths[1]] == [steps(row) for row in truths[0]]
    ended = set(real.requests["outcome"])
    assert ("http-invalid" in ended) == (engine == "device"), (
        "some prompts are longer than the model's context"
    )


def test_the_same_is_due_as_of_a_real_server(profile):
    words = (
        "--streaming --extra-inputs ignore_eos:true --isl 24 --osl 4 --request-rate 200 --request-count 40"
    )
    real, simulated = (profile(f"--url sim:step_ms=1 {words} --seed 42 {more}") for more in ("", "--virtual"))
    assert simulated.due_ns == real.due_ns


def test_several_servers_and_models_are_deployments_of_their_own(profile):
    run = profile(
        "--url sim:step_ms=2 --url sim:step_ms=8 --url-strategy least-in-flight --virtual --streaming --isl 32 --osl 8"
        " --concurrency 8 --request-count 100 --model big,small"
    )
    first, second = (run.table.filter(pl.col("target") == number) for number in (0, 1))
    assert len(first) > 2 * len(second) > 0
    assert set(run.table["model"]) == {0, 1}
    assert [group.name for group in run.report.targets] == ["sim:step_ms=2", "sim:step_ms=8"]


def test_a_mean_that_is_known_well_enough_ends_the_load(profile):
    run = profile(f"{ENGINE} --concurrency 4 --duration 600 --osl-stddev 3 --stop-when request_latency:5")
    assert run.log.stopped_by == "steady"
    assert run.report.run.duration_s < 60
    assert run.code == 0


def test_what_the_engine_refuses_is_said_in_its_words_and_ends_the_load(profile):
    run = profile(
        "--url sim:max_model_len=100 --virtual --isl 90 --isl-stddev 0 --osl 50 --concurrency 1 --request-count 100"
    )
    assert run.log.stopped_by == "failures"
    assert run.table["outcome"][0] == "http-invalid"
    assert "maximum context length is 100" in run.table["fault"][0]
    assert run.code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--url localhost:1 --virtual", "needs the built-in engine"),
        ("--url sim:fault=eof --virtual", "needs real connections"),
        ("--url sim:null=true --virtual", "no steps to compute"),
        ("--url sim: --virtual --workers 2", "has no effect with --virtual"),
        ("--url sim: --virtual --server-profiler", "has no effect with --virtual"),
    ],
)
def test_what_cannot_be_had_without_sockets_is_refused(profile, words, said):
    run = profile(words)
    assert run.code == 2
    assert said in run.err


def test_an_interrupted_simulation_is_reported_as_far_as_it_came(started, wait_until, run_of, tmp_path):
    process = started(f"profile {ENGINE} --concurrency 1 --duration 1000000 --artifact-dir run")
    wait_until(lambda: any(tmp_path.glob("run/parts/*.parquet")))
    process.send_signal(signal.SIGINT)
    done = process.ended()
    run = run_of(tmp_path / "run")
    assert (done.code, run.log.end, run.log.stopped_by) == (130, "interrupted", "user"), done.err
    assert done.out.startswith("SIMULATED: ")
    assert run.report.outcomes.planned == sum(run.counts.values()) == run.counts["ok-length"] > 100


def test_a_simulation_that_is_replaced_while_it_goes_on_is_left_alone(
    started, wait_until, loadstone, tmp_path
):
    process = started(f"profile {ENGINE} --concurrency 1 --duration 1000000 --artifact-dir run")
    wait_until(lambda: any(tmp_path.glob("run/parts/*.parquet")))
    done = loadstone("profile", *ENGINE.split(), "--artifact-dir", "run", "--force", cwd=tmp_path)
    assert (done.code, "its run still goes on" in done.err) == (2, True)
    process.send_signal(signal.SIGINT)
    assert process.ended().code == 130
