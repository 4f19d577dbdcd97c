"""Latency: how long a user waited.

Over successes only; failures are counted apart and never enter a latency. Times are differences of the five
instants (due, sent, first, last, done); arrivals are the kernel's stamps where it gives them.

A request that we ended while it was under way, with the run (`cut`, `cancelled`) or at a time limit
(`timeout-first-token`, `timeout-idle`, `timeout-total`), is *cut off*. The plain percentiles leave such requests out.
That can make latencies too low, since the slow ones are cut off, and times to first token wrong either way, since who
got a long answer is left out however early it began. So wherever a request's time counts from `sent` or `due`, the
percentiles stand in the report a second time with these requests taken into account (`with_censored`, in the summary the
row "with N cut off"): right-censored, by the product-limit estimator (Kaplan and Meier, 1958). A request cut off is a
full observation when the metric's end had come by then, and else is only known to have taken longer (`censored`).
Counted from `due`, so are requests that were due and never sent, until their phase stopped. A percentile is read as the
smallest time t with S(t) <= 1 - q; with nothing cut off that is the sample of rank ceil(q n), while the plain
percentiles are interpolated between two samples. One that the curve does not come down to is null, and is at least the
longest time seen. It is taken that a request cut off would have gone on like others that had lasted as long. Where
requests wait longer and longer it would have taken longer still, since who still waited came late: so where a run was saturated,
or its queue at the client was growing, these percentiles of times from `due` (without a limit of ours: of those from `sent`
as well) are lower bounds, of which `with_censored_at_least` tells; the summary has them with a `>`. With --drain-queue there
is nothing to be guessed.

An answer of two or more token events that one read completed is *coalesced*, whatever came later: nobody can tell when
its tokens came. It is left out of everything that looks at them, and kept where only its end counts.

Of several answers to one request (choices) each is a stream of its own: gaps lie within one choice, the first token
is the first of any, and the last token the last of any.

Each time from `sent` stands here from `due` as well: what a user waits who comes at the planned moment, in the queue for
a slot too. From `sent` alone a queue is not seen at all (the coordinated omission described by Gil Tene). A turn that
follows another one is due when that one has ended, its think time later.
"""

from __future__ import annotations

import numpy as np

from loadstone.metrics import Each, Missing, Samples, Tables, metric
from loadstone.metrics._pools import gaps
from loadstone.stats import Floats

ORDER = 10

_NO_TOKEN = "no answer brought an output token."
_ONE_PIECE = "every answer came in one piece, so there is no gap between tokens."
_COALESCED = "every answer came in one piece, so when its first token came cannot be told."
_WHOLE = "no answer came as a stream, so its first token cannot be told from its last."


@metric("time_to_first_token", unit="ms", better="lower", needs=("streaming", "success"))
def time_to_first_token(tables: Tables) -> Each:
    """From sending a request to the arrival of its first output token of any channel.

    first - sent. Channels are content, reasoning and tool calls; an event without text (a role, an empty
    delta) is no token. Connecting is not in it: `sent` is just before the first byte goes to the kernel. vLLM
    counts the first event that has choices, even an empty one, so its number can be lower.
    """
    return _first(tables, "sent_ns", "first_ns", _none(tables))


@metric("time_to_first_token_from_due", unit="ms", better="lower", needs=("streaming", "rate", "success"))
def time_to_first_token_from_due(tables: Tables) -> Each:
    """From the moment a request was due to the arrival of its first output token of any channel.

    first - due: time_to_first_token and what came before it, waiting for a slot and the client's own lag included. In a
    closed loop a request is due when its slot frees and this would be time_to_first_token.
    """
    return _first(tables, "due_ns", "first_ns", _none(tables))


@metric("time_to_first_output_token", unit="ms", better="lower", needs=("streaming", "success"))
def time_to_first_output_token(tables: Tables) -> Each:
    """From sending a request to its first token that is not reasoning: the first one of the answer proper.

    first_answer - sent; the same as time_to_first_token where nothing was reasoned.
    Answers that never left reasoning have no value and are counted in the note. Name and meaning as in AIPerf.
    """
    return _first_of_answer(tables, "sent_ns")


@metric(
    "time_to_first_output_token_from_due", unit="ms", better="lower", needs=("streaming", "rate", "success")
)
def time_to_first_output_token_from_due(tables: Tables) -> Each:
    """From the moment a request was due to its first token that is not reasoning: first_answer - due.

    Otherwise as time_to_first_output_token and time_to_first_token_from_due.
    """
    return _first_of_answer(tables, "due_ns")


