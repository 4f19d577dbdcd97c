from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from loadstone.export._tables import rates
from loadstone.export.console import USUAL, render
from loadstone.report import Certificate, Check, Failing, Interval, MetricResult, Outcomes, Report

Failed = Callable[[str], Report]

AT_80 = """\
VALID: The client kept its times.

M · chat, streaming · concurrency 8 · http://localhost:8000
200 requests: 200 ok · 20.4 s · seed 42

                         min   mean    p50    p90    p95    p99  p99.9    max
time to first token ms  51.9   58.1   57.0   62.7   68.4   85.5    103~   108
inter token latency ms  9.10   10.2   10.0   11.0   12.0   15.0   18.0   19.0
request latency     ms 1,220  1,360  1,340  1,470  1,600  2,010  2,410~ 2,540

output throughput  1,250 tokens/s   request throughput  9.87 requests/s

~ too few samples for this percentile

loadstone profile --model M --url localhost:8000 --concurrency 8
files  artifacts/M-chat/
       report.json requests.parquet"""

AT_40 = """\
VALID: The client kept its times.

M · chat, streaming · concurrency 8 ·
  http://localhost:8000
200 requests: 200 ok · 20.4 s · seed 42

            mean    p50    p90    p99
TTFT    ms  58.1   57.0   62.7   85.5
ITL     ms  10.2   10.0   11.0   15.0
latency ms 1,360  1,340  1,470  2,010

output throughput   1,250 tokens/s
request throughput   9.87 requests/s

~ too few samples for this percentile

loadstone profile --model M --url localhost:8000 --concurrency 8
files  artifacts/M-chat/
       report.json requests.parquet"""

HEAD_OF_INVALID = """\
INVALID: Worker 0 was busy 99 % of the time.
  Set --workers 2.
  Send lag p99 was 3 ms. Lower the rate.

M ·"""

NOTHING_SUCCEEDED = """\
VALID: The client kept its times.

M · chat, streaming · concurrency 8 · http://localhost:8000
200 requests: 0 ok, 199 failed, 1 cut off · 20.4 s · seed 42

199 of 200 requests failed: http-error 199
  199 x http-error: 503 try \\x1b[2Jlater (faults/1.bin)

loadstone profile --model M --url localhost:8000 --concurrency 8
       report.json requests.parquet"""


def test_a_valid_run_at_80_columns(valid: Report) -> None:
    assert render(valid, width=80, color=False, folder=Path("artifacts/M-chat")) == AT_80


def test_a_narrow_screen_gets_short_names_and_fewer_columns(valid: Report) -> None:
    assert render(valid, width=40, color=False, folder=Path("artifacts/M-chat")) == AT_40


def test_a_report_not_to_be_believed_says_so_first_and_what_to_do(invalid: Report) -> None:
    assert render(invalid, width=80, color=False).startswith(HEAD_OF_INVALID)


def test_notes_of_the_certificate_stand_among_the_remarks(invalid: Report) -> None:
    assert "\n- The server runs on this host. Use two machines.\n" in render(invalid, width=80, color=False)


def test_when_nothing_succeeded_there_are_the_servers_words_and_no_list_of_what_is_missing(
    all_failed: Failed,
) -> None:
    assert render(all_failed("503 try\n\x1b[2Jlater"), width=80, color=False) == NOTHING_SUCCEEDED


def test_colour_is_for_the_verdict_alone(valid: Report, invalid: Report) -> None:
    shown = render(valid, width=80, color=True)
    assert shown.startswith("\x1b[1;32mVALID\x1b[0m: ")
    assert shown.count("\x1b") == 2
    assert render(invalid, width=80, color=True).startswith("\x1b[1;31mINVALID\x1b[0m: ")


def test_saturation_is_told_with_the_verdict_and_not_twice(valid: Report) -> None:
    run = msgspec.structs.replace(valid.run, saturated=True)
    found = Check(
        name="saturation",
        verdict="VALID",
        value=79.0,
        unit="%",
        finding="It fell behind.",
        advice="Slow down.",
    )
    for headline, told in (
        ("On time.", "VALID: On time.\nSATURATED: It fell behind. Slow down."),
        ("It fell behind.", "VALID, SATURATED: It fell behind. Slow down."),
    ):
        certificate = Certificate(verdict="VALID", headline=headline, checks=(found,))
        saturated = msgspec.structs.replace(valid, run=run, certificate=certificate)
        assert render(saturated, width=80, color=False).startswith(f"{told}\n\n")


