"""`loadstone roofline`: how fast a model can be on a device, and how near runs came to it."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from loadstone.cli.sheet import SETTINGS, Given, verbose
from loadstone.errors import Exit, LoadstoneError, UsageError

if TYPE_CHECKING:
    from loadstone.roofline.case import Asked, Case
    from loadstone.roofline.curve import Curve
    from loadstone.roofline.setup import Efficiency
    from loadstone.roofline.validation import Validity

DRAWN = (".png", ".svg", ".html")
ISL, OSL = 1024, 256
MOST_SEQUENCES = 1_000_000
"""No engine runs so many together."""
WEIGHTS = ("fp32", "bf16", "fp8", "int8", "w8a16", "int4", "mxfp4", "fp4", "nvfp4a16")
KV = ("auto", "fp32", "bf16", "fp8")


class Found(NamedTuple):
    """A curve, where its efficiency comes from, and why it is to be believed less than others."""

    curve: Curve
    source: str
    caution: Validity | None

    @property
    def exit(self) -> Exit:
        """Whether every objective is kept by some batch."""
        missed = any(one.row is None for one in self.curve.objectives)
        return Exit.SLO_MISSED if missed else Exit.DONE


def _names(table: str) -> Sequence[str]:
    if table == "gpus":
        from loadstone.roofline.gpus import GPUS

        return tuple(GPUS)
    from loadstone.roofline.models import MODELS

    return tuple(MODELS)


def _no_nan(ctx: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """A range of click lets through what is in no order with its ends."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is not in the range 0<x<=1.", ctx, parameter)
    return value


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN...]")
@click.option(
    "--gpu", type=Given(lambda: _names("gpus")), metavar="NAME", help="Accelerator, or a TOML file of one."
)
@click.option(
    "--model",
    type=Given(lambda: _names("models")),
    metavar="NAME",
    help="Model: a known name, or a config.json.",
)
@click.option("--tensor-parallel-size", "-tp", type=int, metavar="N", help="Devices that share every matrix.")
@click.option("--pipeline-parallel-size", "-pp", type=int, metavar="N", help="Groups that share the layers.")
@click.option("--data-parallel-size", "-dp", type=int, metavar="N", help="Engines behind one address.")
@click.option(
    "--enable-expert-parallel/--no-enable-expert-parallel",
    default=None,
    help="Spread the experts over all devices.",
)
@click.option(
    "--quantization", type=click.Choice(WEIGHTS), help="Type of the weights; default: as published."
)
@click.option(
    "--kv-cache-dtype", type=click.Choice(KV), help="Type of the KV cache; auto: that of the activations."
)
@click.option(
    "--gpu-memory-utilization",
    type=click.FloatRange(0, 1, min_open=True),
    callback=_no_nan,
    metavar="SHARE",
    help="Share of the memory to use; default: 0.92.",
)
@click.option(
    "--max-num-seqs",
    type=click.IntRange(1),
    metavar="N",
    help="Sequences that run together at most; default: as vLLM.",
)
@click.option(
    "--max-num-batched-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="Tokens of a step at most, to which prompts are cut; default: as vLLM.",
)
@click.option(
    "--isl", type=click.IntRange(1), metavar="TOKENS", help=f"Length of a prompt; default: {ISL:,}."
)
@click.option("--osl", type=click.IntRange(1), metavar="TOKENS", help=f"Length of an answer; default: {OSL}.")
@click.option(
    "--context",
    type=click.IntRange(1),
    metavar="TOKENS",
    help="Mean context while decoding; default: ISL + OSL / 2.",
)
@click.option(
    "--batch", "batches", metavar="N,N...", help="Batches of the table; default: 1, 2, 4 ... to what fits."
)
@click.option(
    "--slo",
    multiple=True,
    metavar="NAME<TIME",
    help="The largest batch that keeps it: tpot<20ms, ttft<500ms; repeatable.",
)
@click.option("--calibration", type=click.Path(), metavar="FILE", help="Efficiencies that --fit wrote.")
@click.option("--floor", is_flag=True, help="The datasheet's figures in full, nothing on top.")
@click.option(
    "--fit",
    is_flag=True,
    help="Fit the efficiencies to the RUN folders (--gpu, --model: what they ran on) and write a calibration.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write .json, a figure (.png, .svg, .html), or with --fit the calibration (.toml).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--list",
    "listed",
    is_flag=True,
    help="List accelerators and models.",
)
@click.option(
    "--list-sources",
    is_flag=True,
    help="The same, with the source of every figure.",
)
@verbose
def roofline(
    runs: tuple[Path, ...],
    fit: bool,
    output: Path | None,
    as_json: bool,
    listed: bool,
    list_sources: bool,
    verbose: bool,
    **flags: Any,
) -> int:
    """How fast a model can be on a device: decode against the batch, its limits, and what keeps an SLO.

    loadstone roofline --gpu h100 --model llama-3.1-8b --slo "tpot<20ms"
    """
    if listed or list_sources:
        others = {**flags, "fit": fit, "output": output}
        return _list(list_sources, as_json, [*map(str, runs), *(name for name in others if others[name])])
    if fit:
        return _fit(runs, output, flags, as_json=as_json, verbose=verbose)
    if runs:
        raise UsageError(f"{runs[0]}: run folders are for --fit; without it name --gpu and --model.")
    _check_output(output, (*DRAWN, ".json"))
    found = _curve(flags)
    if as_json or (output and output.suffix.lower() == ".json"):
        text = _json(found)
        if not output:
            click.echo(text)
            return found.exit
        if output.suffix.lower() == ".json":
            _write(output, text)
            click.echo(output)
            return found.exit
    if output:
        _drawable()
        from loadstone.plot._roofline import draw_curve

        click.echo(draw_curve(found.curve, _notes(found), output))
        return found.exit
    from loadstone.terminal import wants_color
    from loadstone.tui.curve import page

    width = shutil.get_terminal_size((100, 40)).columns
    unicode = "utf" in (sys.stdout.encoding or "").lower()
    color = wants_color(sys.stdout, os.environ)
    click.echo(
        page(
            found.curve,
            width=width,
            color=color,
            source=found.source,
            caution=found.caution,
            unicode=unicode,
        )
    )
    return found.exit