@metric("time_to_second_token", unit="ms", better="lower", needs=("streaming", "success"))
def time_to_second_token(tables: Tables) -> Each:
    """From the first to the second instant at which an answer brought tokens.

    second - first, where events of one read are one instant. It is the first decode step as the user sees it,
    often longer than later ones. A chunk of several tokens is one instant.
    """
    second_ns = tables.shape.second_gap_ns
    return Each(np.where(second_ns > 0, second_ns / 1e6, np.nan), _ONE_PIECE)


@metric(
    "inter_token_latency",
    unit="ms",
    better="lower",
    needs=("streaming", "success"),
    each="time_per_output_token_corrected",
)
def inter_token_latency(tables: Tables) -> Samples | Missing:
    """The gap between consecutive tokens, pooled over all answers: every gap counts once, not every request.

    A gap g that brought k tokens counts as k gaps of g/k, so gaps times weights add up to the sum of (last -
    first) over the answers. Events with the same arrival stamp (one read) are one instant. k is the server's
    continuous usage where it gives at least one token for every event of an answer; else the answer's token
    total spread evenly over its events, so that k may be a fraction; else one token an event. The note says
    which, and how many of the gaps brought two tokens or more, k rounded. `count` is the number of token gaps. For one
    request (goodput) it means the request's mean gap, time_per_output_token_corrected. AIPerf's metric of
    this name is that mean per request; vLLM pools gaps between chunks, whatever they held.
    """
    pool = gaps(tables)
    if pool is None:
        return Missing(_ONE_PIECE)
    return Samples(pool.values, _how_counted(tables, pool.several), batches=pool.batches)


@metric("time_per_output_token", unit="ms", better="lower", needs=("streaming", "success"))
def time_per_output_token(tables: Tables) -> Each:
    """One request's mean time a token after the first: (last - first) / (n - 1), for n > 1 output tokens.

    n is the server's count, all channels, as in vLLM's TPOT. When the first instant brought more than one
    token it comes out too low; time_per_output_token_corrected does not. An answer whose tokens all came at one
    instant has none. Of c choices it is the sum of their (last - first) / (n - c), c of the tokens being first ones.
    """
    shape = tables.shape
    later_tokens = np.where(shape.span_ns > 0, tables.number("output_tokens") - shape.streams, np.nan)
    return Each(
        _ratio(shape.span_ns / 1e6, later_tokens), "no answer had two output tokens at different moments."
    )


@metric("time_per_output_token_corrected", unit="ms", better="lower", needs=("streaming", "success"))
def time_per_output_token_corrected(tables: Tables) -> Each:
    """One request's mean gap between tokens: (last - first) / (n - k0), k0 being the tokens of the first
    instant.

    n is the number of tokens the stream brought, counted as for inter_token_latency; so the mean weighs
    every gap with its tokens and equals the mean of the request's own gaps there. With one token in the first
    instant it is time_per_output_token. Of several choices it is the sum of their (last - first) over that of their
    (n - k0).
    """
    return Each(mean_gap_ms(tables), _ONE_PIECE)


@metric("decode_duration", unit="ms", better="lower", needs=("streaming", "success"))
def decode_duration(tables: Tables) -> Each:
    """From the first to the last token of one answer: last - first = request_latency - time_to_first_token.

    0 for an answer of one token. Several tokens that all came at one instant were not decoded in no time: such an answer
    has none.
    """
    lasted_ms = tables.ms("first_ns", "last_ns")
    at_once = (lasted_ms == 0) & (tables.number("output_tokens") != 1)
    return Each(np.where(tables.coalesced | at_once, np.nan, lasted_ms), _ONE_PIECE)


@metric("request_latency", unit="ms", better="lower", needs=("success",))
def request_latency(tables: Tables) -> Each:
    """From sending a request to the last token of its answer; without streaming, to the end of the response.

    last - sent, or done - sent. The usage event and the end mark of a stream come later and are not in it. Where a
    server answers a request for a stream with one body, that body's end is the last token.
    """
    return Each(tables.until_complete_ms("sent_ns"), _NO_TOKEN, cut_off=tables.cut_off_ms("sent_ns"))


@metric("request_latency_from_due", unit="ms", better="lower", needs=("rate", "success"))
def request_latency_from_due(tables: Tables) -> Each:
    """From the moment a request was due to the last token of its answer (without streaming: its end).

    last - due, or done - due. What a user feels who comes at the planned moment, waiting for a slot and the
    client's own lag included: it does not hide a queue. In a closed loop a request is due when its slot frees and this
    would be request_latency.
    """
    return Each(tables.until_complete_ms("due_ns"), _NO_TOKEN, cut_off=tables.cut_off_ms("due_ns"))


