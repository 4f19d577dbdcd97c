"""Writes a tiny llama with random weights and the vocabulary of a tokenizer.json: a model for llama.cpp in 17 MB.

Run in `.venv-llama` as `python tiny.py TOKENIZER MODEL`. One rule: client and server count by the same vocabulary,
so the lengths of loadstone are checked by a server that nobody here wrote. It speaks no language: what it says is
made of the vocabulary's lowercase words, one whole token each.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np

WIDTH, LAYERS, HEADS, FEED = 64, 2, 4, 128
CONTEXT_TOKENS = 8192
HUSHED = 0.05
"""Embeddings of tokens that are no words are this small, so that the model hardly ever says them: half a
character could not be streamed by itself, and tokens would come in pairs."""
TEMPLATE = (
    "{% for message in messages %}[{{ message.role }}]\n{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]\n{% endif %}"
)
"""Newlines on both sides of the content: no token of it joins one of the template, so every prompt costs the same more."""


def write(tokenizer: dict[str, Any], path: Path) -> None:
    """The model file of one vocabulary."""
    tokens, kinds = vocabulary(tokenizer)
    writer = gguf.GGUFWriter(str(path), "llama")
    _shape(writer, len(tokens))
    _tokenizer(writer, tokens, kinds, tokenizer["model"]["merges"])
    for name, weights in tensors(tokens):
        writer.add_tensor(name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def vocabulary(tokenizer: dict[str, Any]) -> tuple[list[str], list[int]]:
    """All tokens in the order of their ids, and what kind each is."""
    ids = dict(tokenizer["model"]["vocab"])
    added = {token["content"]: token for token in tokenizer["added_tokens"]}
    ids.update((text, token["id"]) for text, token in added.items())
    tokens = sorted(ids, key=ids.__getitem__)
    assert [ids[text] for text in tokens] == list(range(len(tokens))), "ids have gaps"
    return tokens, [_kind(added.get(text)) for text in tokens]


def _kind(added: dict[str, Any] | None) -> int:
    if added is None:
        return int(gguf.TokenType.NORMAL)
    return int(gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED)


def _shape(writer: gguf.GGUFWriter, vocabulary_size: int) -> None:
    writer.add_context_length(CONTEXT_TOKENS)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocabulary_size)


def _tokenizer(writer: gguf.GGUFWriter, tokens: list[str], kinds: list[int], merges: list[str]) -> None:
    """Byte-level BPE, cut into pieces as DeepSeek-V3 does; no token is put before a prompt."""
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("deepseek-v3")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def tensors(tokens: list[str]) -> list[tuple[str, np.ndarray]]:
    """Random weights, the same every time. The embedding is the output layer as well."""
    dice = np.random.default_rng(0)

    def random(*shape: int) -> np.ndarray:
        return (dice.standard_normal(shape) * 0.05).astype(np.float32)

    word = re.compile("Ġ[a-z]{2,}").fullmatch
    loudness = np.array([1.0 if word(token) else HUSHED for token in tokens], np.float32)
    ones = np.ones(WIDTH, np.float32)
    matrices = {
        "attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH, WIDTH), "attn_v": (WIDTH, WIDTH), "attn_output": (WIDTH, WIDTH),
        "ffn_gate": (FEED, WIDTH), "ffn_up": (FEED, WIDTH), "ffn_down": (WIDTH, FEED),
    }  # fmt: skip
    embedding = random(len(tokens), WIDTH) * loudness[:, None]
    weights = [("token_embd", embedding.astype(np.float16)), ("output_norm", ones)]
    for layer in range(LAYERS):
        weights += [(f"blk.{layer}.{name}", random(*shape)) for name, shape in matrices.items()]
        weights += [(f"blk.{layer}.{name}", ones) for name in ("attn_norm", "ffn_norm")]
    return [(f"{name}.weight", array) for name, array in weights]


if __name__ == "__main__":
    write(json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2]))
