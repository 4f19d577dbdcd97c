"""The ways of running a model that come into question: kinds of devices, how many share it, and with which flags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from loadstone.capacity.workload import Workload
from loadstone.errors import UsageError
from loadstone.roofline import gpus, models
from loadstone.roofline.gpu import Gpu
from loadstone.roofline.setup import Weights
from loadstone.roofline.weights import weights_of
from loadstone.sim.build import deployment
from loadstone.sim.options import SimOptions

TENSOR = (1, 2, 4, 8)
BATCHED_TOKENS = (512, 1024, 2048, 4096, 8192, 16384)
"""What a step may take: little keeps the gaps between tokens short, much takes prompts in fast."""
SPREAD = 4
"""A length may be so many standard deviations above its mean."""


class Asked(NamedTuple):
    """What may be varied; an empty list means the usual choices."""

    model: str
    gpus: Sequence[str] = ()
    tensor: Sequence[int] = ()
    pipeline: Sequence[int] = ()
    weights: Sequence[Weights] = ()
    batched_tokens: Sequence[int] = ()
    base: SimOptions = SimOptions()
    """All other flags of the engine."""


class Setup(NamedTuple):
    """One kind of device, one way of splitting the model, one type of weights."""

    gpu: Gpu
    options: SimOptions

    @property
    def devices(self) -> int:
        """Devices of one replica."""
        return self.options.tensor_parallel_size * self.options.pipeline_parallel_size

    @property
    def usd_hour(self) -> float | None:
        """What one replica costs; None: nobody knows."""
        return None if self.gpu.usd_hour is None else self.gpu.usd_hour * self.devices


class LeftOut(NamedTuple):
    """A setup that cannot be, and why in one sentence."""

    name: str
    why: str


def setups(asked: Asked, workload: Workload) -> Iterator[Setup | LeftOut]:
    """The setups that are to be tried, and those that cannot be. Raises `UsageError` for names that there are not."""
    shape = models.find(asked.model)
    longest = longest_tokens(workload)
    if longest > shape.max_model_len:
        raise UsageError(
            f"--workload: {longest:,} tokens of prompt and answer together, and {shape.name} takes {shape.max_model_len:,}."
        )
    named = [gpus.find(name) for name in asked.gpus] or usual_gpus()
    for gpu in named:
        for weights in asked.weights or (weights_of(shape),):
            for pipeline in asked.pipeline or (1,):
                for tensor in asked.tensor or TENSOR:
                    options = msgspec.structs.replace(
                        asked.base,
                        gpu=gpu.name,
                        hf_config_path=asked.model,
                        quantization=weights,
                        tensor_parallel_size=tensor,
                        pipeline_parallel_size=pipeline,
                        max_model_len=asked.base.max_model_len or longest,
                    )
                    yield _fitting(Setup(gpu, options), explicit=bool(asked.tensor))


def usual_gpus() -> list[Gpu]:
    """Every accelerator whose price is known, processors left out."""
    return [gpu for gpu in gpus.GPUS.values() if gpu.usd_hour is not None and not gpu.cpu]


def name(setup: Setup) -> str:
    """A setup in a few words: `2 x h100-sxm, tp 2, fp8`."""
    options = setup.options
    split = [
        f"{options.tensor_parallel_size} x {setup.gpu.name}"
        if options.tensor_parallel_size > 1
        else setup.gpu.name
    ]
    if options.pipeline_parallel_size > 1:
        split.append(f"pp {options.pipeline_parallel_size}")
    return ", ".join([*split, str(options.quantization)])


def longest_tokens(workload: Workload) -> int:
    """Prompt and answer of the longest request that is likely."""
    prompt = workload.isl + SPREAD * workload.isl_stddev
    return prompt + workload.osl + SPREAD * workload.osl_stddev


def flags(setup: Setup, asked: Sequence[int]) -> list[SimOptions]:
    """The options of a setup with each number of tokens that a step may take."""
    return [
        msgspec.structs.replace(setup.options, max_num_batched_tokens=tokens)
        for tokens in asked or BATCHED_TOKENS
    ]


def _fitting(setup: Setup, explicit: bool) -> Setup | LeftOut:
    node = setup.gpu.node_devices
    if setup.options.tensor_parallel_size > node and not explicit:
        return LeftOut(name(setup), f"a node has {node} devices.")
    try:
        deployment(setup.options)
    except UsageError as error:
        return LeftOut(name(setup), str(error))
    return setup
