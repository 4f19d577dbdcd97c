"""Progress of a run on one line of stderr: redrawn in place on a terminal, plain lines everywhere else.

One rule: standard output is never touched, and escape codes go to a terminal only. The numbers are those of
the board (percentiles within an eighth) and are for watching; results come from the recording.
"""

from __future__ import annotations

import io
import os
import select
from collections import deque
from collections.abc import Sequence
from typing import Literal, NamedTuple, TextIO

from loadstone.board import Field, Histogram, Live
from loadstone.clock import SECOND_NS
from loadstone.plan.schedule import Phase
from loadstone.terminal import fit, paint, printable, wants_color

RATE_SPAN_S = 2.0
"""Rates are means over the last two seconds: short enough to be now, long enough to be calm."""
PLAIN_EVERY_S = 5.0
PLAIN_EVERY_LATER_S = 10.0
LATER_S = 60.0
FALLBACK_WIDTH = 80
BARS = ((140, 30), (100, 20), (60, 10))
"""Cells of the bar from which width on; of the width alone, so that it stands still while numbers grow."""

CLEAR = "\r\x1b[K"
WRAP_OFF, WRAP_ON = "\x1b[?7l", "\x1b[?7h"


class Sample(NamedTuple):
    """What rates are made of."""

    elapsed_s: float
    ended: int
    tokens: int


class Now(NamedTuple):
    """The state of one phase as it is shown."""

    phase: str
    done: int
    planned: int | None
    share: float | None
    """Part of the phase that is over, 0 to 1; None when its end is not known."""
    in_flight: int
    queued: int
    requests_per_s: float
    tokens_per_s: float
    ttft_ms: tuple[float, float] | None
    """p50 and p99."""
    failed: int
    elapsed_s: float
    left_s: float | None


def since(live: Live, start: Live) -> Live:
    """What was counted after `start`: a phase's own numbers. Levels are of no use in it."""
    fields = [now - then for now, then in zip(live.fields, start.fields, strict=True)]
    histograms = [
        [now - then for now, then in zip(*pair, strict=True)]
        for pair in zip(live.histograms, start.histograms, strict=True)
    ]
    return Live(fields, histograms)


def share_done(done: int, elapsed_s: float, planned: int | None, duration_s: float | None) -> float | None:
    """How much of a phase is over: by whichever of its limits is nearer; None without a limit."""
    shares = [done / planned] if planned else []
    shares += [elapsed_s / duration_s] if duration_s else []
    return min(max(shares), 1.0) if shares else None


def left_s(share: float | None, elapsed_s: float) -> float | None:
    """Seconds that remain if the phase goes on as it went; None while nothing is known."""
    return elapsed_s / share - elapsed_s if share else None


def line(now: Now, width: int, *, bars: bool = False, color: bool = False) -> str:
    """One line of at most `width` cells: what matters least is left out first."""
    cells = (
        next((cells for least, cells in BARS if width >= least), 0) if bars and now.share is not None else 0
    )
    head = f"{now.phase}  {bar(now.share, cells)}".rstrip()
    parts = [part for part in _parts(now) if part]
    while len("  ".join([head, *parts])) > width and len(parts) > 2:
        parts.pop(-2)
    text = fit("  ".join([head, *parts]), width)
    failed = _errors(now.failed)
    return text.replace(failed, paint(failed, "red", color and now.failed > 0), 1)


def _parts(now: Now) -> Sequence[str]:
    """From the most important to the least; but the errors, last, are never left out."""
    return (
        f"{now.done:,}/{now.planned:,}" if now.planned else f"{now.done:,} done",
        _time(now),
        f"{now.requests_per_s:,.1f} req/s",
        f"{now.tokens_per_s:,.0f} tok/s" if now.tokens_per_s else "",
        f"{now.in_flight:,} in flight",
        "TTFT p50 {:,.0f} p99 {:,.0f} ms".format(*now.ttft_ms) if now.ttft_ms else "",
        f"{now.queued:,} waiting" if now.queued > 0 else "",
        _errors(now.failed),
    )


def _time(now: Now) -> str:
    """What is left of the phase, or since when it goes on; when its time is over, answers are awaited."""
    if now.left_s is None:
        return clock(now.elapsed_s)
    return f"{clock(now.left_s)} left" if now.share != 1.0 else "ending"


def _errors(failed: int) -> str:
    return f"{failed:,} error" if failed == 1 else f"{failed:,} errors"


def bar(share: float | None, cells: int) -> str:
    """A bar of `cells` cells, `share` of it full."""
    full = int((share or 0.0) * cells)
    return "█" * full + "░" * (cells - full)


def clock(seconds: float | None) -> str:
    """A duration for watching: `42 s`, `3:07`, `1:02:05`."""
    whole = max(round(seconds or 0.0), 0)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{rest:02d}"
    return f"{minutes}:{rest:02d}" if minutes else f"{rest} s"


