from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadstone.export.console import USUAL
from loadstone.metrics import Missing, per_request
from loadstone.stats import summarise


def gaps_of(found):
    """Pooled gaps as (ms, weight), in the order of the stream."""
    return list(zip(found.values.real, found.values.imag, strict=True))


def test_time_to_first_token_runs_from_sending(tables, answer, result):
    found = result("time_to_first_token", tables(answer(50, 60, sent=3.5)))
    assert found.values.tolist() == [46.5]


def test_a_nanosecond_is_not_lost_beside_a_large_clock(tables, answer, result):
    found = result("time_to_first_token", tables(answer(50.000001, sent=0)))
    assert found.values.tolist() == [50.000001]


def test_failures_have_no_latency(tables, answer, result):
    rows = answer(50, 60), answer(5, outcome="reset"), answer(9, 10, outcome="truncated")
    for name in ("time_to_first_token", "request_latency", "time_per_output_token"):
        assert len(result(name, tables(*rows)).values) == 1


def test_without_a_success_there_is_no_latency(tables, answer, reason):
    assert reason("time_to_first_token", tables(answer(5, outcome="reset"))) == "no request succeeded."
    assert reason("inter_token_latency", tables()) == "no request succeeded."


@pytest.mark.parametrize(
    "name",
    [
        "time_to_first_token",
        "time_to_first_output_token",
        "time_to_second_token",
        "inter_token_latency",
        "time_per_output_token",
        "time_per_output_token_corrected",
        "output_token_throughput_per_user",
    ],
)
def test_without_streaming_it_is_missing(name, tables, answer, result):
    found = result(name, tables(answer(50, 60), streaming=False))
    assert isinstance(found, Missing)
    assert "--streaming" in found.reason


def test_the_first_output_token_is_the_first_after_reasoning(tables, answer, result):
    row = answer(50, 60, 70) | {"first_answer_ns": answer(70)["first_ns"]}
    assert result("time_to_first_output_token", tables(row)).values.tolist() == [70.0]


def test_reasoning_without_end_is_a_first_token_but_no_first_output_token(tables, answer, result, reason):
    run = tables(answer(50, 60, first_answer_ns=None))
    assert result("time_to_first_token", run).values.tolist() == [50.0]
    assert reason("time_to_first_output_token", run) == "every answer was reasoning only."


def test_answers_that_were_reasoning_only_are_counted(tables, answer, result):
    found = result("time_to_first_output_token", tables(answer(50, first_answer_ns=None), answer(40)))
    assert found.values.tolist() == [40.0]
    assert found.note == "1 answers were reasoning only and are left out."


def test_answers_without_any_token_are_not_called_reasoning(tables, answer, reason):
    assert (
        reason("time_to_first_output_token", tables(answer(done=9))) == "no answer brought an output token."
    )


def test_the_second_token_is_the_second_instant(tables, answer, result):
    found = result("time_to_second_token", tables(answer(50, 50, 65, 70), answer(50)))
    assert found.values.tolist() == [15.0]


def test_a_gap_for_every_token_after_the_first(tables, answer, result):
    assert gaps_of(result("inter_token_latency", tables(answer(50, 60, 75)))) == [(10.0, 1.0), (15.0, 1.0)]


def test_events_of_one_read_are_one_instant(tables, answer, result):
    found = result("inter_token_latency", tables(answer(50, 60, 60, 70)))
    assert gaps_of(found) == [(5.0, 2.0), (10.0, 1.0)]
    assert "; 50 % of the gaps brought several tokens and were divided by them" in found.note


def test_a_usage_total_is_spread_over_the_chunks(tables, answer, result):
    found = result("inter_token_latency", tables(answer(50, 60, 80, 90, tokens=8)))
    assert gaps_of(found) == [(5.0, 2.0), (10.0, 2.0), (5.0, 2.0)]
    assert found.note.startswith("the server's total for an answer was spread evenly over its chunks; 100 %")


