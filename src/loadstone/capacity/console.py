"""An answer as a page for a terminal: the answer first, then what it rests on. Pure; no line is wider than asked.

One rule: what is an assumption is called one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from loadstone.capacity import commands
from loadstone.capacity.answer import PILING_UP, Answer, Way, link_share, outdone
from loadstone.capacity.assumptions import assumptions
from loadstone.capacity.candidates import Asked, LeftOut
from loadstone.capacity.search import Question
from loadstone.capacity.trial import Trial
from loadstone.figures import brief, counted, figures
from loadstone.sim.caution import caution
from loadstone.slo import Objective
from loadstone.terminal import fit, left, paint, printable, right, wrap
from loadstone.tui.chart import Mark, Panel, chart

SHORT = {
    "time_to_first_token": "TTFT",
    "inter_token_latency": "ITL",
    "time_per_output_token": "TPOT",
    "request_latency": "latency",
}
"""As the field writes it."""
LABEL = 10
"""Cells of what stands before a line."""
ROWS = 12
"""Of other ways; the rest is counted."""
NEAREST = 3
"""Setups that are shown where nothing keeps the objectives."""
MOST_NAMES = 6
MOST_OUTDONE = 3
MUCH = 0.2
"""Of a step, from which on links are worth a word."""
MARK = " *"
"""Behind a way against which there is a caution."""
HEIGHT = 8
KINDS = {
    "memory": "do not fit the memory",
    "split": "cannot be split so",
    "node": "more devices than are joined",
    "objectives": "too slow",
}
"""Why setups are left out, in the order in which that is told."""


class Page(NamedTuple):
    """What a page is about, and how it looks."""

    asked: Asked
    question: Question
    spare: float
    workload: str
    """As it was written."""
    width: int
    color: bool = False
    unicode: bool = True


def page(found: Answer, about: Page) -> str:
    """The whole page."""
    sections = [_head(found, about)]
    if found.best:
        sections += [_commands(found.best, about), _facts(found, about)]
        sections += [_others(found, about), _left_out(found.left_out, about), _curve(found, about)]
    else:
        sections += [_nearest(found.left_out, about), _left_out(found.left_out, about)]
    sections.append(_assumptions(found, about))
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def answered(found: Answer, about: Page) -> str:
    """The answer in a sentence."""
    load = f"{brief(about.question.rate)} requests/s of {about.workload}"
    best = found.best
    if best is None:
        tried = sum(one.kind == "objectives" for one in found.left_out)
        return f"Nothing keeps the objectives at {load}: {counted(tried, 'setup')} tried, none does."
    serve = "serves" if best.devices == 1 else "serve"
    said = f"{best.devices:,} x {best.setup.gpu.name} {serve} {load} {_cost(best)}"
    warned = caution(best.setup.options)
    if warned is None:
        return f"{said}."
    said = f"{said}, if the roofline is right: {warned.short}."
    if found.near is None:
        return f"{said} No way is of a kind for which published runs were near it."
    near = found.near
    return f"{said} The cheapest way for which they were near it: {near.devices:,} x {near.setup.gpu.name} {_cost(near)}."


def _cost(way: Way) -> str:
    """What a way costs, and how it is split, as the end of a sentence."""
    cost = "at a price that is not known" if way.usd_hour is None else f"for {_usd(way.usd_hour)} an hour"
    each = "" if way.setup.devices == 1 else f", {counted(way.replicas, 'replica')} of {way.setup.devices}"
    return f"{cost} ({way.capacity.options.quantization}{each})"


def _head(found: Answer, about: Page) -> list[str]:
    warned = found.best and caution(found.best.setup.options)
    color = "yellow" if warned else "green" if found.best else "red"
    first, *rest = wrap(printable(answered(found, about)), about.width)
    return [paint(first, color, about.color), *rest]


def _commands(best: Way, about: Page) -> list[str]:
    options = best.capacity.options
    lines = ["The replica:"]
    if best.replicas > 1:
        lines = wrap(
            f"Each of the {best.replicas:,} replicas, on a machine or a --port of its own, behind one router"
            f" ({about.asked.base.router}):",
            about.width,
        )
    lines += _command(commands.serve(options), about.width)
    if commands.needs_a_copy(options):
        lines += wrap(
            f"(with a copy of the model in {options.quantization} in its place)", about.width, "  ", "  "
        )
    look = "A closer look, here:"
    if about.question.workload.prefix:
        look = (
            "A closer look, here, but with prompts that all differ, as profile cannot let them begin alike: nothing comes from the"
            " prefix cache, so first tokens come later than above:"
        )
    return [*lines, *wrap(look, about.width), *_command(commands.closer(best, about.question), about.width)]


def _command(words: Sequence[str], width: int) -> list[str]:
    """A command line over several lines; what is too wide for one is not cut, since it is to be copied."""
    lines, line = [], "  " + words[0]
    for word in words[1:]:
        if len(line) + 1 + len(word) + 2 > width:
            lines.append(line + " \\")
            line = "      " + word
        else:
            line += " " + word
    return [*lines, line]


def _facts(found: Answer, about: Page) -> list[str]:
    best = found.best
    assert best is not None, "only an answer has facts"
    lines = [line for name, text in _told(best, about) for line in _fact(name, text, about)]
    whole = best.whole
    if whole is not None:
        kept = (_kept(one, whole) for one in about.question.objectives)
        lines += [fit(" " * LABEL + line, about.width) for line in kept]
    for name, text in _why(found, best, about):
        lines += _fact(name, text, about)
    return lines


def _why(found: Answer, best: Way, about: Page) -> Iterator[tuple[str, str]]:
    """Why not what is next to the answer, and why it may be wrong."""
    objectives = about.question.objectives
    if best.fewer is not None:
        replicas, trial = best.fewer
        free = f", with {brief(100 * about.spare)} % more load," if about.spare else ""
        yield "fewer", f"{counted(replicas, 'replica')}, tried{free} as a whole: {_result(trial, objectives)}"
    if found.usual is not None:
        chosen = best.capacity.options.max_num_batched_tokens or 0
        yield (
            "batched",
            f"{chosen:,} tokens a step, as a replica sustains most with them; with {found.usual.tokens:,}, vLLM's own number, at the"
            f" same {brief(best.capacity.rate)} requests/s: {_result(found.usual.trial, objectives)}",
        )
    if warned := caution(best.setup.options):
        yield "caution", f"{warned.caution}"


def _result(trial: Trial, objectives: Sequence[Objective]) -> str:
    """What a trial came to: the objectives that it broke, with their values."""
    told = [
        f"{_spelt(one.metric, one.stat)} {figures(trial.values[one.metric, one.stat])} ms, where {brief(one.limit)} are allowed"
        for one in trial.broken(objectives)
    ]
    piles = [] if trial.sustained else ["requests pile up"]
    return "; ".join([*told, *piles]) or "the objectives are kept too"


def _fact(name: str, text: str, about: Page) -> list[str]:
    return wrap(text, about.width, " " * LABEL, name.ljust(LABEL))


def _told(best: Way, about: Page) -> Iterator[tuple[str, str]]:
    question = about.question
    yield "load", load_of(question)
    if best.usd_million is not None and best.usd_hour is not None:
        source = best.setup.gpu.sources.get("usd_hour", "not known")
        yield (
            "cost",
            f"{_usd(best.usd_hour)} an hour, {figures(best.usd_million)} USD per million output tokens, at"
            f" {_usd(best.setup.gpu.usd_hour or 0.0)} a device ({printable(source)})",
        )
    else:
        yield (
            "cost",
            f"not known: no price of {best.setup.gpu.name}; --price {best.setup.gpu.name}=USD tells one",
        )
    at = best.capacity.at
    if at is not None:
        yield (
            "replica",
            f"sustains {brief(best.capacity.rate)} requests/s and {brief(at.output_tokens_s)} output tokens/s with"
            f" {brief(at.running)} running; above that {_limit(best.limited_by)}",
        )
    if best.whole is not None:
        yield "fleet", _fleet(best, best.whole, about)


def load_of(question: Question) -> str:
    """The load that is asked for."""
    asked = question.workload
    shared = ""
    if asked.prefix:
        shared = f"; {asked.prefix:,} of those in are shared, {counted(asked.prefixes, 'prefix')}"
    return (
        f"{brief(question.rate)} requests/s, {_tokens(asked.isl, asked.isl_stddev)} tokens in"
        f" ({brief(question.rate * asked.isl)}/s) and {_tokens(asked.osl, asked.osl_stddev)} out"
        f" ({brief(question.rate * asked.osl)}/s){shared}"
    )


def _limit(limited_by: str) -> str:
    if limited_by == PILING_UP:
        return "requests pile up"
    return f"{', '.join(_spelt(*one.rsplit('.', 1)) for one in limited_by.split(', '))} breaks"


def _fleet(best: Way, whole: Trial, about: Page) -> str:
    each = about.question.rate / best.replicas
    simulated = f" ({whole.engines} of them simulated)" if whole.engines < best.replicas else ""
    together = " each" if best.replicas > 1 else ""
    load = f"{brief(100 * each / best.capacity.rate)} % of that"
    spare = f", {brief(100 * about.spare)} % kept free" if about.spare else ""
    hits = f", {brief(100 * whole.hit_share)} % of prompts from the prefix cache" if whole.hit_share else ""
    preempted = f", {counted(whole.preemptions, 'preemption')}" if whole.preemptions else ""
    return (
        f"{counted(best.replicas, 'replica')}{simulated} at {brief(each)} requests/s{together}, {load}{spare}:"
        f" {brief(whole.running)} running{hits}{preempted}"
    )


def _kept(one: Objective, whole: Trial) -> str:
    value = whole.values[one.metric, one.stat]
    mark = "kept" if value is not None and value < one.limit else "BROKEN"
    return f"{left(_spelt(one.metric, one.stat), 14)} {right(figures(value), 6)} ms  < {brief(one.limit)} ms  {mark}"


def _others(found: Answer, about: Page) -> list[str]:
    """The ways, the best one first."""
    wide = about.width >= 100
    shown = found.ways[:ROWS]
    warned = [caution(way.setup.options) for way in shown]
    rows = [_row(way, wide, bool(one)) for way, one in zip(shown, warned, strict=True)]
    heads = _row(None, wide)
    title = "Ways, the cheapest first (USD/M: a million output tokens; req/s: one replica):"
    lines = [*wrap(title, about.width), *_table([heads, *rows], 1, about.width)]
    more = len(found.ways) - ROWS
    lines += [f"and {more} more (--json has all)"] if more > 0 else []
    for text in dict.fromkeys(one.short for one in warned if one and one.short):
        lines += wrap(f"{MARK.strip()} {text}", about.width, "  ")
    for one, lesser in outdone(shown)[:MOST_OUTDONE]:
        lines += wrap(_outdone(one, lesser), about.width, "  ")
    for one in shown[1:]:
        if one.fewer is not None:
            replicas, trial = one.fewer
            said = f"{one.name}: {counted(replicas, 'replica')}, tried as a whole: {_result(trial, about.question.objectives)}."
            lines += wrap(said, about.width, "  ")
    return lines


def _outdone(one: Way, lesser: Way) -> str:
    tokens = one.capacity.options.max_num_batched_tokens or 0
    share = link_share(one.setup, tokens)
    why = f": links take {brief(100 * share)} % of a step of {tokens:,} tokens" if share > MUCH else ""
    return f"{one.name} sustains no more than {lesser.name}{why}."


def _row(way: Way | None, wide: bool, warned: bool = False) -> list[str]:
    if way is None:
        heads = ["replica", "replicas", "devices", "USD/h", "USD/M", "req/s", "batched"]
        return [*heads, "limited by"] if wide else heads
    cells = [
        way.name + MARK * warned,
        f"{way.replicas:,}",
        f"{way.devices:,}",
        _plain(way.usd_hour),
        figures(way.usd_million),
        figures(way.capacity.rate),
        f"{way.capacity.options.max_num_batched_tokens}",
    ]
    limit = ", ".join(
        _spelt(*one.rsplit(".", 1)) if "." in one else one for one in way.limited_by.split(", ")
    )
    return [*cells, limit] if wide else cells


def _table(rows: Sequence[Sequence[str]], names: int, width: int) -> list[str]:
    """Columns as wide as what stands in them; the first `names` and a last one of words at the left, others at the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    words = {*range(names), *(at for at in range(len(widths)) if not any(row[at][:1].isdigit() or row[at] == "-" for row in rows[1:]))}  # fmt: skip
    return [
        fit("  ".join(left(cell, wide) if at in words else right(cell, wide) for at, (cell, wide) in enumerate(zip(row, widths, strict=True))).rstrip(), width)
        for row in rows
    ]  # fmt: skip


