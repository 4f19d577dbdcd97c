"""What metrics look at: the requests of the measured phases as columns, their token streams part by part, the run's log.

The scalar columns of all requests are in memory; the list columns, which grow with every token, are read again
from the file, some ten thousand tokens at a time, by whoever needs them. Whoever wants the numbers of a phase, a server
or a model takes the tables of it (`of_phases`, `only`) and asks the same metrics. Knows no metric.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from loadstone.config import Config
from loadstone.folder import PhaseLog, RunLog
from loadstone.metrics import _columns, _flow, _pace, _pauses, _streams
from loadstone.plan import schedule
from loadstone.plan.schedule import Phase
from loadstone.read.outcome import (
    CANCELLED_AS_PLANNED,
    CENSORED,
    CLIENT_FAULT,
    FAILURES,
    NOT_SENT,
    SUCCESSES,
    TIMEOUT_CONNECT,
    TIMEOUT_FIRST_TOKEN,
    TIMEOUT_IDLE,
    TIMEOUT_TOTAL,
    TOO_LARGE,
)
from loadstone.read.schema import completed

Ints = NDArray[np.int64]

OUT_OF_TIME = frozenset({TIMEOUT_FIRST_TOKEN, TIMEOUT_IDLE, TIMEOUT_TOTAL})
"""Under way when a time limit of ours ended them."""
ENDED_BY_CLIENT = CENSORED | OUT_OF_TIME | {TIMEOUT_CONNECT, TOO_LARGE, CLIENT_FAULT}
"""Outcomes whose end is a moment of the client's choosing and no event of the server's."""

_TURN = pl.col("turn").fill_null(0)
_OPENS = (_TURN.min().over("phase", "conversation") == _TURN).alias("opens")
"""Whether a request is the first one planned of its conversation."""

_READ_TOKENS = 1 << 17
"""Tokens read together, about one row group of the file; one token is 20 bytes in the list columns."""
_PART_TOKENS = 1 << 15
"""Tokens looked at together, so that temporary arrays stay small."""


@dataclass(frozen=True, eq=False)
class Tables:
    """The measured phases of one run, or a part of them.

    `requests` has one row a request, in the columns `HELD` of `metrics._columns`, `phase` and `opens` (see there); `column`
    has any other. Arrays that have one entry a request are in its order. Build it with `Tables.read`.
    """

    requests: pl.DataFrame
    run: RunLog
    phases: tuple[PhaseLog, ...]
    """The phases that are looked at, in the order of the run; none when it never came to one of them."""
    _table: pl.LazyFrame
    _at: Ints
    """Where in the table every request stands."""
    _whole: Tables | None = None
    """The requests whose window this part of them has."""

    @classmethod
    def read(cls, table: pl.LazyFrame, run: RunLog, phases: Collection[str] | None = None) -> Tables:
        """The tables of a run from its `requests.parquet` (or any frame in those columns, later ones may be missing).

        Of its measured phases, or of those with the names `phases`.
        """
        table = completed(table)
        logs = tuple(
            log for log in run.phases if (log.kind == "measured" if phases is None else log.name in phases)
        )
        names = [log.name for log in logs]
        requests, at = _columns.held(table, names)
        several = requests.select(_TURN.n_unique()).item() > 1  # else there is nothing to be grouped
        opens = _OPENS if several else pl.lit(True).alias("opens")
        return cls(requests.with_columns(opens), run, logs, table, at)

    def only(self, chosen: NDArray[np.bool_]) -> Tables:
        """The same with those requests alone for which `chosen`, one entry a request, is true."""
        return replace(self, requests=self.requests.filter(pl.Series(chosen)), _at=self._at[chosen])

    def part(self, chosen: NDArray[np.bool_]) -> Tables:
        """As `only`, with the windows of these tables, so that the rates of the parts of a whole add up to its own."""
        return replace(self.only(chosen), _whole=self)

    @property
    def whole(self) -> tuple[Tables, Ints]:
        """The tables that have the window of these by themselves, and where in them these requests stand."""
        if self._whole is None:
            return self, np.arange(len(self._at))
        whole, _ = self._whole.whole
        return whole, np.searchsorted(whole._at, self._at)

    @property
    def apart(self) -> bool:
        """Whether these are some of the requests of their window, beside others that are not here."""
        return self._whole is not None

    def of_phases(self, *names: str) -> Tables:
        """The same with those phases alone."""
        kept = tuple(log for log in self.phases if log.name in names)
        if kept == self.phases:
            return self
        chosen = self.requests["phase"].cast(pl.String).is_in(list(names)).to_numpy()
        whole = None if self._whole is None else self._whole.of_phases(*names)
        return replace(self.only(chosen), phases=kept, _whole=whole)

    @cached_property
    def by_phase(self) -> tuple[Tables, ...]:
        """The tables of every phase by itself."""
        return tuple(self.of_phases(log.name) for log in self.phases)

    @cached_property
    def config(self) -> Config:
        """The resolved config of the run."""
        return msgspec.convert(self.run.config, Config)

    @property
    def streaming(self) -> bool:
        """Whether answers were asked for as streams."""
        return self.config.endpoint.streaming

    @cached_property
    def loads(self) -> tuple[Phase, ...]:
        """The load that each of the phases was to have; of a run that came to none of them, of its measured ones."""
        asked = schedule.phases(self.config.load, self.config.input)
        names = {log.name for log in self.phases}
        told = tuple(phase for phase in asked if phase.name in names)
        return told or tuple(phase for phase in asked if phase.kind == "measured")

    @property
    def has_rate(self) -> bool:
        """Whether requests had due times of their own (open loop, capped or not), in every phase."""
        return all(load.timed for load in self.loads)

    @property
    def has_cap(self) -> bool:
        """Whether requests with due times of their own had to wait for a slot, or for one of the prefill, in any phase."""
        return any(capped(load) for load in self.loads)

    @property
    def has_limit(self) -> bool:
        """Whether a request that was due may have had to wait for anything but the client, in any phase."""
        return any(limited(load) for load in self.loads)

    @cached_property
    def unmeasured(self) -> pl.DataFrame:
        """How the requests of all other phases of the run ended: `phase`, `outcome`, `fault`, and how many did (`count`)."""
        others = [log.name for log in self.run.phases if log not in self.phases]
        kinds = self._table.filter(pl.col("phase").is_in(others)).group_by("phase", "outcome", "fault")
        return kinds.agg(pl.len().cast(pl.Int64).alias("count")).sort(pl.all()).collect()

    def beside(self, *columns: str) -> pl.DataFrame:
        """These columns of all requests that went to the same servers and models as these, in whatever phase of the run."""
        same = [
            pl.col(name).is_in(self.requests[name].drop_nulls().unique().to_list()) | pl.col(name).is_null()
            for name in ("target", "model")
        ]
        return self._table.filter(*same).select(columns).collect()

    @property
    def goodput(self) -> dict[str, float]:
        """The objectives that one request has to meet, by metric, in display units."""
        return self.config.slo.goodput

    @property
    def start_ns(self) -> int | None:
        """When the first of the phases began; None when the run came to none."""
        return min((log.start_ns for log in self.phases), default=None)

    def of_phase(self, moment: str) -> pl.Series:
        """For every request a moment of its own phase: `start_ns`, `stop_ns` or `end_ns` of the log."""
        return self._by_phase({log.name: getattr(log, moment) for log in self.phases})

    def _by_phase(self, moments: dict[str, int]) -> pl.Series:
        """For every request the one of these moments that its phase has."""
        name = self.requests["phase"].cast(pl.String)
        return name.replace_strict(moments, default=None, return_dtype=pl.Int64)

    @cached_property
    def succeeded(self) -> NDArray[np.bool_]:
        """For every request, whether its answer is whole."""
        return self.requests["outcome"].is_in(list(SUCCESSES)).to_numpy()

    @cached_property
    def failed(self) -> NDArray[np.bool_]:
        """For every request, whether the server failed it; what we ended, lost or never sent is no failure of its."""
        return self.requests["outcome"].is_in(list(FAILURES)).to_numpy()

    @cached_property
    def attempted(self) -> NDArray[np.bool_]:
        """For every request, whether it was sent, or that was tried: neither not-sent nor lost."""
        attempted: NDArray[np.bool_] = (self.requests["outcome"] != NOT_SENT).to_numpy() & ~self.lost
        return attempted

    @cached_property
    def lost(self) -> NDArray[np.bool_]:
        """For every request, whether the client itself lost it before it was sent, as with a worker that died."""
        lost = (pl.col("outcome") == CLIENT_FAULT) & pl.col("sent_ns").is_null()
        return self.requests.select(lost).to_series().to_numpy()

    @cached_property
    def unsent(self) -> NDArray[np.bool_]:
        """For every request, whether it was due and never sent, though the client had not lost it."""
        unsent: NDArray[np.bool_] = ~self.attempted & ~self.lost & ~self.never_due
        return unsent

    @cached_property
    def censored(self) -> NDArray[np.bool_]:
        """For every request, whether it was still under way when we ended it."""
        return self.requests["outcome"].is_in(list(CENSORED)).to_numpy()

    @cached_property
    def cancelled(self) -> NDArray[np.bool_]:
        """For every request, whether we ended it because the plan said so; they are censored as well."""
        return (self.requests["outcome"] == CANCELLED_AS_PLANNED).to_numpy()

    @cached_property
    def never_due(self) -> NDArray[np.bool_]:
        """For every request, whether it was never sent and had no due time: the turn before it had not ended."""
        unknown = self.requests["due_ns"].is_null().to_numpy()
        never: NDArray[np.bool_] = ~self.attempted & ~self.lost & unknown
        return never

    @cached_property
    def cut_off(self) -> NDArray[np.bool_]:
        """For every request, whether it had waited and would have waited longer when we cut it off.

        That is with the run, or at a time limit, though the latter is a failure of the server all the same.
        """
        return self.requests["outcome"].is_in(list(CENSORED | OUT_OF_TIME)).to_numpy()

    @cached_property
    def brought(self) -> NDArray[np.bool_]:
        """For every request, whether any output came for it, whatever became of it and whether it was counted or not."""
        came = (self.column(name) > 0 for name in ("text_chars", "reasoning_chars", "output_tokens"))
        some = reduce(or_, (one.fill_null(False) for one in came), self.requests["first_ns"].is_not_null())
        return some.to_numpy() | self.succeeded

    @cached_property
    def coalesced(self) -> NDArray[np.bool_]:
        """For every request, whether its output is several events that one read completed: none has its own moment."""
        return self.requests["coalesced"].fill_null(False).to_numpy()

    @cached_property
    def came_whole(self) -> NDArray[np.bool_]:
        """For every request, whether a stream was asked for and the answer came as one body."""
        return ~self.requests["streamed"].fill_null(True).to_numpy() & self.streaming

    @cached_property
    def stretches(self) -> tuple[Tables, ...]:
        """The tables of every stretch of time: phases of which the next began before the one before had ended are one.

        Between two stretches nothing of these phases was going on, so no rate and no level counts that time.
        """
        groups: list[list[PhaseLog]] = []
        for log in sorted(self.phases, key=lambda log: log.start_ns):
            if groups and log.start_ns < max(before.end_ns for before in groups[-1]):
                groups[-1].append(log)
            else:
                groups.append([log])
        if len(groups) < 2:
            return (self,)
        return tuple(self.of_phases(*(log.name for log in group)) for group in groups)

    @cached_property
    def sending_order(self) -> Ints:
        """Where the requests stand in the order in which they were sent; one that never was stands where it was due."""
        sent_ns = self.requests.select(pl.coalesce("sent_ns", "due_ns")).to_series()
        return sent_ns.arg_sort(nulls_last=True).cast(pl.Int64).to_numpy()

    @cached_property
    def window_ns(self) -> tuple[int, int] | None:
        """From the first send to the last event of the phases; None when nothing was sent.

        The moment at which the client ended a request, at a limit or with the run, is none of the server's events and
        does not count; what had come of the answer by then does. A part of a run has the window of the whole.
        """
        if self._whole is not None:
            return self._whole.window_ns
        ended = self.requests.select("sent_ns", "first_ns", "last_ns", self._ended().alias("done_ns"))
        sent = ended["sent_ns"].min()
        if not isinstance(sent, int):
            return None
        return sent, max(end for column in ended if isinstance(end := column.max(), int))

    def _ended(self) -> pl.Expr:
        return pl.when(~pl.col("outcome").is_in(list(ENDED_BY_CLIENT))).then(pl.col("done_ns"))

    @cached_property
    def heard_ns(self) -> pl.Series:
        """For every request the last moment at which anything of an answer, or its end, came; null: nothing did."""
        heard = pl.max_horizontal("first_ns", "last_ns", self._ended())
        return self.requests.select(heard.alias("heard_ns")).to_series()

    @cached_property
    def window_s(self) -> float:
        """The length of the windows of all stretches in seconds; 0 when nothing was sent."""
        windows = [stretch.window_ns for stretch in self.stretches]
        return sum((window[1] - window[0]) / 1e9 for window in windows if window)

    def ms(self, start: str, end: str) -> NDArray[np.float64]:
        """For every request the milliseconds between two of its moments; NaN where either never came."""
        difference = self.column(end) - self.column(start)
        return (difference / 1e6).fill_null(float("nan")).to_numpy()

    def column(self, name: str) -> pl.Series:
        """For every request its entry in any scalar column of the table, held in memory or not."""
        held = name in self.requests.columns
        return self.requests[name] if held else _columns.column(self._table, name, self._at)

    def number(self, name: str) -> NDArray[np.float64]:
        """For every request the number in column `name`; NaN where there is none."""
        return self.column(name).cast(pl.Float64).fill_null(float("nan")).to_numpy()

    def until_complete_ms(self, start: str) -> NDArray[np.float64]:
        """For every request the milliseconds from `start` until the answer was complete for its user.

        That is its last token; without streaming, and where the server did not stream, the end of the response.
        """
        whole = self.came_whole | (not self.streaming)
        return np.where(whole, self.ms(start, "done_ns"), self.ms(start, "last_ns"))

    def cut_off_ms(self, start: str) -> NDArray[np.float64]:
        """For every request that was cut off, the milliseconds from `start` until then; NaN for all others.

        Counted from the due time, also for those that were never sent because the load was stopped: until they were given
        up (`left_queue_ns`).
        """
        ended_ms = np.where(self.cut_off, self.ms(start, "done_ns"), np.nan)
        if start != "due_ns":
            return ended_ms
        waited = (self.left_queue_ns - self.requests["due_ns"]) / 1e6
        waited_ms = waited.fill_null(float("nan")).to_numpy()
        return np.where(self.unsent & (waited_ms >= 0), waited_ms, ended_ms)

    @cached_property
    def left_queue_ns(self) -> pl.Series:
        """For every request the moment it no longer waited to be sent; null where it was never due.

        That is when it was sent; of one that never was, when it was given up, and else when its phase sent no such request
        any more: after the stop, or at the end where what was due went on being sent.
        """
        opens, follows = (self._sends_until_ns(later) for later in (False, True))
        until = pl.when(pl.Series(self.opens)).then(opens).otherwise(follows)
        left = pl.when(pl.col("due_ns").is_not_null()).then(pl.coalesce("sent_ns", "done_ns", until))
        return self.requests.select(left.alias("left_queue_ns")).to_series()

    def _sends_until_ns(self, later: bool) -> pl.Series:
        """For every request when its phase sends nothing any more; of `later` turns, or of those that open a conversation."""
        loads = {load.name: load for load in self.loads}
        goes_on = {log.name for log in self.phases if _goes_on(loads.get(log.name), log, later)}
        return self._by_phase(
            {log.name: log.end_ns if log.name in goes_on else log.stop_ns for log in self.phases}
        )

    @cached_property
    def left_ns(self) -> pl.Series:
        """For every request the moment it stopped being in flight, whoever ended it; null where it never was."""
        end = pl.coalesce("done_ns", "last_ns", "sent_ns")
        return self.requests.select(pl.when(pl.col("sent_ns").is_not_null()).then(end)).to_series()

    @property
    def opens(self) -> NDArray[np.bool_]:
        """For every request, whether its conversation began with it: the first turn that was planned, whatever its number."""
        return self.requests["opens"].to_numpy()

    @cached_property
    def ready_ns(self) -> pl.Series:
        """For every request the moment from which on only a slot, and the client, stood between it and its sending.

        That is when it was due; where the turn before it in its conversation ended later, that end. Null where it was
        never due, and where the turn before never ended, or is not among these requests.
        """
        due = self.requests["due_ns"]
        if self.opens.all():
            return due.alias("ready_ns")
        turns = self.requests.select("phase", "conversation", "turn", "opens", left_ns=self.left_ns)
        left_ns, turn = (
            pl.col(name).shift(1).over("phase", "conversation", order_by="turn")
            for name in ("left_ns", "turn")
        )
        ended = turns.select("opens", left_ns=pl.when(turn == pl.col("turn") - 1).then(left_ns))
        known = pl.col("left_ns").is_not_null() & due.is_not_null()
        later = pl.when(known).then(pl.max_horizontal(due, "left_ns"))
        return ended.select(pl.when("opens").then(due).otherwise(later).alias("ready_ns")).to_series()

    @cached_property
    def several_choices(self) -> NDArray[np.bool_]:
        """For every request, whether its response held more than one answer."""
        return (self.requests["choices"] > 1).fill_null(False).to_numpy()

    @cached_property
    def pace(self) -> _pace.Pace | None:
        """Which time each request took up, of the window; None where none passed."""
        return _pace.pace(self)

    @cached_property
    def shape(self) -> _streams.Shape:
        """The token streams of all requests in numbers."""
        return _streams.shape(self)

    @cached_property
    def pauses(self) -> _pauses.Pauses:
        """The pauses within the answers of all requests."""
        return _pauses.pauses(self)

    @cached_property
    def flows(self) -> tuple[_flow.Flow, ...]:
        """Where the tokens fell in time, for every stretch in which time passed."""
        return tuple(flow for stretch in self.stretches if (flow := _flow.flow(stretch)))

    def parts(self, *columns: str) -> Iterator[tuple[int, pl.DataFrame]]:
        """All requests in parts of bounded size: position of the part's first request, and its columns."""
        rows = self._requests_of(_READ_TOKENS)
        for first, stop in _blocks(self._at, rows):
            for part in self._read(self._at[first:stop], columns).iter_slices(
                self._requests_of(_PART_TOKENS)
            ):
                yield first, part
                first += len(part)

    def _read(self, at: Ints, columns: tuple[str, ...]) -> pl.DataFrame:
        """Rows of the table that stand near each other."""
        start, stop = int(at[0]), int(at[-1]) + 1
        read = self._table.slice(start, stop - start).select(columns).collect()
        return read if len(at) == len(read) else read[at - start]

    def _requests_of(self, tokens: int) -> int:
        """How many requests bring that many tokens, on average; at least one."""
        mean = self.requests["output_tokens"].mean()
        return max(1, int(tokens / max(mean, 1.0))) if isinstance(mean, int | float) else 1000


def capped(load: Phase) -> bool:
    """Whether requests of a phase have due times of their own and may have to wait for a slot all the same."""
    return load.timed and not (load.slots is None and load.prefill is None)


def limited(load: Phase) -> bool:
    """Whether a request of a phase may have to wait for a limit of ours when it is due.

    So it may with a cap; and in a closed loop, where it is due when a slot frees, for a place of the prefill.
    """
    return capped(load) or load.prefill is not None


def _goes_on(load: Phase | None, log: PhaseLog, later: bool) -> bool:
    """Whether a phase went on sending what was due before its stop: `later` turns, or those that open a conversation.

    A queue that is drained is sent to its end, unless the phase is stopped before its time. Without a limit what was due
    goes out however late, but no turn follows another one any more.
    """
    if load is None:
        return False
    whole = load.duration_ns is not None and log.stop_ns - log.start_ns >= load.duration_ns
    return (load.drain_queue and whole) or not (later or capped(load))


def _blocks(at: Ints, rows: int) -> Iterator[tuple[int, int]]:
    """Stretches of `at` within which at most so many rows of the table lie."""
    first = 0
    while first < len(at):
        stop = int(np.searchsorted(at, at[first] + rows))
        yield first, stop
        first = stop
