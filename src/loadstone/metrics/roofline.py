"""Percent of roofline: how near a run came to what the datasheet of its hardware allows.

With --roofline the model and the devices are named, and the least time of every step follows: weights and KV cache at
the memory's full bandwidth or products at the full peak, whichever is longer, nothing else (docs/roofline.md). That is a
floor, whatever a calibration says of the real efficiency; good servers come to 60 to 85 % of it in decodes. The running
batch and its contexts are those seen by the client at every moment: an answer runs from its first token to its last, its
context is its prompt and what has come. Of several engines behind one address each is taken to have its equal share.

More than 100 % is impossible. Where it is seen, prompts were found in a prefix cache that the server does not tell of, tokens
are counted wrongly, or what runs is not what was named; the check `percent_of_roofline` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from loadstone.metrics import Each, Missing, Number, Result, Tables, metric
from loadstone.metrics._decoding import Course, Gaps, Ints, Prefills, alone, course, undisturbed
from loadstone.roofline.case import Case
from loadstone.roofline.cost import Roofline
from loadstone.roofline.fit import Point
from loadstone.roofline.work import Work, decodes
from loadstone.roofline.work import prompt as prompt_work
from loadstone.stats import Floats

ORDER = 25
KEY = "roofline"
"""Of `run.json`'s environment: the case, as `roofline.case.Case`."""
FINE = 512
"""Prompts are rounded down to this part of their length (cached tokens up), so that few lengths are worked out."""

_NO_GAP = "no answer brought more than one token as a stream."
_SEVERAL = "requests went to several servers or models; one roofline does not fit all."
_CHOICES = "a request asked for several answers at once, and how many ran is not known."


@metric(
    "inter_token_latency_of_roofline",
    unit="%",
    better="higher",
    needs=("roofline", "streaming", "success"),
)
def inter_token_latency_of_roofline(tables: Tables) -> Result:
    """Roofline's mean gap between tokens at the measured batches and contexts / the measured one.

    Over the time in which successful answers decoded: the tokens that came / those that could have come, had every step
    taken the floor for the batch that ran at that moment. Prefills that share steps with decodes take from it. With
    speculation every draft token is taken to be right, so it is a floor there too.
    """
    found = _decoded(tables)
    if isinstance(found, Missing):
        return found
    came, kept = _came(tables)
    moments = tables.requests.select("first_ns", "last_ns").filter(kept)
    first_s, last_s = ((moments[name] - found.course.origin_ns).to_numpy() / 1e9 for name in moments.columns)
    possible = float((found.tokens_by(last_s) - found.tokens_by(first_s)).sum())
    if not possible:
        return Missing(_NO_GAP)
    return Number(100 * float(came[kept].sum()) / possible)


@metric(
    "output_token_throughput_of_roofline",
    unit="%",
    better="higher",
    needs=("roofline", "streaming", "success", "window"),
)
def output_token_throughput_of_roofline(tables: Tables) -> Result:
    """Tokens after the first of successful answers / window, as a share of the roofline's at the measured batches.

    The latter is over that part of the window in which at least one answer decoded. First tokens are left out on both
    sides: steps of prompts make them. Unlike inter_token_latency_of_roofline this counts what prefills, waiting and idling
    take from the window, so it is low where little load was offered.
    """
    found = _decoded(tables)
    if isinstance(found, Missing):
        return found
    came, kept = _came(tables)
    if not kept.any():
        return Missing(_NO_GAP)
    return Number(100 * float(came[kept].sum()) / tables.window_s / found.throughput)


@metric(
    "time_to_first_token_of_roofline",
    unit="%",
    better="higher",
    needs=("roofline", "streaming", "success"),
)
def time_to_first_token_of_roofline(tables: Tables) -> Each | Missing:
    """Roofline's time of the prompt's prefill, alone and in one step / time_to_first_token, one value a request.

    Prompt tokens that the server says it had in its prefix cache (usage, cached tokens) are not computed again. Waiting
    behind other requests takes from it, so it is low under load.
    """
    if several(tables):
        return Missing(_SEVERAL)
    placed = case_of(tables)
    assert placed is not None  # the need
    prompt, cached = tables.number("input_tokens"), np.nan_to_num(tables.number("usage_cached_tokens"))
    floor_ms = _prefill_s(placed.roofline(), prompt, cached) * 1e3
    ttft_ms = np.where(tables.coalesced | tables.came_whole, np.nan, tables.ms("sent_ns", "first_ns"))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(ttft_ms > 0, 100 * floor_ms / ttft_ms, np.nan)
    return Each(share, "no answer brought an output token of a prompt whose length is known.")