def _notes(found: Found) -> list[str]:
    """What a figure has to say wherever it is pasted, in sentences."""
    from loadstone.tui.curve import asked, how, kept

    words = how(found.curve, found.source)
    notes = [f"{asked(found.curve)}.", f"{words[0].upper()}{words[1:]}."]
    if found.caution:
        notes.append(f"Caution: {found.caution.caution}.")
    return [*notes, *(f"{kept(one).rstrip('.')}." for one in found.curve.objectives)]


def _list(sources: bool, as_json: bool, others: Sequence[str]) -> int:
    """Prints what is known; `others` are what was asked for beside it."""
    if others:
        name = others[0].replace("_", "-")
        raise UsageError(f"--list: {name} has no effect beside it; leave one of them out.")
    from loadstone.cli import hardware

    width = shutil.get_terminal_size((100, 40)).columns
    click.echo(hardware.as_json() if as_json else hardware.listing(width, sources=sources))
    return Exit.DONE


def _curve(flags: dict[str, Any]) -> Found:
    """The curve that is asked for."""
    from loadstone.roofline.curve import curve

    case, efficiency, source, warned = _case(flags)
    isl = flags["isl"] or flags["context"] or ISL
    osl = flags["osl"] if flags["osl"] or flags["context"] else OSL
    more = {}
    if flags["gpu_memory_utilization"] is not None:
        more["utilization"] = flags["gpu_memory_utilization"]
    found = curve(
        case,
        efficiency,
        prompt_tokens=isl,
        output_tokens=osl,
        context=flags["context"],
        batches=_batches(flags["batches"]),
        max_num_seqs=flags["max_num_seqs"],
        max_num_batched_tokens=flags["max_num_batched_tokens"],
        slo=_slo(flags["slo"]),
        **more,
    )
    return Found(found, source, warned)


def _case(flags: dict[str, Any]) -> tuple[Case, Efficiency, str, Validity | None]:
    """What is asked for, how near to the datasheet it is taken to come, and why that may not be believed."""
    from loadstone.roofline import calibration
    from loadstone.roofline.case import case
    from loadstone.roofline.setup import FLOOR, Efficiency
    from loadstone.roofline.validation import FITTED_VERSIONS, caution

    read = calibration.read(flags["calibration"]) if flags["calibration"] else None
    if read and flags["floor"]:
        raise UsageError("--floor and --calibration: the datasheet or what was measured; leave one out.")
    asked = _asked(flags, read.setup if read else None)
    if read is None:
        plain = case(asked)
        if flags["floor"]:
            return plain, FLOOR, "datasheet", None
        return plain, Efficiency(), f"assumed, from vLLM {FITTED_VERSIONS}; --fit measures it", caution(plain)
    there = read.case()
    found = case(asked, read.hardware if _device(asked.gpu) == _device(read.setup.gpu) else None)
    fitted = None if read.simulated else there
    return (
        found,
        read.efficiency,
        _measured(found, there, Path(flags["calibration"]).name),
        caution(found, fitted),
    )