def test_what_is_so_in_nearly_every_run_is_no_remark_of_the_summary(tables, answer, result):
    assert result("inter_token_latency", tables(answer(50, 60, 70, 80, tokens=4))).note == USUAL


def test_a_total_a_little_above_the_number_of_chunks_does_not_make_them_all_bring_several(
    tables, answer, result
):
    found = result("inter_token_latency", tables(answer(50, 60, 70, 80, tokens=5)))
    assert gaps_of(found) == [(8.0, 1.25)] * 3
    assert found.note.endswith("; no gap brought several tokens.")


def test_fewer_tokens_than_chunks_weigh_less_than_one(tables, answer, result):
    assert (
        gaps_of(result("inter_token_latency", tables(answer(50, 60, 70, 80, tokens=2)))) == [(20.0, 0.5)] * 3
    )


def test_continuous_usage_says_what_a_chunk_brought(tables, answer, result):
    found = result("inter_token_latency", tables(answer(50, 60, 80, tokens=8, counts=[3, 1, 4])))
    assert gaps_of(found) == [(10.0, 1.0), (5.0, 4.0)]
    assert found.note.startswith("the server told the tokens of each chunk; 50 %")


@pytest.mark.parametrize("counts", [[2, 0, 2], [2, None, 2], [2, 2]])
def test_continuous_usage_that_does_not_count_every_chunk_is_not_used(counts, tables, answer, result):
    found = result("inter_token_latency", tables(answer(50, 60, 80, tokens=6, counts=counts)))
    assert gaps_of(found) == [(5.0, 2.0), (10.0, 2.0)]
    assert "the server told" not in found.note


@pytest.mark.parametrize("tokens", [0, None])
def test_without_a_count_a_chunk_is_one_token(tokens, tables, answer, result):
    row = answer(50, 60, 80) | {"output_tokens": tokens}
    found = result("inter_token_latency", tables(row))
    assert gaps_of(found) == [(10.0, 1.0), (20.0, 1.0)]
    assert found.note.startswith("each chunk was taken for one token; no gap")


def test_counts_of_the_tokenizer_are_called_so(tables, answer, result):
    found = result("inter_token_latency", tables(answer(50, 60, output_tokens_source="tokenizer")))
    assert found.note.startswith(
        "our tokenizer's total for an answer was spread evenly over its chunks; no gap"
    )


def test_several_sources_of_counts_are_told_with_their_shares(tables, answer, result):
    rows = answer(50, 60, 70, counts=[1, 1, 1]), answer(50) | {"output_tokens": None}
    assert result("inter_token_latency", tables(*rows)).note == (
        "for 75 % of the chunks the server told the tokens of each chunk, for 25 % of the chunks each chunk was taken for"
        " one token; no gap brought several tokens."
    )


def test_gaps_do_not_reach_from_one_answer_into_the_next(tables, answer, result):
    found = result("inter_token_latency", tables(answer(50, 60), answer(60, 75), answer(75, outcome="cut")))
    assert gaps_of(found) == [(10.0, 1.0), (15.0, 1.0)]


def test_one_token_answers_have_a_first_token_and_no_gap(tables, answer, result, reason):
    run = tables(answer(50), answer(40))
    assert result("time_to_first_token", run).values.tolist() == [50.0, 40.0]
    assert reason("time_per_output_token", run) == "no answer had two output tokens at different moments."
    for name in ("inter_token_latency", "time_per_output_token_corrected", "time_to_second_token"):
        assert reason(name, run) == "every answer came in one piece, so there is no gap between tokens."


def test_an_answer_in_one_piece_has_no_gap(tables, answer, reason):
    run = tables(answer(50, 50, 50, 50))
    assert "one piece" in reason("inter_token_latency", run)
    assert "one piece" in reason("output_token_throughput_per_user", run)


@pytest.fixture
def coalesced(answer):
    """All of an answer of four tokens, and its end, in one read."""
    return answer(50, 50, 50, 50, coalesced=True)


