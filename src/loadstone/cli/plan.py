"""`loadstone plan`: how many devices of which kind a load needs, how they are set up, and at what cost."""

from __future__ import annotations

import json
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from loadstone import config
from loadstone.capacity.options import ENGINE, PlanOptions, needed, prices
from loadstone.cli.sheet import SETTINGS, Sheet, given, verbose
from loadstone.errors import Exit, UsageError
from loadstone.sim.options import SimOptions

if TYPE_CHECKING:
    from loadstone.capacity.answer import Answer
    from loadstone.capacity.candidates import Asked
    from loadstone.capacity.console import Page
    from loadstone.capacity.search import Question

DRAWN = (".png", ".svg", ".html")
QUESTION = config.leaves(PlanOptions)
FLAGS = tuple(leaf for leaf in config.leaves(SimOptions) if leaf.path in ENGINE)


@click.command(cls=Sheet, leaves=(*QUESTION, *FLAGS), context_settings=SETTINGS)
@verbose
def plan(verbose: bool, **flags: Any) -> int:
    """How many devices of which kind a load needs, their parallelism and flags, and at what cost an hour.

    loadstone plan --model llama-3.1-8b --slo "ttft.p99<500ms,itl.p99<40ms" --rate 100 --workload chat
    """
    told = given(flags)
    options = config.from_flags(PlanOptions, QUESTION, told)
    engine = config.from_flags(SimOptions, FLAGS, told)
    if options.model is None and engine.calibration is not None:
        from loadstone.roofline import calibration  # the analysis; not needed for help

        options = msgspec.structs.replace(options, model=calibration.read(engine.calibration).setup.model)
    output = Path(options.output) if options.output else None
    _check_output(output)
    asked, question = _question(options, engine)
    found = _answer(asked, question, options)
    if output:
        _write(output, found, asked, question, options)
    if options.json:
        click.echo(_json(found, asked, question, options))
    else:
        click.echo(_page(found, asked, question, options))
        if output:
            click.echo(f"\n{output}")
    return Exit.DONE if found.best else Exit.SLO_MISSED


def _question(options: PlanOptions, engine: SimOptions) -> tuple[Asked, Question]:
    """What may be varied, and what is asked. Raises `UsageError`."""
    model, rate, slo = needed(options)
    from loadstone.capacity.candidates import Asked  # the analysis; not needed for help
    from loadstone.capacity.search import Question
    from loadstone.capacity.trial import METRICS, USUAL
    from loadstone.capacity.workload import workload
    from loadstone.slo import objectives

    asked = Asked(
        model=model,
        gpus=options.gpu,
        tensor=[int(size) for size in options.tensor_parallel_size],
        pipeline=[int(size) for size in options.pipeline_parallel_size],
        weights=options.quantization,  # type: ignore[arg-type]  # each was checked when it was read
        batched_tokens=[int(tokens) for tokens in options.max_num_batched_tokens],
        prices=prices(options.price),
        base=engine,
    )
    limits = objectives([slo], METRICS, USUAL)
    return asked, Question(workload(options.workload), limits, rate, options.random_seed)


def _answer(asked: Asked, question: Question, options: PlanOptions) -> Answer:
    from loadstone.capacity.answer import answer
    from loadstone.capacity.processes import Progress, processes
    from loadstone.environment import usable_cores

    with processes(options.processes or usable_cores(), Progress(sys.stderr)) as apply:
        return answer(asked, question, options.headroom / 100, apply)


def _about(asked: Asked, question: Question, options: PlanOptions) -> Page:
    from loadstone.capacity.console import Page
    from loadstone.terminal import wants_color

    return Page(
        asked,
        question,
        options.headroom / 100,
        options.workload,
        width=shutil.get_terminal_size((100, 40)).columns,
        color=wants_color(sys.stdout, os.environ),
        unicode="utf" in (sys.stdout.encoding or "").lower(),
    )


def _page(found: Answer, asked: Asked, question: Question, options: PlanOptions) -> str:
    from loadstone.capacity.console import page

    return page(found, _about(asked, question, options))


def _json(found: Answer, asked: Asked, question: Question, options: PlanOptions) -> str:
    from loadstone.capacity.told import told

    return json.dumps(told(found, asked, question, options.headroom / 100), indent=2, allow_nan=False)


def _check_output(output: Path | None) -> None:
    if output is None:
        return
    ending = output.suffix.lower()
    if ending not in (*DRAWN, ".json"):
        raise UsageError(f"-o {output}: must end with {', '.join((*DRAWN, '.json'))}.")
    if ending in DRAWN and not all(map(find_spec, ("altair", "vl_convert"))):
        raise UsageError(
            "-o: a figure needs Altair and vl-convert, which are not installed: pip install '.[plot]' in loadstone's"
            " folder. Without them there is the drawing on the terminal."
        )


def _write(output: Path, found: Answer, asked: Asked, question: Question, options: PlanOptions) -> None:
    if output.suffix.lower() != ".json":
        _draw(output, found, asked, question, options)
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(_json(found, asked, question, options) + "\n", "utf-8")
    except OSError as error:
        raise UsageError(
            f"{output}: cannot be written: {error.strerror}. Choose another place with -o."
        ) from None


def _draw(output: Path, found: Answer, asked: Asked, question: Question, options: PlanOptions) -> None:
    """The tails that are limited, by one replica's rate."""
    if found.best is None:
        raise UsageError(f"-o {output}: nothing keeps the objectives, so there is no curve to draw; -o FILE.json has the answer.")  # fmt: skip
    from loadstone.capacity.assumptions import assumptions
    from loadstone.capacity.console import answered, load_of
    from loadstone.plot._capacity import Tail, draw_capacity

    each = question.rate / found.best.replicas
    tails = [
        Tail(
            f"{one.metric.replace('_', ' ')} {one.stat}, ms",
            [trial.values[one.metric, one.stat] for trial in found.curve],
            one.limit,
        )
        for one in question.objectives
    ]
    notes = [
        f"{answered(found, _about(asked, question, options))} Load: {load_of(question)}.",
        next(iter(assumptions(found, asked, question, options.headroom / 100))),
        f"The curve is one replica of {found.best.replicas:,}. Dashed: the objectives. Dotted: the rate that is asked of each,"
        f" {each:.3g} requests/s.",
    ]
    rates = [trial.rate for trial in found.curve]
    draw_capacity(rates, tails, {"asked": each}, notes, output, title=f"Capacity of {asked.model}, simulated")