def _measured(found: Case, there: Case, name: str) -> str:
    """Where efficiencies of a calibration come from: what they were measured with may be something else."""
    if all(
        getattr(found, what) == getattr(there, what) for what in ("gpu", "shape", "precision", "parallel")
    ):
        return f"measured: {name}"
    return f"{name}: measured with {there.words}, assumed here"


def _device(name: str) -> str:
    """The table's name of a device; the path of a file as it is."""
    from loadstone.roofline import gpus

    return name if name.endswith(".toml") or "/" in name else gpus.find(name).name


def _asked(flags: dict[str, Any], known: Asked | None) -> Asked:
    """The setup: that of a calibration, with what the flags say in place of it."""
    import msgspec

    from loadstone.roofline.case import Asked, convert

    given = {name: flags[name] for name in Asked.__struct_fields__ if flags.get(name) is not None}
    base = msgspec.structs.asdict(known) if known else {}
    for name in ("gpu", "model"):
        if name not in given and name not in base:
            raise UsageError(f"roofline: --{name} is missing; loadstone roofline --list names what is known.")
    return convert({**base, **given}, "roofline")


def _batches(text: str | None) -> list[int]:
    if text is None:
        return []
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = [0]
    if not all(1 <= batch <= MOST_SEQUENCES for batch in found):
        raise UsageError(
            f"--batch {text!r}: give whole numbers above 0, separated by commas, such as 1,8,64; the largest is"
            f" {MOST_SEQUENCES:,}."
        )
    return sorted(set(found))


def _slo(words: Sequence[str]) -> dict[str, float]:
    """Objectives by metric, in seconds."""
    from loadstone.roofline.curve import TPOT, TTFT
    from loadstone.slo import TIME, objectives

    names = {TPOT: TPOT, TTFT: TTFT, "inter_token_latency": TPOT}
    found: dict[str, float] = {}
    for one in objectives(words, dict.fromkeys(names, TIME), "mean") if words else []:
        if one.stat != "mean":
            raise UsageError(
                f"--slo {one.metric}.{one.stat}: a roofline knows no distribution; leave .{one.stat} out."
            )
        if names[one.metric] in found:
            raise UsageError(f"--slo: {one.metric} is limited twice (itl is tpot here); give it once.")
        found[names[one.metric]] = one.limit / 1e3
    return found


def _json(found: Found) -> str:
    import msgspec

    from loadstone import __version__

    curve = found.curve
    told = msgspec.to_builtins(curve)
    del told["drawn"]
    told = {
        "loadstone_version": __version__,
        "efficiency_source": found.source,
        "caution": found.caution.caution if found.caution else None,
        "largest": curve.largest,
        **told,
    }
    return json.dumps(told, indent=2, allow_nan=False)


def _check_output(output: Path | None, endings: Sequence[str]) -> None:
    if output and output.suffix.lower() not in endings:
        raise UsageError(f"-o {output}: must end with {', '.join(endings)}.")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", "utf-8")
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be written: {error.strerror}. Choose another place with -o."
        ) from None


def _drawable() -> None:
    if not all(map(find_spec, ("altair", "vl_convert"))):
        raise UsageError(
            "-o: a figure needs Altair and vl-convert, which are not installed: pip install '.[plot]' in loadstone's"
            " folder. Without them there is the drawing on the terminal."
        )


def _fit(
    runs: Sequence[Path], output: Path | None, flags: dict[str, Any], *, as_json: bool, verbose: bool
) -> int:
    if not runs:
        raise UsageError("--fit: name the folders of runs, such as loadstone roofline --fit artifacts/*.")
    _check_output(output, (".toml",))
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    from loadstone.roofline import calibration
    from loadstone.summary.calibrated import fitted  # the analysis; not needed for help
    from loadstone.tui.fitted import page

    try:
        made, found = fitted(runs, lambda known: _asked(flags, known))
    except LoadstoneError:
        raise
    except Exception as error:  # somebody else may have written anything into these folders
        if verbose:
            raise
        words = str(error) or type(error).__name__
        raise LoadstoneError(f"{', '.join(map(str, runs))}: cannot be fitted: {words}.") from None
    if as_json:
        click.echo(calibration.as_json(made))
    else:
        click.echo(page(found, made, shutil.get_terminal_size((100, 40)).columns))
    if output:
        calibration.write(made, output)
        click.echo(output if as_json else f"\n{output}", err=as_json)
    return Exit.DONE
