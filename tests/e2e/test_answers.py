"""What comes back in every form: endpoints, streamed or whole, thought and said, counted by whom."""

from __future__ import annotations

import pytest

from loadstone import tokens

SHORT = "--isl 24 --osl 6 --extra-inputs ignore_eos:true --request-count 12 --concurrency 2"
NO_STREAM = "it needs a stream, and answers came whole (set --streaming)."


@pytest.mark.parametrize("kind", ["chat", "completions"])
def test_streams_bring_a_time_for_every_token(good, engine, kind):
    run = good(f"--url {engine.url} {SHORT} --endpoint-type {kind} --streaming")
    assert run.counts == {"ok-length": 12}
    assert run.requests["output_tokens"].to_list() == [6] * 12
    assert run.requests["output_tokens_source"].unique().to_list() == ["usage"]
    assert run.requests["arrival_ns"].list.len().to_list() == [6] * 12
    assert run.report.metrics["time_to_first_token"].count == 12 - run.in_one_piece


@pytest.mark.parametrize(("kind", "field"), [("chat", "messages"), ("completions", "prompt")])
def test_without_streaming_there_is_a_latency_and_no_time_to_first_token(good, engine, kind, field):
    run = good(f"--url {engine.url} {SHORT} --endpoint-type {kind}")
    assert run.counts == {"ok-length": 12}
    assert {body.get("stream", False) for body in run.bodies} == {False}
    assert all(field in body for body in run.bodies)
    for name in ("time_to_first_token", "inter_token_latency", "time_per_output_token"):
        metric = run.report.metrics[name]
        assert (metric.count, metric.mean, metric.p50, metric.reason) == (0, None, None, NO_STREAM)
    latency_ms = (run.requests["done_ns"] - run.requests["sent_ns"]) / 1e6
    assert run.number("request_latency") == pytest.approx(latency_ms.mean(), rel=1e-12)
    assert run.number("output_sequence_length") == 6


def test_an_answer_that_is_all_thought_has_a_first_token_and_no_answer(good):
    run = good(
        "--url sim:reasoning=all,step_ms=1 --streaming --isl 16 --osl 128 --request-count 4"
        " --extra-inputs ignore_eos:true"
    )
    first, answer = (
        run.report.metrics[name] for name in ("time_to_first_token", "time_to_first_output_token")
    )
    assert (first.count, first.reason) == (4, None)
    assert (answer.count, answer.mean) == (0, None)
    assert "reasoning" in answer.reason
    assert run.requests["usage_reasoning_tokens"].to_list() == [128] * 4
    assert run.requests["first_answer_ns"].null_count() == 4
    assert run.requests["text_chars"].to_list() == [0] * 4


def test_thought_and_answer_have_a_first_token_each(good, simulate):
    server = simulate("--step-ms 1 --reasoning 3")
    rows = good(f"--url {server.url} {SHORT} --streaming").requests
    assert (rows["first_ns"] == rows["arrival_ns"].list.get(0)).all()
    assert (rows["first_answer_ns"] == rows["arrival_ns"].list.get(3)).all()
    assert rows["usage_reasoning_tokens"].to_list() == [3] * 12