def test_an_answer_in_one_read_has_a_latency_and_nothing_else(tables, coalesced, answer, result):
    run = tables(coalesced, answer(20, 30, 40))
    assert result("time_to_first_token", run).values.tolist() == [20.0]
    assert result("time_to_first_output_token", run).values.tolist() == [20.0]
    assert result("time_per_output_token", run).values.tolist() == [10.0]
    assert result("output_token_throughput_per_user", run).values.tolist() == [100.0]
    assert gaps_of(result("inter_token_latency", run)) == [(10.0, 1.0), (10.0, 1.0)]
    assert sorted(result("request_latency", run).values) == [40.0, 50.0]


def test_where_all_came_in_one_read_that_is_the_reason(tables, coalesced, reason, mean):
    run = tables(coalesced, coalesced)
    for name in ("time_to_first_token", "time_to_first_output_token"):
        assert (
            reason(name, run)
            == "every answer came in one piece, so when its first token came cannot be told."
        )
    for name in ("inter_token_latency", "output_token_throughput_per_user", "time_to_second_token"):
        assert "one piece" in reason(name, run)
    assert "different moments" in reason("time_per_output_token", run)
    assert mean("output_sequence_length", run) == 4.0


def test_one_body_instead_of_a_stream_has_a_latency_and_no_first_token(tables, answer, result, reason):
    whole = answer(sent=2, done=99, tokens=7, streamed=False)
    assert result("request_latency", tables(whole)).values.tolist() == [97.0]
    assert "no answer came as a stream" in reason("time_to_first_token", tables(whole))
    assert result("time_to_first_token", tables(whole, answer(5))).values.tolist() == [5.0]


def test_time_per_output_token_leaves_out_the_first(tables, answer, result):
    assert result("time_per_output_token", tables(answer(50, 60, 80))).values.tolist() == [15.0]


def test_the_correction_takes_off_all_tokens_of_the_first_instant(tables, answer, result):
    run = tables(answer(50, 60, 80, tokens=8, counts=[3, 1, 4]))
    assert result("time_per_output_token", run).values.tolist() == [30 / 7]
    assert result("time_per_output_token_corrected", run).values.tolist() == [6.0]


def test_request_latency_ends_with_the_last_token(tables, answer, result):
    assert result("request_latency", tables(answer(50, 60, sent=2, done=99))).values.tolist() == [58.0]


def test_without_streaming_request_latency_ends_with_the_response(tables, answer, result):
    run = tables(answer(sent=2, done=99), streaming=False)
    assert result("request_latency", run).values.tolist() == [97.0]


def test_latency_from_due_holds_the_wait(tables, answer, result):
    run = tables(answer(50, 60, due=10, sent=40), rate=10, cap=1)
    assert result("request_latency_from_due", run).values.tolist() == [50.0]
    assert result("queue_wait", run).values.tolist() == [30.0]
    for name in ("time_to_first_token", "time_to_first_output_token"):
        assert result(name, run).values.tolist() == [10.0]
        assert result(f"{name}_from_due", run).values.tolist() == [40.0]


def test_from_due_as_well_reasoning_is_no_output(tables, answer, result):
    rows = [answer(50, 60, due=10, first_answer_ns=None), answer(50, due=20)]
    found = result("time_to_first_output_token_from_due", tables(*rows, rate=10))
    assert (found.values.tolist(), found.note) == ([30.0], "1 answers were reasoning only and are left out.")


def test_failed_requests_waited_as_well(tables, answer, unsent, result):
    run = tables(answer(outcome="connect", due=10, sent=40), unsent(due=5), rate=10, cap=1)
    assert result("queue_wait", run).values.tolist() == [30.0]


def test_a_closed_loop_has_no_due_times(tables, answer, reason):
    for name in ("request_latency", "time_to_first_token", "time_to_first_output_token"):
        assert "closed loop" in reason(f"{name}_from_due", tables(answer(50)))
    assert "slot" in reason("queue_wait", tables(answer(50), rate=10))