@metric("normalized_latency", unit="ms/token", better="lower", needs=("success",))
def normalized_latency(tables: Tables) -> Each:
    """One request's latency by the length of its answer: request_latency / output tokens.

    So that answers of different lengths can be put together, as in the papers on Orca and vLLM (there from arrival, which
    without a limit of ours differs by the client's lag alone). The wait for the first token is in it, and short answers
    have more of that a token: it is no decode speed (time_per_output_token). Tokens are those of all channels.
    """
    tokens = tables.number("output_tokens")
    return Each(
        _ratio(tables.until_complete_ms("sent_ns"), tokens),
        "the number of tokens is not known for any answer.",
    )


@metric("queue_wait", unit="ms", better="lower", needs=("cap", "attempt"))
def queue_wait(tables: Tables) -> Each:
    """How long a request that was due waited at the client for a free slot: sent - due, over all that were sent.

    Those never sent are in `with_censored`, as far as they had waited. Only where due times go together with a limit: of concurrency, or of requests before their first token. AIPerf's
    credit_to_start_latency has no counterpart here.
    """
    waits = tables.ms("due_ns", "sent_ns")
    cut_off = np.where(np.isnan(waits), tables.cut_off_ms("due_ns"), np.nan)
    return Each(waits, "no request was sent.", failed_too=True, cut_off=cut_off)


def mean_gap_ms(tables: Tables) -> Floats:
    """(last - first) / (n - k0) of every request, summed over its choices; NaN without a gap."""
    shape = tables.shape
    later_tokens = np.where(shape.instants > shape.streams, shape.tokens - shape.first_tokens, np.nan)
    return _ratio(shape.span_ns / 1e6, later_tokens)


def _first_of_answer(tables: Tables, start: str) -> Each:
    """From the moment `start` to the first token that is not reasoning."""
    found = _first(tables, start, "first_answer_ns", _none(tables))
    begun = np.isfinite(_first(tables, start, "first_ns", "").values)
    reasoned = begun & np.isnan(found.values) & tables.succeeded
    if not reasoned.any():
        return found
    note = f"{int(reasoned.sum())} answers were reasoning only and are left out."
    return found._replace(none="every answer was reasoning only.", note=note)


def _first(tables: Tables, start: str, first: str, none: str) -> Each:
    """From the moment `start` to the instant `first` of every request.

    Of an answer in one read it cannot be told, but that it is no later than the read. What we ended before that
    instant is cut off.
    """
    came_ms = tables.ms(start, first)
    return Each(
        np.where(tables.coalesced, np.nan, came_ms),
        none,
        cut_off=np.where(np.isnan(came_ms), tables.cut_off_ms(start), np.nan),
        at_most=came_ms,
    )


def _none(tables: Tables) -> str:
    """Why no answer has a first token."""
    for apart, reason in ((tables.coalesced, _COALESCED), (tables.came_whole, _WHOLE)):
        if apart[tables.succeeded].all():
            return reason
    return _NO_TOKEN


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Element by element; NaN where the denominator is not above 0."""
    return numerator / np.where(denominator > 0, denominator, np.nan)


def _how_counted(tables: Tables, several: float) -> str:
    """Where the tokens of a chunk come from, and how many chunks brought several."""
    shape, source = tables.shape, tables.requests["output_tokens_source"]
    spread = ~shape.told & (tables.number("output_tokens") > 0)
    by = {
        "the server told the tokens of each chunk": shape.told,
        "the server's total for an answer was spread evenly over its chunks": spread
        & (source == "usage").fill_null(False).to_numpy(),
        "our tokenizer's total for an answer was spread evenly over its chunks": spread
        & (source != "usage").fill_null(True).to_numpy(),
        "each chunk was taken for one token": ~shape.told & ~spread,
    }
    events = shape.events.sum()
    shares = {name: float(shape.events[chosen].sum() / events) for name, chosen in by.items()}
    told = [
        name if share == 1 else f"for {100 * share:.3g} % of the chunks {name}"
        for name, share in shares.items()
        if share
    ]
    per_token = (
        f"{100 * several:.3g} % of the gaps brought several tokens and were divided by them (vllm bench does not divide)"
        if several
        else "no gap brought several tokens"
    )
    return f"{', '.join(told)}; {per_token}."
