from __future__ import annotations


def test_send_lag_is_sent_minus_due_of_all_that_were_sent(tables, answer, unsent, result):
    rows = answer(50, due=10, sent=10.25), answer(due=10, sent=11, outcome="connect"), unsent()
    assert result("send_lag", tables(*rows, rate=5)).values.tolist() == [0.25, 1.0]
    assert result("send_lag", tables(*rows)).values.tolist() == [0.25, 1.0]


def test_what_went_out_again_on_a_new_connection_is_not_held_to_be_late(tables, answer, result, mean):
    run = tables(answer(50, due=10, sent=10.25), answer(9000, due=20, sent=8000, retries=1), rate=5)
    assert result("send_lag", run).values.tolist() == [0.25]
    assert mean("late_count", run) == 0.0


def test_a_turn_is_not_late_because_the_turn_before_it_was(tables, answer, result):
    first = answer(80, due=0, conversation=1, turn=0)
    second = answer(90, due=50, sent=80.5, conversation=1, turn=1)
    assert result("send_lag", tables(first, second, rate=5)).values.tolist() == [0.0, 0.5]


def test_under_a_cap_lag_cannot_be_told_from_waiting(tables, answer, reason):
    assert "queue_wait" in reason("send_lag", tables(answer(50), rate=5, cap=2))


def test_client_lag_has_one_sample_a_read(tables, answer, result):
    run = tables(answer(50, 60, 60, 70, lag=0.5), answer(5, lag=9, outcome="reset"))
    assert result("client_lag", run).values.tolist() == [0.5, 0.5, 0.5]
    assert result("first_token_client_lag", run).values.tolist() == [0.5]


def test_without_kernel_stamps_the_lag_cannot_be_seen(tables, answer, result, reason):
    unstamped = answer(50, 60, lag=7, kernel_stamps=False)
    assert result("client_lag", tables(unstamped, answer(50, 60, lag=0.25))).values.tolist() == [0.25, 0.25]
    for name in ("client_lag", "first_token_client_lag"):
        assert "no kernel stamps" in reason(name, tables(unstamped))


def test_shared_reads_completed_several_events(tables, answer, mean, reason):
    assert mean("shared_reads", tables(answer(50, 60, 60, 60, 70), answer(50))) == 25.0
    assert mean("shared_reads", tables(answer(50, 60))) == 0.0
    assert reason("shared_reads", tables(answer(done=5))) == "no answer brought a token."


def test_undated_events_are_those_that_bear_a_later_ones_stamp(tables, answer, mean):
    run = tables(answer(50, 60, 60, 60, 70), answer(50, 50, 50))
    assert mean("undated_events", run) == 50.0
    assert mean("undated_first_tokens", run) == 50.0
    assert (
        mean("undated_events", tables(answer(50, 60)))
        == mean("undated_first_tokens", tables(answer(50)))
        == 0.0
    )


def test_connect_time_is_of_requests_that_connected(tables, answer, result, reason):
    connected = answer(50) | {"connect_ns": answer(1)["first_ns"], "connected_ns": answer(3.5)["first_ns"]}
    assert result("connect_time", tables(connected, answer(50))).values.tolist() == [2.5]
    assert "kept-alive" in reason("connect_time", tables(answer(50)))