class Progress:
    """Shows how a run goes. `mode` `simple` redraws one line if `stream` is a terminal, else it prints lines, as
    `plain` always does; `none` shows only what is said.

    `phases` are those of the run; a phase is shown with its own limits. The coordinator calls `update` four times a
    second and `close` at the end.
    """

    def __init__(
        self,
        stream: TextIO,
        mode: Literal["simple", "plain", "none"],
        phases: Sequence[Phase],
    ) -> None:
        self._stream = stream
        self._quiet = mode == "none"
        self._redraws = mode == "simple" and stream.isatty() and os.environ.get("TERM") != "dumb"
        self._color = self._redraws and wants_color(stream, os.environ)
        self._places = _places(phases)
        self._phase: Phase | None = None
        self._start: Live | None = None
        self._samples: deque[Sample] = deque()
        self._next_line_s = 0.0

    def update(
        self, live: Live, elapsed_s: float, phase: Phase, waiting: int, took_s: float | None = None
    ) -> None:
        """Shows the board's present sum, `elapsed_s` seconds into `phase`, while `waiting` requests are due and not sent.

        `took_s`: how long whoever watches has waited for that, where it is not as long.
        """
        took_s = elapsed_s if took_s is None else took_s
        if phase != self._phase or self._start is None:
            self._begin(live, phase)
        now = self._now(live, since(live, self._start or live), elapsed_s, phase, waiting, took_s)
        if self._redraws:
            self._draw(
                WRAP_OFF + CLEAR + line(now, self._width() - 1, bars=True, color=self._color) + WRAP_ON
            )
        elif took_s >= self._next_line_s and not self._quiet:
            self._next_line_s = took_s + (PLAIN_EVERY_S if took_s < LATER_S else PLAIN_EVERY_LATER_S)
            self._draw(line(now, 1000) + "\n")

    def announce(self, text: str) -> None:
        """Says what goes well; `none` does without."""
        if not self._quiet:
            self.say(text)

    def say(self, text: str) -> None:
        """Prints one line of its own; a line being redrawn makes room for it."""
        self._draw((CLEAR if self._redraws else "") + printable(text) + "\n")

    def close(self) -> None:
        """Takes the redrawn line away; plain lines stay."""
        if self._redraws:
            self._draw(CLEAR)

    def _begin(self, live: Live, phase: Phase) -> None:
        self._phase, self._start, self._next_line_s = phase, live, 0.0
        self._samples.clear()

    def _now(self, live: Live, own: Live, elapsed_s: float, phase: Phase, waiting: int, took_s: float) -> Now:
        done, tokens = own.fields[Field.ENDED], own.fields[Field.TOKENS]
        duration_s = None if phase.duration_ns is None else phase.duration_ns / SECOND_NS
        share = share_done(done, elapsed_s, phase.requests, duration_s)
        requests_per_s, tokens_per_s = self._rates(Sample(elapsed_s, done, tokens))
        return Now(
            phase=printable(phase.name) + self._places.get(phase.name, ""),
            done=done,
            planned=phase.requests,
            share=share,
            in_flight=max(live.fields[Field.SENT] - live.fields[Field.ENDED], 0),
            queued=waiting,
            requests_per_s=requests_per_s,
            tokens_per_s=tokens_per_s,
            ttft_ms=_ttft_ms(own),
            failed=own.fields[Field.FAILED],
            elapsed_s=elapsed_s,
            left_s=left_s(share, took_s),
        )

    def _rates(self, sample: Sample) -> tuple[float, float]:
        """Requests and tokens a second over the last `RATE_SPAN_S`."""
        self._samples.append(sample)
        while len(self._samples) > 2 and sample.elapsed_s - self._samples[1].elapsed_s >= RATE_SPAN_S:
            self._samples.popleft()
        first = self._samples[0]
        span_s = sample.elapsed_s - first.elapsed_s
        if span_s <= 0:
            return 0.0, 0.0
        return (sample.ended - first.ended) / span_s, (sample.tokens - first.tokens) / span_s

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or FALLBACK_WIDTH
        except OSError:
            return FALLBACK_WIDTH

    def _draw(self, text: str) -> None:
        """Progress must never end a run: a closed or full terminal is no reason to stop measuring."""
        try:
            if _takes(self._stream):
                self._stream.write(text)
                self._stream.flush()
        except (OSError, ValueError):
            self._redraws = self._color = False


def _places(phases: Sequence[Phase]) -> dict[str, str]:
    """Which of how many each phase is, to stand behind its name; nothing where one alone is measured."""
    if sum(phase.kind == "measured" for phase in phases) < 2:
        return {}
    return {phase.name: f" ({number} of {len(phases)})" for number, phase in enumerate(phases, 1)}


def _takes(stream: TextIO) -> bool:
    """Whether a write returns at once: not so when the reader of a pipe has stopped reading, and main must go on.

    A pipe that can be written to takes some thousand bytes, more than any line has. Raises `OSError`, `ValueError`.
    """
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:  # in memory
        return True
    watch = select.poll()
    watch.register(descriptor, select.POLLOUT)
    return bool(watch.poll(0))


def _ttft_ms(live: Live) -> tuple[float, float] | None:
    p50, p99 = (live.quantile_us(Histogram.TTFT, share) for share in (0.5, 0.99))
    return (p50 / 1e3, p99 / 1e3) if p50 is not None and p99 is not None else None