def _came(tables: Tables) -> tuple[Floats, NDArray[np.bool_]]:
    """Of every request the tokens that came after its first ones, and whether they are counted: it is a stream that went well."""
    came = tables.shape.tokens - tables.shape.first_tokens
    kept = tables.succeeded & ~tables.coalesced & (tables.shape.span_ns > 0)
    return came, kept & np.isfinite(came) & (came > 0)


def case_of(tables: Tables) -> Case | None:
    """What the run was told that the server runs; None: nothing."""
    told = tables.run.environment.get(KEY)
    return None if told is None else msgspec.convert(told, Case)


class Decoded(NamedTuple):
    """What the roofline could have brought, as a function of time, with the batches that ran."""

    course: Course
    edges_s: Floats
    tokens: Floats
    """Up to each edge, for one sequence: the steps that fit."""
    throughput: float
    """Tokens per second of all sequences together, over the time of the window in which some ran."""

    def tokens_by(self, at_s: Floats) -> Floats:
        """Tokens that one sequence could have brought up to these moments."""
        return np.interp(at_s, self.edges_s, self.tokens)


def several(tables: Tables) -> bool:
    """Whether requests went to several servers or models."""
    return any(tables.requests[name].drop_nulls().n_unique() > 1 for name in ("target", "model"))


def _decoded(tables: Tables) -> Decoded | Missing:
    if several(tables):
        return Missing(_SEVERAL)
    if tables.several_choices.any():
        return Missing(_CHOICES)
    placed, found = case_of(tables), course(tables)
    assert placed is not None  # the need
    if found is None:
        return Missing(_NO_GAP)
    windows = [stretch.window_ns for stretch in tables.stretches]
    windows_s = np.array([(np.array(one) - found.origin_ns) / 1e9 for one in windows if one]).reshape(-1, 2)
    edges_s = np.unique(np.concatenate([found.first_s, found.last_s, windows_s.ravel()]))
    if len(edges_s) < 2:
        return Missing(_NO_GAP)
    middles_s = (edges_s[1:] + edges_s[:-1]) / 2
    spans_s, running = np.diff(edges_s), found.decoding(middles_s)
    steps = _steps(placed, running, found.context(middles_s), spans_s)
    begun, ended = (np.searchsorted(column, middles_s, "right") for column in windows_s.T)
    within = (begun > ended) & (running > 0)
    busy_s = float(spans_s[within].sum())
    every = float((steps * running)[within].sum())
    tokens = np.concatenate([[0.0], np.cumsum(steps)])
    return Decoded(found, edges_s, tokens, every / busy_s) if every else Missing(_NO_GAP)


