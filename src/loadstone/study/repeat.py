"""The story of a study: run after run, each with a folder and a report of its own, then what they say together."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from loadstone import folder
from loadstone.compare import Comparison, page
from loadstone.config import Config
from loadstone.errors import Exit, LoadstoneError, TargetError, UsageError, precedence
from loadstone.export import junit_xml
from loadstone.interrupt import unwinding
from loadstone.metrics import names as metric_names
from loadstone.report import Report, SloVerdict
from loadstone.run import run
from loadstone.study.aggregate import Metrics, MetricSpread, RunLine, spreads
from loadstone.study.console import render
from loadstone.study.document import FILE, Study, encoded, keep, read, write
from loadstone.study.interleave import COMPARE, compared
from loadstone.study.interleave import encoded as compare_json
from loadstone.study.objectives import OF_ONE_RUN, code, verdicts
from loadstone.study.pages import junit
from loadstone.study.planned import Planned, planned
from loadstone.study.until import enough, goals
from loadstone.terminal import printable, wants_color


class _Done(NamedTuple):
    """A run that was done."""

    planned: Planned
    code: Exit
    report: Report | None
    fault: str | None


def study(config: Config, command: str) -> Exit:
    """Does every run of a study, reports each, and then all of them together.

    A run that is interrupted, or whose server is gone, ends the study; what was done by then is reported. Raises
    `UsageError` before anything starts; the first run's errors as they are.
    """
    wanted = goals(config.runs.stop_when, metric_names())
    home = _home(config)
    seed = secrets.randbelow(2**32) if config.input.seed is None else config.input.seed
    plan = planned(config, seed, home)
    earlier = _earlier(home, config.output.force)
    began = datetime.now(UTC)
    done: list[_Done] = []
    why: str | None = None
    with unwinding():
        try:
            for number, one in enumerate(plan):
                time.sleep(config.runs.cooldown_s if number else 0.0)
                _say(f"run {number + 1} of {len(plan)}: {one.name}")
                done.append(_one(one, command, first=not number))
                keep(home / FILE, encoded(_document(done, command, seed, began, len(plan), None)))
                if (report := done[-1].report) is not None:
                    _say(f"{report.certificate.verdict}: {report.certificate.headline}")
                if done[-1].code in (Exit.INTERRUPTED, Exit.USAGE) or done[-1].report is None:
                    break
                whole = len(done) % len({one.side for one in plan}) == 0
                if whole and (why := enough(wanted, _metrics(_by_side(done)).values())):
                    break
        except KeyboardInterrupt:
            if not done:
                raise
            if len(done) < len(plan):
                done.append(_Done(plan[len(done)], Exit.INTERRUPTED, None, "interrupted before it was done"))
        told = _document(done, command, seed, began, len(plan), why)
        _drop(home, set(earlier) - {one.planned.name for one in done})
        return _told(told, home, [one.code for one in done])


def rebuild(home: Path) -> Exit:
    """Every output of every run of a study, and of the study, from what was recorded."""
    from loadstone.rebuild import rebuild as rebuild_run

    before = read(home)
    done = []
    for line in before.runs:
        if (home / line.name / folder.RUN).is_file():
            folder.look_through(home / line.name)
            done.append((line, rebuild_run(home / line.name, show=False), _report(home / line.name)))
        else:
            done.append((line, Exit(line.exit), None))
    lines = tuple(
        msgspec.structs.replace(line, verdict=report.certificate.verdict if report else None)
        for line, _, report in done
    )
    sides: dict[str, list[Report]] = {}
    for line, _, report in done:
        if report is not None and line.fault is None:
            sides.setdefault(line.side, []).append(report)
    told = msgspec.structs.replace(before, runs=lines, sides=_spreads(sides), slo=_verdicts(sides))
    return _told(told, home, [code for _, code, _ in done])


def _one(one: Planned, command: str, *, first: bool) -> _Done:
    """One run. What the first one cannot do, none can."""
    home = Path(one.config.output.folder or "")
    try:
        code = run(one.config, command, show=False)
    except LoadstoneError as error:
        if first and isinstance(error, UsageError | TargetError):
            raise
        return _Done(one, error.exit, None, str(error))
    report = _report(home)
    fault = None
    if code in (Exit.INVALID, Exit.FAILED, Exit.INTERRUPTED):
        fault = {Exit.INVALID: "it cannot be believed", Exit.FAILED: "it failed"}.get(
            code, "it was interrupted"
        )
    return _Done(one, code, report, fault)


def _report(home: Path) -> Report | None:
    try:
        return msgspec.json.decode((home / folder.REPORT).read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError):
        return None


def _by_side(done: Sequence[_Done]) -> dict[str, list[Report]]:
    """The reports that count, by side."""
    found: dict[str, list[Report]] = {one.planned.side: [] for one in done}
    for one in done:
        if one.report is not None and one.fault is None:
            found[one.planned.side].append(one.report)
    return found


def _document(
    done: Sequence[_Done], command: str, seed: int, began: datetime, asked: int, why: str | None
) -> Study:
    sides = _by_side(done)
    return Study(
        command=command,
        started=began.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        seed=seed,
        asked=asked,
        ended_early=why,
        targets={
            side: str(reports[0].config["endpoint"]["url"]) for side, reports in sides.items() if reports
        },
        runs=tuple(map(_line, done)),
        sides=_spreads(sides),
        slo=_verdicts(sides),
    )


def _line(one: _Done) -> RunLine:
    return RunLine(
        name=one.planned.name,
        side=one.planned.side,
        seed=one.planned.config.input.seed or 0,
        exit=one.code,
        verdict=one.report.certificate.verdict if one.report else None,
        fault=one.fault,
    )


def _spreads(sides: Mapping[str, Sequence[Report]]) -> dict[str, dict[str, MetricSpread]]:
    return {side: spreads(runs) for side, runs in _metrics(sides).items() if runs}


def _verdicts(sides: Mapping[str, Sequence[Report]]) -> dict[str, tuple[SloVerdict, ...]]:
    return {
        side: found
        for side, reports in sides.items()
        if reports and (found := verdicts([report.slo for report in reports]))
    }


def _metrics(sides: Mapping[str, Sequence[Report]]) -> dict[str, list[Metrics]]:
    return {side: [report.metrics for report in reports] for side, reports in sides.items()}


def _told(told: Study, home: Path, codes: Sequence[Exit]) -> Exit:
    """Writes and prints what the runs say together, and how two servers differ; how the study exits."""
    found = compared(told, home)
    width, color = shutil.get_terminal_size((100, 40)).columns, wants_color(sys.stdout, os.environ)
    write(home, told, _text(told, found, home, width=100, color=False))
    if told.slo:
        keep(home / junit_xml.FILE, junit(told))
    if found is not None:
        keep(home / COMPARE, compare_json(found))
    print(_text(told, found, home, width=width, color=color), flush=True)
    judged = code(told.slo.values())
    return precedence(*(one for one in codes if one not in OF_ONE_RUN), *judged)


def _text(told: Study, found: Comparison | None, home: Path, *, width: int, color: bool) -> str:
    if found is None:
        return render(told, home, width=width, color=color)
    return "\n\n".join(
        (page.render(found, width=width, color=color), render(told, home, width=width, color=color))
    )


def _home(config: Config) -> Path:
    """The folder of the study; its runs lie in it."""
    if config.output.folder:
        return Path(config.output.folder).expanduser()
    kind = "interleaved" if config.runs.interleave else f"{config.runs.count}-runs"
    return Path("artifacts") / f"{kind}-{config.endpoint.type}-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"[:-3]


def _earlier(home: Path, force: bool) -> list[str]:
    """The names of the runs of an earlier study in the folder, which this one is to replace. Raises `UsageError` where it must not.

    Nothing is touched yet: each run sets aside what is in its own folder, and puts it back if it does not begin.
    """
    where = f"output.folder = {str(home)!r}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        present = any(home.iterdir())
    except OSError as error:
        raise UsageError(f"{where}: {error.strerror}. Choose another one with --artifact-dir.") from None
    if present and not (home / FILE).is_file():
        raise UsageError(f"{where}: it is not empty and holds no earlier study; choose another.")
    if present and not force:
        raise UsageError(f"{where} holds a study already; --force replaces it.")
    return [line.name for line in read(home).runs] if present else []


def _drop(home: Path, names: Collection[str]) -> None:
    """Clears the folders of an earlier study's runs; what is not a run's stays."""
    for name in names:
        if (home / name / folder.RUN).is_file():
            folder.claim(home / name, force=True)
            folder.drop_earlier(home / name)
            folder.release(home / name)


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)
