"""Writes a tiny Qwen3 with random weights and the vocabulary of a tokenizer.json: a model folder for vLLM, 70 MB.

Run where vLLM is installed, as `python qwen.py TOKENIZER FOLDER`. Not part of the tests; see docs/real-servers.md.
"""

from __future__ import annotations

import sys

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

TEMPLATE = (
    "{% for message in messages %}[{{ message.role }}]\n{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]\n{% endif %}"
)
CONTEXT_TOKENS = 8192


def write(tokenizer: str, folder: str) -> None:
    """The folder with model, tokenizer and chat template."""
    engine = Tokenizer.from_file(tokenizer)
    bos, eos, pad = (engine.id_to_token(number) for number in range(3))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=engine,
        bos_token=bos,
        eos_token=eos,
        pad_token=pad,
        model_max_length=CONTEXT_TOKENS,
        chat_template=TEMPLATE,
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    Qwen3ForCausalLM(shape(engine.get_vocab_size())).save_pretrained(folder)


def shape(vocabulary_size: int) -> Qwen3Config:
    """Two layers, 128 wide."""
    return Qwen3Config(
        vocab_size=vocabulary_size,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )


if __name__ == "__main__":
    write(*sys.argv[1:])
