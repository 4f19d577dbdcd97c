"""An answer as plain values for JSON: every number in full, null where something is not known."""

from __future__ import annotations

from typing import Any

import msgspec

from loadstone import __version__
from loadstone.capacity import commands
from loadstone.capacity.answer import Answer, Way
from loadstone.capacity.assumptions import assumptions
from loadstone.capacity.candidates import Asked, max_num_seqs
from loadstone.capacity.search import Question
from loadstone.capacity.trial import Trial
from loadstone.sim.caution import caution

FORMAT = 1


def told(found: Answer, asked: Asked, question: Question, spare: float) -> dict[str, Any]:
    """The answer, and the question it is to."""
    best = found.best
    return {
        "format": FORMAT,
        "loadstone_version": __version__,
        "question": {
            "model": asked.model,
            "rate": question.rate,
            "workload": msgspec.to_builtins(question.workload),
            "objectives": [
                {"metric": one.metric, "stat": one.stat, "limit_ms": one.limit} for one in question.objectives
            ],
            "kept_free": spare,
            "random_seed": question.seed,
        },
        "best": _way(best) if best else None,
        "serve": " ".join(commands.serve(best.capacity.options)) if best else None,
        "closer_look": " ".join(commands.closer(best, question)) if best else None,
        "caution": _caution(best) if best else None,
        "cheapest_without_caution": _way(found.near) if found.near else None,
        "fleet": _trial(best.whole) if best and best.whole else None,
        "smaller_fleet": {"replicas": best.fewer[0], **_trial(best.fewer[1])}
        if best and best.fewer
        else None,
        "vllm_default": {"max_num_batched_tokens": found.usual.tokens, **_trial(found.usual.trial)}
        if found.usual
        else None,
        "curve": [_trial(one) for one in found.curve],
        "ways": [_way(one) for one in found.ways],
        "left_out": [one._asdict() for one in found.left_out],
        "assumptions": list(assumptions(found, asked, question, spare)),
    }


def _caution(way: Way) -> str | None:
    found = caution(way.setup.options)
    return found.caution if found else None


def _way(way: Way) -> dict[str, Any]:
    options = way.capacity.options
    return {
        "gpu": way.setup.gpu.name,
        "quantization": options.quantization,
        "tensor_parallel_size": options.tensor_parallel_size,
        "pipeline_parallel_size": options.pipeline_parallel_size,
        "max_num_batched_tokens": options.max_num_batched_tokens,
        "max_num_seqs": max_num_seqs(options),
        "replicas": way.replicas,
        "devices": way.devices,
        "usd_device_hour": way.setup.gpu.usd_hour,
        "usd_hour": way.usd_hour,
        "usd_million_output_tokens": way.usd_million,
        "price_source": way.setup.gpu.sources.get("usd_hour"),
        "replica_rate": way.capacity.rate,
        "limited_by": way.limited_by.split(", "),
        "caution": _caution(way),
        "tried_in_whole": way.whole is not None,
    }


def _trial(one: Trial) -> dict[str, Any]:
    fields = one._asdict()
    del fields["complete"]
    return {
        **fields,
        "values": {f"{metric}.{stat}": value for (metric, stat), value in sorted(one.values.items())},
    }
