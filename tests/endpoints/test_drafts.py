"""Speculative decoding as servers tell of it in an answer, and predicted output in its usage."""

from __future__ import annotations

import json

import pytest

from loadstone.endpoints import Usage, _drafts, _usage, chat, completions
from loadstone.endpoints._drafts import Drafts
from loadstone.read.answer import understand
from loadstone.wire.http1 import Response

VLLM = {
    "speculative_decoding": {
        "mean_acceptance_length": 1.25, "draft_acceptance_rate": 0.08, "acceptance_histogram": [36, 1, 3],
        "num_spec_steps": 40, "num_accepted_draft_tokens": 10, "num_draft_tokens": 120, "num_spec_tokens": 3,
    }
}  # fmt: skip
LLAMA = {"prompt_n": 1, "predicted_ms": 9.5, "draft_n": 90, "draft_n_accepted": 81}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


@pytest.mark.parametrize(
    ("metrics", "timings", "drafts"),
    [
        (VLLM, None, Drafts(40, 120, 10)),
        (None, LLAMA, Drafts(None, 90, 81)),
        (VLLM, LLAMA, Drafts(40, 120, 10)),
        ({"time_to_first_token_ms": 4}, {"prompt_n": 3}, None),
        ({"speculative_decoding": None}, None, None),
        ({"speculative_decoding": {"num_draft_tokens": -1, "num_accepted_draft_tokens": 1}}, None, None),
        ("many", ["draft_n"], None),
    ],
)
def test_what_is_told(metrics, timings, drafts):
    assert _drafts.told(metrics, timings) == drafts


@pytest.mark.parametrize("endpoint", [chat, completions])
@pytest.mark.parametrize(("field", "value", "steps"), [("metrics", VLLM, 40), ("timings", LLAMA, None)])
@pytest.mark.parametrize("usage", [None, USAGE])
def test_it_comes_with_the_last_chunk_or_a_whole_body(endpoint, field, value, steps, usage):
    text = {"delta": {"content": "ab"}, "message": {"content": "ab"}, "text": "ab", "finish_reason": "stop"}
    whole = json.dumps({"choices": [text], "usage": usage, field: value}).encode()
    chunks = [{"choices": [text]}, {"choices": [], "usage": usage, field: value}]
    stream = b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"
    for media, body in (("application/json", whole), ("text/event-stream", stream)):
        response = Response(200, {"content-type": media}, body, [len(body)], complete=True)
        reply = understand(response, endpoint, streaming=media != "application/json", complete=True).reply
        found = reply.usage
        assert (found.draft_steps, found.draft_tokens, found.draft_accepted_tokens) == (
            steps,
            *((120, 10) if steps else (90, 81)),
        )
        assert found.completion_tokens == (usage and 2)
        assert reply.text == ["ab"]


def test_predicted_output_is_in_the_details():
    details = {"accepted_prediction_tokens": 8, "rejected_prediction_tokens": 0, "reasoning_tokens": 1}
    assert _usage.normalised({"completion_tokens": 9, "completion_tokens_details": details}) == Usage(
        completion_tokens=9, reasoning_tokens=1, accepted_prediction_tokens=8, rejected_prediction_tokens=0
    )
