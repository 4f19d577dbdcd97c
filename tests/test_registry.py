from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from loadstone import registry
from loadstone.errors import UsageError


@pytest.fixture
def foreign(monkeypatch):
    """Parts of other packages: `foreign(endpoints={"name": module})`."""

    def plug(**kinds):
        points = []
        for kind, parts in kinds.items():
            for name, part in parts.items():
                module = f"foreign_{name}"
                monkeypatch.setitem(sys.modules, module, part)
                points.append(EntryPoint(name, module, f"loadstone.{kind}"))

        def entry_points(**wanted):
            return [p for p in points if all(getattr(p, key) == value for key, value in wanted.items())]

        monkeypatch.setattr(registry, "entry_points", entry_points)
        registry.names.cache_clear()

    yield plug
    registry.names.cache_clear()


def test_parts_are_the_modules_of_a_folder():
    assert {"chat", "completions"} <= set(registry.builtin("endpoints"))
    assert "synthetic" in registry.builtin("sources")
    assert "report-json" in registry.builtin("export")
    assert not any(name.startswith("_") for name in registry.builtin("export"))
    assert list(registry.names("export")) == sorted(registry.names("export"))


def test_a_part_is_loaded_by_its_name():
    assert registry.load("endpoints", "chat").__name__ == "loadstone.endpoints.chat"
    assert registry.load("export", "report-json").__name__ == "loadstone.export.report_json"


def test_listing_names_imports_nothing():
    import subprocess

    code = (
        "import sys; from loadstone import registry; print(registry.names('export'));"
        "assert not [m for m in sys.modules if m.startswith('loadstone.export')]"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "console" in done.stdout


@pytest.mark.parametrize(
    ("kind", "name", "near"),
    [
        ("endpoints", "chatt", "chat"),
        ("endpoints", "completion", "completions"),
        ("sources", "sinthetic", "synthetic"),
    ],
)
def test_a_name_that_is_nearly_right(kind, name, near):
    with pytest.raises(
        UsageError, match=f"{kind}: there is no '{name}'. Did you mean {near}\\? Known: .*{near}"
    ):
        registry.load(kind, name)


def test_a_name_that_is_quite_wrong_gets_no_guess():
    with pytest.raises(UsageError) as error:
        registry.load("endpoints", "zzzzzz")
    assert "Did you mean" not in str(error.value)


def test_a_part_of_another_package(foreign):
    part = ModuleType("foreign_mine")
    foreign(endpoints={"mine": part})
    assert "mine" in registry.names("endpoints")
    assert "chat" in registry.names("endpoints")
    assert registry.load("endpoints", "mine") is part


def test_our_own_part_wins_over_a_foreign_one_of_its_name(foreign):
    foreign(endpoints={"chat": ModuleType("foreign_chat")})
    assert registry.load("endpoints", "chat").__name__ == "loadstone.endpoints.chat"
    assert registry.names("endpoints").count("chat") == 1


def test_an_entry_point_that_is_no_module(foreign):
    foreign(endpoints={"odd": "just a string"})
    with pytest.raises(UsageError, match=r"loadstone\.endpoints:odd is not a module"):
        registry.load("endpoints", "odd")
