"""Small vocabularies of every kind, trained here, so that no test needs the network."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from loadstone.tokens.words import COMMON

AFTER_NEWLINE = COMMON[:100]


def _sentences() -> list[str]:
    dice = random.Random(0)
    return [" ".join(dice.choices(COMMON, k=12)) for _ in range(400)]


def _corpus() -> list[str]:
    return [*(" ".join(["the", word, word]) for word in COMMON), *_sentences(), *COMMON * 4]


def _save(folder: Path, engine: Tokenizer) -> Path:
    folder.mkdir()
    engine.save(str(folder / "tokenizer.json"))
    return folder


def _byte_level(folder: Path) -> Path:
    engine = Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=3000, initial_alphabet=alphabet, show_progress=False)
    engine.train_from_iterator(_corpus(), trainer)
    # As many published files do: a limit that a count must not be cut by.
    engine.enable_truncation(16)
    engine.enable_padding(length=32)
    return _save(folder, engine)


def _metaspace_bpe(folder: Path) -> Path:
    engine = Tokenizer(models.BPE(unk_token="<unk>"))
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=["<unk>"], show_progress=False)
    engine.train_from_iterator(_corpus(), trainer)
    return _save(folder, engine)


def _metaspace_unigram(folder: Path) -> Path:
    engine = Tokenizer(models.Unigram())
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=600, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    engine.train_from_iterator(_corpus(), trainer)
    return _save(folder, engine)


def _word_piece(folder: Path) -> Path:
    engine = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer()
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=2000, special_tokens=["[UNK]"], show_progress=False)
    engine.train_from_iterator(_corpus(), trainer)
    return _save(folder, engine)


@pytest.fixture(scope="session")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Names to load tokenizers by, by their kind; all of them keep words apart."""
    folder = tmp_path_factory.mktemp("vocabularies")
    makers = (_byte_level, _metaspace_bpe, _metaspace_unigram, _word_piece)
    return {"builtin": "builtin"} | {
        maker.__name__[1:]: str(maker(folder / maker.__name__)) for maker in makers
    }


@pytest.fixture(scope="session")
def line_bound(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Sentencepiece-like: a word after a newline is another token, and only `AFTER_NEWLINE` have one."""
    engine = Tokenizer(models.BPE(unk_token="<unk>"))
    newline = pre_tokenizers.Split("\n", behavior="isolated")
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [newline, pre_tokenizers.Metaspace(prepend_scheme="first")]
    )
    trainer = trainers.BpeTrainer(vocab_size=3000, special_tokens=["<unk>"], show_progress=False)
    lines = [f"the\n{word} the" for word in AFTER_NEWLINE * 4]
    engine.train_from_iterator([*_corpus(), *lines], trainer)
    return str(_save(tmp_path_factory.mktemp("line") / "line_bound", engine))


@pytest.fixture(scope="session")
def space_merging(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BPE that knows no word boundaries: frequent pairs of words are one token."""
    engine = Tokenizer(models.BPE(unk_token="<unk>"))
    engine.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(vocab_size=2500, special_tokens=["<unk>"], show_progress=False)
    pairs = [f"{a} {b}" for a, b in pairwise(COMMON)]
    engine.train_from_iterator([*_corpus(), *pairs], trainer)
    return str(_save(tmp_path_factory.mktemp("merging") / "space_merging", engine))


@pytest.fixture(scope="session")
def letters_only(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A vocabulary of single letters."""
    engine = Tokenizer(models.BPE({letter: n for n, letter in enumerate("abcdefghijklmnopqrstuvwxyz ")}, []))
    return str(_save(tmp_path_factory.mktemp("letters") / "letters_only", engine))


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of the tests' own, shared by all of them."""
    home = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(home))
        yield home