def _left_out(left_out: Sequence[LeftOut], about: Page) -> list[str]:
    if not left_out:
        return []
    lines = ["Left out:"]
    for kind, words in KINDS.items():
        names = [one.name for one in left_out if one.kind == kind]
        if len(names) == 1:
            [only] = [one for one in left_out if one.kind == kind]
            lines += wrap(printable(f"{only.name}: {only.why}"), about.width, "    ", "  ")
        elif names:
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            lines += wrap(
                printable(f"{words}: {', '.join(names[:MOST_NAMES])}{more}"), about.width, "    ", "  "
            )
    return lines


def _nearest(left_out: Sequence[LeftOut], about: Page) -> list[str]:
    """Where nothing keeps the objectives: those that came nearest, and what it would take."""
    slow = sorted(
        (one for one in left_out if one.miss is not None), key=lambda one: (one.miss or 0.0, one.name)
    )
    if not slow:
        return []
    lines = ["Nearest:"]
    for one in slow[:NEAREST]:
        lines += wrap(printable(f"{one.name}: {one.why}"), about.width, "    ", "  ")
    return lines


def _curve(found: Answer, about: Page) -> list[str]:
    """One replica by its rate: a table, and the first tail that is limited as a line."""
    best = found.best
    assert best is not None, "only an answer has a curve"
    heads = ["req/s", "running", "TTFT p50", "p99", "ITL p50", "p99 ms", "tokens/s", ""]
    each = about.question.rate / best.replicas
    title = f"One replica of {counted(best.replicas, 'such replica')}, by its rate (asked: {brief(each)} requests/s):" if best.replicas > 1 else f"The replica, by its rate (asked: {brief(each)} requests/s):"  # fmt: skip
    rows = [[*_point(one), _remark(one, about.question)] for one in found.curve]
    return [
        *wrap(title, about.width),
        *_table([heads, *rows], 0, about.width),
        "",
        *_drawing(found, about, each),
    ]


