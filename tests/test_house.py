"""The house of docs/design.md, read from the imports: downwards only, and numpy in its own rooms."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import loadstone

ROOT = Path(loadstone.__file__).parent

FLOORS = [
    {"__init__", "errors"},
    {
        "environment", "clock", "registry", "recording", "board", "folder", "terminal", "interrupt", "patience",
        "child", "dist", "figures", "stats", "histogram", "report", "roofline", "slo", "ceiling",
    },
    {"wire", "tokens", "machine", "estimate"},
    {"config"},
    {"plan"},
    {"endpoints", "sources"},
    {"load", "read", "sim"},
    {"metrics", "telemetry"},
    {"checks"},
    {"summary", "export", "tui", "compose", "preflight"},
    {"hooks"},
    {"formats", "compare"},
    {"crew", "account", "rebuild", "plot", "watching"},
    {"settle"},
    {"virtual"},
    {"capacity", "run"},
    {"study"},
    {"cli"},
    {"__main__"},
]  # fmt: skip
"""From the ground up. A room may import from lower floors and from itself, never from its own floor or above."""

FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
OPENS_SIM = {"capacity", "cli", "crew", "settle", "sim", "virtual"}
NUMPY = {
    "read",
    "metrics",
    "stats",
    "histogram",
    "checks",
    "summary",
    "plot",
    "roofline",
    "sim",
    "virtual",
    "capacity",
    "telemetry",
    "estimate",
    "compare",
    "study",
    "formats",
}
NUMPY_WHEN_ASKED = NUMPY | {"export"}


def modules():
    """Every module: its room, its path, its tree."""
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).parts[0].removesuffix(".py"), path, ast.parse(path.read_text("utf-8"))


def names(nodes):
    """Every module that some nodes import; of `from a import b`, `a.b`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms(tree):
    """The rooms that a tree imports from; a name of the package itself, such as its version, is none."""
    for name in names(ast.walk(tree)):
        parts = name.split(".")
        if parts[0] == "loadstone" and len(parts) > 1:
            known = (ROOT / parts[1]).is_dir() or (ROOT / f"{parts[1]}.py").is_file()
            yield parts[1] if known else "__init__"


def at_import_time(tree):
    """The nodes that run when a module is imported: not the bodies of functions, not `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from at_import_time(node)


def test_every_room_has_its_floor():
    assert {room for room, _, _ in modules()} - FLOOR.keys() == set()


def test_the_page_of_the_design_names_every_room():
    page = (Path(__file__).parents[1] / "docs" / "design.md").read_text("utf-8")
    house = page.partition("## The house")[2].split("```")[1]
    assert FLOOR.keys() - {"__init__", "__main__"} - set(re.findall(r"\w+", house)) == set()


def test_imports_run_downwards():
    wrong = {
        f"{path.relative_to(ROOT)} imports {other}"
        for room, path, tree in modules()
        for other in rooms(tree)
        if other != room and FLOOR[other] >= FLOOR[room]
    }
    assert wrong == set()


def test_only_the_command_line_and_the_crew_know_the_engine():
    assert {room for room, _, tree in modules() if "sim" in set(rooms(tree))} <= OPENS_SIM


def test_only_the_command_line_draws_and_only_figures_know_what_draws_them():
    assert {room for room, _, tree in modules() if "plot" in set(rooms(tree))} == {"cli", "plot"}
    assert {
        room
        for room, _, tree in modules()
        if {name.partition(".")[0] for name in names(ast.walk(tree))} & {"altair", "vl_convert"}
    } == {"plot"}


def test_numpy_and_polars_stay_in_their_rooms():
    def users(nodes):
        return {
            room
            for room, _, tree in modules()
            if {name.partition(".")[0] for name in names(nodes(tree))} & {"numpy", "polars"}
        }

    assert users(at_import_time) <= NUMPY
    assert users(ast.walk) <= NUMPY_WHEN_ASKED
    assert users(at_import_time)


def test_names_are_of_the_field():
    files = {path.stem for _, path, _ in modules()}
    classes = {
        node.name for _, _, tree in modules() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }
    endings = ("Manager", "Service", "Handler", "Processor", "Factory", "Mixin", "Helper", "Util", "Utils")
    assert files & {"utils", "util", "common", "helpers", "misc"} == set()
    assert {
        name for name in classes if name.endswith(endings) or name.startswith(("Base", "Abstract"))
    } == set()
    assert len(classes) > 20


def test_every_module_says_what_it_is():
    assert [str(path) for _, path, tree in modules() if not ast.get_docstring(tree)] == []
