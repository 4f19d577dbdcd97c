"""The load as it was asked for: rates with and without a cap, durations, warm-up, few prompts, many prompts."""

from __future__ import annotations

import pytest

from loadstone.plan.store import read_rows

SHORT = "--streaming --isl 16 --osl 4 --extra-inputs ignore_eos:true"


def planned_before(run, seconds):
    """Rows of the plan that were due before `seconds` of the measured phase."""
    rows = read_rows(run.path / "plan", run.measured.first_row)
    return sum(row.due_ns < seconds * 1e9 for row in rows)


@pytest.fixture(scope="module")
def capped(good, simulate):
    """Offers about twice what two slots can do: 4 tokens take some 42 ms."""
    server = simulate("--step-ms 10")
    return good(f"--url {server.url} {SHORT} --request-rate 100 --concurrency 2 --request-count 60")


def test_a_cap_loses_nothing_and_is_never_exceeded(capped):
    assert capped.counts == {"ok-length": 60}
    assert capped.report.metrics["concurrency"].max == 2


def test_the_wait_for_a_slot_counts(capped):
    rows = capped.requests
    assert (rows["sent_ns"] >= rows["due_ns"]).all()
    waits_ms = (rows["sent_ns"] - rows["due_ns"]) / 1e6
    assert capped.number("queue_wait") == pytest.approx(waits_ms.mean(), rel=1e-9)
    assert waits_ms.max() > 100
    from_due_ms = ((rows["last_ns"] - rows["due_ns"]) / 1e6).mean()
    assert capped.number("request_latency_from_due") == pytest.approx(from_due_ms, rel=1e-9)
    assert capped.number("request_latency") < from_due_ms


def test_a_server_that_cannot_keep_up_is_saturated_and_not_the_clients_fault(capped):
    assert capped.report.run.saturated is True
    assert "SATURATED: " in capped.out
    assert capped.check("offered_load").verdict == "VALID"


def test_a_duration_bounds_an_open_loop_by_what_was_due(good, engine):
    run = good(f"--url {engine.url} {SHORT} --request-rate 60 --benchmark-duration 1")
    # Once every worker has met a row that is due too late, nothing more is sent, and the phase may end early.
    assert run.measured.stop_ns == min(run.measured.start_ns + 1_000_000_000, run.measured.end_ns)
    assert run.report.outcomes.planned == planned_before(run, 1) == len(run.requests)
    assert run.counts == {"ok-length": run.report.outcomes.planned}
    assert len(run.bodies) == run.report.outcomes.planned
    assert max(run.due_ns) < 1_000_000_000


def test_a_duration_bounds_a_closed_loop_by_what_was_sent(good, engine):
    run = good(f"--url {engine.url} {SHORT} --concurrency 2 --benchmark-duration 1")
    truth = engine.truth(run, run.report.outcomes.planned + 1)
    assert len(truth) == run.report.outcomes.planned + 1
    assert run.counts == {"ok-length": run.report.outcomes.planned}
    assert run.requests["sent_ns"].max() < run.measured.stop_ns
    assert run.report.outcomes.planned > 20
    assert len(run.bodies) == len({str(body) for body in run.bodies}) == run.report.outcomes.planned


def test_whichever_limit_comes_first_ends_the_run(good, engine):
    run = good(f"--url {engine.url} {SHORT} --concurrency 2 --benchmark-duration 30 --request-count 15")
    assert run.counts == {"ok-length": 15}


def test_after_the_grace_what_is_under_way_is_cut_and_in_no_latency(good, scripted):
    server = scripted(lambda call, wire: wire.hold() if call.row % 3 == 0 else wire.answer(call))
    run = good(
        f"--url {server.url} --model m --streaming --isl 16 --request-rate 30 --benchmark-duration 1"
        " --benchmark-grace-period 0.2"
    )
    planned = planned_before(run, 1)
    held = len(range(0, planned, 3))
    assert run.counts == {"ok": planned - held, "cut": held}
    assert run.report.metrics["request_latency"].count == planned - held
    assert run.number("error_rate") == 0
    assert any(
        f"{held} requests were cut off when the run ended" in notice for notice in run.report.run.notices
    )
    cut = run.requests.filter(run.requests["outcome"] == "cut")
    assert (cut["done_ns"] >= run.measured.stop_ns + 200_000_000).all()


