"""What the summary says of the server by its own page: in one line, of the first page that tells something."""

from __future__ import annotations

from loadstone.figures import brief
from loadstone.report import Report, ServerFacts
from loadstone.terminal import wrap


def server(report: Report, width: int) -> list[str]:
    """Its batch, its queue, its caches; no line where nothing is known."""
    known = [(page, told) for page in report.server if (told := _told(page))]
    if not known:
        return []
    _, told = known[0]
    more = len(known) - 1
    others = [f"and {more} more in report.json"] if more else []
    return wrap(f"the server's own page: {' · '.join([*told, *others])}", width, "  ")


def _told(page: ServerFacts) -> list[str]:
    """What is known of one server, in a few words each."""
    told = []
    for name, mean, most in (
        ("running", page.running_mean, page.running_max),
        ("waiting", page.waiting_mean, page.waiting_max),
    ):
        if mean is not None:
            told.append(f"{name} {brief(mean)}" + (f" (max {most:,.0f})" if most is not None else ""))
    if page.kv_cache_usage_mean is not None:
        most = page.kv_cache_usage_max
        top = "" if most is None else f" (max {100 * most:.3g} %)"
        told.append(f"KV cache {100 * page.kv_cache_usage_mean:.3g} %{top}")
    if page.prefix_cache_hit_rate is not None:
        told.append(f"prefix cache hits {100 * page.prefix_cache_hit_rate:.3g} %")
    if page.speculation is not None and page.speculation.acceptance_length is not None:
        told.append(f"speculation {page.speculation.acceptance_length:.3g} tokens a step")
    if page.preemptions:
        told.append(f"preemptions {page.preemptions:,.0f}")
    return told