def test_a_run_cut_short_says_so(valid: Report) -> None:
    cut = msgspec.structs.replace(valid, run=msgspec.structs.replace(valid.run, end="interrupted"))
    assert "200 ok · interrupted before its end · 20.4 s" in render(cut, width=80, color=False)


def test_the_first_answer_has_a_row_where_it_differs_from_the_first_token(valid: Report) -> None:
    thought = MetricResult(unit="ms", better="lower", reason="every answer spent its length on reasoning.")
    metrics = {**valid.metrics, "time_to_first_output_token": thought}
    shown = render(msgspec.structs.replace(valid, metrics=metrics), width=80, color=False)
    assert "\ntime to first output token" not in shown
    assert "- time to first output token: every answer spent its length on reasoning." in shown
    late = msgspec.structs.replace(valid.metrics["time_to_first_token"], p50=900.0)
    metrics = {**valid.metrics, "time_to_first_output_token": late}
    shown = render(msgspec.structs.replace(valid, metrics=metrics), width=80, color=False)
    row = next(line for line in shown.splitlines() if line.startswith("time to first output token"))
    assert row.split()[6:9] == ["51.9", "58.1", "900"]


def test_many_notices_do_not_push_the_numbers_off_the_screen(valid: Report) -> None:
    notices = tuple(f"notice {number}" for number in range(50))
    noisy = msgspec.structs.replace(valid, run=msgspec.structs.replace(valid.run, notices=notices))
    shown = render(noisy, width=100, color=False)
    assert "- and 44 more in report.json: run.notices\n" in shown
    assert len(shown.splitlines()) <= 40


@pytest.mark.parametrize(
    ("command_rows", "rows", "remarks"),
    [(1, 28, 6), (13, 40, 6), (14, 40, 5), (15, 39, 4), (16, 40, 4), (18, 40, 3), (19, 41, 3), (99, 121, 3)],
)
def test_a_summary_fits_a_screen(command_rows: int, rows: int, remarks: int, valid: Report) -> None:
    """Of six remarks, each of two rows, so many go as there is room for, and never fewer than three.

    That the others are missing takes a row; a command of several rows takes them too.
    """
    notices = tuple(f"{number} {'long ' * 20}" for number in range(6))
    run = msgspec.structs.replace(valid.run, notices=notices, command="x" * 100 * command_rows)
    shown = render(msgspec.structs.replace(valid, run=run), width=100, color=False)
    assert len(shown.splitlines()) - 1 + command_rows == rows
    assert [f"\n- {number} long" in shown for number in range(6)] == [number < remarks for number in range(6)]
    assert ("more in report.json" in shown) is (remarks < 6)


def test_the_last_remark_is_not_hidden_behind_a_line_of_its_own(valid: Report) -> None:
    notices = tuple(f"notice {number}" for number in range(7))
    noisy = msgspec.structs.replace(valid, run=msgspec.structs.replace(valid.run, notices=notices))
    shown = render(noisy, width=100, color=False)
    assert "- notice 6\n" in shown
    assert "more in report.json" not in shown


def test_where_the_hidden_remarks_are_is_said(valid: Report) -> None:
    note = Check(name="n", verdict="NOTE", value=None, unit="", finding="Found.", advice="Do it.")
    noisy = msgspec.structs.replace(
        valid,
        run=msgspec.structs.replace(valid.run, notices=tuple(f"notice {number}" for number in range(6))),
        certificate=msgspec.structs.replace(valid.certificate, checks=(note, note)),
    )
    assert "- and 2 more in report.json: certificate.checks\n" in render(noisy, width=100, color=False)


def test_tokens_stand_in_the_headline_where_there_is_room(valid: Report) -> None:
    sums = {
        name: MetricResult(unit="tokens", better="neither", count=200, mean=tokens)
        for name, tokens in (("total_input_tokens", 26_400.0), ("total_output_tokens", 25_634.0))
    }
    told = msgspec.structs.replace(valid, metrics={**valid.metrics, **sums})
    line = "200 requests: 200 ok · 20.4 s · 26,400 tokens in, 25,634 out · seed 42"
    assert line in render(told, width=len(line), color=False).splitlines()
    assert "200 requests: 200 ok · 20.4 s · seed 42" in render(told, width=len(line) - 1, color=False)