def test_running_counts_are_told_for_every_chunk(good, engine):
    run = good(f"--url {engine.url} {SHORT} --streaming --per-chunk-usage")
    assert run.requests["chunk_tokens"].to_list() == [[1] * 6] * 12
    assert run.bodies[0]["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert "the server told the tokens of each chunk" in run.report.metrics["inter_token_latency"].note


def test_the_template_is_taken_off_the_prompt_on_request(good, engine):
    plain = good(f"--url {engine.url} {SHORT} --streaming")
    less = good(f"--url {engine.url} {SHORT} --streaming --isl-includes-template")
    assert plain.requests["usage_prompt_tokens"].to_list() == [28] * 12
    assert less.requests["usage_prompt_tokens"].to_list() == [24] * 12
    assert any("4 tokens more" in notice for notice in plain.report.run.notices)
    assert not any("more than" in notice for notice in less.report.run.notices)


def test_token_ids_are_sent_as_they_are(good, engine):
    run = good(f"--url {engine.url} {SHORT} --streaming --endpoint-type completions --prompt-token-ids")
    assert [len(body["prompt"]) for body in run.bodies] == [24] * 12
    assert all(isinstance(token, int) for body in run.bodies for token in body["prompt"])
    assert run.requests["usage_prompt_tokens"].to_list() == [24] * 12


def test_the_old_name_of_the_limit_is_sent_on_request(good, engine):
    run = good(f"--url {engine.url} {SHORT} --streaming --use-legacy-max-tokens")
    assert {(body["max_tokens"], "max_completion_tokens" in body) for body in run.bodies} == {(6, False)}


def test_the_model_is_asked_for_when_nobody_names_it(good, engine):
    run = good(f"--url {engine.url} {SHORT} --streaming")
    assert run.report.config["endpoint"]["model"] == "sim"
    assert {body["model"] for body in run.bodies} == {"sim"}


def test_without_usage_the_tokenizer_counts_and_the_report_says_so(good, scripted):
    def script(call, wire):
        words = ["alpha", " beta", " gamma", " delta"]
        wire.stream(*(wire.delta(content=word) for word in words), wire.delta(finish="stop"))

    run = good(f"--url {scripted(script).url} --model m --streaming --isl 16 --request-count 5")
    assert run.counts == {"ok": 5}
    assert run.requests["output_tokens_source"].to_list() == ["tokenizer"] * 5
    assert (
        run.requests["output_tokens"].to_list()
        == [tokens.load("builtin").count("alpha beta gamma delta")] * 5
    )
    assert any("estimates" in notice for notice in run.report.run.notices)


def test_without_usage_and_tokenizer_nothing_is_made_up(good, scripted):
    def script(call, wire):
        wire.stream(wire.delta(content="alpha beta"), wire.delta(finish="stop"))

    server = scripted(script, preflight=script)
    run = good(f"--url {server.url} --model m --streaming --isl 16 --request-count 3 --tokenizer none")
    assert run.requests["output_tokens"].to_list() == [None] * 3
    assert run.number("output_token_throughput") is None
    assert run.report.metrics["output_token_throughput"].reason
    assert run.report.metrics["time_to_first_token"].count == 3


def test_a_tool_call_is_output(good, scripted):
    def script(call, wire):
        name = {"index": 0, "id": "c", "type": "function", "function": {"name": "look", "arguments": ""}}
        pieces = [{"index": 0, "function": {"arguments": piece}} for piece in ('{"a"', ": 1}")]
        usage = {"prompt_tokens": 20, "completion_tokens": 9}
        wire.stream(
            wire.delta(role="assistant", content=None),
            *(wire.delta(tool_calls=[piece]) for piece in (name, *pieces)),
            wire.delta(finish="tool_calls"),
            wire.event(choices=[], usage=usage),
        )

    run = good(f"--url {scripted(script).url} --model m --streaming --isl 16 --request-count 3")
    assert run.counts == {"ok-tool-calls": 3}
    assert run.requests["finish_reason"].to_list() == ["tool_calls"] * 3
    assert run.requests["output_tokens"].to_list() == [9] * 3
    assert run.requests["arrival_ns"].list.len().to_list() == [3] * 3
    assert (run.requests["first_answer_ns"] == run.requests["first_ns"]).all()


def test_what_the_server_says_of_itself_is_kept(good, scripted):
    def get(call, wire):
        if call.path == "/version":
            wire.respond({"version": "9.9"})
        else:
            wire.refuse("404 Not Found", "nothing here")

    run = good(f"--url {scripted(get=get).url} --model m --streaming --isl 16 --request-count 2")
    assert run.report.environment["server"] == {"/version": {"version": "9.9"}}
