"""A model's roofline as a page for a terminal: the table against the batch, the drawing, the limits in words.

Pure; every line is at most as wide as asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.figures import brief, figures
from loadstone.roofline.curve import TPOT, Curve, Objective, Row
from loadstone.roofline.setup import FLOOR
from loadstone.roofline.validation import Validity
from loadstone.terminal import fit, paint, right, wrap
from loadstone.tui.chart import Mark, Panel, beside, chart

GIB = 2**30
BOUNDS = {
    "weights": "weights",
    "kv": "KV cache",
    "compute": "compute",
    "communication": "links",
    "overhead": "overhead",
}
"""What a step is bound by, as people call it."""
SHORT = {TPOT: "tpot"}
WIDE = 108
"""From so many cells on the two panels stand beside each other."""
HEIGHT = 7
COLUMNS = (0, 1, 2, 3, 4)
BOUND = 4
NARROW = (COLUMNS, (0, 1, 3, 4), (0, 1, 3), (0, 1))
"""Columns of the table, and those that are left where they do not fit."""
LABEL = 10
"""Cells of what stands before a limit."""


def page(
    curve: Curve,
    *,
    width: int,
    color: bool,
    source: str,
    caution: Validity | None = None,
    unicode: bool = True,
) -> str:
    """The page. `source` says where the efficiency comes from, `caution` why it is to be believed less than others."""
    sections = [
        [*_head(curve, width, source), *_caution(caution, width, color)],
        _table(curve, width),
        _drawing(curve, width, unicode),
        _facts(curve, width),
        [line for one in curve.objectives for line in _slo(one, width, color)],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _head(curve: Curve, width: int, source: str) -> list[str]:
    return [
        *wrap(asked(curve), width, "  "),
        *wrap(how(curve, source), width, "  ", "  "),
    ]


def asked(curve: Curve) -> str:
    """What the page is about."""
    lengths = f"prompt {curve.prompt_tokens:,}"
    if curve.output_tokens is not None:
        lengths += f", answer {curve.output_tokens:,}"
    return f"{curve.words}, context {curve.context:,} tokens ({lengths})"


def how(curve: Curve, source: str) -> str:
    """How near to the datasheet its steps are taken to come, and by whom."""
    reached = curve.efficiency
    if reached == FLOOR:
        alike = ", every token with the same experts" if curve.experts else ""
        words = f"at the datasheet's figures{alike}: no real step is faster"
    else:
        times = ((reached.step_s, "step"), (reached.layer_s, "layer"), (reached.sequence_s, "sequence"))
        more = ", ".join(f"{brief(1e6 * seconds)} us a {what}" for seconds, what in times if seconds)
        words = (
            f"reaching {brief(100 * reached.bandwidth)} % of the bandwidth and {brief(100 * reached.compute)} % of the FLOP/s"
            f"{', and on top ' if more else ''}{more} ({source})"
        )
    if curve.expert_replicas > 1:
        words += f"; all {curve.expert_replicas} replicas are taken to have the same batch"
    return words


def _caution(found: Validity | None, width: int, color: bool) -> list[str]:
    """Why the page is to be believed less than others."""
    if found is None or found.caution is None:
        return []
    first, *rest = wrap(f"caution: {found.caution}.", width, "  ", "  ")
    return [paint(first, "yellow", color), *rest]


def _table(curve: Curve, width: int) -> list[str]:
    """The table; on a narrow terminal with remarks below their rows, and with fewer columns."""
    roomy = _rows(curve, COLUMNS, "   ")
    if max(map(len, roomy)) <= width:
        return roomy
    narrow: list[str] = []
    for shown in NARROW:
        narrow = _rows(curve, shown, "  ", width)
        if max(map(len, narrow)) <= width:
            break
    return [fit(line, width) for line in narrow]


def _rows(curve: Curve, shown: tuple[int, ...], gap: str, narrow: int | None = None) -> list[str]:
    """The lines of these columns; `narrow`: remarks stand below, wrapped to so many cells."""
    heads = ("batch", "ITL ms", "tok/s each", "tok/s all", "bound by")
    rows = [
        (
            f"{row.batch:,}",
            figures(1e3 * row.step_s),
            figures(row.tokens_s_sequence),
            figures(row.tokens_s),
            BOUNDS[row.bound],
        )
        for row in curve.rows
    ]
    widths = [max(len(line[i]) for line in (heads, *rows)) for i in COLUMNS]
    lines = []
    for line, row in zip((heads, *rows), (None, *curve.rows), strict=True):
        cells = [line[i].ljust(8) if i == BOUND else right(line[i], widths[i]) for i in shown]
        remark = _remark(curve, row)
        lines.append((gap.join(cells) + ("" if narrow else f"  {remark}")).rstrip())
        if narrow and remark:
            lines += wrap(f"({remark})", narrow, "  ", "  ")
    return lines


def _remark(curve: Curve, row: Row | None) -> str:
    """What ends at this row."""
    if row is None:
        return ""
    if not row.fits:
        return "does not fit" if row.batch > curve.kv_batch else "more than --max-num-seqs"
    if row.batch == curve.largest:
        return "the KV cache is full" if curve.kv_batch <= curve.max_num_seqs else "--max-num-seqs"
    return ""


def _drawing(curve: Curve, width: int, unicode: bool) -> list[str]:
    """Latency and throughput against the batch, with the marks that are in sight."""
    marks = [Mark(curve.b_sat, f"B_sat {brief(curve.b_sat)}"), Mark(curve.largest, _limit(curve))]
    panels = (
        Panel("ITL, ms", [(row.batch, 1e3 * row.step_s) for row in curve.drawn], curve.largest),
        Panel("tokens/s, all", [(row.batch, row.tokens_s) for row in curve.drawn], curve.largest),
    )
    if curve.drawn[-1].batch < 2:
        return []
    cells = (width - 4) // 2 if width >= WIDE else min(width, 96)
    first, second = (
        chart(panel, marks, width=cells, height=HEIGHT, axis="batch", unicode=unicode) for panel in panels
    )
    return beside(first, second, cells + 4) if width >= WIDE else [*first, "", *second]


def _limit(curve: Curve) -> str:
    what = "KV" if curve.kv_batch <= curve.max_num_seqs else "seqs"
    return f"{what} {curve.largest:,}"


def _facts(curve: Curve, width: int) -> list[str]:
    return [line for name, text in _told(curve) for line in wrap(text, width, " " * LABEL, name.ljust(LABEL))]


def _told(curve: Curve) -> Iterator[tuple[str, str]]:
    """The limits, each with its name."""
    memory = curve.memory
    each = "each of " if curve.devices > 1 else ""
    yield (
        "memory",
        f"{brief(memory.weight_bytes / GIB)} GiB of weights and {brief(memory.kv_bytes / GIB)} GiB for the KV cache on"
        f" {each}{curve.devices if curve.devices > 1 else 'the'} device{'s' if curve.devices > 1 else ''} of"
        f" {brief(memory.total_bytes / GIB)} GiB; {curve.kv_tokens:,} tokens fit, {curve.kv_batch:,} sequences of this context",
    )
    yield (
        "floor",
        f"{brief(1e3 * curve.floor_s)} ms a token at batch 1: the datasheet's least, whatever is tuned",
    )
    yield (
        "B_sat",
        f"{brief(curve.b_sat)} sequences: products with weights take as long as streaming {'all experts' if curve.experts else 'them'};"
        " KV cache, links and overhead come on top of either",
    )
    yield "S_crit", _critical(curve)
    yield "compute", _compute(curve)
    yield "ceiling", f"{brief(curve.most_tokens_s)} tokens/s: no batch brings more at this context"
    steps = (
        f" in {curve.prefill_steps:,} steps of {curve.max_num_batched_tokens:,}"
        if curve.prefill_steps > 1
        else ""
    )
    yield (
        "prefill",
        f"{brief(1e3 * curve.prefill_s)} ms for a prompt of {curve.prompt_tokens:,} tokens that comes alone{steps}"
        f" ({brief(curve.prefill_tokens_s)} tokens/s)",
    )


def _critical(curve: Curve) -> str:
    if curve.s_crit is not None:
        return (
            f"{brief(curve.s_crit)} tokens: beyond this context decode is never bound by compute, since reading a sequence's KV"
            " cache takes longer than its products"
        )
    if curve.attention_computes:
        return (
            "none: attention itself is bound by compute, its products take longer than reading the KV cache"
        )
    return "none: reading the KV cache never takes longer than the products"


def _compute(curve: Curve) -> str:
    if curve.compute_from is None:
        return "at this context no batch is bound by it: other parts of a step stay longer than the products"
    if curve.compute_from == 1:
        return "most of a step is products at any batch"
    return f"from {curve.compute_from:,} sequences on most of a step is products"


def _slo(one: Objective, width: int, color: bool) -> list[str]:
    """One objective and the largest batch that keeps it."""
    limit = f"{SHORT.get(one.name, 'ttft')} < {brief(1e3 * one.limit_s)} ms"
    first, *rest = wrap(kept(one), width, "  ")
    return [paint(limit, "green" if one.row else "red", color) + first.removeprefix(limit), *rest]


def kept(one: Objective) -> str:
    """An objective, and the largest batch that keeps it, in a sentence."""
    limit = f"{SHORT.get(one.name, 'ttft')} < {brief(1e3 * one.limit_s)} ms"
    if one.row is None:
        return f"{limit}: not kept, {one.why}."
    return f"{limit}: batch {one.largest:,}, {brief(one.row.tokens_s)} tokens/s, ITL {brief(1e3 * one.row.step_s)} ms ({one.why})"