def test_rates_with_intervals_that_do_not_fit_in_pairs_have_a_line_each_and_the_others_pairs(
    valid: Report,
) -> None:
    known = Interval(low=1_100.0, high=1_300.0)
    metrics = {
        name: msgspec.structs.replace(valid.metrics[name], intervals={"mean": known})
        for name in ("output_token_throughput", "request_throughput")
    }
    for name in ("concurrency", "peak_concurrency"):
        metrics[name] = MetricResult(unit="requests", better="neither", count=1, mean=8.0)
    assert rates(metrics, 80) == [
        "output throughput   1,250 tokens/s [1,100 to 1,300]",
        "request throughput   9.87 requests/s [1,100 to 1,300]",
        "concurrency  8.00 requests   peak concurrency  8.00 requests",
    ]
    assert len(rates(metrics, 112)) == 2


def test_a_report_without_any_metric_is_still_a_report(valid: Report) -> None:
    empty = msgspec.structs.replace(valid, metrics={}, config={})
    assert render(empty, width=80, color=False).splitlines()[:4] == [
        "VALID: The client kept its times.", "", "concurrency 8", "200 requests: 200 ok · 20.4 s · seed 42"
    ]  # fmt: skip


JUNK = "\x1b]0;owned\x07 \u202egnp.exe\u200b \x9b31m \ud800 日本語 🙂"


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_junk_from_the_server_is_shown_as_escapes_and_keeps_its_place(all_failed: Failed, width: int) -> None:
    report = all_failed(JUNK * 5)
    shown = render(
        msgspec.structs.replace(report, config={"endpoint": {"model": JUNK}}), width=width, color=False
    )
    assert not set("\x1b\x07\u202e\u200b\x9b\ud800") & set(shown)
    command, files = report.run.command, "report.json requests.parquet"
    lines = [line for line in shown.splitlines() if line != command and files not in line]
    assert max(map(cell_len, lines)) <= width
    assert shown.encode()


def test_a_rate_nobody_asked_for_is_left_out_without_a_word(valid: Report) -> None:
    unset = MetricResult(unit="requests/s", better="higher", reason="no objective was set.")
    shown = render(
        msgspec.structs.replace(valid, metrics={**valid.metrics, "goodput": unset}), width=80, color=False
    )
    assert shown == render(valid, width=80, color=False)


def test_one_reason_for_many_metrics_is_said_once(valid: Report) -> None:
    names = ("time_to_first_token", "inter_token_latency", "time_per_output_token", "request_latency")
    missing = {name: MetricResult(unit="ms", better="lower", reason="because.") for name in names}
    shown = render(msgspec.structs.replace(valid, metrics=missing), width=80, color=False)
    assert "\n- time to first token and 3 more: because.\n" in shown


def censored(result: MetricResult, count: int, **percentiles: float | None) -> MetricResult:
    """With as many requests cut off, of which half had come to the metric's end."""
    return msgspec.structs.replace(
        result, cut_off=count, censored=count // 2, with_censored=percentiles, with_censored_least=9000.0
    )


def test_a_row_takes_the_requests_cut_off_into_account(valid: Report) -> None:
    latency = censored(
        valid.metrics["request_latency"], 12, p50=1400.0, p90=1800.0, p95=3000.0, p99=None, p99_9=None
    )
    cut = msgspec.structs.replace(valid, metrics={**valid.metrics, "request_latency": latency})
    shown = render(cut, width=100, color=False).splitlines()
    row = shown[1 + next(i for i, line in enumerate(shown) if line.startswith("request latency"))]
    assert row.split() == ["with", "12", "cut", "off", "1,400", "1,800", "3,000", ">9,000", ">9,000"]
    narrow = render(cut, width=40, color=False).splitlines()
    row = narrow[1 + next(i for i, line in enumerate(narrow) if line.startswith("latency"))]
    assert row.split() == ["+12", "cut", "1,400", "1,800", ">9,000"]


def test_lower_bounds_are_told_as_such(valid: Report) -> None:
    latency = msgspec.structs.replace(
        censored(valid.metrics["request_latency"], 12, p50=1400.0, p90=1800.0, p99=None),
        with_censored_at_least=True,
        thin=("p90",),
    )
    cut = msgspec.structs.replace(valid, metrics={**valid.metrics, "request_latency": latency})
    shown = render(cut, width=100, color=False).splitlines()
    row = next(line for line in shown if line.startswith("  with 12 cut off"))
    assert row.split()[4:] == [">1,400", ">1,800~", ">9,000"]


