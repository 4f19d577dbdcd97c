"""Whether the server counts what we do: two counts of the same tokens that were made apart."""

from __future__ import annotations

from loadstone.checks.evidence import Evidence, answer
from loadstone.figures import counted
from loadstone.report import Check, ServerFacts

APART_PERCENT = 1.0
"""Counts of one load, each made at its own end of the wire, differ by less where both are right."""


def server_tokens(evidence: Evidence) -> Check:
    """The server's own counter of output tokens grew by as many as we received.

    From the last look at its page before the load to the first one after it, warm-up and cooldown included; so the preflight
    is not in it, while requests that others send in between are. A NOTE where the two counts are more than 1 % apart.
    """
    pages = [(page, _apart_percent(page)) for page in evidence.server]
    known = [(page, apart) for page, apart in pages if apart is not None]
    if not known:
        finding = f"whether the server counts the tokens that we do is not known: {_why(evidence)}."
        return answer("server_tokens", "VALID", None, "%", finding)
    page, apart = max(known, key=lambda one: abs(one[1]))
    tokens = page.tokens
    assert tokens is not None
    told = f"the server counted {tokens.server or 0:,.0f} output tokens, we {tokens.ours or 0:,}"
    if abs(apart) <= APART_PERCENT:
        return answer("server_tokens", "VALID", apart, "%", f"{told}.")
    where = f" ({page.page})" if len(evidence.server) > 1 else ""
    more = "more" if apart > 0 else "fewer"
    finding = f"{told}: {abs(apart):.3g} % {more} than ours{where}. {_reason(page, apart)}"
    return answer("server_tokens", "NOTE", apart, "%", finding)


def _apart_percent(page: ServerFacts) -> float | None:
    """By how much the server's count is above ours, in percent of ours; None where either is not known."""
    tokens = page.tokens
    if tokens is None or tokens.server is None or not tokens.ours:
        return None
    return 100 * (tokens.server - tokens.ours) / tokens.ours


def _why(evidence: Evidence) -> str:
    """Why nothing is known, of the first page."""
    if not evidence.server:
        return "its page was not to be read"
    page = evidence.server[0]
    if page.tokens is not None:
        return page.tokens.reason or "no output token of ours was counted"
    return next(iter(page.reasons.values()), "its page was not read")


def _reason(page: ServerFacts, apart: float) -> str:
    """What may lie behind the difference."""
    tokens = page.tokens
    if apart < 0:
        return "Its page may tell of a part of the servers behind this address, or it was started again meanwhile."
    if tokens is not None and tokens.uncounted:
        return (
            f"It counts tokens of the {counted(tokens.uncounted, 'request')} that failed, were cut off or told no count; "
            "others may also have sent requests meanwhile."
        )
    return "Others may have sent requests meanwhile, or it counts tokens that it does not send."
