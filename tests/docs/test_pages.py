"""The pages are executed, and what they list is what there is.

In a page, `console` blocks are commands (`$ `, continued by a backslash) and lines that their output holds in this order
(`…` stands for anything); `python run` blocks are programs that must not fail; a block with `file=NAME` is
that file. All blocks of a page run in order in one empty folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from loadstone.errors import Exit

DOCS = Path(__file__).parents[2] / "docs"
FENCED = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BELIEVED_OR_NOT = (Exit.DONE, Exit.INVALID)
"""INVALID says something of the machine that runs the tests, not of the page."""


class Command(NamedTuple):
    """A command line and what it is said to print."""

    line: str
    said: list[str]


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    return ((found["kind"], found["text"]) for found in FENCED.finditer(page.read_text()))


def commands(text: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, said = re.match(r"((?:.*\\\n)*.*)\n?([\s\S]*)", part).groups()  # type: ignore[union-attr]
        yield Command(line, said.splitlines())


def holds(output: list[str], said: list[str]) -> str | None:
    """The first line of `said` that is not in `output` after those before it; None when all are."""
    rest = iter(output)
    for line in said:
        pattern = re.compile(".*".join(map(re.escape, line.split("…"))))
        if not any(pattern.fullmatch(printed.rstrip()) for printed in rest):
            return line
    return None


def run(arguments: list[str] | str, folder: Path) -> subprocess.CompletedProcess[str]:
    scripts = Path(sys.executable).parent
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LOADSTONE_")}
    kept["COLUMNS"] = "100"  # workers of xdist have their own
    environ = {**kept, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(folder)}
    return subprocess.run(
        arguments, shell=isinstance(arguments, str), cwd=folder, env=environ, check=False, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=110,
    )  # fmt: skip


def install(folder: Path) -> None:
    """What `pip install -e .` would leave of the folder's entry points."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = (f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in entries.items())
              for group, entries in project["entry-points"].items())  # fmt: skip
    (info / "entry_points.txt").write_text("\n".join(groups))


def write(name: str, text: str, folder: Path) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    if name == "pyproject.toml":
        install(folder)


def show(text: str, folder: Path) -> None:
    for command in commands(text):
        done = run(command.line, folder)
        assert done.returncode in BELIEVED_OR_NOT, f"{command.line}\n{done.stdout}"
        absent = holds(done.stdout.splitlines(), command.said)
        assert absent is None, f"{command.line}\ndoes not print {absent!r} but\n{done.stdout}"


def assure(text: str, folder: Path) -> None:
    done = run([sys.executable, "-W", "error", "-c", text], folder)
    assert done.returncode == 0, f"{text}\n{done.stdout}"


def execute(page: Path, folder: Path) -> int:
    """Runs a page's blocks; returns how many there were."""
    runnable = [
        (kind, text) for kind, text in blocks(page) if kind in ("console", "python run") or " file=" in kind
    ]
    for kind, text in runnable:
        if kind == "console":
            show(text, folder)
        elif kind == "python run":
            assure(text, folder)
        else:
            write(kind.partition(" file=")[2], text, folder)
    return len(runnable)


@pytest.mark.slow
@pytest.mark.timeout(400)  # the page of load shapes has some forty runs
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("tutorial-static", 5),
        ("tutorial-dynamic", 5),
        ("extending", 11),
        ("load-shapes", 31),
        ("capacity-planning", 1),
        ("roofline", 3),
        ("server-metrics", 3),
    ],
)
def test_a_page_does_what_it_says(name: str, count: int, tmp_path: Path) -> None:
    assert execute(DOCS / f"{name}.md", tmp_path) == count


def test_a_command_is_told_from_what_it_prints() -> None:
    text = "$ one \\\n  --more\nprinted\n…\n$ two\n"
    assert list(commands(text)) == [Command("one \\\n  --more", ["printed", "…"]), Command("two", [])]


def test_what_a_page_says_must_be_printed_in_its_order() -> None:
    output = ["VALID: fine.", "", "50 requests: 50 ok · 2.31 s", "files  x/"]
    assert holds(output, ["50 requests: 50 ok · …", "files  x/"]) is None
    assert holds(output, ["files  x/", "50 requests: 50 ok · …"]) == "50 requests: 50 ok · …"
    assert holds(output, ["50 requests: 49 ok · …"]) == "50 requests: 49 ok · …"


def test_a_page_that_is_wrong_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python run\nassert 1 == 2\n```\n")
    with pytest.raises(AssertionError, match="1 == 2"):
        execute(page, tmp_path)
    page.write_text("```console\n$ exit 2\n```\n")
    with pytest.raises(AssertionError, match="exit 2"):
        execute(page, tmp_path)