def test_a_warm_up_is_in_no_number(good, engine):
    run = good(f"--url {engine.url} {SHORT} --concurrency 2 --request-count 10 --warmup-request-count 5")
    assert run.table["phase"].to_list() == ["warmup"] * 5 + ["measured"] * 10
    assert run.report.outcomes.warmup == {"ok-length": 5}
    assert run.counts == {"ok-length": 10}
    assert run.report.metrics["request_latency"].count == 10
    assert run.report.metrics["input_sequence_length"].count == 10
    assert run.report.metrics["time_to_first_token"].count == 10 - run.in_one_piece
    warm, measured = run.log.phases
    assert measured.start_ns >= warm.end_ns
    assert "5 warm-up requests left out of every number." in run.report.run.notices


def test_few_prompts_are_used_in_turn_and_the_report_says_so(good, engine):
    run = good(f"--url {engine.url} {SHORT} --request-count 10 --num-dataset-entries 4")
    prompts = [body["messages"][0]["content"] for body in run.bodies]
    assert len(set(prompts)) == 4
    assert prompts[4:8] == prompts[:4]
    assert run.log.dataset.reused == 6
    assert run.log.dataset.unique_prompts is False
    assert any("6 requests repeated a prompt" in notice for notice in run.report.run.notices)


def test_prompts_are_unique_and_start_differently(good, engine):
    run = good(f"--url {engine.url} {SHORT} --request-count 60 --concurrency 4")
    prompts = [body["messages"][0]["content"] for body in run.bodies]
    assert len({tuple(prompt.split()[:2]) for prompt in prompts}) == 60


def test_one_token_prompts_cannot_be_unique_and_the_report_says_so(good, engine):
    run = good(f"--url {engine.url} --streaming --isl 1 --osl 2 --request-count 5")
    assert any("5 prompts of one token cannot be unique" in notice for notice in run.report.run.notices)


def test_defaults_are_a_closed_loop_of_one_and_fifty_requests(good, engine):
    run = good(f"--url {engine.url} --streaming --isl 16 --osl 2")
    assert run.report.outcomes.planned == 50
    assert run.report.metrics["concurrency"].max == 1


def test_prompts_are_composed_while_the_load_runs(good, simulate):
    server = simulate("--null")
    count = 8_000  # of 3,000 tokens: more than is composed in the second before the start
    run = good(
        f"--url {server.url} --isl 3000 --osl 1 --request-rate 1500 --arrival-pattern constant"
        f" --request-count {count} --no-inputs-json"
    )
    assert "the composer goes on with it" in (run.path / "loadstone.log").read_text()
    assert run.counts == {"ok-length": count}
    assert run.requests["request"].to_list() == list(range(count))
    assert not any("composed in time" in notice for notice in run.report.run.notices)
    assert run.log.dataset.unique_prompts is True


def test_a_duration_never_runs_out_of_prompts(good, simulate):
    server = simulate("--null")
    rate = 3_000
    run = good(
        f"--url {server.url} --isl 16 --osl 1 --request-rate {rate} --arrival-pattern constant"
        " --benchmark-duration 2 --no-inputs-json"
    )
    assert run.report.outcomes.planned == planned_before(run, 2) == pytest.approx(2 * rate, abs=1)
    assert run.requests["request"].to_list() == list(range(run.report.outcomes.planned))
    assert not any("composed in time" in notice for notice in run.report.run.notices)


def test_an_objective_is_counted_for_each_request(good, engine):
    run = good(
        f"--url {engine.url} {SHORT} --request-count 10"
        " --goodput 'time_to_first_token:60000 request_latency:0.001'"
    )
    assert run.number("goodput") == 0
    assert run.number("goodput_attainment") == 0
    easy = good(f"--url {engine.url} {SHORT} --request-count 10 --goodput time_to_first_token:60000")
    assert easy.number("goodput_attainment") == 100
    assert easy.number("goodput") == pytest.approx(easy.number("request_throughput"), rel=1e-12)
