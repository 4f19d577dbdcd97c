from __future__ import annotations

from pathlib import Path

import pytest

from loadstone import tokens
from loadstone.tokens import cache, find
from loadstone.tokens.words import Words

WORDS = Words(first=("one",), rest=("two", "three"), first_ids=(1,), rest_ids=(2, 3), flaw="tried.")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "loadstone"


def test_what_was_kept_is_recalled_whole(home: Path) -> None:
    cache.keep("digest", WORDS)
    assert cache.recall("digest") == WORDS
    assert [file.name for file in home.iterdir()] == ["words-1-digest.json"]


def test_another_vocabulary_has_a_table_of_its_own(home: Path) -> None:
    cache.keep("digest", WORDS)
    assert cache.recall("other") is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"first":["one"],"rest":["tw',
        b"\xff\xfe",
        b"[]",
        b'{"first":[],"rest":["two"]}',
        b'{"first":["one"],"rest":["two"],"rest_ids":[1,2]}',
        b'{"first":["one"],"rest":["two"],"words":1}',
    ],
)
def test_a_broken_file_counts_as_none(home: Path, content: bytes) -> None:
    home.mkdir()
    (home / "words-1-digest.json").write_bytes(content)
    assert cache.recall("digest") is None


def test_a_broken_file_is_replaced_by_what_is_found_anew(home: Path, vocabularies: dict[str, str]) -> None:
    name = vocabularies["metaspace_bpe"]
    words = tokens.load(name).words
    (file,) = home.iterdir()
    good = file.read_bytes()
    file.write_bytes(good[:100])
    assert tokens.load(name).words == words
    assert file.read_bytes() == good


def test_words_are_found_once(
    home: Path, vocabularies: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = vocabularies["metaspace_bpe"]
    words = tokens.load(name).words
    monkeypatch.setattr(find, "find", lambda engine: pytest.fail("looked for again"))
    assert tokens.load(name).words == words


def test_a_flaw_is_remembered(home: Path, space_merging: str) -> None:
    flaw = tokens.load(space_merging).flaw
    assert flaw is not None
    assert tokens.load(space_merging).flaw == flaw
    assert cache.recall(tokens.load(space_merging).digest) is not None


def test_a_folder_that_cannot_be_made_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    cache.keep("digest", WORDS)
    assert cache.recall("digest") is None


def test_a_full_disk_leaves_nothing_behind(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    cache.keep("digest", WORDS)
    assert list(home.iterdir()) == []


def test_the_folder_is_found_as_the_desktop_conventions_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache.folder() == Path("/home/someone/.cache/loadstone")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.folder() is None


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    cache.keep("digest", WORDS)
    assert cache.recall("digest") is None