def _steps(placed: Case, running: Ints, context: Floats, spans_s: Floats) -> Floats:
    """How many tokens a sequence could have brought in each span.

    With a batch given, a step's time is linear in its KV tokens; so three times are worked out for each batch there was.
    Engines that share experts have the tokens of all of them to route.
    """
    steps, data = np.zeros(len(spans_s)), placed.parallel.data
    for batch in np.unique(running[running > 0]).tolist():
        chosen = running == batch
        own = max(1, batch // placed.replicas)
        roofline = placed.roofline(others=(batch - own) / own / (data - 1) if data > 1 else None)
        kv = context[chosen] * own / batch
        window = np.minimum(kv, own * roofline.window) if roofline.window is not None else kv
        base = roofline.parts(_kv(own, 0, 0)).total
        by_kv = (roofline.parts(_kv(own, _MANY, 0)).total - base) / _MANY
        by_window = (roofline.parts(_kv(own, 0, _MANY)).total - base) / _MANY
        steps[chosen] = spans_s[chosen] / (base + kv * by_kv + window * by_window)
    return steps * (1 + placed.draft_tokens)


_MANY = 1 << 20
"""KV tokens between which the time of a step is taken to be a line."""


def _kv(sequences: int, kv_tokens: int, window_kv_tokens: int) -> Work:
    work = decodes(sequences, 0)
    work.kv_tokens = work.pairs = kv_tokens
    work.window_kv_tokens = work.window_pairs = window_kv_tokens
    return work


def _prefill_s(roofline: Roofline, prompt: Floats, cached: Floats) -> Floats:
    """The least time of each prompt; NaN where its length is not known."""
    known = np.isfinite(prompt) & (prompt > 0)
    had = np.minimum(_coarse(np.where(known, cached, 0.0), np.ceil), np.where(known, prompt - 1, 0.0))
    new = np.maximum(_coarse(np.where(known, prompt - had, 1.0), np.floor), 1.0)
    lengths, places = np.unique(np.stack([new, had]), axis=1, return_inverse=True)
    works = [prompt_work(int(new), int(had), roofline.window) for new, had in lengths.T]
    times = np.array([roofline.parts(work).total for work in works])
    found: Floats = np.where(known, times[places.reshape(-1)], np.nan)
    return found


def _coarse(tokens: Floats, rounded: np.ufunc) -> Floats:
    """Lengths on a grid of a `FINE`th part of theirs."""
    grid = 2.0 ** np.maximum(np.floor(np.log2(np.maximum(tokens, 1.0) / FINE)), 0.0)
    found: Floats = rounded(tokens / grid) * grid
    return found


LEAST_STEPS = 8
"""Steps of one batch and context from which on their median counts as a measured step: a batch that is passed through,
when answers end one after the other, is no state to measure."""
CONTEXT_BINS, PROMPT_BINS = 2, 4
"""For each doubling of a length."""
MOST_POINTS = 300


def points(tables: Tables, source: str, replicas: int = 1, window: int | None = None) -> list[Point]:
    """The steps of a run that can be dated: decodes while no prompt was taken in, and prompts that came alone.

    For a decode the median gap of all answers with so many under way (of one engine) and about so much context, for a
    prefill the median time to the first token of prompts of about one length. None where the run shows no such step.
    Answers that decode together tell of the same step, so what counts are steps, and not gaps.
    """
    found = None if tables.several_choices.any() else course(tables)
    if found is None:
        return []
    decoded = [*_decode_points(undisturbed(tables, found), source, replicas, window)]
    decoded.sort(key=lambda point: -point.samples)
    prefills = [*_prefill_points(alone(tables, found), source, window)]
    return sorted([*decoded[:MOST_POINTS], *prefills], key=lambda one: (one.kind, one.sequences, one.tokens))


def _decode_points(gaps: Gaps, source: str, replicas: int, window: int | None) -> Iterator[Point]:
    own = np.maximum(gaps.decoding // replicas, 1)
    length = np.round(CONTEXT_BINS * np.log2(np.maximum(gaps.context, 1.0))).astype(np.int64)
    for chosen in _alike(own, length):
        steps = float((replicas / gaps.decoding[chosen]).sum())
        if steps >= LEAST_STEPS - 0.5:
            batch, context = int(own[chosen[0]]), round(float(np.median(gaps.context[chosen])))
            seconds = float(np.median(gaps.seconds[chosen]))
            work = decodes(batch, context, window)
            yield Point("decode", work, seconds, round(steps), batch, context, source)


def _prefill_points(prefills: Prefills, source: str, window: int | None) -> Iterator[Point]:
    cached = np.minimum(prefills.cached, prefills.prompt - 1)
    new = prefills.prompt - cached
    length = np.round(PROMPT_BINS * np.log2(np.maximum(new, 1))).astype(np.int64)
    for chosen in _alike(length, np.round(np.log2(np.maximum(cached, 1))).astype(np.int64)):
        tokens, had = (round(float(np.median(column[chosen]))) for column in (new, cached))
        seconds = float(np.median(prefills.seconds[chosen]))
        work = prompt_work(tokens, had, window)
        yield Point("prefill", work, seconds, len(chosen), 1, tokens, source)


def _alike(first: Ints, second: Ints) -> Iterator[Ints]:
    """Positions with the same pair of numbers, pair by pair."""
    if not len(first):
        return
    order = np.lexsort((second, first))
    edges = np.flatnonzero((np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)) + 1
    yield from np.split(order, edges)
