from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.board import BUCKETS, FIELDS, Field, Histogram, Live, bucket
from loadstone.plan.schedule import Phase
from loadstone.tui import simple
from loadstone.tui.simple import Now, Progress, bar, clock, left_s, line, share_done, since

NOW = Now(
    phase="measured", done=120, planned=200, share=0.6, in_flight=8, queued=0, requests_per_s=9.93, tokens_per_s=1270.4,
    ttft_ms=(57.2, 62.8), failed=0, elapsed_s=12.1, left_s=8.07,
)  # fmt: skip


MEASURED = Phase(name="measured", kind="measured", pattern="closed")
WARMUP = Phase(name="warmup", kind="warmup", pattern="closed", requests=5)


def bounded(requests: int) -> Phase:
    """The measured phase of so many requests."""
    return Phase(name="measured", kind="measured", pattern="closed", requests=requests)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def live(ttft_us: int = 0, **counts: int) -> Live:
    fields = [0] * FIELDS
    for name, count in counts.items():
        fields[Field[name.upper()]] = count
    histograms = [[0] * BUCKETS for _ in Histogram]
    histograms[Histogram.TTFT][bucket(ttft_us)] = counts.get("ended", 0) if ttft_us else 0
    return Live(fields, histograms)


def test_what_is_left_is_told_in_the_time_of_whoever_watches() -> None:
    stream = io.StringIO()
    progress = Progress(stream, "plain", [bounded(400)])
    for took_s in (0.0, 1.0, 5.0):
        progress.update(live(ended=round(20 * took_s)), 100 * took_s, bounded(400), 0, took_s)
    assert [shown.split("  ")[2] for shown in stream.getvalue().splitlines()] == ["0 s", "15 s left"]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (130, "measured  ████████████░░░░░░░░  120/200  8 s left  9.9 req/s  1,270 tok/s  8 in flight  TTFT p50 57 p99 63 ms  0 errors"),
        (99, "measured  ██████░░░░  120/200  8 s left  9.9 req/s  1,270 tok/s  8 in flight  0 errors"),
        (79, "measured  ██████░░░░  120/200  8 s left  9.9 req/s  1,270 tok/s  0 errors"),
        (50, "measured  120/200  8 s left  9.9 req/s  0 errors"),
        (28, "measured  120/200  0 errors"),
        (9, "measured…"),
    ],
)  # fmt: skip
def test_what_matters_least_is_left_out_first(width: int, shown: str) -> None:
    assert line(NOW, width, bars=True) == shown


@given(st.integers(0, 200), st.integers(0, 10**9), st.booleans())
def test_a_line_never_exceeds_the_terminal(width: int, failed: int, bars: bool) -> None:
    assert len(line(NOW._replace(failed=failed), width, bars=bars)) <= width


def test_errors_are_red_only_when_there_are_any() -> None:
    assert "\x1b" not in line(NOW, 120, color=True)
    assert line(NOW._replace(failed=12), 120, color=True).endswith("\x1b[1;31m12 errors\x1b[0m")
    assert line(NOW._replace(failed=1), 120).endswith("  1 error")


def test_a_phase_without_an_end_shows_what_is_done_and_the_time() -> None:
    endless = NOW._replace(planned=None, share=None, left_s=None, ttft_ms=None, tokens_per_s=0.0, queued=3)
    assert (
        line(endless, 120, bars=True)
        == "measured  120 done  12 s  9.9 req/s  8 in flight  3 waiting  0 errors"
    )


def test_the_nearer_limit_of_a_phase_counts() -> None:
    assert share_done(50, 30.0, planned=200, duration_s=60.0) == 0.5
    assert share_done(150, 30.0, planned=200, duration_s=60.0) == 0.75
    assert share_done(9, 61.0, planned=None, duration_s=60.0) == 1.0
    assert share_done(9, 61.0, planned=None, duration_s=None) is None


def test_time_left_assumes_that_it_goes_on_as_it_went() -> None:
    assert left_s(0.25, 10.0) == 30.0
    assert left_s(None, 10.0) is None
    assert left_s(0.0, 10.0) is None


def test_durations_and_bars() -> None:
    assert [clock(s) for s in (None, -1.0, 41.6, 187.0, 3725.0)] == ["0 s", "0 s", "42 s", "3:07", "1:02:05"]
    assert [bar(share, 4) for share in (None, 0.0, 0.5, 1.0)] == ["░░░░", "░░░░", "██░░", "████"]


def test_a_phase_does_not_count_what_came_before_it() -> None:
    own = since(live(ended=12, ttft_us=50_000), live(ended=10, ttft_us=50_000))
    assert own.fields[Field.ENDED] == 2
    assert sum(own.histograms[Histogram.TTFT]) == 2


