"""Serves a model with llama.cpp's own HTTP server; run in `.venv-llama` as `python llama.py MODEL PORT`.

Ends when its stdin does, so that it never outlives whoever started it.
"""

from __future__ import annotations

import sys

import xllamacpp

SLOTS = 8
SLOT_TOKENS = 2048


def parameters(model: str, port: int) -> xllamacpp.CommonParams:
    """One thread: with two on two busy cores llama.cpp waits for itself most of the time."""
    wanted = xllamacpp.CommonParams()
    wanted.model.path = model
    wanted.model_alias = {"tiny"}
    wanted.hostnames = ["127.0.0.1"]
    wanted.port = port
    wanted.n_parallel = SLOTS
    wanted.n_ctx = SLOTS * SLOT_TOKENS
    wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = 1
    wanted.endpoint_metrics = True
    wanted.use_jinja = True
    wanted.warmup = False
    return wanted


if __name__ == "__main__":
    server = xllamacpp.Server(parameters(sys.argv[1], int(sys.argv[2])))
    print("listening", server.listening_address, flush=True)
    sys.stdin.read()
