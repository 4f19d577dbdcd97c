"""What to do about a server that fails: one sentence for each way of failing, with the flag that matters."""

from __future__ import annotations

import polars as pl

from loadstone.checks.evidence import Evidence
from loadstone.checks.targets import targets
from loadstone.metrics import Tables
from loadstone.read import outcome

_LOG = "See the server's log, and its words among the faults."
_ADDRESS = "Check --url and what stands between here and the server (proxy, firewall, DNS)."
_API = "Check that --url and --endpoint-type name the API that this server speaks; the first bytes it sent are in faults/."
_SLOWER = "lower the load, or see in the server's log what keeps it"

ADVICE = {
    outcome.TRUNCATED: f"{_LOG} A proxy that gives up early does this too.",
    outcome.RESET: f"{_LOG} A proxy or a time limit of the server may have closed the connection.",
    outcome.IN_BAND_ERROR: _LOG,
    outcome.EMPTY: "The server answers without output: see its log, and check --model and --endpoint-type.",
    outcome.NOT_SSE: _API,
    outcome.PROTOCOL_ERROR: _API,
    outcome.TOO_LARGE: "Ask for shorter answers (--osl), or raise --max-response-bytes.",
    outcome.HTTP_AUTH: "Give the key that this server wants (--api-key-file, or LOADSTONE_API_KEY).",
    outcome.HTTP_NOT_FOUND: "Check --url, --endpoint-type and --model: the server knows no such path or model.",
    outcome.HTTP_TIMEOUT: f"The server gave requests up: {_SLOWER}.",
    outcome.HTTP_TOO_LARGE: "Ask with shorter prompts (--isl), or raise the server's limit.",
    outcome.HTTP_INVALID: "The server says among the faults what it does not take: look at --extra-inputs, --isl and --osl.",
    outcome.HTTP_RATE_LIMITED: "The server limits the rate: lower the load below its limit, or lift the limit for this test.",
    outcome.HTTP_REDIRECT: "Give the address that the server redirects to as --url.",
    outcome.HTTP_SERVER_ERROR: _LOG,
    outcome.HTTP_ERROR: "See the server's words among the faults.",
    outcome.CONNECT_REFUSED: "Is the server still running? Its log says why it ended.",
    outcome.CONNECT: _ADDRESS,
    outcome.TLS: "Check the certificates (--ca, --client-certificate, --server-name), and whether --url should be http.",
    outcome.TIMEOUT_CONNECT: f"{_ADDRESS} The limit is --connect-timeout-seconds.",
    outcome.TIMEOUT_FIRST_TOKEN: f"Raise --first-token-timeout-seconds, {_SLOWER}.",
    outcome.TIMEOUT_IDLE: f"Raise --idle-timeout-seconds, {_SLOWER}.",
    outcome.TIMEOUT_TOTAL: f"Raise --request-timeout-seconds, ask for shorter answers (--osl), {_SLOWER}.",
}
"""By outcome, for every failure of the server."""


def advice_for(evidence: Evidence) -> str:
    """The advice for the outcome of at least half of the failures; empty when none failed.

    Of a run that was stopped before anything was measured it goes by the failures until then.
    """
    tables = evidence.tables
    failed = tables.requests.filter(pl.Series(tables.failed)).select("outcome", count=1)
    if not tables.phases:
        failed = tables.unmeasured.filter(pl.col("outcome").is_in(list(outcome.FAILURES)))
    counts = dict(failed.group_by("outcome").agg(pl.col("count").sum()).iter_rows())
    if not counts:
        return ""
    most = min(counts, key=lambda name: (-counts[name], name))
    if 2 * counts[most] < sum(counts.values()):
        return _LOG
    return _gone(tables) if most == outcome.CONNECT_REFUSED else ADVICE[most]


def _gone(tables: Tables) -> str:
    """When a server took no connections: since the first that it refused, or until the last where it answered later ones.

    Of several servers the one that refused most.
    """
    several = targets(tables)
    worst = max(several, key=lambda one: _refused(one.asked).len(), default=None)
    name, own = ("the address", tables) if worst is None else (worst.name, worst.asked)
    refused_ns = _refused(own)
    first, last = refused_ns.min(), refused_ns.max()
    if tables.start_ns is None or not isinstance(first, int) or not isinstance(last, int):
        return ADVICE[outcome.CONNECT_REFUSED]
    since_s, until_s = (f"{max(0, at - tables.start_ns) / 1e9:.2f} s" for at in (first, last))
    if not _answered_after(own, last):
        return f"Nothing listened at {name} from {since_s} into the measurement on. {ADVICE[outcome.CONNECT_REFUSED]}"
    when = f"at {since_s}" if since_s == until_s else f"between {since_s} and {until_s}"
    return f"Nothing listened at {name} {when} into the measurement; later it answered. Its log says why."


def _refused(tables: Tables) -> pl.Series:
    """When requests were refused."""
    return tables.requests.filter(pl.col("outcome") == outcome.CONNECT_REFUSED)["done_ns"].drop_nulls()


def _answered_after(tables: Tables, moment_ns: int) -> bool:
    """Whether a request that was sent after a moment succeeded."""
    sent_ns = tables.requests["sent_ns"].filter(pl.Series(tables.succeeded)).max()
    return isinstance(sent_ns, int) and sent_ns > moment_ns