def test_elsewhere_than_on_a_terminal_plain_lines_come_every_five_seconds_then_every_ten() -> None:
    stream = io.StringIO()
    progress = Progress(stream, "simple", [bounded(1000)])
    for quarter in range(4 * 91):
        progress.update(live(sent=quarter * 2, ended=quarter), quarter / 4, bounded(1000), 0)
    progress.close()
    seconds = [round(int(done) / 4) for done in re.findall(r"measured  (\d+)/", stream.getvalue())]
    assert seconds == [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 70, 80, 90]
    assert not set("\x1b\r█░") & set(stream.getvalue())
    assert "measured  40/1,000  4:00 left  4.0 req/s  40 in flight  0 errors\n" in stream.getvalue()


def test_a_terminal_that_wants_no_show_gets_plain_lines_too() -> None:
    stream = Screen()
    Progress(stream, "plain", [MEASURED]).update(live(), 0.0, MEASURED, 0)
    assert stream.getvalue() == "measured  0 done  0 s  0.0 req/s  0 in flight  0 errors\n"


def test_a_terminal_is_redrawn_in_place_and_left_clean() -> None:
    stream = Screen()
    progress = Progress(stream, "simple", [bounded(4)])
    progress.update(live(sent=1), 0.0, bounded(4), 0)
    progress.update(live(sent=3, ended=2), 1.0, bounded(4), 0)
    progress.say("wall clock\x1b[2J stepped")
    progress.close()
    first, second, said = stream.getvalue().split(simple.WRAP_ON)
    assert first.startswith(simple.WRAP_OFF + simple.CLEAR + "measured  ")
    assert "2/4  1 s left  2.0 req/s" in second
    assert said == f"{simple.CLEAR}wall clock\\x1b[2J stepped\n{simple.CLEAR}"
    assert "\n" not in first + second


def test_a_new_phase_starts_from_nothing() -> None:
    stream = io.StringIO()
    progress = Progress(stream, "plain", [WARMUP, bounded(10)])
    progress.update(live(sent=5, ended=5, tokens=50, ttft_us=50_000), 3.0, WARMUP, 0)
    progress.update(live(sent=7, ended=5, tokens=50, ttft_us=50_000), 0.0, bounded(10), 1)
    warmup, measured = stream.getvalue().splitlines()
    assert warmup == "warmup  0/5  3 s  0.0 req/s  0 in flight  0 errors"
    assert measured == "measured  0/10  0 s  0.0 req/s  2 in flight  1 waiting  0 errors"


def test_several_measured_phases_are_numbered_and_have_limits_of_their_own() -> None:
    ramp = Phase(name="ramp", kind="measured", pattern="poisson", rate=5.0, duration_ns=20_000_000_000)
    hold = Phase(name="hold\x1b[2J", kind="measured", pattern="poisson", rate=9.0, requests=40)
    stream = io.StringIO()
    progress = Progress(stream, "plain", [WARMUP, ramp, hold])
    progress.update(live(sent=1), 5.0, ramp, 0)
    progress.update(live(sent=11, ended=1), 0.0, hold, 1200)
    first, second = stream.getvalue().splitlines()
    assert first == "ramp (2 of 3)  0 done  15 s left  0.0 req/s  1 in flight  0 errors"
    assert second == ("hold\\x1b[2J (3 of 3)  0/40  0 s  0.0 req/s  10 in flight  1,200 waiting  0 errors")


def test_rates_are_those_of_the_last_two_seconds() -> None:
    stream = io.StringIO()
    progress = Progress(stream, "plain", [MEASURED])
    for second, ended in enumerate([0, 100, 200, 203, 206, 210]):
        progress.update(live(ended=ended, tokens=10 * ended), float(second), MEASURED, 0)
    assert (
        stream.getvalue().splitlines()[-1]
        == "measured  210 done  5 s  3.5 req/s  35 tok/s  0 in flight  0 errors"
    )


def test_a_closed_terminal_does_not_end_the_run() -> None:
    stream = Screen()
    progress = Progress(stream, "simple", [MEASURED])
    stream.close()
    progress.update(live(), 0.0, MEASURED, 0)
    progress.say("x")
    progress.close()


def test_standard_output_is_never_touched(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(Screen(), "simple", [bounded(1)])
    progress.update(live(), 0.0, bounded(1), 0)
    progress.say("x")
    progress.close()
    assert capsys.readouterr() == ("", "")


def test_none_shows_nothing_but_what_is_said():
    stream = io.StringIO()
    progress = Progress(stream, "none", [MEASURED])
    progress.announce("where it goes")
    progress.update(live(), 0.0, MEASURED, 0)
    progress.say("worker 0 died")
    progress.close()
    assert stream.getvalue() == "worker 0 died\n"