def test_inter_token_latency_of_one_request_is_its_mean_gap(tables, answer):
    run = tables(answer(50, 60, 80, tokens=8, counts=[3, 1, 4]), answer(7), answer(50, outcome="reset"))
    assert np.array_equal(per_request("inter_token_latency", run), [6.0, np.nan, np.nan], equal_nan=True)


streams = st.lists(
    st.tuples(
        st.lists(st.integers(0, 50_000), min_size=1, max_size=12),  # gaps in us, 0: the same read
        st.sampled_from(["told", "spread", "unknown"]),
        st.integers(1, 40),
    ),
    min_size=1,
    max_size=6,
)


def stream(answer, gaps_us, source, tokens):
    arrivals = (np.cumsum([20_000, *gaps_us[1:]]) / 1000).tolist()
    if source == "told":
        counts = [1 + (i * tokens) % 5 for i in range(len(arrivals))]
        return answer(*arrivals, tokens=sum(counts), counts=counts)
    return answer(*arrivals) | {"output_tokens": tokens if source == "spread" else None}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(drawn=streams)
def test_gaps_times_weights_add_up_to_first_until_last(drawn, tables, answer, result):
    rows = [stream(answer, *one) for one in drawn]
    found = result("inter_token_latency", tables(*rows))
    lasted = sum(row["last_ns"] - row["first_ns"] for row in rows) / 1e6
    if lasted == 0:
        assert isinstance(found, Missing)
    else:
        assert float(np.dot(found.values.real, found.values.imag)) == pytest.approx(lasted, rel=1e-12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(drawn=streams)
def test_the_corrected_time_per_token_is_the_mean_gap(drawn, tables, answer, result):
    for row in (stream(answer, *one) for one in drawn):
        run = tables(row)
        found = result("inter_token_latency", run)
        corrected = per_request("time_per_output_token_corrected", run)[0]
        if isinstance(found, Missing):
            assert np.isnan(corrected)
        else:
            assert corrected == pytest.approx(summarise(found.values).mean, rel=1e-9)


def test_parts_of_a_table_give_what_the_whole_gives(tables, answer, result, monkeypatch):
    rows = [
        answer(50, 50 + i, 70, sent=0, phase="warmup" if i % 3 == 0 else "measured") for i in range(1, 20)
    ]
    whole = gaps_of(result("inter_token_latency", tables(*rows)))
    monkeypatch.setattr("loadstone.metrics._tables._PART_TOKENS", 6)
    monkeypatch.setattr("loadstone.metrics._tables._READ_TOKENS", 15)
    assert gaps_of(result("inter_token_latency", tables(*rows))) == whole
    assert len(whole) == 2 * 13


def test_decoding_lasts_from_the_first_to_the_last_token(tables, answer, result):
    run = tables(answer(50, 60, 80, sent=3), answer(40), answer(5, outcome="reset"))
    assert result("decode_duration", run).values.tolist() == [0.0, 30.0], "in the order of sending"
    total = result("time_to_first_token", run).values + result("decode_duration", run).values
    assert total.tolist() == result("request_latency", run).values.tolist()


def test_tokens_that_came_at_once_were_not_decoded_in_no_time(tables, coalesced, answer, result, reason):
    assert "one piece" in reason("decode_duration", tables(coalesced, answer(40, tokens=8)))
    assert "one piece" in reason("decode_duration", tables(answer(40) | {"output_tokens": None}))


def test_normalized_latency_is_the_whole_time_by_the_tokens(tables, answer, result, reason):
    run = tables(answer(50, 60, 80, sent=20, tokens=4), answer(30, tokens=0), answer(5, outcome="reset"))
    assert result("normalized_latency", run).values.tolist() == [15.0]
    whole = tables(answer(sent=2, done=99, tokens=10), streaming=False)
    assert result("normalized_latency", whole).values.tolist() == [9.7]
    assert "not known" in reason("normalized_latency", tables(answer(5) | {"output_tokens": None}))
