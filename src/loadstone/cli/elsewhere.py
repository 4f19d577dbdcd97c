"""Flags that people know from other load generators and that mean something else, or nothing, here.

Synonyms that mean the same are in the tree; this is for the rest, so that one sentence says what to type.
"""

from __future__ import annotations

from collections.abc import Iterable

from loadstone.errors import nearest

_EXTRA = "Send it as a request field: --extra-inputs"
_COUNTS = (
    "It counts requests in one tool and prompts in another; say --request-count or --num-dataset-entries."
)
_EVERY = "Every metric has every percentile; leave it out."
_ADDRESS = "The address is --url HOST:PORT."
_SAVED = "Every run is saved; --artifact-dir says where."
_NAMES = "The folder of results is --artifact-dir; the names in it are fixed."
_SHAPE = "The API shape is --endpoint-type, such as chat or completions."
_PROMPTS = "Prompts are synthetic, of the lengths --isl and --osl or those of an --input-file."
_PREFIX = "Prompts share no prefix here; leave it out."

ADVICE = {
    "--num-prompts": _COUNTS,
    "--warmup-requests": "Requests before the measurement are --warmup-request-count.",
    "--backend": _SHAPE,
    "--host": _ADDRESS,
    "--port": _ADDRESS,
    "--transport": "Requests go over HTTP; leave it out.",
    "--request-content-type": "Requests are JSON; leave it out.",
    "--use-server-token-count": "The server's counts are taken wherever it sends them; leave it out.",
    "--no-stream": "Answers are streamed only with --streaming.",
    "--stream": "The flag is --streaming.",
    "--cacert": "The authorities to trust are --ca FILE.",
    "--no-verify": "Any TLS certificate is accepted with --insecure.",
    "--http-proxy": "The proxy is --proxy http://HOST:PORT.",
    "--ignore-eos": f"{_EXTRA} ignore_eos:true.",
    "--temperature": f"{_EXTRA} temperature:VALUE.",
    "--top-p": f"{_EXTRA} top_p:VALUE.",
    "--top-k": f"{_EXTRA} top_k:VALUE.",
    "--extra-body": f"{_EXTRA} '{{...}}'.",
    "--percentile-metrics": _EVERY,
    "--metric-percentiles": _EVERY,
    "--self-timed": "Requests are sent at the timestamps of --input-file with --fixed-schedule.",
    "--ready-check-timeout-sec": "The server is waited for with --wait-for-model-timeout.",
    "--save-result": _SAVED,
    "--save-detailed": _SAVED,
    "--result-dir": "The folder of results is --artifact-dir.",
    "--result-filename": _NAMES,
    "--output-file": _NAMES,
    "--profile-export-file": _NAMES,
    "--profile-export-prefix": _NAMES,
    "--dataset-name": _PROMPTS,
    "--dataset-path": "Lengths and moments of requests come from --input-file FILE.",
    "--custom-dataset-type": "An --input-file is of one kind, which needs no name; leave it out.",
    "--public-dataset": _PROMPTS,
    "--random-prefix-len": _PREFIX,
    "--prefix-prompt-length": _PREFIX,
    "--num-prefix-prompts": _PREFIX,
    "--random-range-ratio": "Lengths vary by --isl-stddev and --osl-stddev.",
    "--sonnet-input-len": "The length of prompts is --isl.",
    "--service-kind": _SHAPE,
    "--flush-cache": "The cache is emptied with --reset-kv-cache --reset-kv-cache-path /flush_cache.",
    "--served-model-name": "The model as the server knows it is --model.",
    "--min-p": f"{_EXTRA} min_p:VALUE.",
    "--frequency-penalty": f"{_EXTRA} frequency_penalty:VALUE.",
    "--presence-penalty": f"{_EXTRA} presence_penalty:VALUE.",
    "--repetition-penalty": f"{_EXTRA} repetition_penalty:VALUE.",
    "--extra-request-body": f"{_EXTRA} '{{...}}'.",
    "--disable-tqdm": "Progress is left out with --ui none.",
    "--disable-stream": "Answers are streamed only with --streaming.",
}


def instead(flag: str, ours: Iterable[str], all_by: str = "--help") -> str:
    """What to type in place of an unknown flag: of another tool's, of a misspelt one of `ours`, of nearly another's.

    `all_by` is the flag of the verb that lists all it has.
    """
    if flag in ADVICE:
        return ADVICE[flag]
    if near := _near(flag, ours):
        return f"Did you mean {near}?"
    return ADVICE.get(_near(flag, ADVICE) or "", f"{all_by} lists them.")


def _near(flag: str, known: Iterable[str]) -> str | None:
    """The nearest of the known long flags; their dashes are nothing in common."""
    near = nearest(flag.lstrip("-"), [one.removeprefix("--") for one in known])
    return f"--{near}" if near else None
