"""What the summary and the table say of windows, slices, turns and lengths."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from loadstone.export import report_csv
from loadstone.export._windows import slices, steady
from loadstone.export.console import render
from loadstone.report import Group, MetricResult, Report, Trend, Window


def number(value: float) -> MetricResult:
    return MetricResult(unit="tokens/s", better="higher", count=1, mean=value, p50=value)


def with_steady(report: Report, throughput: float, *trends: Trend) -> Report:
    """The same with a steady state that had this throughput; all that was measured had 1,254.3 tokens/s."""
    metrics = {"output_token_throughput": number(throughput), "concurrency": number(8.0)}
    window = Window(
        name="steady", planned=150, counts={"ok": 150}, metrics=metrics, start_s=1.25, end_s=16.0, share=0.72, trends=trends
    )  # fmt: skip
    return replace(report, windows=(window,))


def test_a_steady_state_with_another_throughput_has_a_line(valid: Report) -> None:
    told = "steady state 1.2-16.0 s (72 %): 1,400 tok/s · 8.00 in flight"
    assert steady(with_steady(valid, 1400.0), 100) == [told]
    assert told in render(with_steady(valid, 1400.0), width=100, color=False).splitlines()


def test_one_within_3_percent_is_the_same(valid: Report) -> None:
    same = ["steady state 1.2-16.0 s (72 %): the same within 3 %"]
    assert steady(with_steady(valid, 1254.3 * 1.029), 100) == same
    assert steady(with_steady(valid, 1254.3 * 0.971), 100) == same
    assert "tok/s" in steady(with_steady(valid, 1254.3 * 1.031), 100)[0]
    assert "tok/s" in steady(with_steady(valid, 1254.3 * 0.969), 100)[0]


def test_what_went_on_changing_in_the_same_is_said_too(valid: Report) -> None:
    (line,) = steady(
        with_steady(valid, 1254.3, Trend(of="request_latency", found=True, change_percent=9.0)), 100
    )
    assert line.endswith(": the same within 3 % · request latency rose by 9 % in it")


def test_without_tokens_it_is_known_by_its_requests(valid: Report) -> None:
    windowed = with_steady(valid, 1.0)
    (window,) = windowed.windows
    for requests, told in ((9.9, "the same within 3 %"), (12.0, "12.0 requests/s · 8.00 in flight")):
        own = {**window.metrics, "request_throughput": number(requests)}
        del own["output_token_throughput"]
        report = replace(windowed, windows=(replace(window, metrics=own),))
        assert steady(report, 100) == [f"steady state 1.2-16.0 s (72 %): {told}"]


def sliced(report: Report, *rates: float, last_complete: bool = True) -> Report:
    """The same with slices of 5 s that had these throughputs."""
    found = [
        Window(name="", planned=1, counts={}, metrics={"output_token_throughput": number(rate)}, start_s=5.0 * n, end_s=5.0 * n + 5)
        for n, rate in enumerate(rates)
    ]  # fmt: skip
    return replace(report, timeslices=(*found[:-1], replace(found[-1], complete=last_complete)))


def test_slices_have_a_line_that_says_where_they_are(valid: Report) -> None:
    told = "3 slices of 5 s: 90.0 to 120 tok/s (report.csv; timeslices in report.json)"
    assert slices(sliced(valid, 100.0, 120.0, 90.0), 100) == [told]
    assert told in render(sliced(valid, 100.0, 120.0, 90.0), width=100, color=False).splitlines()
    assert slices(valid, 100) == []


def test_a_last_slice_that_is_shorter_is_not_in_the_range(valid: Report) -> None:
    (line,) = slices(sliced(valid, 100.0, 120.0, 9.0, last_complete=False), 100)
    assert line.startswith("2 slices of 5 s and a shorter one: 100 to 120 tok/s (")


def test_what_went_on_changing_is_said(valid: Report) -> None:
    trends = (
        Trend(of="request_latency", found=True, change_percent=12.34, p=0.001),
        Trend(of="time_to_first_token", found=False, change_percent=9.0, p=0.2),
        Trend(of="request_throughput", found=True, change_percent=-7.0, p=0.001),
    )
    (line,) = steady(with_steady(valid, 1400.0, *trends), 200)
    assert line.endswith(
        "in flight · request latency rose by 12.3 % in it · request throughput fell by 7 % in it"
    )


def test_without_a_steady_state_there_is_no_line(valid: Report) -> None:
    none = Window(
        name="steady", planned=0, counts={}, metrics={}, start_s=None, end_s=None, reason="too short."
    )
    assert steady(replace(valid, windows=(none,)), 100) == []
    assert steady(valid, 100) == []


def test_each_window_slice_turn_and_length_has_rows(valid: Report, tmp_path: Path) -> None:
    def window(name: str) -> Window:
        return Window(name=name, planned=1, counts={}, metrics={"m": number(1.0)}, start_s=0.0, end_s=1.0)

    def group(name: str) -> Group:
        return Group(name=name, planned=1, counts={}, metrics={"m": number(1.0)})

    several = replace(
        valid,
        metrics={"m": number(1.0)},
        turns=(group("0"), group("1")),
        lengths=(group("64-127"), group("128-255")),
        windows=(window("whole"), window("measured"), window("steady")),
        timeslices=(window("0-10 s"), window("10-12.5 s")),
    )
    report_csv.write(several, tmp_path)
    lines = (tmp_path / "report.csv").read_text().splitlines()
    parts = [line.rpartition(",")[2] for line in lines if ",count," in line]
    assert parts == [
        "", "turn 0", "turn 1", "length 64-127", "length 128-255", "window whole", "window steady", "slice 0-10 s",
        "slice 10-12.5 s",
    ]  # fmt: skip
