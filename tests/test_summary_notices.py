"""Notices: what a reader has to know to read the numbers right."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from loadstone.checks import Evidence
from loadstone.metrics import all_metrics
from loadstone.roofline.case import settled
from loadstone.summary import measure
from loadstone.summary.notices import notices


@pytest.fixture
def told(tables):
    """The notices of a run with these rows; keywords go to `run_log`."""

    def of(*rows, **run):
        found = tables(*rows, **run)
        return notices(Evidence(found, {name: measure(one, found) for name, one in all_metrics().items()}))

    return of


def test_failures_in_phases_that_are_not_measured_are_told(told, answer, phase_log):
    def of(failed, good):
        rows = [answer(5, phase="warmup") for _ in range(good)]
        rows += [answer(phase="warmup", outcome="reset", fault="broken.") for _ in range(failed)]
        rows += [answer(phase="warmup", outcome="cut", fault="ended by us")]
        logs = [
            phase_log("warmup", -100, -1, kind="warmup", planned=len(rows)),
            phase_log("measured", 0, 100, planned=1),
            phase_log("cooldown", 100, 200, kind="cooldown", planned=2),
        ]
        cool = answer(phase="cooldown", outcome="connect-refused"), answer(150, phase="cooldown")
        return [text for text in told(answer(5), *rows, *cool, phases=logs) if " failed: " in text]

    cooldown = "1 of 2 requests of phase cooldown failed: connect-refused 1."
    assert of(1, 99) == [cooldown]
    assert of(2, 98) == [
        "2 of 101 requests of phase warmup failed: reset 2; most often: broken.",
        cooldown,
    ]


def test_a_prompt_that_the_server_counts_otherwise_is_told(told, answer):
    usage = {"planned_input_tokens": 100, "usage_prompt_tokens": 112}
    found = told(answer(5, 6) | usage, answer(5, 6) | usage)
    assert "The server counts 12 tokens more per prompt than asked for, always: its chat template." in found
    uneven = told(answer(5, 6) | usage, answer(5, 6) | usage | {"usage_prompt_tokens": 114})
    assert any(
        text.startswith("The server counts 13 tokens more per prompt than asked for (mean): its chat")
        for text in uneven
    )


def test_requests_cut_off_and_unsent_are_counted_and_the_right_figures_named(told, answer, unsent):
    rows = answer(100, due=0), answer(5, due=0, done=900, outcome="cut"), unsent(due=5), unsent(due=6)
    (found,) = told(*rows, rate=10, cap=2)
    assert found.startswith("1 request was cut off when the run ended and 2 were due but never sent. ")
    assert 'the rows "with ... cut off"' in found


def test_in_a_closed_loop_nothing_is_due(told, answer):
    (found,) = told(answer(100), answer(5, done=900, outcome="cancelled"))
    assert found.startswith("1 request was cut off when the run ended. ")


def test_what_a_time_limit_ended_is_told_with_it(told, answer):
    limited = [answer(5, done=900, outcome=name) for name in ("timeout-idle", "timeout-total")]
    (found,) = told(answer(100), answer(5, done=900, outcome="cut"), *limited)
    assert found.startswith(
        "1 request was cut off when the run ended and 2 were cut off at a time limit. Plain latencies"
    )


def test_without_a_success_there_are_no_plain_latencies_to_speak_of(told, answer):
    (found,) = told(answer(5, done=900, outcome="cut"), answer(done=900, outcome="timeout-first-token"))
    assert found == (
        "1 request was cut off when the run ended and 1 was cut off at a time limit, and none succeeded: all that is"
        ' known is how long they took at least, which is in the rows "with ... cut off" (with_censored).'
    )


def test_rows_that_are_lower_bounds_are_said_to_be(tables, answer, unsent):
    found = tables(answer(100, due=0), unsent(due=5), rate=10, cap=1)
    metrics = {name: measure(one, found) for name, one in all_metrics().items()}
    (plain,) = notices(Evidence(found, metrics))
    assert plain.endswith(" (with_censored) count each as far as it had come.")
    metrics["queue_wait"] = replace(metrics["queue_wait"], with_censored_at_least=True)
    (marked,) = notices(Evidence(found, metrics))
    assert marked == f"{plain.rstrip('.')}; those with > are lower bounds, as waits were growing."


def test_in_which_direction_plain_latencies_are_wrong_is_not_claimed(told, answer):
    rows = [answer(80, 90), *(answer(20, done=900, outcome="cut") for _ in range(30))]
    (found,) = told(*rows)
    assert "Plain latencies leave them out, and can be too low or too high;" in found


def test_throughputs_without_those_cut_off_are_said_to_be_low_where_the_other_is_known(told, answer):
    rows = answer(50, 60), answer(150, 160, sent=100), answer(70, sent=10, done=900, outcome="cut")
    (found,) = told(*rows)
    assert found.endswith(' Throughputs are too low, but for "output, all tokens".')
    limited = answer(
        70, sent=10, done=900, outcome="timeout-idle"
    )  # its tokens may be few: nothing is claimed
    (found,) = told(answer(50, 60), answer(150, 160, sent=100), limited)
    assert "output, all tokens" not in found
    (found,) = told(answer(50, 60), answer(70, done=900, outcome="cut"))  # sent all at once: not known
    assert "output, all tokens" not in found


def test_what_an_early_stop_cut_off_is_told_as_such(told, answer):
    (found,) = told(answer(100), answer(5, done=900, outcome="cancelled"), stopped_by="user", stopped_why="w")
    assert found.startswith("1 request was cut off when the load was stopped. ")


def test_where_no_figure_has_those_cut_off_none_is_named(told, answer):
    assert told(answer(sent=None, due=0, done=900, outcome="cancelled")) == ()


@pytest.mark.parametrize(
    ("columns", "start"),
    [
        ({"coalesced": True}, "2 answers of 3 came in one piece, all tokens in one read"),
        ({"streamed": False}, "2 answers of 3 came as one body although a stream was asked for"),
        ({"compressed": "gzip"}, "2 answers came compressed (gzip), which was not asked for"),
        ({"redirects": 1}, "2 requests went on to where the server redirected them"),
        ({"unfinished_event": True}, "2 answers ended within their last event"),
    ],
)
def test_the_way_answers_came_is_told_once_with_its_count(columns, start, told, answer):
    (found,) = told(answer(5), answer(5, **columns), answer(5, **columns))
    assert found.startswith(start)


def test_many_encodings_are_not_all_named(told, answer):
    (found,) = told(answer(5), *(answer(compressed=f"x{i}", outcome="protocol-error") for i in range(9)))
    assert "(x0, x1, x2)." in found


def test_how_tokens_of_compressed_answers_are_dated_is_said_of_streams_alone(told, answer):
    rows = [answer(5), answer(5, compressed="gzip"), answer(compressed="gzip", outcome="reset")]
    (found,) = told(*rows)
    assert found == (
        "1 answer came compressed (gzip), which was not asked for: tokens are dated by the end of their compressed block,"
        " so gaps are those of blocks."
    )
    assert told(*rows, streaming=False) == ("1 answer came compressed (gzip), which was not asked for.",)


def test_what_cannot_be_decoded_is_told_apart(told, answer):
    foreign = [
        answer(compressed="br", outcome="protocol-error"),
        answer(compressed="zstd", outcome="http-auth"),
    ]
    (found,) = told(answer(5), *foreign)
    assert found == (
        "2 responses came in an encoding that was not asked for and cannot be decoded here (br, zstd). Turn compression off"
        " in the server, or in what stands before it."
    )


@pytest.mark.parametrize(
    ("asked_s", "words"),
    [
        ([1.5, 30.0, None], "asked to wait 1.5 to 30 s"),
        ([2.0, 2.0], "asked to wait 2 s"),
        ([None, float("inf")], "(HTTP 429)."),
    ],
)
def test_a_rate_limit_says_what_the_server_asked_for(asked_s, words, told, answer):
    rows = [answer(outcome="http-rate-limited", retry_after_s=seconds) for seconds in asked_s]
    (found,) = told(answer(5), *rows)
    assert found.startswith(f"The server's rate limit refused {len(rows)} requests")
    assert words in found
    assert "inf" not in found


def test_other_statuses_that_ask_for_a_pause_are_no_rate_limit(told, answer):
    assert told(answer(5), answer(outcome="http-server-error", retry_after_s=3.0)) == ()


def with_tokenizer(run_log, name):
    config = run_log().config
    config["input"]["tokenizer"] = name
    return config


@pytest.mark.parametrize(
    ("tokenizer", "usage", "warned"),
    [
        ("builtin", 399, False),
        ("builtin", 400, True),
        ("builtin", 101, False),
        ("builtin", 100, True),
        ("/models/tokenizer.json", 204, False),
        ("/models/tokenizer.json", 205, True),
        ("/models/tokenizer.json", 196, False),
        ("/models/tokenizer.json", 195, True),
    ],
)
def test_usage_far_from_our_count(tokenizer, usage, warned, told, answer, run_log):
    rows = [
        answer(5, 6, usage_completion_tokens=usage - 10, checked_output_tokens=100),
        answer(5, 6, usage_completion_tokens=10, checked_output_tokens=100),
    ]
    found = told(*rows, config=with_tokenizer(run_log, tokenizer))
    assert [f"{usage} output tokens by usage, 200 by" in text for text in found] == [True] * warned


@pytest.mark.parametrize("tokenizer", ["builtin", "/models/tokenizer.json"])
def test_the_token_that_ends_an_answer_is_no_mismatch(tokenizer, told, answer, run_log):
    rows = [answer(5, 6, usage_completion_tokens=2, checked_output_tokens=1) for _ in range(30)]
    assert told(*rows, config=with_tokenizer(run_log, tokenizer)) == ()


def test_a_count_of_zero_beside_text_is_told_without_a_sample(told, answer):
    zero = answer(5, 6, usage_completion_tokens=0, text_chars=12, checked_output_tokens=3)
    nothing = answer(5, 6, usage_completion_tokens=0, text_chars=0)
    (found,) = told(zero, nothing)
    assert found.startswith("The server's usage counts 0 output tokens for 1 answer with text")


def test_a_run_that_was_stopped_for_a_reason_tells_it_elsewhere(told, answer):
    assert told(answer(5), end="interrupted", stopped_by="user", stopped_why="interrupted") == ()
    (found,) = told(answer(5), end="aborted")
    assert found.startswith("The run was aborted")


def test_several_measured_phases_are_told_to_be_taken_together(told, answer, phase_log):
    load = {"phases": ({"name": "low"}, {"name": "high", "handover": "seamless"})}
    logs = [phase_log("low", 0, 1000), phase_log("high", 1000, 2000, seamless=True)]
    found = told(answer(5, phase="low"), answer(1005, sent=1000, phase="high"), phases=logs, load=load)
    assert found[0] == (
        "The numbers are those of 2 measured phases together (low, high); report.json has each one's own."
    )
    assert found[1].startswith("high began while the last answers of low still came, as asked")


def test_a_warm_up_that_goes_over_into_the_measurement_is_for_the_checks(told, answer, phase_log):
    logs = [
        phase_log("warmup", -9, 0, 20, kind="warmup", planned=1),
        phase_log("measured", 0, 1000, planned=1, seamless=True),
    ]
    load = {"warmup_request_count": 1, "warmup_handover": "seamless"}
    assert told(answer(5), phases=logs, load=load) == ("1 warm-up request left out of every number.",)


def test_cooldown_is_told_like_warm_up(told, answer, phase_log):
    load = {"cooldown_request_count": 3, "warmup_request_count": 1}
    logs = [
        phase_log("warmup", -9, 0, kind="warmup", planned=1),
        phase_log("measured", 0, 1000, planned=1),
        phase_log("cooldown", 1000, 2000, kind="cooldown", planned=3),
    ]
    assert told(answer(5), phases=logs, load=load) == (
        "1 warm-up request left out of every number.",
        "3 cooldown requests left out of every number.",
    )


def test_what_was_cancelled_as_asked_is_not_called_cut_off(told, answer):
    load = {"cancellation_percent": 50.0, "cancellation_delay_s": 0.5}
    cancelled = [answer(done=500, outcome="cancelled-as-planned") for _ in range(2)]
    assert told(answer(5), *cancelled, load=load) == (
        "2 requests were cancelled as asked, 0.5 s after they were sent; they are in no plain latency.",
    )
    (cut, one) = told(answer(5), cancelled[0], answer(done=900, outcome="cut"), load=load)
    assert one == "1 request was cancelled as asked, 0.5 s after it was sent; it is in no plain latency."
    assert cut.startswith("1 request was cut off when the run ended. ")


def test_conditioned_arrivals_are_told(told, answer):
    (found,) = told(answer(5, due=0), rate=10, load={"conditioned": True, "request_count": 1})
    assert found.startswith(
        "The arrivals of measured were stretched so that the last of N is due at N/rate exactly"
    )
    assert told(answer(5, due=0), rate=10) == ()


def test_what_later_turns_hold_is_told_and_which_never_came(told, answer, unsent):
    rows = [
        answer(5, conversation=0, turn=0),
        answer(15, sent=10, conversation=0, turn=1),
        answer(5, conversation=1, turn=0, outcome="reset"),
        unsent(conversation=1, turn=1) | {"due_ns": None},
    ]
    held, missed = told(*rows)
    assert held.startswith(
        "1 request is a later turn: the prompt holds the questions before it, not the server's answers."
    )
    assert missed == (
        "1 later turn never became due: 1 after a turn that failed, was cancelled or was not over."
    )


def test_why_turns_never_became_due_is_told_apart(told, answer, unsent):
    """Conversation 0 was due and never sent; 1 failed; 2 waits for a turn that is due; 3 begins at its turn 2 and is under
    way; 4 and 5 are answered, 5 at its turn 3."""

    def missed(conversation, *turns):
        return [unsent(conversation=conversation, turn=turn, due_ns=None) for turn in turns]

    rows = [
        *[unsent(due=900, conversation=0, turn=0), *missed(0, 1, 2, 3)],
        *[answer(5, due=0, conversation=1, turn=0, outcome="reset"), *missed(1, 1)],
        *[answer(5, due=0, conversation=2, turn=0), unsent(due=9, conversation=2, turn=1), *missed(2, 2)],
        *[answer(5, due=0, done=990, conversation=3, turn=2, outcome="cut"), *missed(3, 3)],
        *[answer(5, due=0, conversation=4, turn=0), *missed(4, 1, 2)],
        *[answer(5, due=0, conversation=5, turn=3), *missed(5, 4)],
        *[unsent(conversation=6, turn=0, due_ns=None), *missed(6, 1)],
    ]
    found = told(*rows, rate=10)
    assert found[2] == (
        "10 later turns never became due: 4 of conversations that never began, 3 after a turn that failed, was cancelled or was"
        " not over, 3 to come after the stop."
    )


def test_a_ramp_longer_than_its_phase_tells_how_far_it_came(told, answer):
    ramp = {"request_rate_ramp_s": 5.0, "arrival_pattern": "constant"}
    (found,) = told(answer(5), rate=20.0, load=ramp, end_ms=1000)
    assert found == (
        "The rate was to come to 20 requests/s by 5 s, but the load stopped after 1 s, when it was 4: a shorter ramp, or a"
        " longer load, gets there."
    )
    assert told(answer(5), rate=20.0, load=ramp, end_ms=5000) == ()


def test_limits_of_several_phases_that_did_not_get_there_bear_their_names(told, answer, phase_log):
    slow = {"name": "slow", "concurrency": 9, "concurrency_ramp_s": 8.0}
    load = {"phases": (slow, {"name": "steady", "concurrency": 9})}
    logs = [phase_log("slow", 0, 4000, planned=1), phase_log("steady", 4000, 6000, planned=1)]
    found = told(answer(5, phase="slow"), answer(4005, sent=4000, phase="steady"), phases=logs, load=load)
    assert found[1:] == (
        "The concurrency of slow was to come to 9 by 7.5 s, but slow stopped after 4 s, when it was 5: a shorter ramp, or a"
        " longer load, gets there.",
    )


@pytest.mark.parametrize(
    ("url", "gpu", "model", "said"),
    [
        ("sim:gpu=h200,model=deepseek-v3", "h200", "deepseek-v3", "published runs of DeepSeek took 2.4"),
        ("sim:gpu=mi300x,model=qwen3-8b", "mi300x", "qwen3-8b", "published runs on AMD took 1.3"),
        ("sim:gpu=b200,model=qwen3-8b", "b200", "qwen3-8b", "no published run on b200"),
        ("sim:gpu=h100,model=qwen3-8b", "h100", "qwen3-8b", None),
        ("sim:gpu=mi300x,model=qwen3-8b,calibration=a.toml", "mi300x", "qwen3-8b", None),
        ("http://localhost:8000", "h200", "deepseek-v3", None),
    ],
)
def test_a_simulated_device_of_which_the_model_is_known_to_be_too_fast_is_told(
    told, answer, url, gpu, model, said
):
    case = msgspec.to_builtins(settled(f"gpu={gpu},tensor_parallel_size=8", model))
    found = told(
        answer(5, 6),
        environment={"roofline": case},
        config={"endpoint": {"url": url, "model": model, "streaming": True}},
    )
    about = [text for text in found if text.startswith("Its steps are those of the roofline, and ")]
    assert len(about) == (said is not None)
    assert said is None or said in about[0]