def test_the_wait_of_those_never_sent_has_a_row_that_says_so(valid: Report) -> None:
    """Also where all of them together are fewer than were cancelled as asked, which are other ones."""
    wait = censored(
        msgspec.structs.replace(valid.metrics["request_latency"], p50=0.269), 76, p50=187.0, p99=None
    )
    waited = msgspec.structs.replace(
        valid,
        metrics={**valid.metrics, "queue_wait": wait},
        load=msgspec.structs.replace(valid.load, cancelled_as_planned=99),
    )
    shown = render(waited, width=100, color=False).splitlines()
    row = shown[1 + next(i for i, line in enumerate(shown) if line.startswith("queue wait"))]
    assert row.split() == ["with", "76", "never", "sent", "187", ">9,000"]
    narrow = render(waited, width=40, color=False).splitlines()
    row = narrow[1 + next(i for i, line in enumerate(narrow) if line.startswith("queue wait"))]
    assert row.split() == ["+76", "unsent", "187", ">9,000"]


def test_requests_cut_off_after_their_first_token_have_a_row_as_well(valid: Report) -> None:
    ttft = censored(valid.metrics["time_to_first_token"], 23, p50=26.4)
    seen = msgspec.structs.replace(
        valid, metrics={**valid.metrics, "time_to_first_token": msgspec.structs.replace(ttft, censored=0)}
    )
    assert "\n  with 23 cut off " in render(seen, width=80, color=False)


@pytest.mark.parametrize(
    ("metric", "plain", "curve", "shown"),
    [
        ("time_to_first_token", {"p50": 100.0, "p99": 200.0}, {"p50": 105.0, "p99": 190.0}, False),
        ("time_to_first_token", {"p50": 100.0, "p99": 200.0}, {"p50": 105.1, "p99": 200.0}, True),
        ("time_to_first_token", {"p50": 100.0, "p99": 200.0}, {"p50": 100.0, "p99": 189.9}, True),
        ("time_to_first_token", {"p50": 100.0, "p99": 200.0}, {"p50": 100.0, "p99": None}, True),
        ("request_latency", {"p50": 100.0, "p99": 200.0}, {"p50": 100.0, "p99": 200.0}, True),
        ("request_latency_from_due", {"p50": 100.0, "p99": 400.0}, {"p50": 100.0, "p99": 400.0}, True),
    ],
)  # fmt: skip
def test_requests_cut_off_have_rows_where_they_change_what_is_read(
    metric: str, plain: dict[str, float], curve: dict[str, float | None], shown: bool, valid: Report
) -> None:
    latency = msgspec.structs.replace(valid.metrics["request_latency"], p99=200.0)
    found = msgspec.structs.replace(latency, **plain, cut_off=7, censored=7, with_censored=curve)
    metrics = {"request_latency": latency, "queue_wait": latency, metric: found}
    told = render(msgspec.structs.replace(valid, metrics=metrics), width=100, color=False)
    assert ("\n  with 7 cut off " in told) is shown


def test_what_has_no_number_has_no_row(valid: Report) -> None:
    slow = msgspec.structs.replace(valid.metrics["request_latency"], p99=9000.0)
    none = MetricResult(unit="ms", better="lower", reason="requests wait for a slot only with a limit.")
    metrics = {**valid.metrics, "request_latency_from_due": slow, "queue_wait": none}
    shown = render(msgspec.structs.replace(valid, metrics=metrics), width=100, color=False)
    assert "\nrequest latency from due " in shown
    assert "queue wait" not in shown
    assert "requests wait for a slot" not in shown


def test_where_nothing_was_cut_off_there_is_no_such_row(valid: Report) -> None:
    assert "cut off" not in render(valid, width=80, color=False)


def test_the_tokens_of_all_requests_have_a_rate_where_some_were_cut_off(valid: Report) -> None:
    every = MetricResult(unit="tokens/s", better="higher", count=1, mean=1480.0)
    metrics = {**valid.metrics, "output_token_throughput_under_load": every}
    assert "all tokens" not in render(msgspec.structs.replace(valid, metrics=metrics), width=80, color=False)
    metrics["request_latency"] = censored(valid.metrics["request_latency"], 12, p50=1400.0)
    shown = render(msgspec.structs.replace(valid, metrics=metrics), width=80, color=False)
    assert "\noutput, all tokens  1,480 tokens/s\n" in shown