def _point(one: Trial) -> list[str]:
    ttft, itl = "time_to_first_token", "inter_token_latency"
    values = [one.values[metric, stat] for metric in (ttft, itl) for stat in ("p50", "p99")]
    return [figures(one.rate), figures(one.running), *map(figures, values), figures(one.output_tokens_s)]


def _remark(one: Trial, question: Question) -> str:
    if not one.sustained:
        return "piles up"
    broken = one.broken(question.objectives)
    return f"{_spelt(broken[0].metric, broken[0].stat)} broken" if broken else ""


def _drawing(found: Answer, about: Page, each: float) -> list[str]:
    """The tail of the first objective against the rate."""
    one = about.question.objectives[0]
    stat = one.stat if (one.metric, one.stat) in found.curve[0].values else "p99"
    points = [(trial.rate, value) for trial in found.curve if (value := trial.values[one.metric, stat])]
    if len(points) < 2:
        return []
    best = found.best
    assert best is not None, "only an answer has a curve"
    return chart(
        Panel(f"{_spelt(one.metric, stat)}, ms, by requests/s", points, best.capacity.rate),
        [Mark(each, "asked")],
        width=min(about.width, 76),
        height=HEIGHT,
        axis="requests/s",
        unicode=about.unicode,
    )


def _assumptions(found: Answer, about: Page) -> list[str]:
    lines = ["Assumptions:"]
    for text in assumptions(found._replace(ways=found.ways[:ROWS]), about.asked, about.question, about.spare):
        lines += wrap(printable(text), about.width, "  ", "- ")
    return lines


def _tokens(mean: int, stddev: int) -> str:
    return f"{mean:,} ± {stddev:,}" if stddev else f"{mean:,}"


def _spelt(metric: str, stat: str) -> str:
    return f"{SHORT[metric]} {stat.replace('_', '.')}"


def _usd(usd: float) -> str:
    return f"{_plain(usd)} USD"


def _plain(usd: float | None) -> str:
    if usd is None:
        return "-"
    return f"{usd:,.2f}" if usd < 1000 else f"{usd:,.0f}"
