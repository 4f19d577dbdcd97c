"""One case: a model on devices in one way, from the words a user says it with. Knows neither efficiencies nor runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from loadstone.errors import UsageError, did_you_mean
from loadstone.roofline.cost import Roofline
from loadstone.roofline.gpu import Gpu
from loadstone.roofline.setup import FLOOR, Efficiency, KvType, Parallel, Precision, Weights
from loadstone.roofline.shape import Shape
from loadstone.roofline.weights import weights_of

MOST_DEVICES = 65_536
MOST_DRAFTS = 1_000
"""No server is so large, and no draft so long: numbers above are slips."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What the roofline of a server depends on."""

    gpu: Gpu
    shape: Shape
    precision: Precision = Precision()
    parallel: Parallel = Parallel()
    replicas: int = 1
    """Engines behind one address, among which the running sequences are shared."""
    draft_tokens: int = 0
    """Tokens that speculation may add to a sequence's step."""

    def roofline(self, efficiency: Efficiency | None = None, others: float | None = None) -> Roofline:
        """The cost of its steps where all replicas are equally busy; without an efficiency the floor of one of them.

        The floor is the datasheet's, and takes the other replicas that share the experts to be idle, unless `others` says
        how much each of them has to do in units of what this one has. UsageError: it cannot be split so.
        """
        if others is None:
            others = 0.0 if efficiency is None else 1.0
        return Roofline(
            self.shape, self.gpu, self.precision, self.parallel, efficiency or FLOOR, others=others
        )

    @property
    def words(self) -> str:
        """It in a few words: `llama-3.1-8b bf16 on 2 x h100-sxm`."""
        devices = self.parallel.devices
        many = f"{devices} x " if devices > 1 else ""
        times = f", {self.replicas} engines" if self.replicas > 1 and self.parallel.data == 1 else ""
        usual = self.precision.kv == auto_kv(self.precision.weights)
        kv = "" if usual else f", KV cache {self.precision.kv}"
        return f"{self.shape.name} {self.precision.weights}{kv} on {many}{self.gpu.name}{times}"


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A case as it is asked for: the keys of `--roofline`, by vLLM's names where it has them."""

    gpu: str
    model: str
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    enable_expert_parallel: bool = False
    quantization: Weights | None = None
    kv_cache_dtype: Literal["auto"] | KvType = "auto"
    num_speculative_tokens: int = 0


def case(asked: Asked, gpu: Gpu | None = None) -> Case:
    """The case; with `gpu` in place of what its name says. UsageError: unknown names, or it cannot be split so."""
    from loadstone.roofline import gpus, models  # the tables are of use only to who asks for a case

    shape = models.find(asked.model)
    together = asked.enable_expert_parallel and shape.experts > 0
    weights = asked.quantization or weights_of(shape)
    found = Case(
        gpu=gpu or gpus.find(asked.gpu),
        shape=shape,
        precision=Precision(
            weights=weights, kv=auto_kv(weights) if asked.kv_cache_dtype == "auto" else asked.kv_cache_dtype
        ),
        parallel=Parallel(
            tensor=asked.tensor_parallel_size,
            pipeline=asked.pipeline_parallel_size,
            data=asked.data_parallel_size if together else 1,
            expert=together,
        ),
        replicas=asked.data_parallel_size,
        draft_tokens=asked.num_speculative_tokens,
    )
    found.roofline()
    return found


def auto_kv(weights: Weights) -> KvType:
    """The type of the KV cache where none is asked for: that of the activations, as vLLM's `auto`."""
    return "fp32" if weights == "fp32" else "bf16"


def asked_of(known: Case) -> Asked | None:
    """Words that ask for this case again; None where its model or its devices have no name that is known."""
    from loadstone.roofline import gpus, models

    name = known.shape.name
    model = name if name in models.MODELS else known.shape.source.partition(";")[0]
    found = Asked(
        gpu=known.gpu.name,
        model=model,
        tensor_parallel_size=known.parallel.tensor,
        pipeline_parallel_size=known.parallel.pipeline,
        data_parallel_size=known.replicas,
        enable_expert_parallel=known.parallel.expert,
        quantization=known.precision.weights,
        kv_cache_dtype="auto"
        if known.precision.kv == auto_kv(known.precision.weights)
        else known.precision.kv,
        num_speculative_tokens=known.draft_tokens,
    )
    if gpus.GPUS.get(known.gpu.name) != known.gpu:
        return None
    try:
        again = case(found)
    except UsageError:
        return None
    shape = msgspec.structs.replace(again.shape, weights=known.shape.weights, source=known.shape.source)
    return found if (shape, again.words) == (known.shape, known.words) else None


def asked(words: str, model: str | None, where: str = "--roofline") -> Asked:
    """What `gpu=h100,model=llama-3.1-8b` asks for; `model` where none is named. UsageError: unknown keys or values."""
    values: dict[str, Any] = {}
    for pair in filter(str.strip, words.split(",")):
        key, equals, value = (part.strip() for part in pair.partition("="))
        name = key.replace("-", "_")
        if not equals:
            raise UsageError(
                f"{where} {pair.strip()!r} is not KEY=VALUE; write for example gpu=h100,model=llama-3.1-8b."
            )
        if name not in Asked.__struct_fields__:
            known = Asked.__struct_fields__
            advice = f"{did_you_mean(name, known)} Known: {', '.join(known)}.".lstrip()
            raise UsageError(f"{where}: there is no key {name!r}. {advice}")
        if name in values:
            raise UsageError(f"{where}: {name} is given twice; give it once.")
        values[name] = value
    if "gpu" not in values:
        raise UsageError(
            f"{where}: names no gpu; write for example gpu=h100 (loadstone roofline --list has all)."
        )
    if "model" not in values and model is None:
        raise UsageError(f"{where}: names no model; write for example model=llama-3.1-8b.")
    return convert({"model": model, **values}, where)


def convert(values: dict[str, Any], where: str) -> Asked:
    """The values as what is asked for. UsageError: one is of the wrong kind, or out of range."""
    try:
        found = msgspec.convert(values, Asked, strict=False)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        raise UsageError(f"{where} {place.rstrip('`')}: {what}.") from None
    return checked(found, where)


def checked(asked: Asked, where: str) -> Asked:
    """The same. UsageError: a number in it is out of range."""
    sizes = ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size")
    bounds = {**dict.fromkeys(sizes, (1, MOST_DEVICES)), "num_speculative_tokens": (0, MOST_DRAFTS)}
    for name, (least, most) in bounds.items():
        value = getattr(asked, name)
        if not least <= value <= most:
            bound = f"{least} or more" if value < least else f"at most {most:,}"
            raise UsageError(f"{where} {name} = {value}: must be {bound}.")
    return asked


def settled(words: str, model: str | None, where: str = "--roofline") -> Case:
    """The case that a text means: keys and values, or the path of a calibration file."""
    if "=" in words or not Path(words).suffix:
        return case(asked(words, model, where))
    from loadstone.roofline import calibration

    return calibration.read(words).case()