def test_a_load_that_brought_nothing_has_no_rates(valid: Report) -> None:
    load = MetricResult(unit="requests", better="neither", count=1, mean=7.9)
    shown = render(msgspec.structs.replace(valid, metrics={"concurrency": load}), width=80, color=False)
    assert "7.90" not in shown


def test_where_nothing_succeeded_the_requests_cut_off_are_all_there_is(valid: Report) -> None:
    nothing = MetricResult(unit="ms", better="lower", reason="no request succeeded.", thin=("p99",))
    curves = {
        "time_to_first_token": censored(nothing, 20, p50=1400.0, p99=None),
        "time_to_first_output_token": censored(nothing, 20, p50=1400.0, p99=None),
        "inter_token_latency": nothing,
        "request_latency": censored(nothing, 50, p50=None, p99=None),
    }
    shown = render(msgspec.structs.replace(valid, metrics=curves), width=80, color=False)
    table = [line.split() for line in shown.split("\n\n")[2].splitlines()]
    assert table == [
        ["p50", "p99"],
        ["time", "to", "first", "token", "ms", "-", "-"],
        ["with", "20", "cut", "off", "1,400", ">9,000"],
        ["request", "latency", "ms", "-", "-"],
        ["with", "50", "cut", "off", ">9,000", ">9,000"],
    ]


def stopped(report: Report, **facts: object) -> Report:
    return msgspec.structs.replace(report, run=msgspec.structs.replace(report.run, **facts))


def test_a_run_given_up_says_so_before_anything_else(valid: Report) -> None:
    failing = Failing(since_s=0.707, outcome="connect-refused", of_outcome=64, failed=66, ended=67)
    facts = {"stopped_by": "failures", "stopped_why": "51 of the last 100 requests failed, since about 0.7 s"}
    limits = {"load.failed_request_threshold": 0.5}
    shown = render(stopped(valid, **facts, failing=failing, limits=limits), width=200, color=False)
    assert shown.startswith(
        "STOPPED: too many requests failed (more than 50 % of the last 100): from 0.71 s into the measurement on, 66 of 67,"
        " most of them connect-refused (64).\nVALID: "
    )
    alike = msgspec.structs.replace(failing, of_outcome=66)
    shown = render(stopped(valid, **facts, failing=alike), width=200, color=False)
    assert shown.startswith("STOPPED: too many requests failed: from 0.71 s ")
    assert " on, 66 of 67, all of them connect-refused.\n" in shown
    warming = msgspec.structs.replace(failing, kind="warmup")
    shown = render(stopped(valid, **facts, failing=warming), width=200, color=False)
    assert shown.startswith("STOPPED: too many requests failed: from 0.71 s into the warm-up on, ")
    assert render(stopped(valid, **facts), width=200, color=False).startswith(
        "STOPPED: 51 of the last 100 requests failed, since about 0.7 s.\n"
    )


def test_how_a_stopped_run_ended_is_said_once(valid: Report) -> None:
    why = "every load-generating process died, after 2.8 s"
    shown = render(
        stopped(valid, stopped_by="workers", stopped_why=why, end="aborted"), width=80, color=False
    )
    assert shown.startswith(f"STOPPED: {why}.\n")
    assert "aborted" not in shown


def test_an_interrupted_run_says_who_did_it(valid: Report) -> None:
    shown = render(stopped(valid, stopped_by="user", stopped_why="interrupted"), width=100, color=False)
    assert shown.startswith(
        "STOPPED: by you (Ctrl-C or a signal); the numbers are those of what had happened until then.\n"
    )


def test_what_stopped_a_run_is_a_verdict_with_its_colour(valid: Report) -> None:
    for by, code in (("user", 33), ("failures", 31), ("trouble", 31), ("workers", 31)):
        shown = render(stopped(valid, stopped_by=by, stopped_why="w"), width=80, color=True)
        assert shown.startswith(f"\x1b[1;{code}mSTOPPED\x1b[0m: ")


