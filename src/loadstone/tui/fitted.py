"""What a fit found, as a page for a terminal. Pure; lines are at most as wide as asked, but for the table."""

from __future__ import annotations

from collections.abc import Iterator

from loadstone.figures import counted, figures
from loadstone.roofline.calibration import Calibration
from loadstone.roofline.case import Case
from loadstone.roofline.fit import Fit
from loadstone.terminal import printable, right, wrap

NAMES = {
    "bandwidth": ("bandwidth", "% of peak", 100.0),
    "compute": ("compute", "% of peak", 100.0),
    "layer_s": ("a layer", "us on top", 1e6),
    "sequence_s": ("a sequence", "us on top", 1e6),
    "link": ("links", "% of peak", 100.0),
    "request_s": ("a request", "ms beside its prompt", 1e3),
}
"""What a parameter is called, its unit, and how many of them are 1."""
EFFECTIVE = {"bandwidth": ("bandwidth", "GB/s"), "compute": ("compute", "GFLOP/s")}
"""The same where they are figures of their own."""
LEAST_ERROR = 1e-3
"""Of a value, below which no error is shown: no model of steps is as good as that."""
MOST_SHOWN = 40
"""Points in the table on the screen; the file has all."""


def page(found: Fit, made: Calibration, width: int) -> str:
    """The page: what each parameter is, what every point says, how far off the model is."""
    return "\n".join(_lines(found, made, made.case(), width))


def _lines(found: Fit, made: Calibration, where: Case, width: int) -> Iterator[str]:
    kinds = [one.point.kind for one in found.residuals]
    points = " and ".join(f"{kinds.count(kind)} {kind}" for kind in ("decode", "prefill") if kind in kinds)
    yield from wrap(f"{where.words}: {points} points of {counted(len(made.runs), 'run')}", width, "  ")
    yield ""
    yield from _estimates(found, where, width)
    yield ""
    yield from _residuals(found)
    yield ""
    yield (
        f"error of the model: {made.rms_percent:.2g} % (root mean square), {made.worst_percent:.2g} % at most"
    )
    for note in made.notes:
        yield ""
        yield from wrap(note, width, "  ", "! ")


def _estimates(found: Fit, where: Case, width: int) -> Iterator[str]:
    """Each parameter with its error; of those not told, why, and what stands in."""
    gpu = where.gpu
    for one in found.estimates:
        if one.name not in NAMES or (one.name == "link" and where.parallel.devices == 1):
            continue  # what no run can tell is in the file, and one device has no links
        name, unit, scale = NAMES[one.name]
        if gpu.cpu and one.name in EFFECTIVE:
            name, unit = EFFECTIVE[one.name]
            reached = gpu.bandwidth if one.name == "bandwidth" else max(gpu.flops.values())
            scale = reached / getattr(found.efficiency, one.name) / 1e9
        if one.value is None:
            text = f"not known: {one.reason} {figures(one.used * scale).strip()} {unit} stands in."
            yield from wrap(text, width, " " * 12, name.ljust(12))
            continue
        error = "" if one.error is None else f" +- {_error(one.error, one.value, found.rms, scale)}"
        reason = "" if one.reason is None else f". {one.reason}"
        shown = 0.0 if one.error is not None and one.error > 10 * one.value else one.value
        yield from wrap(f"{figures(shown * scale)}{error} {unit}{reason}", width, " " * 12, name.ljust(12))


def _error(error: float, value: float, rms: float, scale: float) -> str:
    """An error in two digits at most, and never better than the model describes the points."""
    shown = scale * max(error, value * max(rms, LEAST_ERROR))
    return f"{shown:.2g}" if 1e-3 <= shown < 10 else f"{shown:,.0f}" if shown >= 10 else f"{shown:.4f}"


def _residuals(found: Fit) -> Iterator[str]:
    heads = ("step", "batch", "tokens", "of", "measured ms", "model ms", "error %")
    shown = found.residuals
    if len(shown) > MOST_SHOWN:
        shown = tuple(shown[round(i * (len(shown) - 1) / (MOST_SHOWN - 1))] for i in range(MOST_SHOWN))
    rows = [
        (
            one.point.kind,
            f"{one.point.sequences:,}",
            f"{one.point.tokens:,}",
            f"{one.point.samples:,}",
            figures(1e3 * one.point.seconds),
            figures(1e3 * one.model_s),
            f"{100 * one.error:+.1f}",
        )
        for one in shown
    ]
    widths = [max(len(line[i]) for line in (heads, *rows)) for i in range(len(heads))]
    for line in (heads, *rows):
        first, *others = line
        cells = [right(text, wide) for text, wide in zip(others, widths[1:], strict=True)]
        yield printable(first).ljust(widths[0]) + "   " + "   ".join(cells)
    if len(found.residuals) > len(shown):
        yield f"{len(shown)} of {len(found.residuals)} points; the file has all"
