"""Flags that people know from other load generators and that mean something else, or nothing, here.

Synonyms that mean the same are in the tree; this is for the rest, so that one sentence says what to type.
"""

from __future__ import annotations

_EXTRA = "Send it as a request field: --extra-inputs"

ADVICE = {
    "--num-prompts": "It counts requests in one tool and prompts in another; "
    "say --request-count or --num-dataset-entries.",
    "--backend": "The API shape is --endpoint-type, such as chat or completions.",
    "--host": "The address is --url HOST:PORT.",
    "--port": "The address is --url HOST:PORT.",
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
    "--percentile-metrics": "Every metric has every percentile; leave it out.",
    "--metric-percentiles": "Every metric has every percentile; leave it out.",
    "--self-timed": "Requests are sent at the timestamps of --input-file with --fixed-schedule.",
    "--ready-check-timeout-sec": "The server is waited for with --wait-for-model-timeout.",
    "--save-result": "Every run is saved; --artifact-dir says where.",
    "--save-detailed": "Every run is saved in detail; --artifact-dir says where.",
    "--result-dir": "The folder of results is --artifact-dir.",
    "--dataset-name": "Prompts are synthetic, of the lengths --isl and --osl or those of an --input-file.",
}