def test_requests_cut_off_and_unsent_are_no_failures_of_the_server(valid: Report) -> None:
    counts = {"ok": 190, "reset": 1, "cancelled": 2, "cut": 3, "not-sent": 4}
    faults = ({"outcome": "reset", "message": "the connection was reset", "count": 1, "sample": None},)
    outcomes = Outcomes(
        planned=200, counts=counts, faults=faults, not_sent=({"reason": "stopped", "count": 4},)
    )
    shown = render(msgspec.structs.replace(valid, outcomes=outcomes), width=100, color=False)
    assert "200 requests: 190 ok, 1 failed, 5 cut off, 4 never sent · " in shown
    assert (
        "1 of 200 requests failed: reset 1\n  1 x reset: the connection was reset\n  4 x not-sent: stopped\n"
    ) in shown


def test_what_the_client_lost_is_not_called_failed(valid: Report) -> None:
    outcomes = Outcomes(planned=200, counts={"ok": 195, "client-fault": 5})
    shown = render(msgspec.structs.replace(valid, outcomes=outcomes), width=100, color=False)
    assert "200 requests: 195 ok, 5 lost by the client · " in shown
    assert "failed" not in shown


def faulty(report: Report, *faults: dict[str, object], kinds: int | None = None) -> str:
    """The lines on what failed, at 80 columns."""
    outcomes = Outcomes(
        planned=99, counts={"reset": 9}, faults=faults, fault_kinds=len(faults) if kinds is None else kinds
    )
    shown = render(msgspec.structs.replace(report, outcomes=outcomes), width=80, color=False)
    return shown.partition("requests failed: reset 9\n")[2].partition("\n\n")[0]


def fault(message: str, sample: str | None = "faults/http-server-error-1.http") -> dict[str, object]:
    return {"outcome": "http-server-error", "message": message, "count": 44, "sample": sample}


def test_a_fault_has_two_lines_and_its_sample_at_the_end(valid: Report) -> None:
    assert faulty(valid, fault("HTTP 500: the engine died")) == (
        "  44 x http-server-error: HTTP 500: the engine died\n    (faults/http-server-error-1.http)"
    )
    assert faulty(valid, fault("HTTP 500: " + "the engine died of it " * 3 + "and was buried")) == (
        "  44 x http-server-error: HTTP 500: the engine died of it the engine died of it\n"
        "    the engine died of it and was buried (faults/http-server-error-1.http)"
    )
    assert faulty(valid, fault("HTTP 500: " + "the engine died of it " * 9)) == (
        "  44 x http-server-error: HTTP 500: the engine died of it the engine died of it\n"
        "    the engine died of it the engine died of… (faults/http-server-error-1.http)"
    )
    assert faulty(valid, fault("short", sample=None)) == "  44 x http-server-error: short"


def test_where_a_sample_leaves_no_room_for_words_the_words_stay(valid: Report) -> None:
    outcomes = Outcomes(planned=99, counts={"reset": 9}, faults=(fault("the engine died of it " * 9),))
    shown = render(msgspec.structs.replace(valid, outcomes=outcomes), width=50, color=False)
    assert (
        "\n  44 x http-server-error: the engine died of it\n    the engine died of it the engine died of it t…\n"
    ) in shown


@pytest.mark.parametrize(
    ("kinds", "line"),
    [
        (3, None),
        (4, "  and 1 more kind (report.json)"),
        (5, "  and 2 more kinds (report.json)"),
        (40, "  and 37 more kinds (requests.jsonl)"),
    ],
)
def test_kinds_that_are_not_shown_are_counted(kinds: int, line: str | None, valid: Report) -> None:
    found = faulty(valid, *[fault("m", sample=None)] * min(kinds, 20), kinds=kinds).splitlines()
    assert found[:3] == ["  44 x http-server-error: m"] * 3
    assert found[3:] == ([line] if line else [])


def test_a_limit_is_told_when_it_ended_a_request(valid: Report) -> None:
    run = msgspec.structs.replace(
        valid.run,
        limits={
            "endpoint.idle_timeout_s": 2.5,
            "endpoint.max_response_bytes": 268_435_456,
            "endpoint.timeout_s": 9.0,
        },
    )
    outcomes = Outcomes(planned=3, counts={"ok": 1, "timeout-idle": 1, "too-large": 1})
    shown = render(msgspec.structs.replace(valid, run=run, outcomes=outcomes), width=120, color=False)
    assert (
        "  limits that ended requests: 2.5 s (--idle-timeout-seconds), 268,435,456 bytes (--max-response-bytes)\n"
    ) in shown
    assert "limits that ended" not in render(msgspec.structs.replace(valid, run=run), width=120, color=False)


