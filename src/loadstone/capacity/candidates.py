"""The ways of running a model that come into question: kinds of devices, how many share it, and with which flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from loadstone.capacity.workload import Workload, longest
from loadstone.errors import UsageError, did_you_mean
from loadstone.roofline import calibration, gpus, models
from loadstone.roofline.gpu import Gpu
from loadstone.roofline.memory import OutOfMemory, default_flags
from loadstone.roofline.setup import Weights
from loadstone.roofline.shape import Shape
from loadstone.roofline.weights import weights_of
from loadstone.sim.build import deployment
from loadstone.sim.case import case_of
from loadstone.sim.options import SimOptions

TENSOR = (1, 2, 4, 8)
BATCHED_TOKENS = (512, 1024, 2048, 4096, 8192, 16384, 256, 128)
"""What a step may take: little keeps the gaps between tokens short, much takes prompts in fast. The search begins in the
middle, so that little is left to be found."""
OWN_PRICE = "--price"
"""The source of a price that was given."""

Kind = Literal["memory", "split", "node", "objectives"]
"""Why a setup is left out: it does not fit, cannot be split so, is no node's, or is too slow for a request alone."""


class Asked(NamedTuple):
    """What may be varied; an empty list means the usual choices."""

    model: str
    gpus: Sequence[str] = ()
    tensor: Sequence[int] = ()
    pipeline: Sequence[int] = ()
    weights: Sequence[Weights] = ()
    batched_tokens: Sequence[int] = ()
    prices: Mapping[str, float] = {}
    """USD a device and hour, by the name of a device; in place of the tables' prices."""
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
    kind: Kind
    why: str
    miss: float | None = None
    """Of the objective that a request alone breaks worst: how many times the limit it takes."""


def setups(asked: Asked, workload: Workload) -> Iterator[Setup | LeftOut]:
    """The setups that are to be tried, and those that cannot be.

    Raises `UsageError` for names that there are not, and for lengths that the model does not take.
    """
    shape = models.find(asked.model)
    most = _most_tokens(asked, workload, shape)
    for word, gpu in _devices(asked):
        for weights in asked.weights or (weights_of(shape),):
            for pipeline in asked.pipeline or (1,):
                for tensor in asked.tensor or TENSOR:
                    options = msgspec.structs.replace(
                        asked.base,
                        gpu=word,
                        hf_config_path=asked.model,
                        quantization=weights,
                        tensor_parallel_size=tensor,
                        pipeline_parallel_size=pipeline,
                        max_model_len=most,
                    )
                    yield _fitting(
                        Setup(gpu, options), asked.batched_tokens or BATCHED_TOKENS, bool(asked.tensor)
                    )


def _most_tokens(asked: Asked, workload: Workload, shape: Shape) -> int:
    """The `max_model_len` of every setup."""
    needed = longest(workload)
    told = f"--workload: the longest requests have {needed:,} tokens of prompt and answer together"
    if needed > shape.max_model_len:
        raise UsageError(f"{told}, and {shape.name} takes {shape.max_model_len:,}.")
    given = asked.base.max_model_len
    if given is not None and given < needed:
        raise UsageError(f"{told}, and --max-model-len is {given:,}.")
    return given or needed


def _devices(asked: Asked) -> list[tuple[str, Gpu]]:
    """The devices, by the words they are named with, at the prices that hold. Raises `UsageError`."""
    measured = calibration.read(asked.base.calibration) if asked.base.calibration else None
    words = list(asked.gpus)
    if not words and measured:
        words = [measured.setup.gpu]
    if not words:
        usual = [gpu.name for gpu in gpus.GPUS.values() if gpu.usd_hour is not None and not gpu.cpu]
        words = list(dict.fromkeys([*usual, *(gpus.find(word).name for word in asked.prices)]))
    found: dict[str, tuple[str, Gpu]] = {}
    for word in words:
        gpu = gpus.find(word)
        if measured and measured.hardware and gpu.name != gpus.find(measured.setup.gpu).name:
            raise UsageError(
                f"--gpu {word}: the calibration {asked.base.calibration} describes the hardware it was measured on,"
                f" {measured.setup.gpu}; leave --gpu out, or --calibration."
            )
        if measured and measured.hardware:
            gpu = measured.hardware
        found.setdefault(gpu.name, (word, gpu))
    return [(word, _priced(gpu, asked, found)) for word, gpu in found.values()]


def _priced(gpu: Gpu, asked: Asked, known: Mapping[str, object]) -> Gpu:
    """A device at the price that was given for it, if one was."""
    for word, usd in asked.prices.items():
        name = gpus.find(word).name if word not in known else word
        if name not in known:
            near = did_you_mean(name, known)
            raise UsageError(f"--price {word}: not among the devices: {', '.join(known)}. {near}".rstrip())
        if name == gpu.name:
            return msgspec.structs.replace(gpu, usd_hour=usd, sources={**gpu.sources, "usd_hour": OWN_PRICE})
    return gpu


def name(setup: Setup) -> str:
    """One replica in a few words: `2 x h100-sxm fp8`, `8 x h200 bf16 (tp 4, pp 2)`."""
    options = setup.options
    many = f"{setup.devices} x " if setup.devices > 1 else ""
    split = ""
    if options.pipeline_parallel_size > 1:
        split = f" (tp {options.tensor_parallel_size}, pp {options.pipeline_parallel_size})"
    return f"{many}{setup.gpu.name} {options.quantization}{split}"


def flags(setup: Setup, asked: Sequence[int]) -> list[SimOptions]:
    """The options of a setup with each number of tokens that a step may take; those that fit."""
    return [
        options
        for tokens in asked or BATCHED_TOKENS
        if _refused(options := _taking(setup.options, tokens)) is None
    ]


def _taking(options: SimOptions, tokens: int) -> SimOptions:
    return msgspec.structs.replace(options, max_num_batched_tokens=tokens)


def usual(options: SimOptions) -> SimOptions | None:
    """The same with vLLM's own `max_num_batched_tokens`; None: that is what they have, or there is no such engine."""
    case = case_of(options)
    if case is None:
        return None
    tokens = default_flags(case.gpu, case.parallel.tensor * case.parallel.pipeline).max_num_batched_tokens
    found = _taking(options, tokens)
    return None if found == options or _refused(found) else found


def _fitting(setup: Setup, batched: Sequence[int], explicit: bool) -> Setup | LeftOut:
    """The setup, if it can be with some number of tokens that a step may take."""
    node = setup.gpu.node_devices
    if setup.options.tensor_parallel_size > node and not explicit:
        return LeftOut(name(setup), "node", f"{node} devices are joined, and no more.")
    tried = [_refused(_taking(setup.options, tokens)) for tokens in batched]
    if None in tried:
        return setup
    refused = tried[0]
    kind: Kind = "memory" if isinstance(refused, OutOfMemory) else "split"
    return LeftOut(name(setup), kind, str(refused))


def max_num_seqs(options: SimOptions) -> int:
    """The sequences that its engine runs at most. UsageError: there is none."""
    return deployment(options).engines[0].limits.max_num_seqs


def _refused(options: SimOptions) -> UsageError | None:
    """Why there is no such engine."""
    sequences, tokens = options.max_num_seqs, options.max_num_batched_tokens
    if sequences and tokens and sequences > tokens:
        return UsageError(
            f"--max-num-seqs {sequences}: vLLM refuses more than --max-num-batched-tokens, {tokens}."
        )
    try:
        max_num_seqs(options)
    except UsageError as error:
        return error
    return None