def test_nothing_hostile_reaches_a_terminal(hostile: str, valid: Report) -> None:
    found = Check(name="n", verdict="INVALID", value=None, unit=hostile, finding=hostile, advice=hostile)
    fault = {"outcome": hostile, "message": hostile, "count": 1, "sample": hostile}
    failing = Failing(since_s=1.0, outcome=hostile, of_outcome=1, failed=1, ended=1)
    ttft = msgspec.structs.replace(valid.metrics["time_to_first_token"], unit=hostile, note=hostile)
    report = msgspec.structs.replace(
        stopped(
            valid,
            stopped_by="failures",
            stopped_why=hostile,
            failing=failing,
            notices=(hostile,),
            command=hostile,
        ),
        certificate=Certificate(verdict="INVALID", headline=hostile, checks=(found,)),
        metrics={**valid.metrics, "time_to_first_token": ttft, hostile: ttft},
        outcomes=Outcomes(
            planned=1, counts={hostile: 1}, faults=(fault,), not_sent=({"reason": hostile, "count": 1},)
        ),
        config={"endpoint": {"model": hostile, "type": hostile, "url": hostile}},
    )
    shown = render(report, width=90, color=False, folder=Path(hostile.replace("/", "")))
    assert not set("\x1b\x07\r\u202e\u2066\u200b\u2028") & set(shown)
    assert shown.encode()


def test_what_is_so_in_nearly_every_run_is_not_told(valid: Report) -> None:
    name = "inter_token_latency"
    usual, unusual = (
        msgspec.structs.replace(
            valid,
            metrics={**valid.metrics, name: msgspec.structs.replace(valid.metrics[name], note=note)},
        )
        for note in (USUAL, "the clock stood still")
    )
    assert "spread evenly" not in render(usual, width=100, color=False)
    assert "inter token latency: the clock stood still" in render(unusual, width=100, color=False)


def adjusted(result: MetricResult, *infinite: str) -> MetricResult:
    """A metric with 12 requests that failed, so that these statistics are infinite."""
    nulls = dict.fromkeys(infinite)
    return msgspec.structs.replace(result, count=result.count + 12, infinite=infinite, **nulls)


def test_requests_that_failed_took_for_ever_in_a_row_of_their_own(valid: Report) -> None:
    plain = valid.metrics["request_latency"]
    own = {"adjusted_request_latency": adjusted(plain, "mean", "max", "std", "p99", "p99_9")}
    lines = render(
        msgspec.structs.replace(valid, metrics={**valid.metrics, **own}), width=100, color=False
    ).splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("request latency"))
    cells = "with 12 failed 1,220 inf inf 1,280 1,340 1,390 1,470 1,600 inf inf inf"
    assert " ".join(lines[at + 1].split()) == cells


def test_a_first_token_has_such_a_row_where_it_changes_what_is_read(valid: Report) -> None:
    plain = valid.metrics["time_to_first_token"]
    for infinite, rows in ((("mean", "max"), 0), (("mean", "max", "p99"), 1)):
        own = {"adjusted_time_to_first_token": adjusted(plain, *infinite)}
        text = render(
            msgspec.structs.replace(valid, metrics={**valid.metrics, **own}), width=100, color=False
        )
        assert text.count("with 12 failed") == rows


def test_a_narrow_screen_says_shortly_who_failed(valid: Report) -> None:
    own = {"adjusted_request_latency": adjusted(valid.metrics["request_latency"], "mean", "max", "p99")}
    text = render(msgspec.structs.replace(valid, metrics={**valid.metrics, **own}), width=60, color=False)
    assert "\n +12 failed" in text


def test_stalls_are_told_where_there_were_some_and_a_cost_where_there_is_one(valid: Report) -> None:
    def entries(stalled: float | None, cost: float | None) -> str:
        own = {
            "stalled_answers": MetricResult(unit="%", better="lower", mean=stalled),
            "cost_per_million_output_tokens": MetricResult(unit="USD/M tokens", better="lower", mean=cost),
        }
        return render(
            msgspec.structs.replace(valid, metrics={**valid.metrics, **own}), width=100, color=False
        )

    told = entries(2.5, 0.42)
    assert "stalled answers" in told
    assert " 2.50 %" in told
    assert "cost of output" in told
    assert "0.420 USD/M tokens" in told
    assert "stalled" not in entries(0.0, None)
    assert "cost" not in entries(None, None)
